"""The parameters as text, made from the settings classes: a page of documentation and YAML files; no ROS."""

from __future__ import annotations

from dataclasses import Field, fields
from textwrap import wrap
from typing import Any

from lla_fusion_ros.ros.node_settings import (
    CAMERAS_DESCRIPTION,
    NODES,
    CameraSettings,
    is_changeable,
)

COMMAND = "python tools/make_parameter_files.py"
TITLES = {
    "NodeSettings": "Every node",
    "NetworkSettings": "The networks and their images",
    "StreamSettings": "From messages to crops",
    "FusionSettings": "Fusion and warnings",
    "StatementSettings": "What a planner may rely on",
}
# config file -> node whose parameters it lists, cameras it names, what it is for
CONFIGS = {
    "fusion.yaml": ("perception", ["camera"], "Parameters of fusion.launch.py: everything in one process."),
    "distributed.yaml": (
        "perception",
        ["camera"],
        "Parameters of distributed.launch.py: classifiers take the parts on networks and crops, the fusion "
        "node that on fusion. The launch argument `cameras` overrides the list here.",
    ),
    "replay.yaml": (
        "perception",
        ["left", "right"],
        "Parameters of replay.launch.py: a bag, with long queues, so that little is dropped.",
    ),
}
HEADER = ("| parameter | default | range | live | meaning |", "|---|---|---|---|---|")
REPLAY_VALUES = {"queue_depth": 100, "input_depth": 100}


def parameters_page() -> str:
    """docs/parameters.md"""
    lines = [
        "# Parameters",
        "",
        f"Made from the code by `{COMMAND}`. `ros2 param describe /perception <name>` says the same.",
        "",
        "*Live* parameters can change while the node runs; a bad value is rejected with a reason. The others",
        "are fixed while the node is configured. At start a bad value stops the node.",
        "",
        "## Cameras",
        *HEADER,
        f"| `cameras` | `[camera]` | no name twice | | {_escaped(CAMERAS_DESCRIPTION)} |",
        *(_row(CameraSettings, field, "<camera>.") for field in fields(CameraSettings)),
    ]
    for group, _ in NODES["perception"]:
        users = [f"`{node}`" for node, groups in NODES.items() if group in dict(groups)]
        lines += ["", f"## {TITLES[group.__name__]}", f"Of {', '.join(users)}."]
        lines += _exceptions(group)
        lines += ["", *HEADER]
        lines += [_row(group, field) for field in fields(group)]
    return "\n".join(lines) + "\n"


def config_file(name: str) -> str:
    """The commented YAML file of that name."""
    node, cameras, purpose = CONFIGS[name]
    values: dict[str, Any] = REPLAY_VALUES if name == "replay.yaml" else {}
    lines = [f"# {line}" for line in wrap(purpose, 106)]
    lines += [
        f"# Defaults, made by `{COMMAND}`; copy the file, change it, and pass params_file:=YOURS.",
        "/**:",
        "  ros__parameters:",
        *_comment(CAMERAS_DESCRIPTION),
        f"    cameras: [{', '.join(cameras)}]",
    ]
    for camera in cameras:
        lines.append(f"    {camera}:")
        for field in fields(CameraSettings):
            lines += _comment(_described(field), "      ") if camera == cameras[0] else []
            lines.append(f"      {field.name}: {_yaml(field.default)}")
    for group, _ in NODES[node]:
        lines += ["", f"    # --- {TITLES[group.__name__]}"]
        for field in fields(group):
            lines += _comment(_described(field, "live" if is_changeable(group, field.name) else "fixed"))
            lines.append(f"    {field.name}: {_yaml(values.get(field.name, field.default))}")
    return "\n".join(lines) + "\n"


def _exceptions(group: type) -> list[str]:
    notes = []
    for node, groups in NODES.items():
        names = dict(groups).get(group)
        if names is not None:
            notes.append(f"Of these, `{node}` has only {', '.join(f'`{name}`' for name in names)}.")
    return notes


def _described(field: Field[Any], live: str = "fixed") -> str:
    notes = ", ".join(filter(None, [_limits(field), live]))
    return f"{field.metadata['description']} ({notes})"


def _row(group: type, field: Field[Any], prefix: str = "") -> str:
    live = "yes" if is_changeable(group, field.name) else ""
    cells = [
        f"`{prefix}{field.name}`",
        f"`{_yaml(field.default)}`",
        _limits(field),
        live,
        _escaped(field.metadata["description"]),
    ]
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """As Markdown shows it: `<camera>` would be taken for a tag, a bar for the end of a cell."""
    return text.replace("<", "\\<").replace("|", "\\|")


def _limits(field: Field[Any]) -> str:
    if field.metadata["choices"]:
        return ", ".join(field.metadata["choices"])
    low, high = field.metadata["low"], field.metadata["high"]
    return "" if low is None else f"{low:g}..{high:g}"


def _yaml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _comment(text: str, indent: str = "    ") -> list[str]:
    return [f"{indent}# {line}" for line in wrap(text, 100)]
