"""The Laplace posterior of the networks: from training data to variances and covariances of logits.

Logits and features of training crops come in, covariances of new logits go out. `fit` makes it, `tune`
chooses prior and temperature, `ensemble` is what fusers ask; `cross`, `full`, `kron` and `last_k` are the
other curvatures. Imports `types`.
"""
