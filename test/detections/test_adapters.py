"""Every adapter reads what an independent implementation (rosbags) wrote."""

from __future__ import annotations

import contextlib
import importlib

import numpy as np
import pytest
from detections.samples import BOX, HEADER, SAMPLES, TYPES, filled, store, vision_box, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lla_fusion_ros.detections import FrameDetections, FrameDetections3D, adapter_for
from lla_fusion_ros.detections.layout import Layout
from lla_fusion_ros.detections.standard import STANDARD
from lla_fusion_ros.messages.detections import write_detections
from lla_fusion_ros.types.errors import InputError


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("type_name, values, ids, scope, scores, names", SAMPLES)
def test_each_type_is_read_as_it_was_written(type_name, values, ids, scope, scores, names, little):
    versions = len(adapter_for(type_name).definitions)
    for version in range(versions):
        raw = write(type_name, filled(store(type_name, version), values), version, little)
        frame = adapter_for(type_name).read(raw)
        assert frame.header == HEADER
        assert (frame.ids, frame.id_scope, frame.scores) == (ids, scope, scores)
        if isinstance(frame, FrameDetections3D):
            assert frame.centre.tolist() == [[1.5, 0, 0]] and frame.size.tolist() == [[0, 0, 2.5]]
            assert frame.orientation.tolist() == [[0, 0, 0, 1]]
        else:
            corner = "tier4" in type_name or "zed" in type_name
            assert frame.bbox.tolist() == [[320, 240.5, 0, 40, 81] if corner else list(BOX)]
            assert names.items() <= dict(frame.class_names).items()


@pytest.mark.parametrize("type_name, values", [sample[:2] for sample in SAMPLES])
def test_damaged_bytes_are_refused_with_a_sentence(type_name, values):
    raw = write(type_name, filled(store(type_name), values))
    read = adapter_for(type_name).read
    older = {len(write(type_name, filled(store(type_name, 1), values), 1))} if "zed" in type_name else set()
    for length in range(0, len(raw) - 8, 7):
        if not any(0 <= length - whole <= 7 for whole in older):  # then it is a good message of that version
            with pytest.raises(InputError):
                read(raw[:length])
    # the length of the array of detections lies behind the header
    at = 4 + 8 + 4 + -(-len(HEADER.frame_id + "\0") // 4) * 4
    if type_name == "ultralytics_ros/YoloResult":
        at += 8 + 4 + 4  # the empty header of the array inside
    assert int.from_bytes(raw[at : at + 4], "little") == 1
    for count in (2, 10_001, 2**32 - 1):
        with pytest.raises(InputError):
            read(raw[:at] + count.to_bytes(4, "little") + raw[at + 4 :])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(SAMPLES),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), min_size=1, max_size=6),
)
def test_changed_bytes_are_read_or_refused(sample, changes):
    raw = bytearray(write(sample[0], filled(store(sample[0]), sample[1])))
    for at, value in changes:
        raw[at % len(raw)] = value
    with contextlib.suppress(InputError):
        frame = adapter_for(sample[0]).read(bytes(raw))
        assert frame.ids is None or len(frame.ids) == len(frame)
        assert frame.scores is None or len(frame.scores) == len(frame)


def test_more_detections_than_any_camera_sees_are_refused():
    rows = {"detections": [vision_box()] * 10_001}
    for type_name in ("vision_msgs/Detection2DArray", "depthai_ros_msgs/TrackDetection2DArray"):
        with pytest.raises(InputError, match="more than 10000"):
            adapter_for(type_name).read(write(type_name, rows))


def test_odd_numbers_and_long_ids_pass_to_the_checks_that_count_them():
    rows = {
        "detections": [
            {"bbox.center.position.x": np.nan, "bbox.size.x": -5.0, "id": "x" * 10_000, "score": np.inf},
            {"id": ""},
        ]
    }
    frame = adapter_for("yolo_msgs/msg/DetectionArray").read(write("yolo_msgs/DetectionArray", rows))
    assert np.isnan(frame.bbox[0, 0]) and frame.bbox[0, 3] == -5
    assert frame.ids == ("x" * 10_000, "")


