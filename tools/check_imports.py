"""Checks that imports follow the flow of data; `make lint` runs it.

A folder of the package imports only folders that stand before it in ORDER, wherever the import stands: at the
top, in a function or for type checkers only. No two folders import each other, lab's own included; what is
in a folder may import the folder around it. Some packages may be imported by a few folders only.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = "lla_fusion_ros"
ORDER = (
    "types", "images", "messages", "detections", "tracking", "networks", "posterior", "fusion", "warnings",
    "reliance", "engine", "bundle", "stream", "bags", "watch", "ros", "report", "replay", "fleet",
    "signworld", "lab", "demo", "cli",
)  # fmt: skip
ROS = {"ament_index_python", "cv_bridge", "launch", "launch_ros", "rclpy"}
ONLY_IN = {
    **dict.fromkeys(("dask", "distributed", "pyarrow"), ("fleet",)),
    "matplotlib": ("lab", "demo", "cli"),
    "rich": ("demo", "cli"),
    "rerun": ("watch",),
    "rosbags": ("bags",),
}


def faults(package: Path) -> list[str]:
    """A sentence for every import that goes against the flow."""
    found: list[str] = []
    graph: dict[Path, set[Path]] = {}
    for path in sorted(package.glob("*/**/*.py")):
        folder = path.relative_to(package).parent
        for line, module in imports(ast.parse(path.read_text(encoding="utf-8"))):
            if sentence := objection(folder.parts[0], module):
                found.append(f"{path}:{line}: {sentence}")
            home = package.parent.joinpath(*module.split("."))
            while not home.is_dir():
                home = home.parent
            if home.is_relative_to(package) and home not in path.parents:
                graph.setdefault(path.parent, set()).add(home)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = " imports ".join(str(folder.relative_to(package)) for folder in reversed(error.args[1]))
        found.append(f"folders import each other: {cycle}")
    return found


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything imported; of `from a import b` both, `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{start}.{alias.name}") for alias in node.names)


def objection(folder: str, module: str) -> str:
    """Why this folder may not import that module; empty where it may."""
    top, _, rest = module.partition(".")
    if folder not in ORDER:
        return f"the folder '{folder}' is not in the order of tools/check_imports.py; give it its place"
    if not top:
        return f"'{module}' is relative; write it out from {PACKAGE} on"
    if top == PACKAGE:
        other = rest.partition(".")[0]
        if other not in ORDER:
            return "" if other == "__version__" else f"import '{other}' from the folder it is in"
        return f"'{folder}' comes before '{other}'" if ORDER.index(other) > ORDER.index(folder) else ""
    ros = top in ROS or top.endswith(("_msgs", "_srvs", "_interfaces"))
    allowed = ("ros",) if ros else ONLY_IN.get(top, (folder,))
    return "" if folder in allowed else f"'{top}' is for {', '.join(allowed)} only, not for '{folder}'"


def main() -> int:
    found = faults(Path(__file__).resolve().parents[1] / PACKAGE)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
