"""ROS 2 messages as bytes, without ROS: CDR in, plain dataclasses out, and back; the contract of topic names.

In: bytes of any origin; what is damaged raises InputError. Out: ImageMessage, Detections, Status, or bytes.
Imports `types` and `images`.
"""
