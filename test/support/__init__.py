"""Helpers shared by the tests; see `ros.py` for the real-ROS fixtures."""
