"""A bag in, fused classes out: the live nodes' own stages, fed from a file as fast as the machine can."""
