"""Frames as messages of the contract: the same bytes whether a node publishes or the replay writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.images.drawing import Label, colour_of, draw_labels, to_bgr8
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.annotations import Annotation, write_annotations
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import ALL, Listing, write_detections
from lla_fusion_ros.messages.images import write_image
from lla_fusion_ros.messages.status import Status, write_diagnostics, write_label_info, write_vision_info
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.received import HASH_PREFIX, ViewShape
from lla_fusion_ros.types.pmf import percent, softmax
from lla_fusion_ros.warnings.result import CANNOT_TELL, NOTHING_THERE, Level, Verdict

BARS = 3  # classes shown of each object in annotated images
_SAYS = {
    "out_of_distribution": "unlike anything the networks were trained on",
    "identity_switch": "its views changed as if the id had moved to another object",
    "camera_disagreement": "the cameras see different classes",
    "cannot_tell": "its pictures are too bad to tell what it is",
    "nothing_there": "what the detector says of it is most likely of nothing",
}


class Outgoing(NamedTuple):
    """A message ready to be published or written: relative topic, type and CDR bytes."""

    topic: str
    type: str
    data: bytes


def view_pmf(frame: ViewFrame) -> np.ndarray:
    """Class distribution of each view by itself: the mean over networks.  [views, classes]"""
    return np.asarray(softmax(frame.views.logits.astype(np.float64)).mean(axis=1))


def view_messages(frame: ViewFrame, listing: Listing = ALL) -> list[Outgoing]:
    """`<camera>/views` and `<camera>/views/embeddings`."""
    views = frame.views
    shape = ViewShape(views.networks, views.classes, views.features.shape[2])
    listed = write_detections(frame.header, frame.ids, frame.bbox, view_pmf(frame), listing)
    embeddings = write_image(frame.header, shape.pack(views), "32FC1")
    return [
        Outgoing(contract.views_topic(frame.camera), contract.DETECTIONS, listed),
        Outgoing(contract.embeddings_topic(frame.camera), contract.IMAGE, embeddings),
    ]


def bundle_message(camera: str, bundle: Bundle, stamp: int) -> Outgoing:
    """`<camera>/views/info`, latched: which bundle the embeddings beside it come from."""
    data = write_vision_info(Header(stamp, ""), "lla_fusion_ros ensemble", HASH_PREFIX + bundle.hash, 1)
    return Outgoing(contract.views_info_topic(camera), contract.VISION_INFO, data)


def label_message(class_names: Sequence[str], stamp: int) -> Outgoing:
    """`fused_classes/label_info`, latched: the name behind each class number."""
    return Outgoing(contract.LABELS, contract.LABEL_INFO, write_label_info(Header(stamp, ""), class_names))


def fused_messages(fused: FusedFrame, class_names: Sequence[str], listing: Listing = ALL) -> list[Outgoing]:
    """`fused_classes`, and `ood_warnings` where there is something to say."""
    frame, result = fused.frame, fused.result
    listed = _listed(fused, result.ids, listing)
    messages = [Outgoing(contract.FUSED_CLASSES, contract.DETECTIONS, listed)]
    statuses = warning_statuses(fused, class_names)
    if statuses:
        warned = write_diagnostics(frame.header, statuses)
        messages.append(Outgoing(contract.OOD_WARNINGS, contract.DIAGNOSTICS, warned))
    return messages


def camera_fused_message(fused: FusedFrame, listing: Listing = ALL) -> Outgoing:
    """`<camera>/fused_classes`: the same entries under the ids of the camera's own tracker."""
    ids = [fused.frame.track_ids[row] for row in fused.result.kept]
    listed = _listed(fused, ids, listing)
    return Outgoing(contract.camera_fused_topic(fused.camera), contract.DETECTIONS, listed)


def _listed(fused: FusedFrame, ids: Sequence[str], listing: Listing) -> bytes:
    frame, result = fused.frame, fused.result
    return write_detections(frame.header, ids, frame.bbox[result.kept], result.pmf, listing)


def cleared_message(cleared: Sequence[str], stamp: int) -> Outgoing:
    """`ood_warnings` when tracks are forgotten between frames: their warnings end."""
    data = write_diagnostics(Header(stamp, ""), [_all_clear(name) for name in cleared])
    return Outgoing(contract.OOD_WARNINGS, contract.DIAGNOSTICS, data)


