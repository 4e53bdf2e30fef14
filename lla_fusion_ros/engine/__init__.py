"""The engine: views of tracked objects in, fused pmfs and warnings out, frame by frame.

`clock` says which frames are in time, `tracks` which row is which track, `cost` what a fuser would take;
`engine` runs fuser and warnings on the rows. Imports `types`, `posterior`, `fusion` and `warnings`.
"""
