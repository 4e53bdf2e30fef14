"""Draw the pictures of the docs: the sign world, scenes and the report of a demo, the ROS graph.

Example:
    python tools/make_pictures.py              # runs the demo first
    python tools/make_pictures.py demo_out     # of a demo that was run
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from html import escape
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
GIF_SECONDS = 0.5
GIF_ROWS = slice(60, 280)  # between sky and road, at full size: its words can be read
# Moments of the drive worth a look: unknown object and traffic light, false detection, dusk, identity switch.
MOMENTS = (7.0, 3.2, 13.2, 17.2)
GIF_SPANS = ((5.2, 7.2), (16.6, 17.6))
WINDOW = (900, 1500)
HIDDEN = ("/rosout", "/parameter_events", "/clock")
COLUMN, ROW, HEIGHT, MARGIN = 300, 46, 32, 24
STYLE = """
  text { font: 13px system-ui, sans-serif; text-anchor: middle; dominant-baseline: central; fill: #1c2733 }
  .topic { fill: #eef2f7; stroke: #8296ab }
  .node { fill: #2f6fb2; stroke: #1f4f85 }
  .node + text { fill: #fff }
  path { fill: none; stroke: #8296ab; stroke-width: 1.3; marker-end: url(#tip) }
"""


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


def demo_jpg(video: Path, target: Path, moments: tuple[float, ...]) -> None:
    """Some moments below each other, both cameras."""
    picture = np.concatenate(frames_at(video, list(moments)), axis=0)
    for quality in (88, 80, 70, 60):
        data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()
        if len(data) <= LARGEST:
            break
    target.write_bytes(data)


def demo_gif(video: Path, target: Path) -> None:
    """A few seconds of both cameras, with as few colours as need be."""
    seconds = [float(at) for start, stop in GIF_SPANS for at in np.arange(start, stop, GIF_SECONDS)]
    frames = [cv2.cvtColor(frame[GIF_ROWS], cv2.COLOR_BGR2RGB) for frame in frames_at(video, seconds)]
    for colours in (64, 48, 32, 24):
        method, dither = Image.Quantize.MEDIANCUT, Image.Dither.NONE
        small = [Image.fromarray(frame).quantize(colours, method=method, dither=dither) for frame in frames]
        buffer = io.BytesIO()
        first, *others = small
        pace = round(1000 * GIF_SECONDS)
        first.save(buffer, "GIF", save_all=True, append_images=others, duration=pace, loop=0, optimize=True)
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


@dataclass(frozen=True)
class Edge:
    """A node publishes a topic (node first) or subscribes to it (topic first)."""

    start: str
    end: str


def ask_graph(cameras: list[str], distributed: bool) -> tuple[list[Edge], set[str]]:
    """Start the nodes and read the graph: who talks to whom, and the names of the nodes."""
    import rclpy
    from rclpy.parameter import Parameter

    from lla_fusion_ros.ros.class_fusion import ClassFusionNode
    from lla_fusion_ros.ros.crop_classifier import CropClassifierNode
    from lla_fusion_ros.ros.perception import PerceptionNode

    def overrides(names: list[str]) -> list[Parameter]:
        values = {"model": "signworld", "cameras": names, "image_transport": "raw"}
        return [Parameter(name, value=value) for name, value in values.items()]

    rclpy.init()
    if distributed:
        nodes = [
            CropClassifierNode(
                cli_args=["--ros-args", "-r", f"__node:=crop_classifier_{camera}"],
                parameter_overrides=overrides([camera]),
            )
            for camera in cameras
        ]
        nodes.append(ClassFusionNode(parameter_overrides=overrides(cameras)))
    else:
        nodes = [PerceptionNode(parameter_overrides=overrides(cameras))]
    edges = []
    for node in nodes:
        node.start()
    for node in nodes:
        name = node.get_name()
        for topic, _ in node.get_publisher_names_and_types_by_node(name, "/"):
            edges.append(Edge(name, topic))
        for topic, _ in node.get_subscriber_names_and_types_by_node(name, "/"):
            edges.append(Edge(topic, name))
        node.stop()
    names = {node.get_name() for node in nodes}
    for node in nodes:
        node.destroy_node()
    rclpy.shutdown()
    shown = [edge for edge in edges if not {edge.start, edge.end} & set(HIDDEN)]
    return [edge for edge in shown if "transition_event" not in edge.end], names


def columns(edges: list[Edge]) -> list[list[str]]:
    """Everything in columns from left to right: each thing right of all that leads to it."""
    depth = {name: 0 for edge in edges for name in (edge.start, edge.end)}
    for _ in depth:
        for edge in edges:
            depth[edge.end] = max(depth[edge.end], depth[edge.start] + 1)
    # an input stands just left of the first that reads it
    for name in [name for name in depth if all(edge.end != name for edge in edges)]:
        depth[name] = min(depth[edge.end] for edge in edges if edge.start == name) - 1
    rows: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in sorted(depth):
        rows[depth[name]].append(name)
    return rows


def draw_graph(edges: list[Edge], nodes: set[str]) -> str:
    """The graph as SVG."""
    layout = columns(edges)
    tallest = max(len(column) for column in layout)
    width, height = COLUMN * len(layout) + MARGIN, ROW * tallest + 2 * MARGIN
    place = {}
    for index, column in enumerate(layout):
        gap = (height - 2 * MARGIN) / len(column)
        for row, name in enumerate(column):
            place[name] = (MARGIN + COLUMN * index, MARGIN + gap * (row + 0.5))
    box = COLUMN - 70
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7"'
        ' orient="auto">'
        '<path d="M0 0L8 4L0 8z" style="fill:#8296ab;stroke:none;marker-end:none"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for edge in edges:
        (x0, y0), (x1, y1) = place[edge.start], place[edge.end]
        x0 += box
        bend = (x1 - x0) / 2
        parts.append(f'<path d="M{x0} {y0:.0f}C{x0 + bend} {y0:.0f} {x1 - bend} {y1:.0f} {x1} {y1:.0f}"/>')
    for name, (x, y) in place.items():
        kind, corner = ("node", 4) if name in nodes else ("topic", HEIGHT / 2)
        parts.append(
            f'<rect class="{kind}" x="{x}" y="{y - HEIGHT / 2:.0f}" width="{box}" height="{HEIGHT}"'
            f' rx="{corner}"/>'
            f'<text x="{x + box / 2}" y="{y:.0f}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def rosgraph_svgs(folder: Path) -> None:
    """The graphs of both launch files, from nodes that are started here."""
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    for name, distributed in (("fusion", False), ("distributed", True)):
        edges, nodes = ask_graph(["left", "right"], distributed)
        (folder / f"rosgraph_{name}.svg").write_text(draw_graph(edges, nodes))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("demo", type=Path, nargs="?", help="folder of a finished demo; else one is run")
    parser.add_argument("--to", type=Path, default=IMAGES, help="where the pictures go (docs/images)")
    args = parser.parse_args()
    args.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        demo = args.demo or Path(folder, "demo")
        if args.demo is None:
            run = [sys.executable, "-m", "lla_fusion_ros.cli.main", "demo", "--out", str(demo)]
            subprocess.run(run, check=True)
        demo_gif(demo / "annotated.mp4", args.to / "demo.gif")
        demo_jpg(demo / "annotated.mp4", args.to / "demo.jpg", MOMENTS)
        demo_jpg(demo / "annotated.mp4", args.to / "demo_moment.jpg", MOMENTS[:1])
        report_png(demo / "report.html", args.to / "report.png")
    cv2.imwrite(str(args.to / "signworld.jpg"), moments()[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 88])
    cv2.imwrite(str(args.to / "signworld_signs.png"), faces()[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 9])
    rosgraph_svgs(args.to)


if __name__ == "__main__":
    main()
