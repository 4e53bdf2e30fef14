"""Where the cameras look: CameraInfo and transforms of all cameras in, directions in a common frame out.

Cameras that no transform connects stay out, and so does one whose geometry is refused, or whose transform to
the others jumps; `reasons` says why. `take` may be called in another thread than the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np

from lla_fusion_ros.messages.geometry import CameraInfoMessage, Transform
from lla_fusion_ros.tracking.lens import Lens
from lla_fusion_ros.tracking.pairs import see, shown
from lla_fusion_ros.tracking.transforms import Pose, Transforms
from lla_fusion_ros.types.errors import InputError

SECOND = 1_000_000_000
# A camera that moves by more than this, seen from the others, between two frames has jumped: metres, radians;
# where moving joints are between them, per second on top.
SHIFT, TURN = 0.02, np.deg2rad(0.2)
SPEED, SPIN = 10.0, np.deg2rad(180)
CALM = SECOND  # after a jump, before it is believed again


class Geometry:
    """The geometry of all cameras, as far as it is known.

    Attributes:
        reasons: by camera, why its boxes cannot be placed.
        jumps: how often a camera's transform has jumped.
    """

    def __init__(self, cameras: Sequence[str]) -> None:
        self.cameras = tuple(cameras)
        self.reasons: dict[str, str] = {}
        self.jumps = 0
        self._lenses: dict[str, Lens] = {}
        self._refused: dict[str, str] = {}
        self._frames: dict[str, str] = {}
        self._transforms = Transforms()
        self._lock = Lock()
        self._last: dict[str, tuple[int, Pose]] = {}
        self._mounts: dict[str, Pose] = {}
        self._unsettled = False
        self._jumped: dict[str, int] = {}
        self._reference: tuple[int, int, str] = (-1, -1, "")  # version, lenses, frame

    @property
    def known(self) -> bool:
        """Whether anything was said about where cameras are."""
        return bool(self._lenses or self._refused)

    def take_info(self, camera: str, info: CameraInfoMessage, rectified: bool = False) -> None:
        """A CameraInfo; of rectified images the lens is P without distortion."""
        with self._lock:
            matrix, distortion = info.matrix, info.distortion
            if rectified and info.projection[0] > 0:
                p = info.projection
                matrix, distortion = (*p[0:3], *p[4:7], *p[8:11]), ()
            old = self._lenses.get(camera)
            same = old is not None and (old.matrix, old.distortion) == (matrix, distortion)
            self._frames[camera] = info.header.frame_id
            if same and old is not None and (old.width, old.height) == (info.width, info.height):
                return
            try:
                self._lenses[camera] = Lens.checked(info.width, info.height, matrix, info.model, distortion)
                self._refused.pop(camera, None)
                self._watch_mounts()  # transforms may have come before
            except InputError as error:
                self._refused[camera] = f"the camera_info of {camera} is refused: {error}"
                self.reasons[camera] = self._refused[camera]  # not only with the next frame
                self._lenses.pop(camera, None)

    def take_transforms(self, transforms: Sequence[Transform], fixed: bool) -> int:
        """How many were refused."""
        with self._lock:
            version = self._transforms.version
            refused = self._transforms.add(transforms, fixed)
            if self._transforms.version != version and self._lenses:
                self._watch_mounts()
            return refused

    def lens(self, camera: str) -> Lens | None:
        return self._lenses.get(camera)

    def see(self, camera: str, stamp: int, boxes: np.ndarray) -> np.ndarray | None:
        """What boxes of a camera show; None, with a reason, where that is not known (yet)."""
        with self._lock:
            try:
                pose = self._pose(camera, stamp)
            except InputError as error:
                self.reasons[camera] = str(error)
                return None
            self.reasons.pop(camera, None)
            return see(self._lenses[camera], pose, boxes)

    def shows(self, camera: str, stamp: int, points: np.ndarray) -> np.ndarray:
        """Which points of the common frame lie well inside its image; none where that is not known."""
        pose, lens = self.place(camera, stamp), self.lens(camera)
        if pose is None or lens is None:
            return np.zeros(len(points), bool)
        return shown(lens, pose, points)

    def place(self, camera: str, stamp: int) -> Pose | None:
        """A camera seen from the frame that all cameras are seen from; None where that is not known."""
        with self._lock:
            try:
                self._need_lens(camera)
                return self._transforms.lookup(self._common(), self._frames[camera], stamp)
            except InputError:
                return None

    def seen_from(self, camera: str, frame: str, stamp: int) -> Pose:
        """A frame of the world seen from a camera; InputError says why not."""
        with self._lock:
            self._need_lens(camera)
            return self._transforms.lookup(self._frames[camera], frame, stamp)

    def _watch_mounts(self) -> None:
        """Notice cameras that are fixed to each other, and are now somewhere else."""
        reference = self._common()
        for camera in self._lenses:
            own = self._frames[camera]
            if not self._transforms.connected(reference, own) or not self._transforms.fixed(reference, own):
                continue
            pose = self._transforms.lookup(reference, own, 0)
            last = self._mounts.get(camera)
            self._mounts[camera] = pose
            if last is not None and _moved(last, pose, 0.0):
                self.jumps += 1
                self._unsettled = True
                self.reasons[camera] = _jumps(camera)

    def _need_lens(self, camera: str) -> Lens:
        if camera in self._refused:
            raise InputError(self._refused[camera])
        if camera not in self._lenses:
            raise InputError(f"no camera_info of {camera} has come")
        return self._lenses[camera]

    def _pose(self, camera: str, stamp: int) -> Pose:
        self._need_lens(camera)
        reference, own = self._common(), self._frames[camera]
        pose = self._transforms.lookup(reference, own, stamp)
        last = self._last.get(camera)
        self._last[camera] = stamp, pose
        moving = not self._transforms.fixed(reference, own)
        if moving and last is not None and _moved(last[1], pose, abs(stamp - last[0]) / SECOND):
            self.jumps += 1
            self._unsettled = True
        if self._unsettled:
            self._jumped = dict.fromkeys(self.cameras, stamp)  # whichever moved: none fits the others
            self._unsettled = False
        if 0 <= stamp - self._jumped.get(camera, -CALM) < CALM:
            raise InputError(_jumps(camera))
        return pose

    def _common(self) -> str:
        """The frame that most cameras are connected to: that of one of them."""
        version, count, frame = self._reference
        if (version, count) != (self._transforms.version, len(self._lenses)):
            frames = [self._frames[camera] for camera in self.cameras if camera in self._lenses]
            frame = max(frames, key=lambda each: sum(self._transforms.connected(each, f) for f in frames))
            if frame != self._reference[2]:
                self._last.clear()  # seen from another one, everything has moved
                self._mounts.clear()
            self._reference = self._transforms.version, len(self._lenses), frame
        return frame


def _jumps(camera: str) -> str:
    return f"the transform of {camera} to the other cameras jumps"


def _moved(first: Pose, second: Pose, seconds: float) -> bool:
    """Whether a camera has moved by more than it can in that time."""
    cosine = (np.trace(first.rotation @ second.rotation.T) - 1) / 2
    turn, shift = np.arccos(np.clip(cosine, -1, 1)), np.linalg.norm(first.place - second.place)
    return bool(shift > SHIFT + SPEED * seconds or turn > TURN + SPIN * seconds)
