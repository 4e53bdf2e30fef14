"""The report: complete, safe, self-contained, and alive in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from replay.scenes import START, write_scene

from lla_fusion_ros.replay.output_folder import Wanted, replay_to_folder
from lla_fusion_ros.replay.replay import ReplayOptions
from lla_fusion_ros.report.page import MOST_CARDS, ReportInput, report_html
from lla_fusion_ros.report.scoring import SINGLE_FRAME, FuserScores, ReplayScores, WarningScores
from lla_fusion_ros.report.tracks import MOST_POINTS, MOST_THUMBNAILS, MOST_TRACKS, TimelineSink
from lla_fusion_ros.report.truth import Truth, TruthSpan, write_truth
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.metrics import Reliability
from support.fused_frames import frame
from support.tiny_bundle import tiny_bundle

NAMES = ("stop", "yield", "50 <km/h>")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NASTY = "</script><script>alert(1)</script>'\" & ü"

GLOBAL = StreamSettings(identity="global")  # one id is one object in both cameras


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
    options, wanted = ReplayOptions(stream=GLOBAL), Wanted(truth=folder / "truth.json")
    outcome = replay_to_folder(folder / "drive", tiny_bundle(), folder / "out", options, wanted)
    return outcome.files[0]


def test_a_replay_writes_a_report_with_every_part(written):
    text = written.read_text()
    assert written.name == "report.html"
    assert text.count("class='card track'") == 3
    assert text.count("<image ") >= 6
    assert "model in memory (4 classes, 2 networks, not saved)" in text
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


def test_a_class_that_changed_as_its_kind_does_has_a_badge_and_no_warning():
    frames = [frame(index, ["light"]) for index in range(4)]
    result = replace(frames[2].result, restarted=("light",), changed=("light",))
    frames[2] = replace(frames[2], result=result)
    text = report_html(ReportInput("drive", "", NAMES, collected(frames), "pool"))
    assert "class change 1×" in text and "identity switch</span>" not in text


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


@pytest.mark.parametrize("cameras", [("left", "right"), ("left", "middle", "right")])
def test_cameras_that_share_their_stamps_are_all_shown(cameras):
    """However the points are thinned, and as one bar in the overview."""
    frames = range(MOST_POINTS)
    sink = collected(frame(index, ["7"], camera=camera) for index in frames for camera in cameras)
    track = sink.tracks["7"]
    assert track.views == len(cameras) * MOST_POINTS and len(track.points) <= MOST_POINTS
    shares = [sum(point.camera == camera for point in track.points) for camera in cameras]
    assert max(shares) - min(shares) <= 1
    assert {picture.camera for picture in track.thumbnails} == set(cameras)
    text = report_html(ReportInput("two", "", NAMES, sink, "pool"))
    (overview,) = re.findall(r'<svg class="overview".*?</svg>', text)
    (width,) = re.findall(r'<rect [^>]*width="([\d.]+)"', overview)
    assert float(width) > 600
    chart = text.split("class='card track'")[1]
    for camera in cameras:
        assert f"<title>{camera}</title>" in chart
    heights = {re.search(r'y="([\d.]+)"', image).group(1) for image in re.findall("<image [^>]*>", chart)}
    assert len(heights) == len(cameras)  # a row of pictures for each


def test_names_are_shown_whole():
    name, camera = "b94f6f12-5a8e-4c2d-9f5e-1a2b3c4d5e6f", "front_left_wide_angle"
    sink = collected([frame(index, [name], camera=f"sensing/{camera}") for index in range(3)])
    text = report_html(ReportInput("names", "", NAMES, sink, "pool"))
    (overview,) = re.findall(r'<svg class="overview".*?</svg>', text)
    for words, part in ((name, overview), (camera, text.split("class='card track'")[1])):
        end = re.search(rf'<text x="([\d.]+)"[^>]*text-anchor="end">{words}</text>', part).group(1)
        assert float(end) > 5.5 * len(words)  # there is room for it on the left of where it ends


def scores(fused_nll: float, outside: int = 0, found: int = 0) -> ReplayScores:
    def row(name: str, nll: float) -> FuserScores:
        return FuserScores(name, 0.9, nll, 0.1, None, 0.9, 10)

    flat = Reliability(np.zeros(2, int), np.zeros(2), np.zeros(2))
    return ReplayScores(
        (row(SINGLE_FRAME, 0.5), row("pool", fused_nll)),
        WarningScores(outside=outside, outside_warned=found),
        {SINGLE_FRAME: flat, "pool": flat},
    )


@pytest.mark.parametrize(
    ("given", "tiles"),
    [
        (scores(0.4), {"0.50 → 0.40": "good", "none": ""}),
        (scores(0.6, outside=2, found=2), {"0.50 → 0.60": "bad", "2 of 2": "good"}),
        (scores(0.5, outside=2, found=1), {"0.50 → 0.50": "good", "1 of 2": "bad"}),
    ],
)
def test_colours_tell_what_got_better_and_what_worse(given, tiles):
    text = report_html(ReportInput("scores", "", NAMES, TimelineSink(), "pool", scores=given))
    for value, css in tiles.items():
        assert f"<div class='tile {css}'><b>{value}</b>" in text
    assert ("0.600 ▾" in text) == ("0.50 → 0.60" in tiles)


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_it_runs_in_a_browser_without_errors(written, tmp_path):
    """The page is loaded, a chart is touched, the filter is used; the browser's log holds no error."""
    probe = """<script>
    const chart = document.querySelector('.track svg'), box = chart.getBoundingClientRect();
    const place = {clientX: box.left + box.width / 2, clientY: box.top + 5};
    chart.dispatchEvent(new PointerEvent('pointermove', place));
    document.body.dataset.read = document.querySelector('.track .read').textContent;
    chart.dispatchEvent(new KeyboardEvent('keydown', {key: 'Home'}));
    chart.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
    document.body.dataset.keys = document.querySelector('.track .read').textContent;
    document.getElementById('only').value = 'look';
    document.getElementById('only').dispatchEvent(new Event('change'));
    document.body.dataset.look = document.getElementById('count').textContent;
    document.getElementById('only').value = '';
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
    assert re.search(r'data-keys="0\.\d\d s', body) and re.search(r'data-look="[0-3] shown"', body)
    assert 'data-wide="false"' in body
