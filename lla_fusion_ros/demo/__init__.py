"""The demo: a drive through the real nodes, as processes over DDS; a table, a video and a report out.

`run_demo` is the whole way. Imports `lab.makebag`, `signworld`, `replay` and what stands before it; starts
the nodes of `ros` as programs.
"""
