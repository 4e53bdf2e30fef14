"""Plain types that everything shares: views, tracks of views, track sets, settings, counts, errors, pmfs.

No input and no output of its own: the words in which the other folders speak. Imports nothing of the package.
"""
