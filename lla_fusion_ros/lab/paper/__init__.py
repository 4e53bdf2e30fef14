"""The paper's experiments: MNIST, Fashion-MNIST and CIFAR-10 in, its tables and figures out.

`reproduce` is the whole way. Imports `lab.datasets`, `lab.evaluation`, `fusion` and what stands before it.
"""
