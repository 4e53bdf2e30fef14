"""Import: a trained torch module or ONNX file and a data set in, a bundle out; nothing is trained but heads.

`recipe` is the whole way. Imports `lab.datasets`, `lab.calibration`, `networks` and `bundle`; needs onnx.
"""
