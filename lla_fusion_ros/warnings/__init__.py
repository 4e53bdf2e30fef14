"""Warnings: is this object something the networks know, and do its views belong together?

In come the views of each track and the fitted model of the bundle; out go p-values, warnings and which tracks
begin again. The flow, each step a file:

    state          running sums and last views of each track
    scores         p-values of "a known object", "one object", "cameras agree" (the last two: contradiction)
    flow           runs them for all tracks of an engine, and decides: rates, hysteresis, levels, restarts
    result         what is said of the tracks of a frame

`model` is what a bundle stores, with its thresholds; `fit`, `fit_space` and `fit_contradiction` make it.
Imports `types`, `posterior` and `fusion`.
"""
