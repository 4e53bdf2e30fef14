"""From message bytes to fused message bytes, without ROS."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from lla_fusion_ros.images.crops import Pixels, cut_crops
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import parse_detections, write_detections
from lla_fusion_ros.messages.images import matrix_of, parse_image, write_compressed_image, write_image
from lla_fusion_ros.messages.status import write_vision_info
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.stream.frame_messages import bundle_message, fused_messages, view_messages, view_pmf
from lla_fusion_ros.stream.perception import Guard, Perception
from lla_fusion_ros.stream.received import HASH_PREFIX
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.tally import Tally
from lla_fusion_ros.types.views import OLDER_QUALITIES, QUALITIES
from support.tiny_bundle import tiny_bundle

SECOND = 1_000_000_000
START = 1000 * SECOND
GLOBAL = StreamSettings(identity="global")  # one id is one object in both cameras


@pytest.fixture(scope="module")
def bundle():
    return tiny_bundle()


@pytest.fixture
def perception(bundle):
    return Perception(bundle, Classifier(bundle, "cpu"), ["left", "right"], GLOBAL)


def scene(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 255, (60, 80, 3), np.uint8)


def boxes(*corners: tuple[float, float, float, float]) -> np.ndarray:
    """cx, cy, w, h -> the five numbers of a message."""
    return np.array([[cx, cy, 0.0, w, h] for cx, cy, w, h in corners]).reshape(-1, 5)


TWO_BOXES = boxes((20, 20, 16, 16), (60, 40, 20, 12))


def send(perception, camera="left", stamp=START, ids=("a", "b"), bbox=TWO_BOXES, seed=0, image=None):
    """One frame, through bytes, as it would come over DDS."""
    header = Header(stamp, camera)
    raw = write_image(header, scene(seed), "rgb8") if image is None else image
    perception.offer(camera, "image", raw)
    perception.offer(camera, "detections", write_detections(header, ids, bbox))


def test_a_frame_gives_the_views_that_direct_calls_give(bundle, perception):
    send(perception)
    (fused,) = perception.step()
    crops = cut_crops(
        Pixels(scene(0), "rgb"), TWO_BOXES[:, [0, 1, 3, 4]], bundle.input_size, bundle.crop_margin
    )
    direct = Classifier(bundle, "cpu")(crops)
    np.testing.assert_allclose(fused.frame.views.logits, direct.logits, atol=1e-5)
    assert fused.result.ids == ("a", "b")


def test_waiting_frames_of_all_cameras_go_through_the_networks_in_one_call(bundle, monkeypatch):
    calls = []

    class Counting(Classifier):
        def __call__(self, crops):
            calls.append(len(crops))
            return super().__call__(crops)

    perception = Perception(bundle, Counting(bundle, "cpu"), ["left", "right"], GLOBAL)
    for step in range(3):
        for camera in ("left", "right"):
            send(perception, camera, START + step * SECOND // 10, seed=step)
    frames = perception.step()
    assert calls == [12]
    assert [fused.frame.camera for fused in frames] == ["left", "right"] * 3


def test_batched_and_single_frames_give_the_same_numbers(bundle):
    together = Perception(bundle, Classifier(bundle, "cpu"), ["left"], GLOBAL)
    one_by_one = Perception(bundle, Classifier(bundle, "cpu"), ["left"], GLOBAL)
    singles = []
    for step in range(4):
        for perception in (together, one_by_one):
            send(perception, stamp=START + step * SECOND // 10, seed=step)
        singles += one_by_one.step()
    for batched, single in zip(together.step(), singles, strict=True):
        np.testing.assert_allclose(batched.result.pmf, single.result.pmf, atol=1e-5)


def test_a_full_queue_drops_the_oldest_frame_of_that_camera_only(bundle):
    perception = Perception(
        bundle, Classifier(bundle, "cpu"), ["left", "right"], StreamSettings(queue_depth=2, identity="global")
    )
    send(perception, "right", START)
    for step in range(5):
        send(perception, "left", START + step * SECOND // 10)
    stamps = [(fused.frame.camera, fused.frame.header.stamp) for fused in perception.step()]
    assert stamps == [
        ("right", START),
        ("left", START + 3 * SECOND // 10),
        ("left", START + 4 * SECOND // 10),
    ]
    assert perception.tally.of("left")["dropped_queue_full"] == 3
    assert perception.tally.of("right")["dropped_queue_full"] == 0


def test_too_many_cameras_lose_their_oldest_frames_evenly_and_every_one_is_counted(bundle):
    """A step takes its share of what waits, while frames of 16 cameras with 10 objects go on coming."""
    cameras = [f"camera{number:02d}" for number in range(16)]
    depth, rounds = 4, 30
    settings = StreamSettings(queue_depth=depth, identity="camera")
    classifier = Classifier(bundle, "cpu")
    perception = Perception(bundle, classifier, cameras, settings)
    many = boxes(*((10 + 6 * number, 30, 8, 8) for number in range(10)))
    names = tuple(map(str, range(10)))
    fused: dict[str, list[int]] = {camera: [] for camera in cameras}
    for number in range(rounds):
        for camera in cameras:
            send(perception, camera, START + number * SECOND // 10, names, many)
        done = perception.step()
        assert sum(len(each.frame.ids) for each in done) < 4 * classifier.at_once + len(many)
        for each in done:
            age = number - (each.frame.header.stamp - START) // (SECOND // 10)
            assert age < depth  # an older one has given way
            fused[each.camera].append(each.frame.header.stamp)
    losses = [perception.tally.of(camera)["dropped_queue_full"] for camera in cameras]
    assert min(losses) > 0 and max(losses) - min(losses) <= 2
    assert max(map(len, fused.values())) - min(map(len, fused.values())) <= 2
    for camera, lost in zip(cameras, losses, strict=True):
        assert fused[camera] == sorted(fused[camera])
        assert len(fused[camera]) + lost + perception.queue.ready.waiting(camera) == rounds


def test_bad_boxes_and_ids_are_left_out_and_counted(perception):
    bad = boxes((20, 20, 16, 16), (np.nan, 1, 1, 1), (20, 20, 16, 16), (20, 20, 1, 1), (100, 20, 9, 9))
    send(perception, ids=("good", "nan", "", "small", "outside"), bbox=bad)
    send(perception, ids=("x" * 10_000,), bbox=boxes((20, 20, 16, 16)), stamp=START + 1)
    first, second = perception.step()
    assert first.result.ids == ("good",)
    assert second.result.ids == ()
    counts = perception.tally.of("left")
    for reason in ("box_not_finite", "empty_id", "box_too_small", "box_outside", "long_id"):
        assert counts[f"dropped_{reason}"] == 1, reason


def test_a_corrupt_image_is_counted_and_the_next_frame_is_right(perception):
    lying = write_image(Header(START, "left"), scene(0), "rgb8").replace(b"rgb8", b"mono")
    send(perception, image=lying)
    send(perception, stamp=START + SECOND // 10)
    assert len(perception.step()) == 1
    assert perception.tally.of("left")["dropped_bad_image"] == 1


def test_a_lossless_compressed_image_gives_the_same_result_as_the_raw_one(bundle, perception):
    send(perception)
    png = cv2.imencode(".png", scene(0)[..., ::-1])[1].tobytes()
    header = Header(START, "right")
    perception.offer("right", "image/compressed", write_compressed_image(header, png, "png"))
    perception.offer("right", "detections", write_detections(header, ("a", "b"), TWO_BOXES))
    raw, compressed = perception.step()
    np.testing.assert_array_equal(raw.frame.views.logits, compressed.frame.views.logits)


@pytest.mark.parametrize(("offset", "frames"), [(0.0, 0), (-0.05, 1)])
def test_a_time_offset_moves_the_stamps_of_the_detections(bundle, offset, frames):
    perception = Perception(
        bundle, Classifier(bundle, "cpu"), ["left"], GLOBAL, wiring={"left": CameraWiring(time_offset=offset)}
    )
    image, boxes_later = Header(START, "left"), Header(START + SECOND // 20, "left")
    perception.offer("left", "image", write_image(image, scene(0), "rgb8"))
    perception.offer("left", "detections", write_detections(boxes_later, ("a", "b"), TWO_BOXES))
    fused = perception.step()
    assert len(fused) == frames
    assert all(frame.frame.header == image for frame in fused)


def test_of_more_detections_than_allowed_the_largest_are_used_and_the_others_counted(bundle):
    perception = Perception(
        bundle, Classifier(bundle, "cpu"), ["left"], StreamSettings(max_detections=3, identity="global")
    )
    sides = (8, 16, 9, 20, np.nan, 1e9, 12, 10)  # neither that of no number nor the absurd one takes a place
    send(perception, ids=tuple("abcdefgh"), bbox=boxes(*[(30, 30, side, side) for side in sides]))
    assert perception.step()[0].result.ids == ("b", "d", "g")
    counts = perception.tally.of("left")
    assert counts["dropped_too_many_detections"] == 3
    assert counts["dropped_box_not_finite"] == counts["dropped_box_absurd"] == 1


def offer(perception, camera, image_stamps, detection_stamps, now):
    """One image and one message of detections, in this order, a few milliseconds apart."""
    for stamp in image_stamps:
        perception.offer(camera, "image", write_image(Header(stamp, camera), scene(0), "rgb8"), now)
    for stamp in detection_stamps:
        detections = write_detections(Header(stamp, camera), ("a", "b"), TWO_BOXES)
        perception.offer(camera, "detections", detections, now + 5_000_000)


def run_camera(bundle, rate, frames, delay=0.0, stamped=0.0, **settings):
    """Frames of a camera whose detections come `delay` later, with `stamped` added to their stamps."""
    perception = Perception(
        bundle, Classifier(bundle, "cpu"), ["left"], StreamSettings(identity="global", **settings)
    )
    period, late = round(SECOND / rate), round(delay * rate)
    fused = []
    for step in range(frames + late):
        stamps = [START + step * period] if step < frames else []
        seen = [START + (step - late) * period + round(stamped * SECOND)] if step >= late else []
        offer(perception, "left", stamps, seen, step * period)
        fused += perception.step()
    hint = perception.queue.hint("left")
    perception.queue.finish()
    return fused, perception.tally.of("left"), hint


def test_a_detector_that_stamps_two_frames_late_gets_no_image_and_is_told_the_offset(bundle):
    fused, counts, hint = run_camera(bundle, rate=10, frames=120, stamped=0.2)
    assert fused == [] and counts["dropped_detections_before_image"] == 118
    assert counts["dropped_detections_without_image"] == 2 and counts["images_without_detections"] == 120
    assert "0.200 s ahead" in hint and "left.time_offset to -0.200" in hint


def test_a_detector_that_is_400_ms_behind_at_30_hz_loses_nothing(bundle):
    fused, counts, _ = run_camera(bundle, rate=30, frames=60, delay=0.4)
    assert len(fused) == 60 and not [name for name in counts if name.startswith("dropped_")]


def test_detections_that_come_too_late_are_told_from_those_with_other_stamps(bundle):
    fused, counts, hint = run_camera(bundle, rate=30, frames=60, delay=0.4, sync_wait=0.2)
    assert len(fused) == 1 and counts["dropped_detections_too_late"] == 59  # the last image may wait
    assert "0.4" in hint and "raise sync_wait" in hint
    fused, counts, hint = run_camera(bundle, rate=10, frames=60, stamped=0.03)
    assert fused == [] and counts["dropped_detections_without_image"] == 60
    assert "+0.030 s" in hint and "left.time_offset: -0.030" in hint


def test_images_that_would_take_too_much_memory_do_not_wait(bundle):
    room = 1_000_000 // (60 * 80 * 3 + 1000)
    limits = {"sync_memory": 1, "sync_wait": 1.0}
    fused, counts, hint = run_camera(bundle, rate=100, frames=2 * room, delay=1.5 * room / 100, **limits)
    assert len(fused) == counts["dropped_detections_too_late"] == room
    assert "raise sync_memory" in hint


def test_a_frame_without_detections_is_fused_to_an_empty_message(bundle, perception):
    send(perception, ids=(), bbox=boxes())
    (fused,) = perception.step()
    messages = fused_messages(fused, bundle.class_names)
    assert [message.topic for message in messages] == [contract.FUSED_CLASSES]
    assert len(parse_detections(messages[0].data)) == 0


def test_published_distributions_list_all_classes_surest_first_and_sum_to_one(bundle, perception):
    send(perception)
    (fused,) = perception.step()
    read = parse_detections(fused_messages(fused, bundle.class_names)[0].data, with_scores=True)
    assert read.header == Header(START, "left") and read.ids == ("a", "b")
    np.testing.assert_array_equal(read.bbox, TWO_BOXES)
    for scores in read.scores:
        assert {class_id for class_id, _ in scores} == {str(i) for i in range(bundle.classes)}
        values = [score for _, score in scores]
        assert values == sorted(values, reverse=True) and abs(sum(values) - 1) < 1e-6


def over_the_wire(bundle, frames, info=None, info_first=True):
    """The fused frames that a fusion node makes of the messages of a classifier node."""
    fusion = Perception(bundle, None, ["left", "right"], GLOBAL)
    info = info or bundle_message("left", bundle, START).data
    if info_first:
        fusion.offer("left", "views/info", info)
    for frame in frames:
        views, embeddings = view_messages(frame)
        fusion.offer("left", "views", views.data)
        fusion.offer("left", "views/embeddings", embeddings.data)
    if not info_first:
        fusion.offer("left", "views/info", info)
    return fusion.step(), fusion


@pytest.mark.parametrize("info_first", [True, False])
def test_views_sent_over_the_wire_fuse_to_the_same_numbers(bundle, perception, info_first):
    direct = []
    for step in range(3):
        send(perception, stamp=START + step * SECOND // 10, seed=step)
        direct += perception.step()
    remote, _ = over_the_wire(bundle, [fused.frame for fused in direct], info_first=info_first)
    assert len(remote) == 3
    for ours, theirs in zip(direct, remote, strict=True):
        assert ours.result.ids == theirs.result.ids
        np.testing.assert_allclose(ours.result.pmf, theirs.result.pmf, atol=1e-5)
        np.testing.assert_array_equal(ours.frame.views.size, theirs.frame.views.size)
        assert np.isfinite(ours.frame.views.size).all()


def test_views_of_another_bundle_are_refused_and_named(bundle, perception):
    send(perception)
    frames = [fused.frame for fused in perception.step()]
    other = write_vision_info(Header(START, ""), "", HASH_PREFIX + "f00d", 1)
    fused, fusion = over_the_wire(bundle, frames, other)
    assert fused == [] and fusion.foreign == {"left": "f00d"}
    assert fusion.tally.of("left")["dropped_other_bundle"] == 1


def test_embeddings_with_nan_or_of_another_width_are_refused(bundle, perception):
    send(perception)
    (fused,) = perception.step()
    _, fusion = over_the_wire(bundle, [])
    good = matrix_of(parse_image(view_messages(fused.frame)[1].data))
    broken = good.copy()
    broken[0, 0] = np.nan
    for matrix in (broken, good[:, 2:], good[:1], np.zeros((0, good.shape[1]), np.float32)):
        fusion.offer("left", "views", view_messages(fused.frame)[0].data)
        fusion.offer("left", "views/embeddings", write_image(fused.frame.header, matrix, "32FC1"))
    assert fusion.tally.of("left")["dropped_bad_embeddings"] == 4 and not fusion.step()


def test_embeddings_recorded_with_fewer_qualities_lack_the_newer_ones(bundle, perception):
    send(perception)
    (fused,) = perception.step()
    _, fusion = over_the_wire(bundle, [])
    matrix = matrix_of(parse_image(view_messages(fused.frame)[1].data))
    older = matrix[:, : len(OLDER_QUALITIES) - len(QUALITIES)]
    fusion.offer("left", "views", view_messages(fused.frame)[0].data)
    fusion.offer("left", "views/embeddings", write_image(fused.frame.header, older, "32FC1"))
    quality = fusion.step()[-1].frame.views.quality
    np.testing.assert_array_equal(quality[:, : len(OLDER_QUALITIES)], matrix[:, -len(QUALITIES) :][:, :8])
    assert np.isnan(quality[:, len(OLDER_QUALITIES) :]).all()


@pytest.mark.parametrize(
    ("takes_images", "topics"),
    [
        (True, ("image", "image/compressed", "detections")),
        (False, ("views", "views/embeddings", "views/info")),
    ],
)
def test_bytes_that_are_no_message_are_counted_whatever_the_topic(bundle, takes_images, topics):
    perception = Perception(bundle, Classifier(bundle, "cpu") if takes_images else None, ["left"], GLOBAL)
    for topic in topics:
        assert not perception.offer("left", topic, b"\x00\x01\x00\x00 no message")
    assert perception.tally.of("left") == {"dropped_bad_message": 3}
    assert perception.step() == []


def test_the_pmf_of_a_view_is_the_mean_over_networks(perception):
    send(perception)
    (fused,) = perception.step()
    logits = fused.frame.views.logits.astype(np.float64)
    powers = np.exp(logits)
    np.testing.assert_allclose(
        view_pmf(fused.frame), (powers / powers.sum(-1, keepdims=True)).mean(1), atol=1e-12
    )


def test_a_frame_that_raises_costs_only_itself_and_is_told(bundle):
    told = []
    tally = Tally()
    guard = Guard(tally, told.append)
    perception = Perception(
        bundle, Classifier(bundle, "cpu"), ["left", "right"], GLOBAL, tally=tally, guard=guard
    )
    cut, update = perception.classify._prepare, perception.engine.update

    def prepare(frame, decoded):
        if frame.header.stamp == START + 1:
            raise RuntimeError("a fault in the networks")
        return cut(frame, decoded)

    def fuse(observation):
        if observation.stamp == START + 2:
            raise RuntimeError("a fault in fusion")
        return update(observation)

    perception.classify._prepare, perception.engine.update = prepare, fuse
    for step, camera in enumerate(["left", "left", "right", "right"]):
        send(perception, camera, START + step, ids=(f"{camera} {step}", "b"))
    assert [fused.frame.header.stamp for fused in perception.step()] == [START, START + 3]
    assert [str(error) for error in told] == ["a fault in the networks", "a fault in fusion"]
    for camera in ("left", "right"):
        assert perception.tally.of(camera)["dropped_internal_error"] == 1
        assert perception.tally.of(camera)["unused_frames"] == 1


def test_a_frame_that_cannot_be_published_costs_only_itself_and_is_told(bundle, perception):
    told, sent = [], []
    guard = Guard(perception.tally, told.append)
    for step, camera in enumerate(["left", "right", "left"]):
        send(perception, camera, START + step)
    frames = perception.step()

    def publish(fused):
        if fused.frame.camera == "right":
            raise RuntimeError("no such topic")
        sent.append(fused.frame.header.stamp)

    guard.publish(publish, frames)
    assert sent == [START, START + 2] and len(told) == 1
    assert perception.tally.of("right")["dropped_not_published"] == 1
    assert perception.tally.of("left")["dropped_not_published"] == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_threads_change_nothing_but_who_works(bundle, workers):
    roomy = StreamSettings(queue_depth=100, identity="global")
    alone = Perception(bundle, Classifier(bundle, "cpu"), ["left"], roomy)
    together = Perception(bundle, Classifier(bundle, "cpu"), ["left"], roomy, workers=workers)
    one_by_one = []
    for number in range(40):
        stamp = START + number * SECOND
        image = write_image(Header(stamp, "left"), scene(number), "rgb8" if number != 7 else "nonsense8")
        for perception in (alone, together):
            send(perception, stamp=stamp, image=image)
        one_by_one += alone.step()
    at_once = []
    while together.queue.ready:
        at_once += together.step()
    assert alone.tally.of("left") == together.tally.of("left")
    assert together.tally.of("left")["dropped_bad_image"] == 1
    for one, other in zip(one_by_one, at_once, strict=True):
        assert one.header == other.header and one.result.ids == other.result.ids
        np.testing.assert_allclose(one.frame.views.logits, other.frame.views.logits, atol=1e-5)
