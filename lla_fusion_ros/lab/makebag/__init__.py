"""Bags with a known truth: a drive, or tracks of any data set, in; a rosbag2 folder and its truth out.

Imports `bags`, `messages`, `report` (the truth file) and `signworld`.
"""
