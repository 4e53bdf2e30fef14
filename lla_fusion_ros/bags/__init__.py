"""rosbag2 files without ROS: mcap and sqlite3, split, compressed or cut off.

In: a folder or file. Out: topics, messages as bytes in the order of recording, which topics are cameras, what
was lost; and a writer. Imports `types` and `messages`.
"""
