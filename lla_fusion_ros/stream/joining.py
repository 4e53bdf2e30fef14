"""Objects over several cameras: geometry and the boxes of all cameras in, which tracks are one object out."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from statistics import median

import numpy as np

from lla_fusion_ros.detections.adapter import image_adapter
from lla_fusion_ros.detections.frame import FrameDetections, FrameDetections3D
from lla_fusion_ros.engine.engine import FrameResult
from lla_fusion_ros.messages.cdr import Raw
from lla_fusion_ros.messages.contract import OBJECTS, STATIC_TRANSFORMS
from lla_fusion_ros.messages.geometry import parse_camera_info, parse_transforms
from lla_fusion_ros.stream.frames import CameraFrame, ScoreFrame, ViewFrame
from lla_fusion_ros.stream.identity import is_global
from lla_fusion_ros.tracking.association import Association
from lla_fusion_ros.tracking.geometry import Geometry
from lla_fusion_ros.tracking.groups import Groups
from lla_fusion_ros.tracking.objects import Objects, Partners, hidden
from lla_fusion_ros.tracking.projection import in_image
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import about_classes
from lla_fusion_ros.types.tally import Tally

CLOCKS_APART = 0.2  # seconds between the delays of two cameras
FEW = 8  # tracks that fit no other camera's before the user is asked to look
LONGEST = 20  # frames over which delays are measured


class Joining:
    """What `auto` identity adds for cameras that know where they are; others stay apart.

    Attributes:
        on: whether tracks of several cameras may be joined; `identity` decides.
        rectified: cameras whose images are rectified already.
        objects: those in space, where somebody sends them.
        reserved: so many of the last outcomes are no classes.
    """

    def __init__(self, cameras: Sequence[str], on: bool, tally: Tally, reserved: int = 0) -> None:
        self.on, self.reserved = on, reserved
        self.rectified: set[str] = set()
        self.geometry = Geometry(cameras)
        self.association = Association(cameras, self.geometry.see, self.geometry.shows)
        self._cameras = tuple(cameras)
        self._tally = tally
        self.objects = Objects()
        self._partners = Partners()
        self._jumps = 0
        self._objects: dict[str, str] = {}  # track -> object, of tracks that are joined
        self._delays: dict[str, deque[float]] = {camera: deque(maxlen=LONGEST) for camera in cameras}
        self._ended: dict[str, Counter[bool]] = {camera: Counter() for camera in cameras}
        self._alone: dict[str, int] = {}  # moments of tracks

    def reset(self) -> None:
        """Forget all tracks; the geometry stays."""
        self.association.reset()
        self.objects.clear()
        self._partners.clear()
        self._objects.clear()
        self._alone.clear()

    def offer_info(self, camera: str, data: Raw) -> None:
        """The bytes of a CameraInfo."""
        try:
            self.geometry.take_info(camera, parse_camera_info(data), camera in self.rectified)
        except InputError:
            self._tally.drop(camera, {"bad_message": 1})

    def offer_transforms(self, topic: str, data: Raw) -> None:
        """The bytes of a message of /tf or /tf_static."""
        try:
            refused = self.geometry.take_transforms(parse_transforms(data), topic == STATIC_TRANSFORMS)
        except InputError:
            refused = 1
        if refused:
            self._tally.drop("", {"bad_transform": refused})

    def offer_objects(self, data: Raw) -> None:
        """The bytes of a message of objects in space, for the frames that are complete from now on."""
        try:
            found = image_adapter(OBJECTS).read(data)
        except InputError:
            self._tally.drop("", {"bad_message": 1})
            return
        assert isinstance(found, FrameDetections3D)
        self._tally.add("", "object_messages")
        self.objects.take(found)

    def projected(self, camera: str, found: FrameDetections3D) -> FrameDetections:
        """Boxes in space as boxes in the image, the nearest first; none, counted, where nobody knows where
        they fall."""
        if not len(found):
            return found.in_image(np.empty((0, 5)), [])
        try:
            pose = self.geometry.seen_from(camera, found.header.frame_id, found.header.stamp)
        except InputError:
            self._tally.drop(camera, {"no_geometry": len(found)})
            return found.in_image(np.empty((0, 5)), [])
        lens = self.geometry.lens(camera)
        assert lens is not None
        return in_image(found, lens, pose)

    def named_by_objects(
        self,
        frame: CameraFrame | ScoreFrame,
        bbox: np.ndarray,
        tracks: tuple[str, ...],
        names: tuple[str, ...],
    ) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...], dict[str, tuple[str, ...]]]:
        """Boxes, tracks and names of a frame as the objects in space would have them.

        Objects that no box shows are boxes as well, unless nearer ones hide them. The last part are the
        tracks that have turned out to be one of the objects.
        """
        assert frame.objects is not None
        shown = self.projected(frame.camera, frame.objects)
        own, left = self._partners.match(frame.header.stamp, names, bbox[:, [0, 1, 3, 4]], shown)
        covered = hidden(shown.boxes)
        alone = shown.take([row for row in left if not covered[row]])
        own += alone.ids or ()
        members = {name: self._partners.members(name) for name in own if is_global(frame.camera, name)}
        members = {name: found for name, found in members.items() if len(found) > 1}
        return np.concatenate([bbox, alone.bbox]), (*tracks, *(alone.ids or ())), tuple(own), members

    @property
    def working(self) -> bool:
        """Whether there is anything to join; geometry may still come."""
        return self.on and len(self._cameras) > 1

    def groups(self, frame: ViewFrame) -> Groups:
        """The members of the tracks of a frame that are one object with others."""
        if not self.working:
            return {}
        if self.geometry.jumps != self._jumps:
            self._jumps = self.geometry.jumps
            self.association.part()
        found = self.association.groups(frame.header.stamp)
        own: dict[str, tuple[str, ...]] = {}
        for name in frame.ids:
            members = found.get(name, ())
            if members and members not in own.values():  # an object is in a frame once
                own[name] = members
        return own

    def observe(self, frame: ViewFrame, result: FrameResult) -> None:
        """What became of the frame; ids that are global need no joining."""
        if result.jumped:
            self.reset()
        if not self.working:
            return
        self._delays[frame.camera].append((frame.completed - frame.header.stamp) / 1e9)
        self._end(result.removed)
        places = [
            (place, row)
            for place, row in enumerate(result.kept.tolist())
            if not is_global(frame.camera, frame.ids[row])
        ]
        rows = [row for _, row in places]
        names = [frame.ids[row] for row in rows]
        own = about_classes(result.own[[place for place, _ in places]], self.reserved)
        self.association.observe(
            frame.camera, frame.header.stamp, names, frame.bbox[rows][:, [0, 1, 3, 4]], own
        )
        for name in names:
            self._alone[name] = self._alone.get(name, 0) + 1
        for place, row in enumerate(result.kept.tolist()):
            if len(result.members[place]) > 1:
                self._objects[frame.ids[row]] = result.ids[place]

    def _end(self, removed: Sequence[str]) -> None:
        self.association.forget(removed)
        for name in removed:
            joined = self._objects.pop(name, "") != ""
            camera = next((each for each in self._cameras if name.startswith(each)), "")
            if self._alone.pop(name, 0) >= 10 and camera:
                self._ended[camera][joined] += 1

    def status(self, camera: str) -> str:
        """What joins a camera's objects with the other cameras', or why nothing does."""
        if len(self._cameras) < 2:
            return "one camera"
        if not self.on:
            return "not used: `identity` says who is who"
        if not self.geometry.known:
            return "cameras stay apart: no camera_info has come"
        reason = self.geometry.reasons.get(camera, "")
        if self.geometry.lens(camera) is None and not reason:
            reason = f"no camera_info of {camera} has come"
        if reason:
            return f"stays apart: {reason}"
        joined, alone = self._ended[camera][True], self._ended[camera][False]
        text = f"joined with other cameras: {joined} of {joined + alone} tracks"
        others = [median(own) for name, own in self._delays.items() if name != camera and own]
        delays = self._delays[camera]
        if delays and others and abs(median(delays) - median(others)) > CLOCKS_APART:
            apart = median(others) - median(delays)
            text += (
                f"; its stamps are {apart:+.2f} s from the others' when frames arrive: is its clock right?"
            )
        elif doubts := self.association.doubts(camera):
            told = (
                f"with {other}: tracks that both should show fit {fits:.1f} s of {fits + misfits:.1f}"
                for other, (fits, misfits) in doubts.items()
            )
            text += f"; not joined {', '.join(told)}; check its camera_info and transforms"
        elif joined == 0 and alone >= FEW:
            text += "; none fits: check its camera_info, transforms and clock, unless it looks elsewhere"
        return text

    @property
    def counts(self) -> dict[str, str]:
        """For /diagnostics."""
        own = self.association
        return {
            "joins": str(own.joins),
            "splits": str(own.splits),
            "transform jumps": str(self.geometry.jumps),
        }
