"""From messages to fused classes, without ROS: what the live nodes and the offline replay both run.

image, detections ──pairing──▶ CameraFrame ──identity, classify──▶ ViewFrame ──fuse──▶ FusedFrame ──▶ bytes
crops ─────────────────────▶ CropFrame ────────────┘
"""
