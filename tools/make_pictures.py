"""Draw the pictures of the docs: the sign world, and scenes and the report of a finished demo.

Example:
    lla-fusion demo --out demo_out && python tools/make_pictures.py demo_out
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from lla_fusion_ros.signworld import CLASS_NAMES, OUTSIDE_KINDS, demo_drive
from lla_fusion_ros.signworld.signs import face_of

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
SIGN_WORLD_MOMENTS = ((5, 0), (60, 1), (115, 0), (170, 0), (210, 0), (248, 1))  # step and camera
COLUMNS = 9
CELL = 132
LARGEST = 290_000  # bytes; pictures of the repository stay small
GIF_SECONDS = 0.4
# Moments of the drive worth a look: the unknown object, dusk, the identity switch, the silent camera.
MOMENTS = (5.6, 13.2, 17.3, 21.4)
GIF_SPANS = ((4.4, 6.4), (16.4, 18.4))
WINDOW = (900, 1500)


def frames_at(video: Path, seconds: list[float]) -> list[np.ndarray]:
    """Frames of the video at these moments."""
    capture = cv2.VideoCapture(str(video))
    rate = capture.get(cv2.CAP_PROP_FPS)
    wanted = {round(second * rate) for second in seconds}
    frames = []
    index = 0
    while True:
        good, picture = capture.read()
        if not good:
            break
        if index in wanted:
            frames.append(picture)
        index += 1
    if not frames:
        sys.exit(f"'{video}' holds no frame of the wanted moments")
    return frames


def demo_jpg(video: Path, target: Path) -> None:
    """Four moments below each other, both cameras."""
    picture = np.concatenate(frames_at(video, list(MOMENTS)), axis=0)
    for quality in (88, 80, 70, 60):
        data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()
        if len(data) <= LARGEST:
            break
    target.write_bytes(data)


def demo_gif(video: Path, target: Path) -> None:
    """A few seconds of the first camera, as small as need be."""
    seconds = [float(at) for start, stop in GIF_SPANS for at in np.arange(start, stop, GIF_SECONDS)]
    # noise costs most of a GIF's bytes
    frames = [cv2.medianBlur(frame[:, : frame.shape[1] // 2], 3) for frame in frames_at(video, seconds)]
    for colours, width in ((64, 480), (48, 480), (40, 420), (32, 400), (24, 360)):
        height = round(frames[0].shape[0] * width / frames[0].shape[1])
        small = [_quantized(frame, (width, height), colours) for frame in frames]
        buffer = io.BytesIO()
        first, *others = small
        pace = round(1000 * GIF_SECONDS)
        first.save(buffer, "GIF", save_all=True, append_images=others, duration=pace, loop=0, optimize=True)
        if buffer.tell() <= LARGEST:
            break
    target.write_bytes(buffer.getvalue())


def _quantized(frame: np.ndarray, size: tuple[int, int], colours: int) -> Image.Image:
    small = cv2.cvtColor(cv2.resize(frame, size, interpolation=cv2.INTER_AREA), cv2.COLOR_BGR2RGB)
    return Image.fromarray(small).quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)


def report_png(report: Path, target: Path) -> None:
    """The upper part of the report as a browser shows it."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("Chromium is not installed: no picture of the report")
        return
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        command = [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={folder}/profile", "--hide-scrollbars",
            f"--window-size={WINDOW[0]},{WINDOW[1]}", f"--screenshot={shot}", report.resolve().as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)
        picture = Image.open(shot).convert("RGB").quantize(96)
        picture.save(target, "PNG", optimize=True)


def moments() -> np.ndarray:
    """Six frames of the demo, two rows of three."""
    drive = demo_drive()
    frames = [drive.frame(step, camera).image for step, camera in SIGN_WORLD_MOMENTS]
    rows = [np.concatenate(frames[start : start + 3], axis=1) for start in (0, 3)]
    picture = np.concatenate(rows)
    return cv2.resize(picture, None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA)


def faces() -> np.ndarray:
    """All classes, and below them the objects that belong to none."""
    rows = -(-len(CLASS_NAMES) // COLUMNS)
    sheet = np.full(((rows + 1) * CELL, COLUMNS * CELL, 3), 232, np.uint8)
    cells = [(name, divmod(i, COLUMNS)) for i, name in enumerate(CLASS_NAMES)]
    cells += [(name, (rows, i)) for i, name in enumerate(OUTSIDE_KINDS)]
    for name, (row, column) in cells:
        face = cv2.resize(face_of(name), (96, 96), interpolation=cv2.INTER_AREA)
        y, x = row * CELL + 8, column * CELL + 18
        place = sheet[y : y + 96, x : x + 96]
        place[:] = face[..., :3] + place * (1 - face[..., 3:] / 255.0)
        (width, _), _ = cv2.getTextSize(name, cv2.FONT_HERSHEY_SIMPLEX, 0.4, 1)
        origin = (column * CELL + (CELL - width) // 2, row * CELL + 120)
        cv2.putText(sheet, name, origin, cv2.FONT_HERSHEY_SIMPLEX, 0.4, (40, 40, 40), 1, cv2.LINE_AA)
    return sheet


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("demo", type=Path, help="folder of a finished demo")
    parser.add_argument("--to", type=Path, default=IMAGES, help="where the pictures go (docs/images)")
    args = parser.parse_args()
    args.to.mkdir(parents=True, exist_ok=True)
    demo_gif(args.demo / "annotated.mp4", args.to / "demo.gif")
    demo_jpg(args.demo / "annotated.mp4", args.to / "demo.jpg")
    report_png(args.demo / "report.html", args.to / "report.png")
    cv2.imwrite(str(args.to / "signworld.jpg"), moments()[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 88])
    cv2.imwrite(str(args.to / "signworld_signs.png"), faces()[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 9])


if __name__ == "__main__":
    main()
