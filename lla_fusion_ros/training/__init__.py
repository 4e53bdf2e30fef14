"""Training of ensembles."""
