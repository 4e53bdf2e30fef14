"""Speed and memory of what users run: `make bench`, and `make soak` for a long run.

In comes a bundle; out come ratios within one run, as a table and as JSON. A tool of the repository: it may
import everything of the package, and nothing of the package imports it.
"""
