"""Calibrated class distributions for tracked objects, over all cameras and all frames."""

__version__ = "0.1.0"
