"""Evaluation: a bundle and tracks in; scores of every fuser, regime, length and number of networks out.

`evaluate` is the whole way. Imports `lab.datasets`, `lab.calibration`, `bundle` and what stands before it.
"""
