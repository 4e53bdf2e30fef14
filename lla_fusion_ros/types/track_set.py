"""Tracks of images: what every data set loader returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Frame:
    """One image of a track.

    Attributes:
        image: RGB.                                          [height, width, 3] uint8
        box: the object in the image: x0, y0, x1, y1 in pixels, x1 and y1 exclusive.
        camera: index of the camera that took it.
        time: seconds since the track began.
    """

    image: np.ndarray
    box: tuple[float, float, float, float]
    camera: int = 0
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class Track:
    """All images of one physical object, far away first.

    Attributes:
        label: class index, -1 for something outside the classes.
        group: what it shares with other tracks that must stay on the same side of a split, such as the site.
        part: "train" or "test" where the data set comes divided into these, else empty.
    """

    id: str
    label: int
    frames: tuple[Frame, ...]
    part: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class TrackSet:
    """A data set: tracks with labels. A set of single images is a set of tracks of length 1.

    Attributes:
        digest: SHA-256 over the images and labels, so that results name the data they come from.
        mirrored: for each class, the class that its mirror image shows, None where it shows none; training
            may mirror those. Empty: nothing is known of mirror images.
        changing: names of classes that change into each other under one id, as the states of a light do.
        skipped: files that were left out because they cannot be read.
    """

    name: str
    class_names: tuple[str, ...]
    tracks: tuple[Track, ...]
    digest: str
    mirrored: tuple[int | None, ...] = ()
    changing: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CropSet:
    """The crops of a TrackSet cut to one size: what networks train on and are scored on.

    Attributes:
        images: RGB.                           [crops, size + 2 border, size + 2 border, 3] uint8
        track: index into the TrackSet's tracks, [crops]
        frame: position in the track,            [crops]
        camera: index of the camera,             [crops]
        label: class index or -1,                [crops]
        box_side: of the box in image pixels, [crops]
        border: pixels of surroundings kept on each side, so that `degrade` can move the crop over the real
            image; 0 once the crops are final.
        margin: by which boxes were grown, share of their side.
    """

    images: np.ndarray
    track: np.ndarray
    frame: np.ndarray
    camera: np.ndarray
    label: np.ndarray
    box_side: np.ndarray
    border: int = 0
    margin: float = 0.0

    def __len__(self) -> int:
        return len(self.images)

    @property
    def size(self) -> int:
        """Side of the final crop, without the border."""
        return self.images.shape[1] - 2 * self.border

    def take(self, rows: np.ndarray | slice) -> CropSet:
        """Some of the crops."""
        return CropSet(
            self.images[rows],
            self.track[rows],
            self.frame[rows],
            self.camera[rows],
            self.label[rows],
            self.box_side[rows],
            self.border,
            self.margin,
        )
