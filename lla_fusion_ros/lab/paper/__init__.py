"""The paper's experiments on MNIST, Fashion-MNIST and CIFAR-10, beside its printed numbers."""
