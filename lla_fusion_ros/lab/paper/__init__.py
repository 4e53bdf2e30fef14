"""The paper's experiments: MNIST, Fashion-MNIST, CIFAR-10 and camera traps in, tables and figures out.

`reproduce` is the whole way. Imports `lab.datasets`, `lab.evaluation`, `fusion` and what stands before it.
"""