box_number = st.floats(-1e4, 1e4, allow_nan=False)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {
                "class_id": st.integers(-(2**31), 2**31 - 1),
                "class_name": st.text(max_size=9).filter(lambda text: "\0" not in text),
                "score": st.floats(0, 1),
                "id": st.text("0123456789abcß", min_size=1, max_size=9),
                "bbox.center.position.x": box_number,
                "bbox.center.theta": box_number,
                "bbox.size.y": box_number,
                "mask.data": st.lists(st.fixed_dictionaries({"x": box_number}), max_size=3),
                "keypoints.data": st.lists(st.fixed_dictionaries({"id": st.integers(0, 9)}), max_size=3),
                "keypoints3d.frame_id": st.text("abc", max_size=5),
            }
        ),
        max_size=4,
    ),
    little=st.booleans(),
)
def test_any_message_of_yolo_ros_is_read_as_rosbags_wrote_it(rows, little):
    raw = write("yolo_msgs/DetectionArray", {"detections": rows}, little=little)
    frame = adapter_for("yolo_msgs/DetectionArray").read(raw)
    expected = [
        [row["bbox.center.position.x"], 0, row["bbox.center.theta"], 0, row["bbox.size.y"]] for row in rows
    ]
    assert frame.bbox.tolist() == expected
    assert frame.ids == tuple(row["id"] for row in rows)
    assert frame.scores == tuple(((str(row["class_id"]), row["score"]),) for row in rows)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    objects=st.lists(
        st.fixed_dictionaries(
            {
                "object.existence_probability": st.floats(0, 1, width=32),
                "object.classification": st.lists(
                    st.fixed_dictionaries({"label": st.integers(0, 255), "probability": st.just(1.0)}),
                    max_size=3,
                ),
                "object.shape.footprint.points": st.lists(
                    st.fixed_dictionaries({"x": st.floats(0, 1, width=32)}), max_size=2
                ),
                "feature.cluster.fields": st.lists(
                    st.fixed_dictionaries({"name": st.text("xyz", max_size=5)}), max_size=3
                ),
                "feature.cluster.data": st.binary(max_size=9).map(lambda b: np.frombuffer(b, np.uint8)),
                "feature.roi.width": st.integers(0, 2**32 - 1),
            }
        ),
        max_size=4,
    ),
    little=st.booleans(),
)
def test_any_message_of_autoware_is_read_as_rosbags_wrote_it(objects, little):
    name = "tier4_perception_msgs/DetectedObjectsWithFeature"
    frame = adapter_for(name).read(write(name, {"feature_objects": objects}, little=little))
    assert frame.bbox[:, 3].tolist() == [own["feature.roi.width"] for own in objects]
    assert frame.scores == tuple(
        tuple(
            (str(guess["label"]), own["object.existence_probability"])
            for guess in own["object.classification"]
        )
        for own in objects
    )


def test_a_detector_without_a_tracker_gives_no_ids():
    raw = write_detections(HEADER, ["", ""], np.ones((2, 5)))
    frame = adapter_for("vision_msgs/msg/Detection2DArray").read(raw)
    assert frame.ids is None and frame.id_scope == "none"
    raw = write_detections(HEADER, [], np.ones((0, 5)))
    assert adapter_for("vision_msgs/msg/Detection2DArray").read(raw).ids == ()


def test_the_quick_reader_and_the_definition_agree():
    rng = np.random.default_rng(0)
    raw = write_detections(HEADER, ["1", "zwei"], rng.normal(size=(2, 5)), rng.dirichlet(np.ones(4), 2))
    adapter = adapter_for("vision_msgs/Detection2DArray")
    quick = adapter.read(raw)
    slow = adapter.convert(Layout(adapter.types[0], STANDARD).read(raw))
    assert isinstance(slow, FrameDetections)
    assert (quick.header, quick.ids, quick.scores) == (slow.header, slow.ids, slow.scores)
    np.testing.assert_array_equal(quick.bbox, slow.bbox)
    assert adapter.read(raw, with_scores=False).scores is None


@pytest.mark.parametrize("type_name", TYPES)
def test_a_recorded_definition_is_checked(type_name):
    adapter = adapter_for(type_name)
    own = adapter.types[0].replace("/", "/msg/")
    for version in range(len(adapter.definitions)):
        text, _ = store(type_name, version).generate_msgdef(own, ros_version=2)
        adapter.check_definition(text)
        adapter.check_definition(text.replace("zed_msgs", "zed_interfaces"))
        adapter.check_definition("# a comment\nuint8 CONSTANT=3\nuint8 OTHER = 4\n" + text)
        with pytest.raises(InputError, match="other fields"):
            adapter.check_definition(
                text.replace("std_msgs/Header header", "std_msgs/Header header\nbool more", 1)
            )
    adapter.check_definition("")


def test_an_object_of_the_older_autoware_package_is_the_same():
    name = "tier4_perception_msgs/DetectedObjectsWithFeature"
    text, _ = store(name).generate_msgdef(name.replace("/", "/msg/"), ros_version=2)
    adapter_for(name).check_definition(text.replace("autoware_perception", "autoware_auto_perception"))


def test_an_unknown_type_has_no_adapter():
    assert adapter_for("std_msgs/msg/String") is None


def test_every_file_in_the_folder_is_found():
    module = importlib.import_module("lla_fusion_ros.detections.adapters.zed")
    assert adapter_for("zed_interfaces/msg/ObjectsStamped") is module.ADAPTER
