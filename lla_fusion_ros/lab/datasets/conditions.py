"""Named conditions on the road: what happens to the images of a track before its boxes are cut out.

The regimes (`degrade`) move and spoil crops; conditions work on the camera's own pixels, where compression,
colour subsampling and small boxes arise. Each draws its strength once for a track, noise for every frame.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from lla_fusion_ros.lab.datasets.background import BACKGROUND_KINDS
from lla_fusion_ros.types.track_set import Frame, Track, TrackSet

Range = tuple[float, float]
_SURROUNDINGS = 1.0  # sides of the box that are kept around it; the rest of a large image is left out
_BLOCK = 16  # pixels of a JPEG block at half the colour resolution: windows keep their place in the grid


@dataclass(frozen=True, slots=True)
class Condition:
    """From the lens to the wire: blur, resolution, light, noise, colour resolution, compression, the box.

    Attributes:
        blur: sigma, as a share of the box's side.
        side: the larger side of the box in pixels, at most.
        gain, gamma: of the brightness; each colour's gain differs by a factor e^-cast to e^cast.
        noise: sigma, 1 is full scale.
        chroma: pixels that share a colour, along each side.
        jpeg: qualities.
        shift, scale: of the box in every frame, as shares of its side, up to these.
        cover: share of the box that something before it hides, from one side.
    """

    blur: Range = (0.0, 0.0)
    side: Range | None = None
    gain: Range = (1.0, 1.0)
    gamma: Range = (1.0, 1.0)
    cast: float = 0.0
    noise: Range = (0.0, 0.0)
    chroma: int = 1
    jpeg: tuple[int, int] | None = None
    shift: float = 0.0
    scale: float = 0.0
    cover: Range | None = None


AS_RECORDED = "as recorded"
# A known object is recognised under all of these: warnings hold their rate in each.
CONDITIONS: dict[str, Condition] = {
    AS_RECORDED: Condition(),
    "JPEG 90": Condition(jpeg=(90, 90)),
    "JPEG 70": Condition(jpeg=(70, 70)),
    "JPEG 50": Condition(jpeg=(50, 50)),
    "bright": Condition(gain=(1.4, 2.2)),
    "dark": Condition(gain=(0.2, 0.45), blur=(0.02, 0.035), noise=(0.01, 0.03)),
    "gamma": Condition(gamma=(0.45, 2.2)),
    "blur": Condition(blur=(0.03, 0.06)),
    "soft focus": Condition(blur=(0.06, 0.1)),
    "noise": Condition(noise=(0.03, 0.08)),
    "colour cast": Condition(cast=0.4),
    "chroma 4:2:0": Condition(chroma=2),
    "small box": Condition(side=(12, 16)),
    "shifted box": Condition(shift=0.1, scale=0.12),
    "dark, JPEG 95": Condition(gain=(0.2, 0.45), blur=(0.02, 0.035), noise=(0.01, 0.03), jpeg=(95, 95)),
    "dusk, JPEG 80": Condition(gain=(0.12, 0.2), noise=(0.005, 0.015), jpeg=(80, 80)),
    "small, JPEG 90": Condition(side=(12, 16), jpeg=(90, 90)),
    "shifted, blur, JPEG 70": Condition(shift=0.08, scale=0.1, blur=(0.02, 0.04), jpeg=(70, 70)),
    "cast, noise, JPEG 80": Condition(cast=0.3, noise=(0.02, 0.05), jpeg=(80, 80)),
}

# Known objects that look odd for a while, as any that are met first when far away and half hidden.
DISTANT: dict[str, Condition] = {
    "far, half hidden": Condition(side=(8, 12), cover=(0.3, 0.55)),
    "far, half hidden, JPEG 90": Condition(side=(8, 12), cover=(0.3, 0.55), jpeg=(90, 90)),
}

# Pictures that hold too little to recognise anything: the right answer is that nobody can tell.
UNREADABLE: dict[str, Condition] = {
    "night": Condition(gain=(0.02, 0.05), noise=(0.01, 0.03), jpeg=(80, 95)),
    "out of focus": Condition(blur=(0.2, 0.35)),
    "speck": Condition(side=(4, 6)),
    "grain": Condition(noise=(0.25, 0.5)),
    "grain, JPEG 80": Condition(noise=(0.15, 0.4), jpeg=(80, 80)),
    "tunnel, JPEG 90": Condition(gain=(0.06, 0.2), blur=(0.01, 0.05), noise=(0.06, 0.15), jpeg=(90, 90)),
    "block": Condition(side=(8, 12), jpeg=(5, 15), gain=(0.3, 0.8)),
}


def under_condition(tracks: TrackSet, name: str, seed: int = 0) -> TrackSet:
    """All tracks under a condition of CONDITIONS, DISTANT or UNREADABLE; equal seeds give equal pixels."""
    condition = {**CONDITIONS, **DISTANT, **UNREADABLE}[name]
    if condition == Condition():
        return tracks
    return replace(
        tracks, tracks=tuple(_track(each, condition, seed, i) for i, each in enumerate(tracks.tracks))
    )


def _track(track: Track, condition: Condition, seed: int, number: int) -> Track:
    rng = np.random.default_rng([seed, number])
    drawn = {
        "blur": rng.uniform(*condition.blur),
        "side": rng.uniform(*condition.side) if condition.side else None,
        "gain": rng.uniform(*condition.gain) * np.exp(rng.uniform(-condition.cast, condition.cast, 3)),
        "gamma": np.exp(rng.uniform(*np.log(condition.gamma))),
        "noise": rng.uniform(*condition.noise),
        "jpeg": int(rng.integers(condition.jpeg[0], condition.jpeg[1] + 1)) if condition.jpeg else None,
    }
    if condition.cover:
        kind = list(BACKGROUND_KINDS.values())[int(rng.integers(len(BACKGROUND_KINDS)))]
        drawn["cover"] = kind(rng), rng.uniform(*condition.cover), rng.uniform(0, 2 * np.pi)
    return replace(track, frames=tuple(_frame(each, condition, drawn, rng) for each in track.frames))


def _frame(frame: Frame, condition: Condition, drawn: dict, rng: np.random.Generator) -> Frame:
    frame = _window(frame)
    image, box = frame.image, np.array(frame.box)
    longer = max(box[2] - box[0], box[3] - box[1], 1.0)
    if "cover" in drawn:
        image = _covered(image, box, *drawn["cover"])
    if drawn["blur"] > 0:
        image = cv2.GaussianBlur(image, (0, 0), drawn["blur"] * longer, borderType=cv2.BORDER_REPLICATE)
    if drawn["side"] is not None and drawn["side"] < longer:
        height, width = image.shape[:2]
        size = [max(1, round(length * drawn["side"] / longer)) for length in (width, height)]
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        box = box * np.tile(np.array(size) / (width, height), 2)
    image = _light(image, drawn, rng)
    if condition.chroma > 1:
        image = _subsampled(image, condition.chroma)
    if drawn["jpeg"] is not None:
        image = through_jpeg(image, drawn["jpeg"])
    if condition.shift or condition.scale:
        box = _moved(box, condition, rng)
    return replace(frame, image=image, box=tuple(box.tolist()))


def _window(frame: Frame) -> Frame:
    """The image around the box, as far as a crop may need it."""
    x0, y0, x1, y1 = frame.box
    dx, dy = _SURROUNDINGS * (x1 - x0), _SURROUNDINGS * (y1 - y0)
    left = max(0, int(x0 - dx) // _BLOCK * _BLOCK)
    top = max(0, int(y0 - dy) // _BLOCK * _BLOCK)
    image = frame.image[top : int(y1 + dy) + 1, left : int(x1 + dx) + 1]
    if image.size == 0:  # a box beside its image
        return frame
    return replace(frame, image=image, box=(x0 - left, y0 - top, x1 - left, y1 - top))


def _covered(
    image: np.ndarray, box: np.ndarray, thing: np.ndarray, share: float, heading: float
) -> np.ndarray:
    """Something before a share of the box, from one side up to a straight edge; `thing` fills the image."""
    height, width = image.shape[:2]
    x0, y0, x1, y1 = box
    across = np.cos(heading) * ((np.arange(width) + 0.5 - x0) / max(x1 - x0, 1.0) - 0.5)
    down = np.sin(heading) * ((np.arange(height) + 0.5 - y0) / max(y1 - y0, 1.0) - 0.5)
    extent = abs(np.cos(heading)) + abs(np.sin(heading))
    behind = across[None, :] + down[:, None] > extent * (0.5 - share)
    pasted = cv2.resize(thing, (width, height), interpolation=cv2.INTER_AREA)
    return np.where(behind[..., None], pasted, image)


def _light(image: np.ndarray, drawn: dict, rng: np.random.Generator) -> np.ndarray:
    if (drawn["gain"] == 1).all() and drawn["gamma"] == 1 and drawn["noise"] == 0:
        return image
    light = image.astype(np.float32) / 255
    if drawn["gamma"] != 1:
        light **= np.float32(drawn["gamma"])
    light *= drawn["gain"].astype(np.float32)
    if drawn["noise"] > 0:
        light += np.float32(drawn["noise"]) * rng.standard_normal(image.shape, dtype=np.float32)
    return np.rint(np.clip(light, 0, 1) * 255).astype(np.uint8)


def _subsampled(image: np.ndarray, pixels: int) -> np.ndarray:
    """One colour for `pixels` squared of them, the brightness of each as it was."""
    height, width = image.shape[:2]
    both = cv2.cvtColor(image, cv2.COLOR_RGB2YCrCb)
    colour = both[..., 1:]
    small = max(1, -(-width // pixels)), max(1, -(-height // pixels))
    colour = cv2.resize(colour, small, interpolation=cv2.INTER_AREA)
    both[..., 1:] = cv2.resize(colour, (width, height), interpolation=cv2.INTER_LINEAR)
    return cv2.cvtColor(both, cv2.COLOR_YCrCb2RGB)


def through_jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    """What JPEG leaves of an RGB image at half the colour resolution, the way cameras send it."""
    coded = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])[
        1
    ]
    return cv2.cvtColor(cv2.imdecode(coded, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)


def _moved(box: np.ndarray, condition: Condition, rng: np.random.Generator) -> np.ndarray:
    sides = box[2:] - box[:2]
    centre = (box[:2] + box[2:]) / 2 + rng.uniform(-condition.shift, condition.shift, 2) * sides
    half = sides / 2 * (1 + rng.uniform(-condition.scale, condition.scale))
    return np.concatenate([centre - half, centre + half])
