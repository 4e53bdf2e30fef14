"""The laboratory: from data sets to bundles, and from bundles to numbers and figures. No node imports it.

`datasets` loads, `training`, `importing` and `calibration` make a bundle, `evaluation` scores it, `paper`
repeats the paper's experiments, `makebag` writes bags with a known truth, `plots` is the look of all figures.
May import every folder but `demo` and `cli`.
"""
