"""A detector that flickers, over DDS with its own messages and without any image: the scores are fused."""

from __future__ import annotations

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from vision_msgs.msg import Detection2D, Detection2DArray, LabelInfo, ObjectHypothesisWithPose, VisionClass

from lla_fusion_ros.lab.makebag.write import drive_frames, flickering
from lla_fusion_ros.signworld import CLASS_NAMES
from support.camera import SECOND
from support.drive import SWITCHED, short_drive
from support.ros import LATCHED

yolo = pytest.importorskip("yolo_msgs.msg", reason="yolo_msgs is built by `make setup` without a sourced ROS")


def yolo_detection(name: str, box, said: str, score: float):
    detection = yolo.Detection(class_id=CLASS_NAMES.index(said), class_name=said, score=score, id=name)
    detection.bbox.center.position.x, detection.bbox.center.position.y = box[:2]
    detection.bbox.size.x, detection.bbox.size.y = box[2:]
    return detection


def vision_detection(name: str, box, said: str, score: float):
    detection = Detection2D(id=name)
    detection.bbox.center.position.x, detection.bbox.center.position.y = box[:2]
    detection.bbox.size_x, detection.bbox.size_y = box[2:]
    result = ObjectHypothesisWithPose()
    result.hypothesis.class_id, result.hypothesis.score = said, score
    detection.results.append(result)
    return detection


KINDS = {"yolo": (yolo.DetectionArray, yolo_detection), "vision": (Detection2DArray, vision_detection)}


def flips(said: dict[str, list[str]]) -> int:
    return sum(a != b for names in said.values() for a, b in zip(names, names[1:], strict=False))


@pytest.mark.parametrize("kind", KINDS)
def test_fused_scores_flip_a_fifth_as_often_and_are_truer_than_the_last_frame(
    ros_graph, perception_node, detector, listener, kind, capfd
):
    perception_node(model="scores", cameras=["left"]).start()
    array, detection_of = KINDS[kind]
    publisher = detector.create_publisher(array, "left/detections", 50)
    fused = ros_graph.collect(listener, Detection2DArray, "/left/fused_classes", 100)
    labels = ros_graph.collect(listener, LabelInfo, "/fused_classes/label_info", LATCHED)
    ros_graph.wait_for_subscribers(publisher)
    ros_graph.wait_for_publishers(listener, "/left/fused_classes")
    alone: dict[str, list[str]] = {}
    together: dict[str, list[str]] = {}
    nll = np.zeros(2)
    scenes = [scene for scene in drive_frames(short_drive()) if scene.camera == "left"]
    for count, frame in enumerate(flickering(scenes, CLASS_NAMES, 0.35), 1):
        message = array()
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(frame.stamp, SECOND)
        best = frame.said.argmax(axis=1)
        for row, name in enumerate(frame.ids):
            said, score = CLASS_NAMES[best[row]], float(frame.said[row, best[row]])
            message.detections.append(detection_of(name, frame.boxes[row].tolist(), said, score))
            alone.setdefault(name, []).append(said)
        publisher.publish(message)
        ros_graph.spin_until(lambda count=count: len(fused) == count, what="the fused frame")
        assert [each.id for each in fused[-1].detections] == list(frame.ids)
        for row, detection in enumerate(fused[-1].detections):
            pmf = {each.hypothesis.class_id: each.hypothesis.score for each in detection.results}
            there = 1 - pmf.pop("nothing_there")
            together.setdefault(detection.id, []).append(max(pmf, key=pmf.get))
            true = frame.classes[row]
            if true is not None and detection.id not in SWITCHED:
                own = frame.said[row, CLASS_NAMES.index(true)]
                nll -= np.log([max(own, 1e-6), max(pmf.get(true, 0.0) / there, 1e-6)])
    assert flips(alone) > 50 and flips(alone) >= 5 * flips(together), (flips(alone), flips(together))
    assert nll[1] < nll[0] / 2
    names = {each.class_name for each in labels[-1].class_map}
    assert {said for own in alone.values() for said in own} == names - {
        "nothing_there"
    }  # as the messages call them
    log = capfd.readouterr().err
    assert "uncalibrated" in log and log.count("set the parameter class_names") == 1


def test_a_label_info_decides_the_numbers_of_classes(ros_graph, perception_node, detector, listener, capfd):
    told = detector.create_publisher(LabelInfo, "/left/detections/label_info", LATCHED)
    told.publish(LabelInfo(class_map=[VisionClass(class_id=n, class_name=s) for n, s in enumerate("xyz")]))
    node = perception_node(model="scores", cameras=["left"])
    node.start()
    labels = ros_graph.collect(listener, LabelInfo, "/fused_classes/label_info", LATCHED)
    publisher = detector.create_publisher(Detection2DArray, "left/detections", 50)
    ros_graph.wait_for_subscribers(publisher)
    ros_graph.wait_for_subscribers(told)
    message = Detection2DArray(detections=[vision_detection("a", (50.0, 50.0, 20.0, 20.0), "z", 0.9)])

    def names() -> list[str]:
        message.header.stamp.sec += 1
        publisher.publish(message)
        return [each.class_name for each in labels[-1].class_map] if labels else []

    ros_graph.spin_until(lambda: names() == ["x", "y", "z", "nothing_there"], what="the labels")
    assert "class_names" not in capfd.readouterr().err


def test_empty_frames_are_answered_and_scores_that_are_none_are_dropped_and_told_of_once(
    ros_graph, perception_node, detector, listener, capfd
):
    topics = {"left.detections_topic": "/yolo/boxes", "identity": "global"}
    node = perception_node(model="scores", cameras=["left"], **topics)
    node.start()
    publisher = detector.create_publisher(Detection2DArray, "/yolo/boxes", 50)
    fused = ros_graph.collect(listener, Detection2DArray, "/fused_classes", 100)
    told = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 100)
    ros_graph.wait_for_subscribers(publisher)
    ros_graph.wait_for_publishers(listener, "/fused_classes")
    box = (50.0, 50.0, 20.0, 20.0)
    good, percent = vision_detection("a", box, "stop", 0.9), vision_detection("b", box, "stop", 90.0)
    sent = [[], [good], [good, percent], [percent], [], [good]]
    for number, detections in enumerate(sent):
        message = Detection2DArray(detections=detections)
        message.header.stamp.sec = 100 + number
        publisher.publish(message)
    ros_graph.spin_until(lambda: len(fused) == 4, what="all frames but those with percent")
    assert [[each.id for each in message.detections] for message in fused] == [[], ["a"], [], ["a"]]
    assert [message.header.stamp.sec for message in fused] == [100, 101, 104, 105]
    counts = node.tally.of("left")
    assert counts["frames"] == counts["fused_frames"] == 4 and counts["dropped_bad_scores"] == 2
    assert not counts["dropped_internal_error"]

    def states() -> list[tuple[int, str]]:
        own = [status for message in told for status in message.status if status.name.endswith("camera left")]
        return [(int.from_bytes(status.level, "little"), status.message) for status in own]

    ros_graph.spin_until(lambda: any("/yolo/boxes says" in message for _, message in states()), what="a word")
    seen = len(told)
    ros_graph.spin_until(lambda: len(told) > seen + 2, what="further reports")
    assert "says" not in states()[-1][1]  # nothing was wrong since
    assert capfd.readouterr().err.count("/yolo/boxes says 'stop: 90'") == 1
