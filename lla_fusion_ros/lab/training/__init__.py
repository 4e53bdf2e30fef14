"""Training: tracks and a recipe in, an ensemble of networks and the calibrated bundle out.

`recipe` is the whole way. Imports `lab.datasets`, `lab.calibration`, `networks` and `bundle`.
"""
