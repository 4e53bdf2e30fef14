"""What all other folders speak in: views, tracks, pmfs, scores, settings, errors. Plain dataclasses.

Imports no other folder of the package.
"""
