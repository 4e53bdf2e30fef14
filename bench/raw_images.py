"""Raw 1080p images of two cameras at 10 Hz through DDS to the perception node: how many arrive, with the
middleware's defaults and with the shipped Fast DDS profile.

Example:
    PYTHONPATH=. .venv/bin/python -m bench.raw_images --seconds 15
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np

from bench.machine import dds_profile

CAMERAS = ("left", "right")
RATE = 10.0
HEIGHT, WIDTH = 1080, 1920
PATIENCE = 120.0  # seconds for the node to listen
GRACE = 4.0  # seconds for what is still on the way
SHOWN = ("images", "detections", "frames", "fused_frames", "dropped_images_lost", "dropped_queue_full")


def send(seconds: float) -> dict[str, Any]:
    """The cameras: sends images and boxes, and gives what the node's last /diagnostics says of them."""
    import rclpy
    from diagnostic_msgs.msg import DiagnosticArray
    from rclpy.node import Node
    from sensor_msgs.msg import Image
    from vision_msgs.msg import Detection2DArray

    from lla_fusion_ros.messages.cdr import Header
    from lla_fusion_ros.messages.detections import write_detections
    from lla_fusion_ros.messages.images import write_image

    rclpy.init()
    node = Node("cameras")
    images = {camera: node.create_publisher(Image, f"{camera}/image", 10) for camera in CAMERAS}
    boxes = {
        camera: node.create_publisher(Detection2DArray, f"{camera}/detections", 10) for camera in CAMERAS
    }
    told: dict[str, dict[str, Any]] = {}

    def on_diagnostics(message: Any) -> None:
        for status in message.status:
            values = {pair.key: pair.value for pair in status.values}
            told[status.name.rpartition(" ")[2]] = {"message": status.message, **values}
            if status.message not in ("well", "nothing received yet") and "camera" in status.name:
                said.setdefault(status.message, None)

    said: dict[str, None] = {}
    node.create_subscription(DiagnosticArray, "/diagnostics", on_diagnostics, 10)
    wait = time.monotonic() + PATIENCE
    while not all(p.get_subscription_count() for p in (*images.values(), *boxes.values())):
        rclpy.spin_once(node, timeout_sec=0.1)
        if time.monotonic() > wait:
            raise SystemExit("nobody listens to the cameras")
    pixels = np.random.default_rng(0).integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8)
    begun, sent = time.monotonic(), 0
    while (due := begun + sent / RATE) < begun + seconds:
        while (left := due - time.monotonic()) > 0:
            rclpy.spin_once(node, timeout_sec=left)
        for camera in CAMERAS:
            header = Header(time.time_ns(), camera)
            images[camera].publish(write_image(header, pixels, "bgr8"))
            boxes[camera].publish(
                write_detections(header, ("1",), np.array([[400.0, 300.0, 0.0, 60.0, 60.0]]))
            )
        sent += 1
    end = time.monotonic() + GRACE
    while time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.1)
    counts = {key: sum(int(told.get(camera, {}).get(key, 0)) for camera in CAMERAS) for key in SHOWN}
    rclpy.try_shutdown()
    return {
        "sent": sent * len(CAMERAS),
        "seconds": time.monotonic() - GRACE - begun,
        **counts,
        "said": list(said),
    }


def measure(profile: dict[str, str], seconds: float, model: str) -> dict[str, Any]:
    """One run with the node and the cameras in processes of their own."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([".", os.environ.get("PYTHONPATH", "")])}
    env.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    env |= profile
    parameters = ["--ros-args", "-p", f"model:={model}", "-p", f"cameras:=[{','.join(CAMERAS)}]"]
    node = subprocess.Popen(
        [sys.executable, "-m", "lla_fusion_ros.ros", "perception", *parameters],
        env=env,
        stderr=subprocess.DEVNULL,
    )
    try:
        cameras = [sys.executable, "-m", "bench.raw_images", "--cameras", "--seconds", str(seconds)]
        done = subprocess.run(cameras, env=env, stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])
    finally:
        node.send_signal(signal.SIGINT)
        node.wait(timeout=20)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--model", default="signworld")
    parser.add_argument("--cameras", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cameras:
        print(json.dumps(send(options.seconds)), flush=True)
        return 0
    for name, profile in {"defaults": {}, "config/fastdds.xml": dds_profile()}.items():
        result = measure(profile, options.seconds, options.model)
        print(f"{name}: {json.dumps(result)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
