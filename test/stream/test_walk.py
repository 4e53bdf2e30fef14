"""How far a frame walks: few files run from the bytes of an image to those of `/fused_classes`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import lla_fusion_ros
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import write_detections
from lla_fusion_ros.messages.images import write_image
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.stream.frame_messages import fused_messages
from lla_fusion_ros.stream.perception import Guard, Perception
from lla_fusion_ros.types.tally import Tally
from support.drive import short_drive

PACKAGE = str(Path(lla_fusion_ros.__file__).parent) + "/"
MOST_FILES = 35
KNOWN = "001"  # a sign that the networks know
FRAMES = 3  # the last one is followed: nothing is done for the first time


def test_a_frame_passes_few_files_from_bytes_to_bytes():
    bundle, tally, errors = load_bundle("signworld"), Tally(), []
    perception = Perception(
        bundle, Classifier(bundle, "cpu"), ["left"], tally=tally, guard=Guard(tally, errors.append)
    )
    walked: list[str] = []

    def note(frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE) and file.removeprefix(PACKAGE) not in walked:
            walked.append(file.removeprefix(PACKAGE))

    names = bundle.class_names
    seen = [frame for frame in short_drive() if frame.camera == "left" and KNOWN in frame.ids]
    for scene in seen[:FRAMES]:
        header, row = Header(scene.stamp, "left"), scene.ids.index(KNOWN)
        image, box = write_image(header, scene.image, "rgb8"), np.insert(scene.boxes[row], 2, 0.0)
        detections = write_detections(header, (KNOWN,), box[None])
        walked.clear()
        sys.setprofile(note)
        try:
            perception.offer("left", "image", image)
            perception.offer("left", "detections", detections)
            (fused,) = perception.step()
            (message,) = fused_messages(fused, names)  # no warning: that would be another way
        finally:
            sys.setprofile(None)
        assert message.topic == "fused_classes" and len(fused.result.kept) and not errors
    assert 0 < len(walked) <= MOST_FILES, walked
