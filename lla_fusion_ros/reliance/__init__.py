"""Reliance: what a planner may count on, beyond a probability.

`statements` makes a set of classes and an upper bound of the error from fused pmfs, with numbers calibrated
on validation objects; `decisions` chooses the decision of least expected cost. Imports `types`.
"""
