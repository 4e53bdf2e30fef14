"""Who is who: detections of any type in, ids of objects out, and never the wrong object."""

from __future__ import annotations

import numpy as np
import pytest
from detections.samples import write

from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import parse_detections, write_detections
from lla_fusion_ros.messages.images import write_image
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.stream.frame_messages import (
    bundle_message,
    camera_fused_message,
    fused_messages,
    view_messages,
)
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.errors import InputError
from support.tiny_bundle import tiny_bundle

SECOND = 1_000_000_000
START = 1000 * SECOND
STEP = SECOND // 10
YOLO, LIGHTS = "yolo_msgs/msg/DetectionArray", "tier4_perception_msgs/msg/TrafficLightRoiArray"
BOXES = np.array([[20.0, 20, 0, 16, 16], [60, 40, 0, 20, 12]])


@pytest.fixture(scope="module")
def bundle():
    return tiny_bundle()


@pytest.fixture(scope="module")
def classifier(bundle):
    return Classifier(bundle, "cpu")


@pytest.fixture
def make(bundle, classifier):
    def make(cameras=("left", "right"), wiring=None, **settings) -> Perception:
        stream = StreamSettings(queue_depth=100, **settings)
        return Perception(bundle, classifier, cameras, stream, wiring=wiring)

    return make


def send(perception, step, detections, camera="left", size=(60, 80)):
    """A frame whose detections are bytes already, or (ids, boxes) of a Detection2DArray."""
    header = Header(START + step * STEP, camera)
    picture = np.random.default_rng([step, len(camera)]).integers(0, 255, (*size, 3), np.uint8)
    perception.offer(camera, "image", write_image(header, picture, "rgb8"))
    raw = detections if isinstance(detections, bytes) else write_detections(header, *detections)
    perception.offer(camera, "detections", raw)


def stamped(step: int) -> dict:
    seconds, nanoseconds = divmod(START + step * STEP, SECOND)
    return {"header.stamp.sec": seconds, "header.stamp.nanosec": nanoseconds}


def yolo(step: int, *rows: tuple[str, float, float, float, float]) -> bytes:
    names = ("id", "bbox.center.position.x", "bbox.center.position.y", "bbox.size.x", "bbox.size.y")
    detections = [{**dict(zip(names, row, strict=True)), "score": 0.9} for row in rows]
    return write(YOLO, {**stamped(step), "detections": detections})


def lights(step: int, *ids: int) -> bytes:
    box = {"roi.x_offset": 10, "roi.y_offset": 10, "roi.width": 16, "roi.height": 16}
    rois = [{**box, "traffic_light_id": number} for number in ids]
    return write(LIGHTS, {**stamped(step), "rois": rois})


