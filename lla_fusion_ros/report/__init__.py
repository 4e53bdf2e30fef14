"""What a run was like: one HTML file that needs no other, fit for phones and dark mode, and scores.

In: fused frames, one after the other, and a truth file where there is one. Imports everything up to `stream`.
"""
