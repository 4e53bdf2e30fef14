"""From messages to fused classes, without ROS: what the live nodes and the offline replay both run.

In: bytes of a camera's topics, offered to a Perception. Out: FusedFrame or ViewFrame, and the bytes of the
messages that are published or written. Imports everything up to `messages`.

bytes ─queues: parse, pair─▶ CameraFrame ─classify─▶ ViewFrame ─fuse─▶ FusedFrame ─frame_messages─▶ bytes
"""
