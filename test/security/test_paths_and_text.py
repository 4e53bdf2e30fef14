"""Names from outside stay names: they open no file elsewhere, and run nothing in a page."""

from __future__ import annotations

import csv
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import yaml

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.images.drawing import Label, draw_labels
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.contract import DETECTIONS, IMAGE
from lla_fusion_ros.messages.detections import write_detections
from lla_fusion_ros.messages.images import write_image
from lla_fusion_ros.replay.output_folder import Wanted, replay_to_folder
from lla_fusion_ros.replay.replay import ReplayOptions
from lla_fusion_ros.stream.stream_settings import StreamSettings
from support.tiny_bundle import tiny_bundle

START = 1_000_000_000_000
SCRIPT = "<script>alert(1)</script>"
IDS = (
    SCRIPT,
    "../../../escaped",
    "/etc/escaped",
    "\udcff\udcfe",
    "a\nb",
    "'\"><img src=x onerror=alert(1)>",
    "%s{0}",
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "-7",
)


def write_bag(path: Path, topic: str = "/front", ids: tuple[str, ...] = IDS) -> None:
    rng = np.random.default_rng(0)
    with BagWriter(path) as writer:
        writer.add(f"{topic}/image", IMAGE)
        writer.add(f"{topic}/detections", DETECTIONS)
        for step in range(3):
            stamp = START + step * 100_000_000
            boxes = np.zeros((len(ids), 5))
            boxes[:, :2], boxes[:, 3:] = rng.uniform(40, 60, (len(ids), 2)), 30
            picture = rng.integers(0, 255, (100, 120, 3), np.uint8)
            writer.write(f"{topic}/image", stamp, write_image(Header(stamp, "front"), picture, "rgb8"))
            writer.write(f"{topic}/detections", stamp, write_detections(Header(stamp, "front"), ids, boxes))


@pytest.mark.parametrize(
    "listed",
    [
        ["../outside/outside.mcap"],
        ["../outside"],
        [".."],
        ["."],
        [""],
        ["sub/../../outside/outside.mcap"],
        ["{outside}/outside.mcap"],
        ["a" * 5000],
        ["bag\0.mcap"],
        [{"a": 1}, 7, None],
        "bag.mcap",
        ["bag.mcap", "bag.mcap", "../bag/bag.mcap"],
    ],
    ids=str,
)
def test_a_bag_reads_no_file_outside_its_folder_and_none_twice(tmp_path, listed) -> None:
    write_bag(tmp_path / "outside", "/secret", ("1",) * 2)
    write_bag(tmp_path / "bag", "/front", ("1", "2"))
    metadata = tmp_path / "bag" / "metadata.yaml"
    document = yaml.safe_load(metadata.read_text())
    places = [
        name.replace("{outside}", str(tmp_path / "outside")) if isinstance(name, str) else name
        for name in (listed if isinstance(listed, list) else [listed])
    ]
    document["rosbag2_bagfile_information"]["relative_file_paths"] = places
    metadata.write_text(yaml.safe_dump(document))
    with Bag(tmp_path / "bag") as bag:
        assert {topic.name for topic in bag.summary.topics} == {"/front/image", "/front/detections"}
        assert len(list(bag.messages())) == bag.summary.count == 6


def hostile_bundle() -> Bundle:
    bundle = tiny_bundle()
    names = (SCRIPT, "=HYPERLINK(1)", "'\" onmouseover=alert(1)", "</script><script>alert(2)</script>")
    return Bundle(replace(bundle.meta, class_names=names), bundle.tensors, "0" * 64)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    write_bag(folder / "in" / "bag", "/front")
    done = replay_to_folder(
        folder / "in" / "bag",
        hostile_bundle(),
        folder / "work" / "out",
        ReplayOptions(stream=StreamSettings(identity="global")),
        Wanted(title=SCRIPT),
    )
    return folder, done


def test_ids_and_names_make_no_files(outcome) -> None:
    folder, done = outcome
    assert done.result.views == 3 * len(IDS)
    assert {path.name for path in folder.iterdir()} == {"in", "work"}
    assert {path.name for path in (folder / "work").iterdir()} == {"out"}
    assert {path.name for path in (folder / "work" / "out").iterdir()} == {
        "fused",
        "fused.csv",
        "report.html",
    }


def test_ids_and_names_run_nothing_in_the_report(outcome) -> None:
    folder, _ = outcome
    page = (folder / "work" / "out" / "report.html").read_text(encoding="utf8")
    assert "escaped" in page and "alert(1)" in page  # they are shown
    assert SCRIPT not in page and "<img src=x" not in page and "<script>alert" not in page
    tags = Tags()
    tags.feed(page)
    assert not [key for _, attributes in tags.seen for key in attributes if key.startswith("on")]
    assert not {"img", "iframe", "object", "embed", "form"} & {tag for tag, _ in tags.seen}
    # every script is the page's own: its code once, and data that no browser runs
    kinds = [attributes.get("type") for tag, attributes in tags.seen if tag == "script"]
    assert kinds.count(None) == 1 and set(kinds) == {None, "application/json"}


class Tags(HTMLParser):
    """The elements of a page as a browser sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_table_has_a_row_for_each_view_whatever_the_ids(outcome) -> None:
    folder, done = outcome
    with (folder / "work" / "out" / "fused.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == done.result.views
    assert {row["track"] for row in rows} >= {SCRIPT, "../../../escaped", "a\\nb"}


def test_no_cell_of_the_table_is_a_formula(outcome) -> None:
    folder, _ = outcome
    with (folder / "work" / "out" / "fused.csv").open(newline="") as file:
        cells = {cell for row in csv.reader(file) for cell in row}
    assert {"'=1+1", "'+cmd|' /C calc'!A0", "'-2+3", "'@SUM(1)", "-7"} <= cells
    starts = {cell for cell in cells if cell.startswith(("=", "+", "@", "-"))}
    assert all(float(cell) < 0 for cell in starts)  # a negative number is one


@pytest.mark.parametrize("text", [SCRIPT, "\udcff", "a\0b", "x" * 10_000, "%s%n{0}", "三"])
def test_any_text_can_be_drawn_into_a_picture(text) -> None:
    picture = np.zeros((60, 80, 3), np.uint8)
    draw_labels(picture, [Label((10.0, 10.0, 20.0, 20.0), text, ((text, 0.5),), text)])
    assert picture.any()
