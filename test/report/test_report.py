"""The report: complete, safe, self-contained, and alive in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from replay.scenes import START, write_scene

from lla_fusion_ros.crops import Pixels
from lla_fusion_ros.engine import FrameResult
from lla_fusion_ros.replay.outputs import Wanted, replay_to_folder
from lla_fusion_ros.replay.run import ReplayOptions
from lla_fusion_ros.replay.truth import Truth, TruthSpan, write_truth
from lla_fusion_ros.report.page import MOST_CARDS, ReportInput, report_html
from lla_fusion_ros.report.timeline import MOST_POINTS, MOST_THUMBNAILS, MOST_TRACKS, TimelineSink
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.tracks import TrackKey
from lla_fusion_ros.views import Views
from lla_fusion_ros.warnings.result import REASONS, Verdicts
from lla_fusion_ros.wire.cdr import Header
from support.tiny_bundle import tiny_bundle

NAMES = ("stop", "yield", "50 <km/h>")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NASTY = "</script><script>alert(1)</script>'\" & ü"


def frame(index: int, ids: list[str], warned: bool = False, pixels: bool = True) -> FusedFrame:
    """One fused frame with a distribution that sharpens over time."""
    rng = np.random.default_rng(index)
    n = len(ids)
    logits = rng.normal(0, 2, (n, 2, 3)).astype(np.float32)
    image = Pixels(rng.integers(0, 256, (80, 120, 3), np.uint8), "bgr") if pixels else None
    views = Views(logits, np.ones((n, 2, 4), np.float32))
    boxes = np.tile([60.0, 40.0, 0.0, 30.0, 30.0], (n, 1))
    scene = ViewFrame("left", Header(START + index * 10**8, "left"), tuple(ids), boxes, views, image)
    pmf = np.tile([0.5 + 0.4 * index / (index + 5), 0.3, 0.0], (n, 1))
    pmf[:, 2] = 1 - pmf.sum(axis=1)
    pmf = np.clip(pmf, 0, 1) / np.clip(pmf, 0, 1).sum(axis=1, keepdims=True)
    raised = np.zeros((n, len(REASONS)), bool)
    raised[:, 0] = warned
    zeros = np.zeros(n)
    verdicts = Verdicts(
        pmf,
        zeros + 0.5,
        zeros,
        zeros,
        np.ones((n, len(REASONS))),
        np.ones((n, 1), int),
        ("left",),
        raised[:, 0] * 1,
        raised,
        {},
    )
    result = FrameResult(np.arange(n), tuple(ids), pmf, verdicts, (), (TrackKey("none"),), (), {}, False, ())
    return FusedFrame(scene, result)


def collected(frames, **options) -> TimelineSink:
    sink = TimelineSink(**options)
    for fused in frames:
        sink.take(fused.frame.header.stamp, fused)
    return sink


class Tags(HTMLParser):
    """Counts elements and keeps every address."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.count: dict[str, int] = {}
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        self.addresses += [value for name, value in attrs if name in ("src", "href") and value]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A report of a real replay, with truth."""
    folder = tmp_path_factory.mktemp("report")
    write_scene(folder / "drive")
    spans = {
        "track 0": (TruthSpan(START, "class 0"),),
        "track 1": (TruthSpan(START, "class 1"),),
        "track 2": (TruthSpan(START, None),),
    }
    write_truth(Truth(spans, "toy"), folder / "truth.json")
    outcome = replay_to_folder(
        folder / "drive", tiny_bundle(), folder / "out", ReplayOptions(), Wanted(truth=folder / "truth.json")
    )
    return outcome.files[0]


def test_a_replay_writes_a_report_with_every_part(written):
    text = written.read_text()
    assert written.name == "report.html"
    assert text.count("class='card track'") == 3
    assert text.count("<image ") >= 3
    assert text.count("class='reliability'") == 0 and text.count('class="reliability"') == 2
    for part in (
        "Scores against the truth",
        "Settings",
        "Model file",
        "truth: unknown object",
        "prefers-color-scheme",
    ):
        assert part in text


def test_it_needs_no_network(written):
    text = written.read_text()
    assert not re.search(r"https?://", text)
    assert "@import" not in text and "url(http" not in text
    assert all(address.startswith(("data:", "#")) for address in Tags(text).addresses)


def test_names_from_outside_cannot_become_markup():
    sink = collected(frame(index, [NASTY]) for index in range(4))
    text = report_html(ReportInput("drive & co", "<sub>", NAMES, sink, "pool", notes=["<b>lost</b>"]))
    assert "alert(1)</script>" not in text
    assert "<b>lost</b>" not in text and "<sub>" not in text
    assert Tags(text).count["section"] == 1


def test_a_run_without_tracks_still_has_a_report():
    text = report_html(ReportInput("empty", "", NAMES, TimelineSink(), "pool"))
    assert "<h1>empty</h1>" in text and "class='card track'" not in text


def test_memory_is_bounded_however_long_a_track_is():
    sink = collected(frame(index, ["long"]) for index in range(3 * MOST_POINTS))
    track = sink.tracks["long"]
    assert track.views == 3 * MOST_POINTS
    assert len(track.points) <= MOST_POINTS + 1
    assert 3 <= len(track.thumbnails) <= MOST_THUMBNAILS + 1
    stamps = [point.stamp for point in track.points]
    assert stamps == sorted(stamps) and stamps[0] == START


def test_with_too_many_tracks_the_dull_ones_go_and_warned_ones_stay():
    frames = [
        frame(index, [f"t{index}"], warned=index == 5, pixels=False) for index in range(MOST_TRACKS + 50)
    ]
    sink = collected(frames)
    assert len(sink.tracks) == MOST_TRACKS and sink.forgotten == 50
    assert "t5" in sink.tracks
    text = report_html(ReportInput("many", "", NAMES, sink, "pool"))
    assert text.count("class='card track'") == MOST_CARDS
    assert f"{MOST_TRACKS - MOST_CARDS + 50} further tracks" in text


def test_ids_of_one_camera_stay_apart_where_the_user_says_so():
    sink = collected([frame(0, ["7"])], scope="camera")
    assert list(sink.tracks) == ["left 7"]


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_it_runs_in_a_browser_without_errors(written, tmp_path):
    """The page is loaded, a chart is touched, the filter is used; the browser's log holds no error."""
    probe = """<script>
    const chart = document.querySelector('.track svg'), box = chart.getBoundingClientRect();
    const place = {clientX: box.left + box.width / 2, clientY: box.top + 5};
    chart.dispatchEvent(new PointerEvent('pointermove', place));
    document.body.dataset.read = document.querySelector('.track .read').textContent;
    document.getElementById('find').value = 'track 1';
    document.getElementById('find').dispatchEvent(new Event('input'));
    document.body.dataset.shown = document.querySelectorAll('.track:not([hidden])').length;
    document.body.dataset.wide = document.documentElement.scrollWidth > window.innerWidth + 1;
    </script></body>"""
    page = tmp_path / "probe.html"
    page.write_text(written.read_text().replace("</body>", probe))
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={tmp_path / 'profile'}", "--window-size=400,900", "--enable-logging=stderr",
        "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert console == []
    body = re.search(r"<body[^>]*>", done.stdout).group()
    assert "fused class" in body and "entropy" in body
    assert 'data-shown="1"' in body
    assert 'data-wide="false"' in body
