"""The package's own CDR bytes against the (de)serialisation that every ROS 2 node uses."""

from __future__ import annotations

import array

import numpy as np
import pytest

rclpy_serialization = pytest.importorskip("rclpy.serialization")

from builtin_interfaces.msg import Time  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from sensor_msgs.msg import CompressedImage, Image  # noqa: E402
from std_msgs.msg import Header as RosHeader  # noqa: E402
from vision_msgs.msg import (  # noqa: E402
    Detection2D,
    Detection2DArray,
    LabelInfo,
    ObjectHypothesisWithPose,
    VisionClass,
    VisionInfo,
)

from lla_fusion_ros.messages import detections, images, status  # noqa: E402
from lla_fusion_ros.messages.cdr import Header  # noqa: E402

serialize = rclpy_serialization.serialize_message
deserialize = rclpy_serialization.deserialize_message

HEADER = Header(1_700_000_000_123_456_789, "camera_left")
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


def ros_header(header: Header) -> RosHeader:
    return RosHeader(
        stamp=Time(sec=header.stamp // 10**9, nanosec=header.stamp % 10**9), frame_id=header.frame_id
    )


def stock_detections(header, ids, bbox, pmf, listing) -> Detection2DArray:
    """The same message built the usual way, object by object."""
    message = Detection2DArray(header=ros_header(header))
    for row, track_id in enumerate(ids):
        one = Detection2D(header=ros_header(header), id=track_id)
        one.bbox.center.position.x, one.bbox.center.position.y, one.bbox.center.theta = bbox[row, :3].tolist()
        one.bbox.size_x, one.bbox.size_y = bbox[row, 3:].tolist()
        listed = []
        for index in np.argsort(-pmf[row], kind="stable"):
            if sum(score for _, score in listed) < listing.mass and len(listed) < (listing.most or 1000):
                listed.append((str(index), float(pmf[row, index])))
        if len(listed) < pmf.shape[1]:
            listed.append(("", 1.0 - float(np.sum([score for _, score in listed]))))
        for class_id, score in listed:
            hypothesis = ObjectHypothesisWithPose()
            hypothesis.hypothesis.class_id, hypothesis.hypothesis.score = class_id, score
            one.results.append(hypothesis)
        message.detections.append(one)
    return message


@settings(max_examples=60, deadline=None)
@given(
    ids=st.lists(names, max_size=5),
    frame_id=names,
    classes=st.sampled_from([1, 2, 10, 43, 101]),
    listing=st.builds(detections.Listing, st.sampled_from([1.0, 0.999, 0.6]), st.sampled_from([0, 1, 3])),
    seed=st.integers(0, 2**32 - 1),
)
def test_fused_classes_are_what_a_stock_publisher_sends(ids, frame_id, classes, listing, seed):
    rng = np.random.default_rng(seed)
    header = Header(int(rng.integers(0, 2**31)) * 10**9 + int(rng.integers(10**9)), frame_id)
    bbox = rng.normal(size=(len(ids), 5)) * 100
    pmf = rng.dirichlet(np.full(classes, 0.3), size=len(ids))
    ours = detections.write_detections(header, ids, bbox, pmf, listing)
    stock = stock_detections(header, ids, bbox, pmf, listing)
    assert deserialize(ours, Detection2DArray) == stock
    assert len(ours) == len(serialize(stock))  # padding is undefined in stock messages, its length is not
    read = detections.parse_detections(serialize(stock), with_scores=True)
    assert (read.header, read.ids) == (header, tuple(ids))
    np.testing.assert_array_equal(read.bbox, bbox)
    for row, scores in enumerate(read.scores):
        assert all(pmf[row, int(class_id)] == score for class_id, score in scores if class_id)
        np.testing.assert_allclose(sum(score for _, score in scores), 1.0)
    fast = detections.parse_detections(ours)
    assert fast.ids == read.ids and (fast.bbox == read.bbox).all()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(names, st.lists(names, max_size=8)), max_size=4))
