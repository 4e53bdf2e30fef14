"""Writes test/ros/rclpy_api.txt: names and parameters of rclpy in the ROS 2 distributions that nodes run on.

It reads rclpy's sources and keeps what a call can get wrong: modules, classes, functions, their parameters,
and which class of rclpy a function gives. Each line begins with the distributions that have it.
test/ros/test_distributions.py checks the nodes against it.

example: python tools/make_rclpy_stubs.py humble=../rclpy-3.3.21/rclpy jazzy=../rclpy-7.1.11/rclpy \\
             kilted=../rclpy-9.1.5/rclpy lyrical=../rclpy-10.0.10/rclpy
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "test" / "ros" / "rclpy_api.txt"
DISTRIBUTIONS = ("humble", "jazzy", "kilted", "lyrical")  # their initials begin the lines
# Those that nodes could use; a module that a distribution does not have is left out there.
MODULES = (
    *(
        "__init__",
        "clock",
        "clock_type",
        "context",
        "duration",
        "endpoint_info",
        "event_handler",
        "exceptions",
    ),
    *("executors", "impl/rcutils_logger", "lifecycle/__init__", "lifecycle/managed_entity", "lifecycle/node"),
    *("lifecycle/publisher", "node", "parameter", "publisher", "qos", "qos_event", "signals", "subscription"),
    *("time", "topic_endpoint_info", "utilities", "validate_topic_name"),
)
# Hidden names that nodes use for want of public ones, and those of Python.
HIDDEN = {
    *("_parameter_overrides", "_parameters", "_state_machine"),
    *("__init__", "__new__", "__enter__", "__exit__", "__add__", "__sub__", "__lt__", "__gt__"),
}

Names = dict[str, "Entry"]  # by what stands in the line


class Entry:
    """A line of the file: who has it, and what stands below it."""

    def __init__(self) -> None:
        self.distributions: list[str] = []
        self.below: Names = {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "sources", nargs="+", metavar="NAME=FOLDER", help="a distribution and the folder of its rclpy modules"
    )
    folders = dict(source.partition("=")[::2] for source in parser.parse_args().sources)
    if tuple(folders) != DISTRIBUTIONS:
        parser.error(f"name {', '.join(DISTRIBUTIONS)}, in this order, not {', '.join(folders)}")
    versions, names = [], Names()
    for name, folder in folders.items():
        if not Path(folder, "node.py").is_file():
            parser.error(f"{name}: there is no node.py in '{folder}'; name the folder of rclpy's modules")
        add(names, name[0].upper(), Path(folder))
        package = Path(folder, "..", "package.xml").read_text()
        versions.append(f"{name} {''.join(re.findall('<version>(.+?)<', package))}")
    head = f"# rclpy of {', '.join(versions)}: names and parameters; made by tools/make_rclpy_stubs.py.\n"
    FILE.write_text(head + "".join(f"{line}\n" for line in lines(names)), encoding="utf-8")
    return 0


def add(names: Names, initial: str, folder: Path) -> None:
    """Take in what a distribution has."""
    paths = {module: folder / f"{module}.py" for module in MODULES}
    trees = {
        module: ast.parse(path.read_text(encoding="utf-8"))
        for module, path in paths.items()
        if path.is_file()
    }
    classes = {
        node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    }
    for module, tree in trees.items():
        below = enter(names, f"module {module}", initial)
        enter(below, "from typing import Any", initial)
        Reader(module, trees.keys(), classes, initial).read(tree.body, below, "")


def enter(names: Names, line: str, initial: str) -> Names:
    entry = names.setdefault(line, Entry())
    if initial not in entry.distributions:
        entry.distributions.append(initial)
    return entry.below


def lines(names: Names) -> Iterator[str]:
    for text, entry in names.items():
        have = "".join(
            name[0].upper() if name[0].upper() in entry.distributions else "-" for name in DISTRIBUTIONS
        )
        yield from (f"{have} {line}" for line in text.split("\n"))
        yield from lines(entry.below)


class Reader:
    """Reads one module of one distribution."""

    def __init__(self, module: str, modules: Iterable[str], classes: set[str], initial: str) -> None:
        self._package = "rclpy" if "/" not in module else f"rclpy.{module.partition('/')[0]}"
        self._modules, self._classes, self._initial = modules, classes, initial

    def read(self, body: list[ast.stmt], names: Names, indent: str) -> None:
        functions = [node for node in body if isinstance(node, ast.FunctionDef)]
        settable = {node.name for node in functions if any("setter" in name for name in _decorators(node))}
        for node in body:
            if isinstance(node, ast.If | ast.Try):
                self.read(node.body, names, indent)
            elif isinstance(node, ast.ImportFrom) and not indent:
                for line in self._imports(node):
                    enter(names, line, self._initial)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _kept(node.name):
                if "overload" in _decorators(node):
                    continue
                line = f"{indent}{node.name}: Any" if node.name in settable else self._function(node, indent)
                enter(names, line, self._initial)
            elif isinstance(node, ast.ClassDef):
                self._read_class(node, names, indent)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                for target in _targets(node):
                    if isinstance(target, ast.Name) and _kept(target.id):
                        enter(names, f"{indent}{target.id}: Any", self._initial)

    def _read_class(self, node: ast.ClassDef, names: Names, indent: str) -> None:
        bases = ", ".join(filter(None, (self._class(base) for base in node.bases)))
        below = enter(names, f"{indent}class {node.name}{f'({bases})' if bases else ''}:", self._initial)
        enter(below, f"{indent}    ...", self._initial)
        self.read(node.body, below, indent + "    ")
        own = [line for line, entry in below.items() if self._initial in entry.distributions]
        named = {found for line in own for found in re.findall(r"(?:def |class |^ *)(\w+)[(:]", line)}
        assigned = (each for each in ast.walk(node) if isinstance(each, ast.Assign | ast.AnnAssign))
        for target in (target for each in assigned for target in _targets(each)):
            if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != "self":
                continue
            if target.attr not in named and _kept(target.attr):
                enter(below, f"{indent}    {target.attr}: Any", self._initial)

    def _imports(self, node: ast.ImportFrom) -> Iterator[str]:
        """Names of rclpy's own modules, which others may import from here."""
        source = ".".join(filter(None, (self._package if node.level else "", node.module)))
        if source.partition(".")[0] != "rclpy":
            return
        for alias in node.names:
            name = alias.asname or alias.name
            if source.removeprefix("rclpy.").replace(".", "/") in self._modules:
                yield f"from {source} import {alias.name}" + ("" if name == "*" else f" as {name}")
            elif _kept(name):
                yield f"{name}: Any"

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, indent: str) -> str:
        kinds = [name for name in ("property", "staticmethod", "classmethod") if name in _decorators(node)]
        given = node.args
        for argument in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]:
            if argument is not None:
                argument.annotation = None
        given.defaults = [ast.Constant(...) for _ in given.defaults]
        given.kw_defaults = [default and ast.Constant(...) for default in given.kw_defaults]
        result = self._class(node.returns)
        head = "".join(f"{indent}@{kind}\n" for kind in kinds)
        return f"{head}{indent}def {node.name}({ast.unparse(given)}){f' -> {result}' if result else ''}: ..."

    def _class(self, node: ast.expr | None) -> str:
        """The class of rclpy or exception of Python that an annotation or a base names; else nothing."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        if isinstance(node, ast.Subscript):  # Publisher[MsgT]
            node = node.value
        name = node.id if isinstance(node, ast.Name) else ""
        return name if name in self._classes or name.endswith(("Error", "Exception")) else ""


def _kept(name: str) -> bool:
    return name != "*" and (not name.startswith("_") or name in HIDDEN)


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [ast.unparse(decorator) for decorator in node.decorator_list]


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


if __name__ == "__main__":
    sys.exit(main())
