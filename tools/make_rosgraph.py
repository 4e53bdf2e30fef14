"""Draws docs/images/rosgraph_*.svg from the live graph: starts the nodes and asks ROS who talks to whom.

python tools/make_rosgraph.py        needs ROS and models/signworld.safetensors
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from pathlib import Path

IMAGES = Path(__file__).resolve().parents[1] / "docs/images"
HIDDEN = ("/rosout", "/parameter_events", "/clock")
COLUMN, ROW, HEIGHT, MARGIN = 300, 46, 32, 24
STYLE = """
  text { font: 13px system-ui, sans-serif; text-anchor: middle; dominant-baseline: central; fill: #1c2733 }
  .topic { fill: #eef2f7; stroke: #8296ab }
  .node { fill: #2f6fb2; stroke: #1f4f85 }
  .node + text { fill: #fff }
  path { fill: none; stroke: #8296ab; stroke-width: 1.3; marker-end: url(#tip) }
"""


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


def draw(edges: list[Edge], nodes: set[str]) -> str:
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


def main() -> None:
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    for name, distributed in (("fusion", False), ("distributed", True)):
        edges, nodes = ask_graph(["left", "right"], distributed)
        (IMAGES / f"rosgraph_{name}.svg").write_text(draw(edges, nodes))


if __name__ == "__main__":
    main()
