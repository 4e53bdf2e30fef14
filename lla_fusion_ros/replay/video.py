"""An annotated video of a replay: a tile for each camera."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from lla_fusion_ros.messages.images import parse_image
from lla_fusion_ros.stream.frame_messages import annotated_message
from lla_fusion_ros.stream.frames import FusedFrame
from lla_fusion_ros.types.errors import BagError

_TILE_WIDTH = 480  # pixels; a minute of two cameras takes about 10 MB
_COLUMNS = 3
_WAITS = 3  # frames of the others after which a camera that sends nothing is shown dark


class VideoSink:
    """Writes one picture per moment: a tile for each camera, the newest image of each."""

    def __init__(self, path: Path, cameras: Sequence[str], class_names: Sequence[str], rate: float) -> None:
        self.path = path
        self._cameras = tuple(cameras)
        self._names = class_names
        self._rate = rate
        self._tiles: dict[str, np.ndarray] = {}
        self._age: dict[str, int] = {}
        self._writer: cv2.VideoWriter | None = None

    def __enter__(self) -> VideoSink:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._flush()
            self._writer.release()

    def take(self, time: int, fused: FusedFrame) -> None:
        frame = fused.frame
        if frame.pixels is None:
            return
        if frame.camera in self._tiles and not self._age[frame.camera]:
            self._flush()
        # the very picture of the `annotated` topic
        picture = np.array(parse_image(annotated_message(fused, self._names).data).pixels().array)
        cv2.putText(
            picture, frame.camera, (10, 26), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (245, 245, 245), 2, cv2.LINE_AA
        )
        height = round(picture.shape[0] * _TILE_WIDTH / picture.shape[1])
        tile = cv2.resize(picture, (_TILE_WIDTH, height), interpolation=cv2.INTER_AREA)
        self._tiles[frame.camera] = tile
        self._age[frame.camera] = 0

    def _flush(self) -> None:
        """Write the moment that is complete; a camera that stays silent turns dark."""
        height, width = next(iter(self._tiles.values())).shape[:2]
        tiles = []
        for camera in self._cameras:
            tile = self._tiles.get(camera)
            if tile is None or self._age[camera] > _WAITS:
                tile = np.zeros((height, width, 3), np.uint8)
                text = f"{camera}: no image"
                cv2.putText(
                    tile, text, (10, 26), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (90, 90, 230), 2, cv2.LINE_AA
                )
            tiles.append(cv2.resize(tile, (width, height)) if tile.shape[:2] != (height, width) else tile)
        picture = _grid(tiles)
        if self._writer is None:
            # mp4v is what every OpenCV build can write
            code = cv2.VideoWriter.fourcc(*"mp4v")
            size = picture.shape[1], picture.shape[0]
            self._writer = cv2.VideoWriter(str(self.path), code, self._rate, size)
            if not self._writer.isOpened():
                raise BagError(f"'{self.path}' cannot be written: this OpenCV writes no mp4 of {size} pixels")
        self._writer.write(picture)
        for camera in self._age:
            self._age[camera] += 1


def _grid(tiles: Sequence[np.ndarray]) -> np.ndarray:
    """Side by side, in as many rows as it takes; what stays free is dark."""
    columns = min(len(tiles), _COLUMNS)
    dark = [np.zeros_like(tiles[0])] * (-len(tiles) % columns)
    every = [*tiles, *dark]
    rows = [np.concatenate(every[at : at + columns], axis=1) for at in range(0, len(every), columns)]
    return np.concatenate(rows)
