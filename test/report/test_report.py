"""The report: complete, safe, self-contained, and alive in a browser."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from replay.scenes import START, write_scene

from lla_fusion_ros.reliance.statements import Reliance
from lla_fusion_ros.replay.output_folder import Wanted, replay_to_folder
from lla_fusion_ros.replay.replay import ReplayOptions
from lla_fusion_ros.report.page import ReportInput, report_html
from lla_fusion_ros.report.scoring import SINGLE_FRAME, FuserScores, ReplayScores, WarningScores
from lla_fusion_ros.report.svg import CLASS_COLOURS, COLOURS, class_colours
from lla_fusion_ros.report.tracks import (
    MOST_POINTS,
    MOST_THUMBNAILS,
    MOST_TRACKS,
    Point,
    Thumbnail,
    Timeline,
    TimelineSink,
    thinned_pictures,
    thinned_points,
)
from lla_fusion_ros.report.truth import Truth, TruthSpan, write_truth
from lla_fusion_ros.stream.statement_messages import Statements
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.metrics import Reliability
from support.browser import browser, needs_chromium
from support.fused_frames import frame
from support.tiny_bundle import tiny_bundle

NAMES = ("stop", "yield", "50 <km/h>")
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
    assert Tags(text).count["h3"] == 1


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


def test_with_too_many_objects_the_dull_ones_go_and_warned_ones_stay():
    frames = [
        frame(index, [f"t{index}"], warned=index == 5, pixels=False) for index in range(MOST_TRACKS + 50)
    ]
    sink = collected(frames)
    assert len(sink.tracks) == MOST_TRACKS and sink.forgotten == 50
    assert "t5" in sink.tracks
    text = report_html(ReportInput("many", "", NAMES, sink, "pool"))
    assert text.count("class='card track'") == MOST_TRACKS
    assert "50 further objects" in text


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
    (overview,) = re.findall(r'<div class="overview">.*?</div>', text)
    (width,) = re.findall(r'<rect [^>]*width="([\d.]+)"', overview)
    assert float(width) > 600
    chart = text.split("class='card track'")[1]
    for camera in cameras:
        assert f"<title>{camera}, " in chart
    heights = {re.search(r'y="([\d.]+)"', image).group(1) for image in re.findall("<image [^>]*>", chart)}
    assert len(heights) == len(cameras)  # a row of pictures for each


def test_names_are_shown_whole():
    name, camera = "b94f6f12-5a8e-4c2d-9f5e-1a2b3c4d5e6f", "front_left_wide_angle"
    sink = collected([frame(index, [name], camera=f"sensing/{camera}") for index in range(3)])
    text = report_html(ReportInput("names", "", NAMES, sink, "pool"))
    (overview,) = re.findall(r'<div class="overview">.*?</div>', text)
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
        (scores(0.5, outside=2, found=1), {"0.50 → 0.50": "", "1 of 2": "bad"}),
    ],
)
def test_colours_tell_what_got_better_and_what_worse(given, tiles):
    text = report_html(ReportInput("scores", "", NAMES, TimelineSink(), "pool", scores=given))
    for value, css in tiles.items():
        assert f"<div class='tile {css}'><b>{value}</b>" in text
    assert ("0.600 ▾" in text) == ("0.50 → 0.60" in tiles)


def many(objects: int, frames: int = 12) -> TimelineSink:
    """Objects that come one after the other, seen by two cameras; every tenth is warned of."""
    sink = TimelineSink()
    for at in range(objects):
        for index in range(at, at + frames):
            for camera in ("left", "right"):
                fused = frame(index, [f"object {at}"], warned=at % 10 == 0, camera=camera)
                sink.take(fused.frame.header.stamp, fused)
    return sink


def test_hundreds_of_objects_fit_a_page_that_unfolds_what_needs_a_look():
    text = report_html(ReportInput("many", "", NAMES, many(500, 3), "pool"))
    assert len(text) < 10_000_000
    assert text.count("class='card track'") == 500
    heads = re.findall(r"<details class='card track' [^>]*>", text)
    assert all(head.endswith(" open>") and "look" in head for head in heads[:50])
    assert not any("open>" in head for head in heads[50:])


def test_however_long_objects_are_the_file_stays_below_its_limit(monkeypatch):
    sink = collected(frame(index, [f"t{i}" for i in range(8)]) for index in range(MOST_POINTS))
    whole = report_html(ReportInput("long", "", NAMES, sink, "pool"))
    monkeypatch.setattr("lla_fusion_ros.report.cards.LARGEST", len(whole) // 4)
    text = report_html(ReportInput("long", "", NAMES, sink, "pool"))
    assert text.count("class='card track'") == 8 and len(text) < len(whole) / 3


def test_thinning_keeps_every_change_of_class_and_warning():
    points = [Point(i, "left", 0, 1.0, np.eye(2)[int(i == 77)], 0.0, 0, (), 1.0, 2) for i in range(200)]
    kept = thinned_points(points, 10)
    assert len(kept) <= 20 and {77, 78} <= {point.stamp for point in kept}
    assert kept[0] is points[0] and kept[-1] is points[-1]


def test_pictures_that_contradict_the_fused_class_are_kept_and_framed():
    pictures = [Thumbnail(i, "left", b"", 0, against=i in (13, 21)) for i in range(40)]
    assert {13, 21} <= {each.stamp for each in thinned_pictures(pictures, 6)}
    sink = collected(frame(index, ["7"]) for index in range(40))
    track = sink.tracks["7"]
    against = [each for each in track.thumbnails if each.against]
    assert against and len(track.thumbnails) <= MOST_THUMBNAILS + 1
    chart = report_html(ReportInput("odd", "", NAMES, sink, "pool")).split("class='card track'")[1]
    assert chart.count('class="against"') >= 1 and "against the fused class</title>" in chart


def test_sets_and_bounds_are_told_where_the_model_promises_them():
    limits = np.full((3, 6), 0.7)  # of -ln p: p above one half
    reliance = Reliance((99, 99, 99), limits, np.array([0.5]), np.array([0.03, 0.6]))
    frames = [frame(index, ["7"]) for index in range(9)]
    sink = collected(frames, statements=Statements(NAMES, reliance, None, 0.9))
    text = report_html(ReportInput("sets", "", NAMES, sink, "pool"))
    sure = frames[-1].result.pmf[0]
    assert sure[0] > 0.5 and "error at most 3.0% · 90% set: stop ·" in text
    assert 'class="bound"' in text
    warned = collected([frame(0, ["7"], warned=True)], statements=Statements(NAMES, reliance, None, 0.9))
    assert "any class is possible" in report_html(ReportInput("sets", "", NAMES, warned, "pool"))
    plain = report_html(ReportInput("sets", "", NAMES, collected(frames), "pool"))
    assert "error at most" not in plain and 'class="bound"' not in plain


def test_sets_are_held_against_the_truth():
    limits = np.full((3, 6), 0.7)
    reliance = Reliance((99, 99, 99), limits, np.array([0.5]), np.array([0.03, 0.6]))
    for true, tile in (
        ("stop", "<div class='tile '><b>9 of 9</b>"),
        ("yield", "<div class='tile bad'><b>0 of 9</b>"),
    ):
        ids = [f"t{i}" for i in range(9)]
        truth = Truth({name: (TruthSpan(0, true),) for name in ids}, "toy")
        sink = collected([frame(9, ids)], truth=truth, statements=Statements(NAMES, reliance, None, 0.9))
        given = ReportInput("truth", "", NAMES, sink, "pool", scores=scores(0.4))
        assert tile in report_html(given)


def test_colours_differ_where_classes_meet_however_many_there_are():
    charts = [[a, b, c] for a in range(43) for b, c in ((a + 1, a + 2), (a + 7, a + 3))]
    colours = class_colours(charts)
    assert set(colours.values()) == set(range(CLASS_COLOURS))
    assert all(len({colours[index] for index in chart}) == 3 for chart in charts)


def test_a_red_light_is_red_and_other_classes_keep_away_from_it():
    names = ["stop", "green light", "Red light", "yield", "blue car", "blue bus"]
    colours = class_colours([[0, 1, 2, 3], [4, 5]], names)
    assert (COLOURS[colours[1]], COLOURS[colours[2]]) == ("#009e73", "#d55e00")
    assert len({colours[index] for index in range(4)}) == 4 and colours[4] != colours[5]


def test_no_two_classes_of_a_chart_have_the_same_colour():
    names = [f"class {index}" for index in range(12)]
    sink = TimelineSink()
    for at in range(40):  # every class beside every other
        rng = np.random.default_rng(at)
        points = [
            Point(i, "left", i, 0.9, rng.dirichlet(np.ones(12)), 0.5, 0, (), 1.0, 12) for i in range(12)
        ]
        sink.tracks[f"{at}"] = Timeline(f"{at}", points=points, seen={"left": 12}, views=12)
    text = report_html(ReportInput("mixed", "", names, sink, "pool"))
    legends = re.findall(r"<div class='legend'>(.*?)</div>", text)
    assert len(legends) == 40
    for legend in legends:
        colours = re.findall("background:(#[0-9a-f]+)", legend)
        assert len(set(colours)) == len(colours) >= 3


@needs_chromium
def test_it_runs_in_a_browser_without_errors(written, tmp_path):
    """Charts are touched and walked through by keys, filters used, links followed, by day and by night."""
    with browser(tmp_path / "profile") as page:
        for dark, phone in ((False, True), (True, False)):
            page.look(dark, phone)
            page.open(written.as_uri())
            page.wait("document.readyState === 'complete' && cards.length === 3")
            assert page.run("document.documentElement.scrollWidth <= innerWidth")
            assert page.pale_texts() == []
        page.run(
            "var chart = document.querySelector('.track .scroll svg'), box = chart.getBoundingClientRect()"
        )
        move = "{clientX: box.left + box.width / 2, clientY: box.top + 5, bubbles: true}"
        page.run(f"chart.dispatchEvent(new PointerEvent('pointermove', {move}))")
        read = "document.querySelector('.track .read').textContent"
        assert "fused class" in page.run(read) and "entropy" in page.run(read)
        for key in ("Home", "ArrowRight"):
            page.run(f"chart.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))")
        assert re.match(r"0\.\d\d s", page.run(read))
        page.run("only.value = 'look'; only.dispatchEvent(new Event('change'))")
        assert re.match("[0-3] of 3", page.run("count.textContent"))
        page.run("only.value = ''; find.value = 'track 1'; find.dispatchEvent(new Event('input'))")
        assert page.run("cards.filter(card => !card.hidden).length") == 1
        page.run("cards.forEach(card => card.open = false); location.hash = cards[2].id")
        page.wait("cards[2].open && !cards[2].hidden && document.activeElement.parentElement === cards[2]")
        assert page.console == []


@needs_chromium
def test_hundreds_of_objects_are_drawn_in_a_browser(tmp_path):
    place = tmp_path / "many.html"
    place.write_text(report_html(ReportInput("many", "", NAMES, many(300, 3), "pool")))
    with browser(tmp_path / "profile") as page:
        page.look(phone=True)
        page.open(place.as_uri())
        page.wait("document.readyState === 'complete' && cards.length === 300")
        assert page.run("cards.filter(card => card.open).length") == 30
        link = "document.querySelectorAll('.overview a')[250]"
        page.run(f"{link}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
        card = "document.getElementById(location.hash.slice(1))"
        page.wait(
            f"location.hash && {card}.open && Math.abs({card}.getBoundingClientRect().top) < innerHeight"
        )
        assert page.run("document.documentElement.scrollWidth <= innerWidth") and page.console == []
