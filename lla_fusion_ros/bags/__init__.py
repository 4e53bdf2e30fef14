"""rosbag2 files: read whatever can be read, write what stock ROS 2 tools open. Free of ROS."""
