"""The Laplace posterior of the networks: from training data to variances and covariances of logits."""