def annotated_message(fused: FusedFrame, class_names: Sequence[str]) -> Outgoing:
    """`<camera>/annotated`: the image with the fused classes and warnings."""
    frame, result = fused.frame, fused.result
    warnings = [
        (" ".join(reason.replace("_", " ") for reason in verdict.reasons), _is_grave(verdict))
        for verdict in result.verdicts
    ]
    return _annotated(frame, result.ids, frame.bbox[result.kept], result.pmf, class_names, warnings)


def _is_grave(verdict: Verdict) -> bool:
    """Whether more is wrong with an object than its pictures, and it is there."""
    return not set(verdict.reasons) <= {CANNOT_TELL, NOTHING_THERE}


def annotations_of(fused: FusedFrame, class_names: Sequence[str]) -> list[Annotation]:
    """What `annotated` shows, for Foxglove to draw onto the camera's own image."""
    frame, result = fused.frame, fused.result
    drawn = []
    for row, verdict in enumerate(result.verdicts):
        x, y, _, width, height = frame.bbox[result.kept[row]].tolist()
        told = [f"{result.ids[row]}: {class_names[verdict.top]} {percent(verdict.probability)}"]
        told += [reason.replace("_", " ") for reason in verdict.reasons]
        colour = colour_of(verdict.probability, bool(verdict.reasons), _is_grave(verdict))
        blue, green, red = (part / 255 for part in colour)
        drawn.append(Annotation((x, y, width, height), ", ".join(told), (red, green, blue)))
    return drawn


def annotations_message(fused: FusedFrame, class_names: Sequence[str]) -> Outgoing:
    """`<camera>/annotations`, as a bag has them."""
    data = write_annotations(fused.frame.header.stamp, annotations_of(fused, class_names))
    return Outgoing(contract.annotations_topic(fused.camera), contract.ANNOTATIONS, data)


def annotated_views_message(frame: ViewFrame, class_names: Sequence[str]) -> Outgoing:
    """`<camera>/annotated` of a node without fusion: the classes of this frame alone."""
    none = [("", False)] * len(frame.ids)
    return _annotated(frame, frame.ids, frame.bbox, view_pmf(frame), class_names, none)


def _annotated(
    frame: ViewFrame,
    ids: Sequence[str],
    bbox: np.ndarray,
    pmf: np.ndarray,
    class_names: Sequence[str],
    warnings: Sequence[tuple[str, bool]],
) -> Outgoing:
    assert frame.pixels is not None
    labels = []
    for row, track_id in enumerate(ids):
        surest = np.argsort(-pmf[row])[:BARS]
        classes = tuple((class_names[index], float(pmf[row, index])) for index in surest)
        x, y, _, width, height = bbox[row].tolist()
        labels.append(Label((x, y, width, height), track_id, classes, *warnings[row]))
    image = to_bgr8(frame.pixels)
    draw_labels(image, labels)
    data = write_image(frame.header, image, "bgr8")
    return Outgoing(contract.annotated_topic(frame.camera), contract.IMAGE, data)


def warning_statuses(fused: FusedFrame, class_names: Sequence[str]) -> list[Status]:
    """One at level OK for each track whose warning ended, then one per warned track.

    In this order, as a track may be forgotten and its id be warned of again in one frame.
    """
    verdicts = fused.result.verdicts
    thresholds = " ".join(f"{reason}={rate:g}" for reason, rate in verdicts.thresholds.items())
    statuses = [_all_clear(name) for name in fused.result.cleared]
    return statuses + [
        _warning(fused.result.ids[row], fused.frame.camera, verdicts[row], class_names, thresholds)
        for row in np.flatnonzero(verdicts.level).tolist()
    ]


def _warning(
    track_id: str, camera: str, verdict: Verdict, class_names: Sequence[str], thresholds: str
) -> Status:
    values = {
        "top class": class_names[verdict.top],
        "p": f"{verdict.probability:.6f}",
        "entropy": f"{verdict.entropy:.6f}",
        "normalised entropy": f"{verdict.normalised_entropy:.6f}",
        "mutual information": f"{verdict.mutual_information:.6g}",
        "ood score": f"{verdict.ood_score:.6g}",
        **{name: f"{p:.6g}" for name, p in verdict.p_values.items()},
        "thresholds": thresholds,
        "views per camera": " ".join(f"{name}={count}" for name, count in verdict.views.items()),
        "reason": " ".join(verdict.reasons),
    }
    message = "; ".join(_SAYS.get(reason, reason) for reason in verdict.reasons)
    return Status(int(verdict.level), f"track {track_id}", message, camera, values)


def _all_clear(name: str) -> Status:
    return Status(int(Level.OK), f"track {name}", "no longer warned of")
