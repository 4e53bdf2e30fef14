"""Gradient fits of the fusers that have more coefficients than a search can handle (torch)."""
