"""Objects that come cut out already, in the place of images and boxes."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from lla_fusion_ros.images.crops import Pixels, cut_crops
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.images import write_compressed_image, write_image
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import StreamSettings
from support.tiny_bundle import tiny_bundle

SECOND = 1_000_000_000
START = 1000 * SECOND


@pytest.fixture(scope="module")
def bundle():
    return tiny_bundle()


def crop(seed: int, height: int = 20, width: int = 30) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 255, (height, width, 3), np.uint8)


def send(perception, stamp, track, picture, camera="left", compressed=False, now=None):
    header = Header(stamp, track)
    if compressed:
        png = cv2.imencode(".png", picture[..., ::-1])[1].tobytes()
        return perception.offer(camera, "crops/compressed", write_compressed_image(header, png, "png"), now)
    return perception.offer(camera, "crops", write_image(header, picture, "rgb8"), now)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("compressed", [False, True])
def test_crops_of_one_stamp_are_one_frame_and_the_whole_crop_is_seen(bundle, compressed, workers):
    perception = Perception(bundle, Classifier(bundle, "cpu"), ["left"], workers=workers)
    assert not send(perception, START, "a", crop(0), compressed=compressed)
    assert not send(perception, START, "b", crop(1, 40, 24), compressed=compressed)
    assert send(
        perception, START + SECOND // 10, "a", crop(2), compressed=compressed
    )  # the first is complete
    perception.queue.finish()
    first, second = perception.step()
    assert first.result.ids == ("left/a", "left/b") and second.result.ids == ("left/a",)
    assert (first.header, second.header.stamp) == (Header(START, "left"), START + SECOND // 10)
    assert first.frame.bbox.tolist() == [[15, 10, 0, 30, 20], [12, 20, 0, 24, 40]]
    whole = cut_crops(Pixels(crop(0), "rgb"), np.array([[15.0, 10, 30, 20]]), bundle.input_size, 0.0)
    direct = Classifier(bundle, "cpu")(whole)
    np.testing.assert_allclose(first.frame.views.logits[:1], direct.logits, atol=1e-5)
    assert np.isnan(first.frame.views.size).all()  # no one knows how large the objects were in their image
    assert second.result.verdicts[0].views == {"left": 2}
    assert perception.chosen["left"].ids == "messages" and not perception.troubles()


def test_a_live_node_does_not_wait_for_ever_for_another_crop(bundle):
    perception = Perception(bundle, Classifier(bundle, "cpu"), ["left"], StreamSettings(sync_lead=0.0))
    send(perception, START, "a", crop(0))
    assert perception.queue.waiting("left")["waiting_crops"] == 1
    perception.queue.expire()
    assert len(perception.step()) == 1


@pytest.mark.parametrize(("identity", "objects"), [("global", 1), ("auto", 2), ("camera", 2)])
def test_ids_of_crops_are_ids_of_their_camera_unless_the_user_says_otherwise(bundle, identity, objects):
    cameras = ["left", "right"]
    perception = Perception(bundle, Classifier(bundle, "cpu"), cameras, StreamSettings(identity=identity))
    for camera in cameras:
        send(perception, START, "7", crop(0), camera)
    perception.queue.finish()
    perception.step()
    assert perception.engine.tracks == objects


def test_crops_that_cannot_be_used_are_counted_and_the_others_fused(bundle):
    settings = StreamSettings(max_detections=6)
    perception = Perception(bundle, Classifier(bundle, "cpu"), ["left"], settings)
    send(perception, START, "good", crop(0))
    send(perception, START, "", crop(1))
    send(perception, START, "x" * 10_000, crop(1))
    send(perception, START, "small", crop(1, 2, 30))
    send(perception, START, "grey", np.full((20, 20, 3), 90, np.uint8))
    lying = write_image(Header(START, "damaged"), crop(0), "rgb8").replace(b"rgb8", b"mono")
    perception.offer("left", "crops", lying)
    send(perception, START, "too many", crop(1))
    perception.offer("left", "crops", b"\0\1\0\0short")
    send(perception, START + SECOND // 10, "good", crop(2))
    perception.queue.finish()
    first, second = perception.step()
    assert first.result.ids == second.result.ids == ("left/good",)
    counts = perception.tally.of("left")
    reasons = ("empty_id", "long_id", "box_too_small", "no_contrast", "bad_image", "too_many_detections")
    assert [counts[f"dropped_{reason}"] for reason in (*reasons, "bad_message")] == [1] * 7
