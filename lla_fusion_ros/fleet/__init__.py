"""Many bags: fused by the workers of a Dask cluster, a folder of results each, one summary over all of them.

    words ──find──▶ bags ──look──▶ those to do ──work──▶ tables, records ──summary──▶ page, JSON
                                                         └─ compare two such folders

A folder of results is complete or not there, so a run that was killed goes on where it was. Imports
everything up to `replay`.
"""
