"""Pictures of the docs from a finished demo: demo.gif, demo.jpg and, with Chromium, report.png.

lla-fusion demo --out demo_out && python tools/make_demo_pictures.py demo_out docs/images
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("demo", type=Path, help="folder of a finished demo")
    parser.add_argument("images", type=Path, help="where the pictures go")
    args = parser.parse_args()
    demo_gif(args.demo / "annotated.mp4", args.images / "demo.gif")
    demo_jpg(args.demo / "annotated.mp4", args.images / "demo.jpg")
    report_png(args.demo / "report.html", args.images / "report.png")
    for name in ("demo.gif", "demo.jpg", "report.png"):
        if (args.images / name).exists():
            print(f"{args.images / name}: {(args.images / name).stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
