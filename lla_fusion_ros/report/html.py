"""Pieces of every page: one HTML file that needs no other, with the look of `style.css`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape as _escape
from importlib import resources
from pathlib import Path

import numpy as np

from lla_fusion_ros import __version__
from lla_fusion_ros.types.printable import printable

_HATCH = (
    '<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs><pattern id="outside" '
    'width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern><pattern id="unsure" width="6" height="6" '
    'patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="doubt" x1="0" y1="0" x2="0" y2="6"/></pattern></defs></svg>'
)


def document(title: str, body: Iterable[str], scripts: str = "") -> str:
    """A whole page."""
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        "<link rel='icon' href='data:,'>"
        f"<title>{escape(title)}</title><style>{asset('style.css')}</style></head><body>{_HATCH}"
        f"<main>{''.join(body)}<p class='soft'>Made by lla_fusion_ros {__version__}.</p></main>"
        f"{scripts}</body></html>"
    )


def escape(text: str, quote: bool = True) -> str:
    """Text from outside in a page; characters that nobody sees are shown as escapes."""
    return _escape(printable(text), quote)


def heading(title: str, subtitle: str) -> str:
    return f"<h1>{escape(title)}</h1><p class='soft'>{escape(subtitle)}</p>"


def tiles(each: Iterable[tuple[str, str, str]]) -> str:
    """Of class (good, bad or none), value and label."""
    inside = "".join(
        f"<div class='tile {css}'><b>{escape(value)}</b><span>{escape(label)}</span></div>"
        for css, value, label in each
    )
    return f"<div class='cards'>{inside}</div>"


def notes(texts: Iterable[str]) -> str:
    return "".join(f"<p class='note'>{escape(text)}</p>" for text in texts)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Of cells that are HTML already, as wide as it needs to be."""
    titles = "".join(f"<th>{escape(word)}</th>" for word in head)
    cells = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f"<div class='scroll'><table><tr>{titles}</tr>{cells}</table></div>"


def cell(value: object, css: str = "") -> str:
    return f"<td class='{css}'>{escape(str(value))}</td>" if css else f"<td>{escape(str(value))}</td>"


def folded(title: str, rows: Mapping[str, object]) -> str:
    """Names and values that few want to read."""
    if not rows:
        return ""
    cells = "".join(f"<tr>{cell(key)}{cell(plain(value), 'text')}</tr>" for key, value in rows.items())
    head = f"<details><summary>{escape(title)}</summary>"
    return f"{head}<div class='scroll'><table>{cells}</table></div></details>"


def plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {plain(part)}" for key, part in value.items())
    if isinstance(value, list | tuple | np.ndarray):
        return ", ".join(plain(part) for part in value)
    return str(value)


def words(reason: str) -> str:
    return reason.replace("_", " ")


def asset(name: str) -> str:
    return resources.files("lla_fusion_ros.report").joinpath(name).read_text(encoding="utf8")


def json_text(value: object) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def write_page(page: str, path: Path) -> None:
    """A half-written one never lies at its place."""
    part = path.with_suffix(".part")
    try:
        part.write_text(page, encoding="utf8", errors="backslashreplace")  # ids may be any bytes
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
