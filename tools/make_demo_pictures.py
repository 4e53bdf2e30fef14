"""Pictures of the docs from a finished demo: docs/images/demo.gif and, with Chromium, docs/images/report.png.

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
GIF_WIDTH, GIF_SECONDS = 560, 0.3
# Moments of the drive worth a look: the unknown object, dusk, the identity switch, the silent camera.
SPANS = ((4.4, 6.6), (12.0, 14.4), (16.4, 18.0), (20.5, 22.0))
WINDOW = (900, 1500)


def demo_gif(video: Path, target: Path) -> None:
    """A few seconds of the video, as small as need be."""
    capture = cv2.VideoCapture(str(video))
    rate = capture.get(cv2.CAP_PROP_FPS)
    wanted = [round(second * rate) for start, stop in SPANS for second in np.arange(start, stop, GIF_SECONDS)]
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
    for colours, width in ((64, GIF_WIDTH), (48, 480), (32, 420), (24, 360), (16, 320)):
        height = round(frames[0].shape[0] * width / frames[0].shape[1])
        small = [
            Image.fromarray(
                cv2.cvtColor(cv2.resize(f, (width, height), interpolation=cv2.INTER_AREA), cv2.COLOR_BGR2RGB)
            ).quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
            for f in frames
        ]
        buffer = io.BytesIO()
        small[0].save(
            buffer,
            "GIF",
            save_all=True,
            append_images=small[1:],
            duration=round(1000 * GIF_SECONDS),
            loop=0,
            optimize=True,
        )
        if buffer.tell() <= LARGEST:
            break
    target.write_bytes(buffer.getvalue())


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
    report_png(args.demo / "report.html", args.images / "report.png")
    for name in ("demo.gif", "report.png"):
        if (args.images / name).exists():
            print(f"{args.images / name}: {(args.images / name).stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
