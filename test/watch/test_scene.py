"""What `lla-fusion watch` knows of a graph, from the messages of nodes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from lla_fusion_ros.cli.watch_screen import View, picture, split_keys
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import parse_detections, write_detections
from lla_fusion_ros.messages.status import Status, parse_label_info, write_label_info
from lla_fusion_ros.watch import scene as scene_module
from lla_fusion_ros.watch.scene import MOST_MEMBERS, MOST_NAMES, MOST_OBJECTS, MOST_POINTS, Scene

NASTY = ("<img src=x onerror=alert(1)>", "\x1b[31mred", "\u202eevil", "שלום", "'\"&", "\udcff")


def state(name: str, label: str = "stop", p: float = 0.9, answer: str = "known", **more: str) -> Status:
    told = {"answer": answer, "top class": label, "p": str(p), "entropy": "0.3", "error at most": "0.02"}
    level = 0 if answer == "known" else 1
    reason = "" if answer == "known" else answer.replace(" ", "_")
    told |= {"set": label, "reason": reason, **more}
    return Status(level, f"track {name}", answer, "front", told)


def listed(ids: tuple[str, ...], pmf: list[list[float]]) -> object:
    raw = write_detections(Header(7, "front"), ids, np.zeros((len(ids), 5)), np.array(pmf))
    return parse_detections(raw, with_scores=True)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_states_views_and_diagnostics_of_a_node_become_one_picture(scene):
    scene.take_labels("", parse_label_info(write_label_info(Header(0, ""), ["stop", "yield"])))
    scene.take_states(
        "", Header(10**9, "f"), [state("7", members="7 left/3"), state("8", answer="cannot tell")]
    )
    scene.take_states("", Header(2 * 10**9, "f"), [state("7", label="yield")])
    scene.take_views("", "left", listed(("left/3",), [[0.2, 0.8]]))
    told = {"rate": "9.5", "dropped_queue_full": "2", "dropped_x": "-"}
    about = {"fuser": "evidence_pool", "busy": "10%"}
    scene.take_diagnostics(
        [Status(1, "n: camera front", "lost 2", "front", told), Status(0, "n", "well", "", about)]
    )
    scene.take_diagnostics([Status(2, "battery", "empty", "", {"rate": "1"})])
    shown = scene.snapshot()
    json.dumps(shown, allow_nan=False)
    seven, eight = shown["objects"]
    assert (seven["class"], seven["changes"], seven["bound"], seven["look"]) == ("yield", 1, 0.02, False)
    assert seven["seen"] == {"left": ("yield", 0.8)}
    assert (eight["answer"], eight["look"]) == ("cannot tell", True)
    assert [point.label for point in scene.history(seven["n"])] == ["stop", "yield"]
    (camera,) = shown["cameras"]
    assert (camera["name"], camera["rate"], camera["lost"], camera["level"]) == ("front", 9.5, 2, 1)
    assert [node["name"] for node in shown["nodes"]] == ["n"]


def test_without_track_status_fused_classes_and_warnings_do(scene):
    scene.take_fused("/robot", listed(("7",), [[0.25, 0.75]]))
    scene.take_warnings("/robot", [Status(2, "track 7", "", "", {"reason": "identity_switch"})])
    (each,) = scene.objects()
    assert (each.label, each.p, each.level, each.reasons) == ("1", 0.75, 2, "identity_switch")
    assert each.entropy == pytest.approx(0.5623, abs=1e-4)
    scene.take_warnings("/robot", [Status(0, "track 7", "no longer warned of")])
    assert not each.needs_a_look
    assert scene.snapshot()["cameras"][0]["name"] == "robot/front"


def test_memory_is_bounded_and_what_is_gone_is_forgotten(scene, monkeypatch):
    for _ in range(MOST_POINTS + 5):
        scene.take_states("", Header(0, ""), [state("a")])
    assert len(scene.objects()[0].history) == MOST_POINTS
    scene.take_states("", Header(0, ""), [state(str(i)) for i in range(MOST_OBJECTS + 5)])
    assert len(scene.objects()) == MOST_OBJECTS
    monkeypatch.setattr(scene_module, "KEPT", -1.0)
    assert scene.objects() == []


def test_names_of_cameras_nodes_and_members_are_bounded_and_those_known_go_on(scene):
    about = {"fuser": "pool", "busy": "1%"}
    for name in ("front", *map(str, range(2 * MOST_NAMES)), "front"):
        told = {"rate": "9.5" if name == "front" else "1"}
        scene.take_states("", Header(0, ""), [replace(state("a"), hardware_id=name)])
        scene.take_diagnostics(
            [Status(0, f"n: camera d{name}", "", "", told), Status(0, name, "", "", about)]
        )
    members = " ".join(map(str, range(3 * MOST_MEMBERS)))
    scene.take_states("", Header(0, ""), [state("joined", members=members)])
    shown = scene.snapshot()
    assert len(shown["cameras"]) == len(shown["nodes"]) == MOST_NAMES
    rates = {camera["name"]: camera["rate"] for camera in shown["cameras"]}
    assert rates["dfront"] == 9.5 and rates["front"] == 3 / 5
    assert scene.object_of("", "0", "own") == "own"
    assert scene.object_of("", str(3 * MOST_MEMBERS - 1), "own") == "joined"


@pytest.mark.parametrize("width", [80, 100, 130, 200])
def test_the_whole_table_fits_the_terminal(scene, width):
    from rich.cells import cell_len
    from rich.console import Console

    rows = [state(name, label="speed limit 100", answer="cannot tell") for name in (*NASTY, "a" * 60)]
    scene.take_states("", Header(0, "f"), rows)
    console = Console(width=width, height=20, color_system=None)
    with console.capture() as shown:
        console.print(picture(scene, View(), 20, width))
    lines = shown.get().splitlines()
    assert len(lines) <= 20 and all(cell_len(line.rstrip()) <= width for line in lines)
    rows = [line for line in lines if " 90%" in line]
    assert len(rows) > 5 and all("cannot" in line for line in rows) and "7 cannot tell" in shown.get()


def test_keys_sort_filter_choose_and_pause_and_the_terminal_is_never_steered(scene):
    from rich.console import Console

    scene.take_states("", Header(0, "f"), [state(name, label=name) for name in NASTY])
    scene.take_states("", Header(0, "f"), [state("9", p=0.5), state("10", answer="unknown")])
    assert split_keys("\x1b[B\x1bOAs\r\x1b") == ["\x1b[B", "\x1b[A", "s", "\r", "\x1b"]
    view = View()
    console = Console(width=140, height=40, force_terminal=True, color_system=None, legacy_windows=False)
    with console.capture() as shown:
        console.print(picture(scene, view, 40, 140))
    assert "\\x1b[31mred" in shown.get() and "\\u202eevil" in shown.get() and "\x1b[31mred" not in shown.get()
    for key in "w":
        view.press(key)
    assert [each.id for each in view.choose(scene.objects())] == ["10"]
    for key in ("w", "/", *"9", "\r"):
        view.press(key)
    assert [each.id for each in view.choose(scene.objects())] == ["9"] and view.words == "9"
    for key in ("\x1b", "s", "p", "\r"):
        view.press(key)
    assert (view.sort, view.paused, view.history, view.words) == ("warning", True, True, "")
    first = view.choose(scene.objects())[0]
    assert first.id == "10"
    view.chosen = first.number
    view.press("j")
    assert view.chosen == view.shown[1].number
    with console.capture() as shown:
        console.print(picture(scene, view, 40, 140))
    assert "class changes" in shown.get() and "\\n" not in shown.get()
    view.press("q")
    assert view.done


def test_a_track_whose_join_is_undone_is_an_object_of_its_own_again(scene):
    scene.take_labels("", ["stop", "yield"])
    scene.take_states("", Header(0, "f"), [state("left/1"), state("right/1")])
    assert [each.id for each in View().choose(scene.objects())] == ["left/1", "right/1"]
    scene.take_states("", Header(10**9, "f"), [state("left/1", members="left/1 right/1")])
    assert [each.id for each in View().choose(scene.objects())] == ["left/1"]
    scene.take_views("", "right", listed(("right/1",), [[0.2, 0.8]]))
    scene.take_states("", Header(2 * 10**9, "f"), [state("left/1"), state("right/1", members="")])
    scene.take_views("", "right", listed(("right/1",), [[0.9, 0.1]]))
    seen = {each.id: each.seen for each in scene.objects()}
    assert seen == {"left/1": {"right": ("yield", 0.8)}, "right/1": {"right": ("stop", 0.9)}}
    assert [each.id for each in View().choose(scene.objects())] == ["left/1", "right/1"]


def test_an_object_that_is_not_fused_yet_is_no_row(scene):
    scene.take_states("", Header(10**9, "f"), [state("left/1")])
    scene.take_views("", "right", listed(("right/1",), [[0.2, 0.8]]))
    assert [each.id for each in View().choose(scene.objects())] == ["left/1"]
