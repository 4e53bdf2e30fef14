"""The ROS 2 nodes: parameters and messages in, core call, messages out. Nothing else imports rclpy."""
