"""How far a frame walks: few files read from the bytes of an image to those of `/fused_classes`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import lla_fusion_ros
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import write_detections
from lla_fusion_ros.messages.images import write_image
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.stream.frame_messages import fused_messages
from lla_fusion_ros.stream.perception import Perception
from support.tiny_bundle import tiny_bundle

PACKAGE = str(Path(lla_fusion_ros.__file__).parent) + "/"
MOST_FILES = {"stream": 8, "messages": 3, "images": 1}
BOXES = np.array([[20.0, 20, 0, 16, 16], [60, 40, 0, 20, 12]])


def test_a_frame_passes_few_files_from_bytes_to_bytes():
    bundle = tiny_bundle()
    perception = Perception(bundle, Classifier(bundle, "cpu"), ["left"])
    walked: list[str] = []

    def note(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE) and file.removeprefix(PACKAGE) not in walked:
            walked.append(file.removeprefix(PACKAGE))

    for number in range(3):
        header = Header(10**12 + number * 10**8, "left")
        picture = np.random.default_rng(number).integers(0, 255, (60, 80, 3), np.uint8)
        image, boxes = write_image(header, picture, "rgb8"), write_detections(header, ("a", "b"), BOXES)
        walked.clear()  # the last frame counts: nothing is done for the first time
        sys.setprofile(note)
        try:
            perception.offer("left", "image", image)
            perception.offer("left", "detections", boxes)
            (fused,) = perception.step()
            fused_messages(fused, bundle.class_names)
        finally:
            sys.setprofile(None)
    for folder, most in MOST_FILES.items():
        passed = [file for file in walked if file.startswith(f"{folder}/")]
        assert 0 < len(passed) <= most, walked