def test_detections_of_a_tracker_with_long_class_names_are_read(objects):
    message = Detection2DArray(header=ros_header(HEADER))
    for track_id, class_names in objects:
        one = Detection2D(id=track_id)
        one.bbox.size_x = 7.0
        for name in class_names:
            hypothesis = ObjectHypothesisWithPose()
            hypothesis.hypothesis.class_id = name
            one.results.append(hypothesis)
        message.detections.append(one)
    read = detections.parse_detections(serialize(message))
    assert read.ids == tuple(track_id for track_id, _ in objects)
    assert (read.bbox[:, 3] == 7.0).all()


def test_images_are_read_and_written_as_stock_nodes_do():
    pixels = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
    stock = Image(header=ros_header(HEADER), height=4, width=5, encoding="bgr8", step=15)
    stock.data = array.array("B", pixels.tobytes())
    ours = images.write_image(HEADER, pixels, "bgr8")
    assert deserialize(ours, Image) == stock
    read = images.parse_image(serialize(stock))
    assert read.header == HEADER
    np.testing.assert_array_equal(read.pixels().array, pixels)


def test_embeddings_survive_as_a_32fc1_image():
    values = np.random.default_rng(0).normal(size=(3, 7)).astype(np.float32)
    stock = deserialize(images.write_image(HEADER, values, "32FC1"), Image)
    assert (stock.height, stock.width, stock.step, stock.encoding) == (3, 7, 28, "32FC1")
    np.testing.assert_array_equal(np.frombuffer(stock.data, np.float32).reshape(3, 7), values)
    np.testing.assert_array_equal(images.matrix_of(images.parse_image(serialize(stock))), values)


def test_compressed_images_are_read_and_written_as_stock_nodes_do():
    stock = CompressedImage(header=ros_header(HEADER), format="jpeg", data=array.array("B", b"\xff\xd8abc"))
    assert (
        deserialize(images.write_compressed_image(HEADER, b"\xff\xd8abc", "jpeg"), CompressedImage) == stock
    )
    read = images.parse_compressed_image(serialize(stock))
    assert (read.header, read.format, bytes(read.data)) == (HEADER, "jpeg", b"\xff\xd8abc")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), names, names, st.dictionaries(names, names, max_size=3)), max_size=3
    )
)
def test_diagnostics_are_read_and_written_as_stock_nodes_do(entries):
    ours = [status.Status(level, name, text, "hw", values) for level, name, text, values in entries]
    stock = DiagnosticArray(header=ros_header(HEADER))
    for level, name, text, values in entries:
        pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
        stock.status.append(
            DiagnosticStatus(level=bytes([level]), name=name, message=text, hardware_id="hw", values=pairs)
        )
    assert deserialize(status.write_diagnostics(HEADER, ours), DiagnosticArray) == stock
    assert status.parse_diagnostics(serialize(stock)) == (HEADER, tuple(ours))


@settings(max_examples=30, deadline=None)
@given(st.lists(names, max_size=6))
def test_label_info_is_what_a_stock_publisher_sends(class_names):
    classes = [VisionClass(class_id=index, class_name=name) for index, name in enumerate(class_names)]
    stock = LabelInfo(header=ros_header(HEADER), class_map=classes, threshold=0.25)
    assert deserialize(status.write_label_info(HEADER, class_names, 0.25), LabelInfo) == stock


def test_vision_info_is_read_and_written_as_stock_nodes_do():
    stock = VisionInfo(
        header=ros_header(HEADER), method="a method", database_location="sha256:0f", database_version=3
    )
    assert deserialize(status.write_vision_info(HEADER, "a method", "sha256:0f", 3), VisionInfo) == stock
    assert status.parse_vision_info(serialize(stock)) == (HEADER, "a method", "sha256:0f", 3)
