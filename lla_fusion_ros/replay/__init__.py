"""A bag in, fused classes out: the live nodes' own Perception, fed from a file as fast as the machine can.

Out: a folder with a fused bag, a table, a report and scores. Imports everything up to `report` but `ros`.
"""