def evidence_of_others(perception, frames: int) -> int:
    """Frames of two cameras, whose trackers both count from 1, in which a view of the other camera counts."""
    wrong = 0
    for step in range(frames // 2):
        for camera in ("left", "right"):
            send(perception, step, (("1", "2"), BOXES), camera)
        if step % 20 == 19:
            for fused in perception.step():
                assert len(fused.result.kept) == 2
                views = fused.result.verdicts[0].views, fused.result.verdicts[1].views
                wrong += any(count for own in views for name, count in own.items() if name != fused.camera)
    return wrong


def test_ids_that_two_cameras_trackers_both_use_never_mix_their_objects(make):
    assert evidence_of_others(make(), 1000) == 0
    assert evidence_of_others(make(identity="global"), 40) > 30  # what the count is able to see


def test_the_objects_of_a_camera_fuse_as_if_it_were_alone(make):
    both, alone = make(), make(("left",))
    for step in range(10):
        send(both, step, (("1", "2"), BOXES[::-1]), "right")
        for perception in (both, alone):
            send(perception, step, (("1", "2"), BOXES))
    left = [fused for fused in both.step() if fused.camera == "left"]
    for fused, single in zip(left, alone.step(), strict=True):
        assert fused.result.ids == ("left/1", "left/2")
        np.testing.assert_allclose(fused.result.pmf, single.result.pmf, atol=1e-5)


def test_boxes_without_ids_get_them_from_the_built_in_tracker(make):
    perception = make()
    for step in range(5):
        boxes = BOXES + [step, 0, 0, 0, 0]
        send(perception, step, (("", ""), boxes if step % 2 else boxes[::-1]))
    frames = perception.step()
    assert [set(fused.result.ids) for fused in frames] == [{"left/1", "left/2"}] * 5
    assert frames[0].result.ids == frames[1].result.ids[::-1]
    chosen = perception.chosen["left"]
    assert (chosen.type, chosen.ids, chosen.scope) == (contract.DETECTIONS, "built-in tracker", "camera")
    assert "right" not in perception.chosen


def test_the_settings_of_the_tracker_are_the_streams(make):
    perception = make(tracker_confirm=3)
    for step in range(4):
        send(perception, step, (("",), BOXES[:1]))
    assert [fused.result.ids for fused in perception.step()] == [(), (), ("left/1",), ("left/1",)]
    assert perception.tally.of("left")["not_tracked"] == 2


def test_boxes_that_cannot_be_tracked_are_lost_and_those_that_need_not_be_are_no_loss(make):
    perception = make()
    for step in range(2):
        boxes = np.concatenate([BOXES, [[np.nan, 20, 0, 9, 9], [20, 20, 0, -9, 9], [70, 10, 0, 9, 9]]])
        pmf = np.array([[0.9], [0.9], [0.9], [0.9], [0.2]])  # the last one is too unsure to begin a track
        send(perception, step, write_detections(Header(START + step * STEP, "left"), ("",) * 5, boxes, pmf))
    assert [fused.result.ids for fused in perception.step()] == [("left/1", "left/2")] * 2
    counts = perception.tally.of("left")
    losses = {name: count for name, count in counts.items() if name.startswith("dropped_")}
    assert losses == {"dropped_box_not_finite": 2, "dropped_box_inverted": 2} and counts["not_tracked"] == 2


def test_an_empty_message_decides_nothing_and_a_message_without_ids_later_changes_nothing(make):
    perception = make()
    send(perception, 0, ((), BOXES[:0]))
    perception.step()
    assert not perception.chosen
    for step, ids in enumerate((("7", "8"), ("", ""), ("7", "8")), 1):
        send(perception, step, (ids, BOXES))
    assert [fused.result.ids for fused in perception.step()] == [
        ("left/7", "left/8"),
        (),
        ("left/7", "left/8"),
    ]
    assert perception.chosen["left"].ids == "messages"
    assert perception.tally.of("left")["dropped_empty_id"] == 2


@pytest.mark.parametrize(
    ("identity", "objects"),
    [("auto", ["5", "5"]), ("global", ["5", "5"]), ("camera", ["left/5", "right/5"])],
)
def test_ids_of_the_map_are_those_of_all_cameras_unless_the_user_says_otherwise(make, identity, objects):
    perception = make(wiring={name: CameraWiring(LIGHTS) for name in ("left", "right")}, identity=identity)
    for camera in ("left", "right"):
        send(perception, 0, lights(0, 5), camera)
    assert [fused.result.ids[0] for fused in perception.step()] == objects


def test_a_camera_publishes_the_same_entries_under_its_trackers_own_ids(make, bundle):
    perception = make()
    send(perception, 0, (("a/b", "left/1"), BOXES))
    (fused,) = perception.step()
    everywhere = parse_detections(fused_messages(fused, bundle.class_names)[0].data, with_scores=True)
    message = camera_fused_message(fused)
    own = parse_detections(message.data, with_scores=True)
    assert message.topic == "left/fused_classes"
    assert everywhere.ids == ("left/a/b", "left/left/1") and own.ids == ("a/b", "left/1")
    assert own.scores == everywhere.scores


@pytest.mark.parametrize("identity", ["auto", "global", "camera"])
def test_views_that_are_fused_elsewhere_show_the_same_objects(make, bundle, identity):
    here, elsewhere = make(identity=identity), Perception(bundle, None, ["left", "right"])
    for camera in ("left", "right"):
        send(here, 0, (("1", "2"), BOXES), camera)
        elsewhere.offer(camera, "views/info", bundle_message(camera, bundle, START).data)
    frames = here.step()
    for fused in frames:
        for message in view_messages(fused.frame):
            elsewhere.offer(fused.camera, message.topic.partition("/")[2], message.data)
    for one, other in zip(frames, elsewhere.step(), strict=True):
        assert one.result.ids == other.result.ids
        assert one.frame.track_ids == other.frame.track_ids == ("1", "2")
        np.testing.assert_allclose(one.result.pmf, other.result.pmf, atol=1e-5)


def test_a_type_that_changes_is_counted_and_its_ids_are_other_objects(make):
    perception = make()
    send(perception, 0, (("1", "2"), BOXES))
    send(perception, 1, yolo(1, ("1", 20, 20, 16, 16)))  # the type is not announced yet
    perception.set_detections_type("left", YOLO)
    send(perception, 2, yolo(2, ("1", 20, 20, 16, 16)))
    send(perception, 3, yolo(3, ("", 20, 20, 16, 16)))
    frames = perception.step()
    assert [fused.result.ids for fused in frames] == [("left/1", "left/2"), ("left#2/1",), ()]
    assert frames[1].frame.track_ids == ("1",)
    assert frames[1].result.verdicts[0].views == {"left": 1}
    counts = perception.tally.of("left")
    assert counts["dropped_bad_message"] == counts["detection_type_changes"] == 1
    assert perception.chosen["left"].type == YOLO


@pytest.mark.parametrize("name", ["my_msgs/msg/Boxes", "vision_msgs/msg/Detection3D", ""])
def test_a_type_that_cannot_be_read_is_refused_and_the_old_one_stays(make, name):
    perception = make()
    with pytest.raises(InputError, match="cannot be read"):
        perception.set_detections_type("left", name)
    send(perception, 0, (("1", "2"), BOXES))
    assert len(perception.step()) == 1


@pytest.mark.parametrize("identity", ["auto", "global"])
def test_hostile_boxes_and_ids_are_counted_and_the_next_frame_is_right(make, identity):
    prefix = "left/" if identity == "auto" else ""
    perception = make(identity=identity)
    outside = np.array(
        [[-50.0, 20, 0, 9, 9], [np.nan, 1, 0, 9, 9], [20, 20, 0, -4, 9], [20, 20, 0, 9, np.inf]]
    )
    send(perception, 0, (tuple("abcd"), outside))
    send(perception, 1, (("x" * 10_000, "y"), BOXES))
    many = np.tile(BOXES[0], (10_000, 1))
    send(perception, 2, (tuple(map(str, range(10_000))), many))
    perception.offer(
        "left", "detections", write_detections(Header(START, ""), ["1"] * 10_001, np.zeros((10_001, 5)))
    )
    send(perception, 3, (("1", "2"), BOXES))
    frames = [*perception.step(), *perception.step()]  # a step ends where it has enough to do
    assert frames[-1].result.ids == (f"{prefix}1", f"{prefix}2")
    assert [len(fused.result.ids) for fused in frames] == [0, 1, 256, 2]
    counts = perception.tally.of("left")
    assert counts["dropped_long_id"] == counts["dropped_bad_message"] == 1
    assert counts["dropped_too_many_detections"] == 10_000 - 256


def test_ten_thousand_boxes_without_ids_do_not_hold_the_tracker_up(make):
    perception = make()
    send(perception, 0, (("",) * 10_000, np.tile(BOXES, (5_000, 1))))
    send(perception, 1, (("", ""), BOXES))
    first, second = *perception.step(), *perception.step()
    assert len(first.result.ids) == 200 and len(second.result.ids) == 2
    assert perception.tally.of("left")["dropped_too_many_detections"] == 9_800


def test_a_detector_that_puts_the_class_into_the_id_is_named_and_not_believed(make):
    perception = make()
    pmf = np.eye(2)
    for step in range(20):
        header = Header(START + step * STEP, "left")
        send(perception, step, write_detections(header, ("0", "1"), BOXES, pmf))
    frames = perception.step()
    assert "puts the class into the id" in perception.troubles()["left"]
    assert perception.chosen["left"].ids == "built-in tracker"
    assert frames[-1].result.ids == ("left#2/1", "left#2/2")
    believed = make(identity="camera")
    for step in range(20):
        send(believed, step, write_detections(Header(START + step * STEP, ""), ("0", "1"), BOXES, pmf))
    assert believed.step()[-1].result.ids == ("left/0", "left/1")
    assert "built-in tracker" in believed.troubles()["left"]


def test_no_ids_under_global_are_a_trouble_that_ends_with_them(make):
    perception = make(identity="global")
    send(perception, 0, (("", ""), BOXES))
    perception.step()
    assert "identity 'auto'" in perception.troubles()["left"]
    send(perception, 1, (("1", ""), BOXES))
    (fused,) = perception.step()
    assert fused.result.ids == ("1",) and not perception.troubles()


def test_another_identity_begins_with_other_objects(make):
    perception = make()
    send(perception, 0, (("1", "2"), BOXES))
    perception.step()
    perception.prepare([StreamSettings(identity="global")])()
    assert perception.engine.tracks == 0 and not perception.chosen
    send(perception, 1, (("1", "2"), BOXES))
    assert perception.step()[0].result.ids == ("1", "2")


@pytest.mark.parametrize(
    ("frame", "size", "bbox"),
    [
        ("stretch", (160.0, 60.0), [40.0, 20, 0, 32, 16]),
        ("letterbox", (80.0, 80.0), [20.0, 30, 0, 16, 16]),
        ("crop", (60.0, 60.0), [10.0, 20, 0, 16, 16]),
    ],
)
def test_boxes_in_the_pixels_of_a_network_are_mapped_to_the_image(make, frame, size, bbox):
    mapped = make(wiring={"left": CameraWiring(box_frame=frame, box_size=size)})
    plain = make()
    send(mapped, 0, (("1",), np.array([bbox])))
    send(plain, 0, (("1",), BOXES[:1]))
    (one,), (other,) = mapped.step(), plain.step()
    np.testing.assert_allclose(one.frame.bbox, BOXES[:1])
    np.testing.assert_allclose(one.result.pmf, other.result.pmf, atol=1e-5)


@pytest.mark.parametrize(("frame", "size"), [("round", (64, 64)), ("stretch", (0, 0)), ("crop", (64, -1))])
def test_a_camera_that_cannot_be_wired_is_refused(frame, size):
    with pytest.raises(InputError, match="box_"):
        CameraWiring(box_frame=frame, box_size=size)
