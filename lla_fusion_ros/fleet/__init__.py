"""Many bags: fused by the workers of a Dask cluster, one folder of outputs each, one summary over all of them.

    words ──find──▶ bags ──look──▶ those to do ──fuse, on workers──▶ records and tables ──summary──▶ page, JSON
                                                                     └─ compare: two such folders

A folder of results is complete or not there, so a run that was killed goes on where it was. Imports everything
up to `replay`.
"""
