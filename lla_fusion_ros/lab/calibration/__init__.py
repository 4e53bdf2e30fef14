"""Calibration: trained networks and validation tracks in, a bundle with everything fitted and scored out.

`assemble` is the whole way. Imports `lab.datasets`, `bundle` and what stands before it.
"""
