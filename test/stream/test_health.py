"""What /diagnostics says, without ROS."""

from __future__ import annotations

import pytest

from lla_fusion_ros.messages.status import ERROR, OK, WARN
from lla_fusion_ros.stream.health import Health
from lla_fusion_ros.types.tally import Tally


def make() -> tuple[Health, Tally]:
    tally = Tally()
    return Health("perception", ["left", "right"], tally, silent_after=1.0), tally


def test_cameras_that_send_are_well_and_their_rate_is_stated():
    health, tally = make()
    health.report(0.0, {})
    for camera in ("left", "right"):
        tally.add(camera, "frames", 10)
        health.hear(camera, 1.9)
    node, left, right = health.report(2.0, {"device": "cpu"})
    assert (node.level, left.level, right.level) == (OK, OK, OK)
    assert left.values["rate"] == "5.00" and node.values["device"] == "cpu"


def test_a_silent_camera_is_a_warning_of_the_camera_and_of_the_node():
    health, _ = make()
    health.hear("left", 5.0)
    health.hear("right", 3.5)
    node, left, right = health.report(5.5, {})
    assert (node.level, left.level, right.level) == (WARN, OK, WARN)
    assert right.message == "silent for 2.0 s" and "right" in node.message
    assert health.silent(5.5) == {"right"}


def test_losses_are_a_warning_only_while_they_happen_and_stay_counted():
    health, tally = make()
    tally.drop("left", {"queue_full": 3})
    for now in (1.0, 2.0):
        health.hear("left", now)
        health.hear("right", now)
        node, left, _ = health.report(now, {})
        assert left.level == (WARN if now == 1.0 else OK)
        assert left.values["dropped_queue_full"] == node.values["dropped_queue_full"] == "3"


def test_boxes_that_settings_leave_out_are_no_warning():
    health, tally = make()
    for now in (1.0, 2.0, 3.0):
        for camera in ("left", "right"):
            tally.add(camera, "crops", 3)
            tally.drop(camera, {"not_tracked": 60, "box_too_small": 60})
            health.hear(camera, now)
        node, left, _ = health.report(now, {})
        assert (node.level, left.level) == (OK, OK)
    assert left.values["not_tracked"] == "180" and "dropped_not_tracked" not in left.values


@pytest.mark.parametrize(
    ("reason", "cure"), [("not_tracked", "tracker_sure"), ("box_too_small", "min_box_size")]
)
def test_settings_that_leave_out_every_box_are_a_warning_that_names_them(reason, cure):
    health, tally = make()
    for now, level in ((1.0, OK), (2.0, WARN), (3.0, WARN)):
        tally.drop("left", {reason: 60})
        health.hear("left", now)
        _, left, _ = health.report(now, {})
        assert left.level == level
    assert left.message.startswith(f"no box was ever used: 180 {reason} (lower {cure}"), left.message
    tally.add("left", "crops")
    health.hear("left", 4.0)
    assert health.report(4.0, {})[1].level == OK


def test_images_of_which_no_frame_is_made_are_a_warning():
    health, tally = make()
    for camera in ("left", "right"):
        health.hear(camera, 1.0)
        tally.add(camera, "images", 10)
    tally.add("right", "frames", 2)
    _, left, right = health.report(1.1, {})
    assert (left.level, left.message) == (WARN, "10 images, but no frame; no detections come")
    assert right.level == OK


def test_detections_without_any_image_are_a_warning_that_says_so():
    health, tally = make()
    tally.add("left", "detections", 7)
    _, left, right = health.report(1.0, {})
    assert (left.level, left.message) == (WARN, "7 detections, but no image")
    assert right.message == "nothing received yet"


def test_lost_detections_come_with_the_reason_and_what_to_do():
    health, tally = make()
    hints = {"left": "raise sync_wait", "right": "raise sync_wait"}
    for camera, reason in (("left", "detections_too_late"), ("right", "queue_full")):
        health.hear(camera, 1.0)
        tally.add(camera, "images", 10)
        tally.add(camera, "detections", 10)
        tally.drop(camera, {reason: 2})
    tally.add("right", "frames", 8)
    _, left, right = health.report(1.1, {}, hints=hints)
    assert left.message == "10 images, but no frame; lost 2 detections_too_late; raise sync_wait"
    assert right.message.startswith("lost 2 queue_full; ") and "sync_wait" not in right.message


@pytest.mark.parametrize(
    ("lost", "work", "says"),
    [
        ({"queue_full": 2}, 0.95, "the networks are behind, busy 95% of the time"),
        ({"queue_full": 2}, 0.3, "frames come in bursts, the networks are busy 30% of the time"),
        ({"images_lost": 5, "queue_full": 2}, 0.95, "DDS loses messages before they reach this node"),
        ({"images_lost": 5, "detections_without_image": 5}, 0.3, "DDS loses messages before they reach"),
        ({"detections_without_image": 5}, 0.3, "set left.time_offset"),
    ],
)
def test_slow_networks_are_told_from_messages_that_dds_loses(lost, work, says):
    health, tally = make()
    health.report(0.0, {})
    health.hear("left", 1.0)
    health.finish(0.1, work)
    tally.add("left", "frames", 5)
    tally.drop("left", lost)
    node, left, _ = health.report(1.0, {}, hints={"left": "set left.time_offset"})
    assert says in left.message and len(left.message.split("; ")) == 2, left.message
    assert node.values["busy"] == f"{work:.0%}"
    # for a while after a loss in DDS, boxes without images are put down to it
    health.hear("left", 2.0)
    tally.drop("left", {"detections_without_image": 3})
    _, left, _ = health.report(2.0, {}, hints={"left": "set left.time_offset"})
    assert ("DDS" in left.message) == ("images_lost" in lost)


def test_a_trouble_is_an_error():
    health, _ = make()
    node, left, _ = health.report(0.0, {}, {"left": "its views come from another bundle"})
    assert node.level == left.level == ERROR and "another bundle" in left.message


def test_an_internal_error_is_an_error_of_the_node_until_the_next_report():
    health, tally = make()
    tally.drop("", {"internal_error": 1})
    for now, level in ((1.0, ERROR), (2.0, OK)):
        health.hear("left", now)
        health.hear("right", now)
        assert health.report(now, {})[0].level == level


def test_latencies_are_percentiles_of_the_newest_frames():
    health, _ = make()
    for milliseconds in range(101):
        health.finish(milliseconds / 1e3, 0.002)
    values = health.report(0.0, {})[0].values
    assert (values["latency p50 ms"], values["latency p95 ms"]) == ("50.0", "95.0")
    assert values["work per frame ms"] == "2.00"


@pytest.mark.parametrize("age", [34_941_447.967, -3600.0])
def test_stamps_of_another_clock_give_no_latency(age):
    health, _ = make()
    health.finish(age, 0.002)
    values = health.report(0.0, {})[0].values
    assert "latency p50 ms" not in values and "not of this node's clock" in values["latency"]
    assert values["work per frame ms"] == "2.00"
    health.finish(0.030, 0.002)
    assert health.report(1.0, {})[0].values["latency p95 ms"] == "30.0"
