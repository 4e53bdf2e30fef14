"""What `lla-fusion watch` shows of a running system; no ROS in here, `ros/watcher.py` feeds it.

`scene` holds the objects, cameras and nodes of a graph, `page_server` shows them as a page on localhost.
Imports everything up to `stream`.
"""
