"""The Laplace posterior of the networks: from training data to variances and covariances of logits.

`fit` makes it, `tune` chooses prior and temperature, `ensemble` is what fusers ask; `cross`, `full`, `kron`
and `last_k` are the other curvatures. Imports `pmf` and errors only.
"""
