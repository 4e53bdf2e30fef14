"""The fault campaign: real processes over real DDS, a sign-world drive, and everything that can go wrong.

python -m faults --help tells how to run it; `registry.py` what a fault is; docs/robustness.md what came out.
"""
