"""The command line: one file per verb, each a few lines over the library. Words in, text or JSON out.

`options`, `words`, `progress` and `tables` are what verbs share. Only this folder prints; it may import all.
"""
