"""From messages to fused classes, without ROS: what the live nodes and the offline replay both run.

In: bytes of a camera's topics, offered to a Perception. Out: FusedFrame or ViewFrame, and the bytes of the
messages that are published or written. Imports what stands before it in the order of tools/check_imports.py.

image, detections ──pairing──▶ CameraFrame ──identity, classify──▶ ViewFrame ──fuse──▶ FusedFrame ──▶ bytes
crops ─────────────────────▶ CropFrame ────────────┘
"""
