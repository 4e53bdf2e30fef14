"""`lla-fusion make-bag`, `replay` and `info BAG` as a user types them."""

from __future__ import annotations

import csv
import json
import resource
from dataclasses import replace

import cv2
import pytest
from replay.scenes import START, STEP, write_scene

from lla_fusion_ros.bags.definitions import typestore
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.cli.main import main
from lla_fusion_ros.messages.contract import ANNOTATIONS
from lla_fusion_ros.report.truth import Shown, Truth, TruthFrame, TruthSpan, write_truth
from lla_fusion_ros.signworld import CLASS_NAMES
from support.tiny_bundle import tiny_bundle


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    bundle = tiny_bundle(classes=len(CLASS_NAMES))
    path = tmp_path_factory.mktemp("model") / "tiny.safetensors"
    save_bundle(replace(bundle, meta=replace(bundle.meta, class_names=CLASS_NAMES)), path)
    return str(path)


@pytest.fixture
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_drive_is_made_described_replayed_and_scored(inside, model, capsys):
    words = ["make-bag", "--drive", "--out", "drive", "--duration", "1", "--rate", "5", "--encoding", "jpeg"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "10 frames of left, right" in out
    hint = "next: lla-fusion replay drive --bundle signworld --truth drive.truth.json --set identity=global\n"
    assert hint in out
    assert main(["info", "drive"]) == 0
    assert "can be fused: yes" in capsys.readouterr().out
    truth = ["--truth", "drive.truth.json", "--compare", "last,mean_pmf"]
    assert main(["replay", "drive", "--bundle", model, *truth]) == 0
    out = capsys.readouterr().out
    assert out.startswith("model tiny (20 classes, 2 networks, ")
    assert "single frame" in out and "AUROC" in out and "drive_fused/report.html" in out
    assert {path.name for path in (inside / "drive_fused").iterdir()} == {
        "fused",
        "fused.csv",
        "report.html",
        "scores.json",
    }


def test_a_fused_bag_is_fused_again_with_other_settings(inside, model, capsys):
    write_scene(inside / "drive", frames=4)
    assert main(["replay", "drive", "--bundle", model, "--no-csv", "--no-report"]) == 0
    capsys.readouterr()
    words = ["replay", "drive_fused/fused", "--bundle", model, "--fuser", "vote", "--out", "again", "--json"]
    assert main([*words, "--set", "idle_timeout=2", "--no-report"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["used"] == "views" and result["fuser"] == "vote" and result["views"] == 24
    assert (inside / "again" / "fused.csv").exists() and not (inside / "again" / "report.html").exists()


def test_a_video_and_annotations_show_every_frame_and_without_images_the_reason_is_said(
    inside, model, capsys
):
    write_scene(inside / "drive", frames=4)
    assert main(["replay", "drive", "--bundle", model, "--no-csv", "--no-report", "--video"]) == 0
    video = cv2.VideoCapture(str(inside / "drive_fused" / "video.mp4"))
    assert int(video.get(cv2.CAP_PROP_FRAME_COUNT)) == 4
    read, picture = video.read()
    assert read and picture.shape[1] == 960 and picture.std() > 10
    with Bag(inside / "drive_fused" / "fused") as bag:
        (first, *others) = bag.messages(["/left/annotations"])
        assert len(others) == 3
    assert len(typestore().deserialize_cdr(first.data, ANNOTATIONS).texts) == 3
    words = ["replay", "drive_fused/fused", "--bundle", model, "--out", "again", "--no-report", "--video"]
    assert main(words) == 0
    assert "there is no video" in capsys.readouterr().out
    assert not (inside / "again" / "video.mp4").exists()


def test_a_replay_says_why_frames_were_lost_to_pairing_and_takes_the_offset(inside, model, capsys):
    write_scene(inside / "drive", detections_late_by=25_000_000, detections_stamped=200_000_000)
    words = ["replay", "drive", "--bundle", model, "--no-bag", "--no-csv", "--no-report"]
    assert main([*words, "--time-offset", "left=-0.2"]) == 0
    out = capsys.readouterr().out
    assert "36 views in 12 frames" in out and "camera left:" not in out
    assert "camera right: detections come before the image of their stamp, 0.2" in out
    assert "--time-offset right=S" in out
    assert main(words) == 1
    assert "right.time_offset" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["replay", "nowhere"], "does not exist"),
        (["replay", "drive", "--set", "window=0"], "must be in"),
        (["replay", "drive", "--time-offset", "left"], "expected NAME=S"),
        (["replay", "drive", "--time-offset", "front=1"], "no camera 'front'; the bag has left, right"),
        (["replay", "drive", "--set", "window=many"], "not of type int"),
        (["replay", "drive", "--set", "window"], "expected NAME=VALUE"),
        (["replay", "drive", "--set", "wind=3"], "no setting 'wind'; did you mean 'window'?"),
        (["replay", "drive", "--fuser", "magic"], "magic"),
        (["replay", "drive", "--fuser", "evidense_pool"], "did you mean 'evidence_pool'?"),
        (["replay", "drive", "--camera", "front"], "expected NAME="),
        (["replay", "drive", "--truth", "none.json"], "cannot be read"),
        (["replay", "drive", "--use", "views"], "it has no recorded views"),
        (["make-bag", "--out", "x"], "either --drive or --dataset"),
        (["make-bag", "--out", "drive", "--drive"], "exists already"),
        (["replay", "drive", "--start", "9"], "--start 9 skips the whole bag"),
        (["replay", "drive", "--json", "no/folder/x.json"], "of --json does not exist"),
        (["info", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(inside, model, capsys, words, reason):
    write_scene(inside / "drive", frames=2)
    if words[0] == "replay":
        words = [*words, "--bundle", model]
    assert main(words) == 1
    captured = capsys.readouterr()
    assert reason in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert not (inside / "drive_fused").exists()


def test_results_are_not_overwritten_by_accident(inside, model, capsys):
    write_scene(inside / "drive", frames=2)
    assert main(["replay", "drive", "--bundle", model]) == 0
    assert main(["replay", "drive", "--bundle", model]) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert main(["replay", "drive", "--bundle", model, "--overwrite"]) == 0


def test_a_replay_that_fails_keeps_what_it_was_to_overwrite(inside, model, capsys):
    write_scene(inside / "drive", frames=2)
    words = ["replay", "drive", "--bundle", model]
    assert main(words) == 0
    results = inside / "drive_fused"
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    assert main([*words, "--overwrite", "--set", "min_box_size=1000"]) == 1
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == before
    assert len(list(results.iterdir())) == 3
    (results / "fused" / "metadata.yaml").unlink()
    assert main([*words, "--overwrite"]) == 1
    assert "is not a bag, so it is not overwritten" in capsys.readouterr().err
    assert len(list(results.iterdir())) == 3


def test_held_out_classes_keep_their_names_in_the_truth(inside, capsys):
    """Which classes are unknown is up to the bundle; the truth file names them all."""
    words = [
        "make-bag",
        "--dataset",
        "signworld",
        "--option",
        "tracks=34",
        "--out",
        "signs",
        "--part",
        "test",
    ]
    assert main([*words, "--holdout", "0,1", "--fractions", "0.4,0.3,0.3"]) == 0
    truth = json.loads((inside / "signs.truth.json").read_text())
    named = {each["class"] for frame in truth["frames"] for each in frame["boxes"]}
    assert {CLASS_NAMES[0], CLASS_NAMES[1]} <= named
    assert truth["class_names"] == list(CLASS_NAMES)


def test_a_bag_without_track_ids_goes_through_the_built_in_tracker(inside, model, capsys):
    write_scene(inside / "untracked", frames=2, ids=["", ""])
    assert main(["info", "untracked"]) == 0
    out = capsys.readouterr().out
    assert "can be fused: yes" in out and "ids of the built-in tracker" in out
    assert main(["replay", "untracked", "--bundle", model, "--no-report", "--json"]) == 0
    tracks = json.loads(capsys.readouterr().out)["tracks"]
    assert [track["id"] for track in tracks] == ["left/1", "left/2", "right/1", "right/2"]


def test_where_ids_are_said_to_be_global_none_are_made_up(inside, model, capsys):
    write_scene(inside / "untracked", frames=2, ids=["", ""])
    assert main(["replay", "untracked", "--bundle", model, "--set", "track_id_scope=global"]) == 1
    error = capsys.readouterr().err
    assert "'track_id_scope' is now called 'identity'" in error
    assert "8 empty id" in error and "with identity 'auto' the built-in tracker gives them" in error
    assert [path.name for path in inside.iterdir()] == ["untracked"]


def test_a_truth_about_other_ids_than_the_built_in_trackers_is_refused(inside, model, capsys):
    write_scene(inside / "untracked", frames=2, ids=["", ""])
    write_truth(Truth({"1": (TruthSpan(0, CLASS_NAMES[0]),)}, "", CLASS_NAMES), inside / "truth.json")
    assert main(["replay", "untracked", "--bundle", model, "--truth", "truth.json"]) == 1
    assert "the built-in tracker gives the ids of left, right: the truth" in capsys.readouterr().err
    assert not (inside / "untracked_fused").exists()


def test_boxes_without_ids_are_scored_by_what_they_overlap(inside, model, capsys):
    """The same scores as by ids; of a truth about every second frame, half the views."""
    given = ["--bundle", model, "--json", "result.json", "--overwrite", "--no-report"]
    write_scene(inside / "drive", frames=8, objects=2)
    write_scene(inside / "untracked", frames=8, ids=["", ""])
    ids = {f"track {index}": (TruthSpan(0, name),) for index, name in enumerate(CLASS_NAMES[:2])}
    write_truth(Truth(ids, "", CLASS_NAMES), inside / "ids.json")
    scores, shown = [], tuple(Shown(str(index), name) for index, name in enumerate(CLASS_NAMES[:2]))
    for bag, truth, every in (("drive", "ids", 0), ("untracked", "all", 1), ("untracked", "half", 2)):
        if every:
            frames = {
                (camera, START + index * STEP): TruthFrame(
                    [(23.0 + 30 * each + index, 61.0, 17.0 + index, 16.0 + index) for each in range(2)], shown
                )
                for camera in ("left", "right")
                for index in range(0, 8, every)
            }
            write_truth(Truth({}, "", CLASS_NAMES, frames), inside / f"{truth}.json")
        assert main(["replay", bag, "--truth", f"{truth}.json", *given]) == 0
        document = json.loads((inside / "result.json").read_text())
        scores.append(document["scores"]["fusers"])
    assert scores[0] == scores[1]
    assert [own[0]["views"] for own in scores] == [32, 32, 16]
    assert "boxes for 8 of 16 frames; 16 of the 16 boxes in these" in capsys.readouterr().out


def test_a_truth_whose_boxes_are_elsewhere_is_refused_in_one_sentence(inside, model, capsys):
    write_scene(inside / "untracked", frames=2, ids=["", ""])
    for camera, reason in (("left", "none of the 2 boxes at stamps"), ("front", "no boxes for any of the 4")):
        frames = {(camera, START): TruthFrame([(300.0, 9.0, 5.0, 5.0)], [Shown("1", CLASS_NAMES[0])])}
        write_truth(Truth({}, "", CLASS_NAMES, frames), inside / "truth.json")
        assert main(["replay", "untracked", "--bundle", model, "--truth", "truth.json"]) == 1
        error = capsys.readouterr().err
        assert reason in error and len(error.strip().splitlines()) == 1
        assert not (inside / "untracked_fused").exists()


def test_a_replay_that_fuses_nothing_fails_and_leaves_nothing(inside, model, capsys):
    write_scene(inside / "tiny_boxes", frames=2)
    words = ["replay", "tiny_boxes", "--bundle", model, "--set", "min_box_size=1000", "--out", "a/b"]
    assert main(words) == 1
    assert "nothing of the bag was fused: not fused: 12 " in capsys.readouterr().err
    assert not (inside / "a").exists()


def test_a_truth_of_mostly_other_classes_is_refused_unless_told(inside, model, capsys):
    write_scene(inside / "drive", frames=2)
    names = (CLASS_NAMES[0], "tram", "llama")
    spans = {f"track {index}": (TruthSpan(0, name),) for index, name in enumerate(names)}
    write_truth(Truth(spans, "zoo", names), inside / "zoo.json")
    words = ["replay", "drive", "--bundle", model, "--truth", "zoo.json", "--set", "identity=global"]
    assert main(words) == 1
    error = capsys.readouterr().err
    assert "knows 1 of the 3 classes in the truth file (not 'llama', 'tram')" in error
    assert "--bundle" in error and "--unknown-classes" in error
    assert not (inside / "drive_fused").exists()
    write_truth(Truth({"nobody": (TruthSpan(0, names[0]),)}, "zoo", names), inside / "none.json")
    assert main(["replay", "drive", "--bundle", model, "--truth", "none.json"]) == 1
    assert "no view in the bag belongs to a track" in capsys.readouterr().err
    assert not (inside / "drive_fused").exists()
    assert main([*words, "--unknown-classes"]) == 0
    assert "of 2 unknown objects found" in capsys.readouterr().out


def test_results_lie_beside_the_bag_wherever_the_user_is(inside, model, monkeypatch, capsys):
    write_scene(inside / "far" / "v1.2", frames=2)
    (inside / "home").mkdir()
    monkeypatch.chdir(inside / "home")
    assert main(["replay", "../far/v1.2", "--bundle", model, "--no-report"]) == 0
    assert (inside / "far" / "v1.2_fused" / "fused.csv").exists()
    assert list((inside / "home").iterdir()) == []


def test_the_json_of_a_replay_tells_tracks_warnings_and_bundle_and_nothing_else_is_printed(
    inside, model, capsys
):
    write_scene(inside / "drive", frames=4)
    assert main(["replay", "--json", "drive", "--bundle", model, "--set", "identity=global"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [track["id"] for track in result["tracks"]] == ["track 0", "track 1", "track 2"]
    track = result["tracks"][0]
    assert track["views"] == {"left": 4, "right": 4} and track["class"] in CLASS_NAMES
    assert (track["first"], track["last"]) == (1000.0, 1000.3)
    assert result["warnings"] == []
    assert result["bundle"]["file"] == model and len(result["bundle"]["hash"]) == 64
    words = ["replay", "drive", "--bundle", model, "--set", "identity=global", "--overwrite"]
    assert main([*words, "--json", "result.json"]) == 0
    assert "24 views" in capsys.readouterr().out
    again = json.loads((inside / "result.json").read_text())
    assert again["tracks"] == result["tracks"]


def test_names_from_outside_cannot_steer_the_terminal(inside, model, capsys):
    bundle = tiny_bundle()
    names = ("\x1b[2Jgone", "a\x9b31mb", "\u202ereversed", "plain ü")
    save_bundle(replace(bundle, meta=replace(bundle.meta, class_names=names)), inside / "nasty.safetensors")
    assert main(["info", "nasty.safetensors"]) == 0
    out = capsys.readouterr().out
    assert "\\x1b[2Jgone" in out and "a\\x9b31mb" in out and "\\u202ereversed" in out and "plain ü" in out
    write_scene(inside / "dr\x1bive", frames=2, cameras=("fr\x1b]0;x\x07ont",))
    assert main(["info", "dr\x1bive"]) == 0
    assert main(["replay", "dr\x1bive", "--bundle", model, "--no-report"]) == 0
    assert main(["replay", "dr\x1bive", "--bundle", model]) == 1
    captured = capsys.readouterr()
    assert all(char.isprintable() or char == "\n" for char in captured.out + captured.err)


def test_ids_from_outside_are_printable_in_every_table_and_page(inside, model):
    ids = [
        "\x1b[2Jgone",
        r"\x1b[2Jgone",
        "a\x9b31mb",
        "\u202ereversed",
        "two\nlines",
        "\udcff",
        "=1+2",
        "grün",
    ]
    write_scene(inside / "drive", frames=3, cameras=("left",), ids=ids)
    assert main(["replay", "drive", "--bundle", model, "--set", "identity=global"]) == 0
    rows = list(csv.DictReader((inside / "drive_fused" / "fused.csv").open(newline="")))
    assert len({row["track"] for row in rows}) == len(ids) and all(row["track"].isprintable() for row in rows)
    assert {r"\x1b[2Jgone", r"\\x1b[2Jgone", "'=1+2", "grün"} <= {row["track"] for row in rows}
    page = (inside / "drive_fused" / "report.html").read_text()
    assert r"\x1b[2Jgone" in page and "grün" in page
    assert all(line.isprintable() for line in page.split("\n"))


@pytest.mark.parametrize("room", [100, 6000])  # not even the table, or all but the report
def test_a_full_disk_is_a_sentence_and_nothing_is_left(inside, model, capsys, room):
    write_scene(inside / "drive", frames=2)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))  # no file may grow beyond it
    try:
        code = main(["replay", "drive", "--bundle", model, "--no-bag"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == 1
    assert "cannot be written: File too large" in capsys.readouterr().err
    assert [path.name for path in inside.iterdir()] == ["drive"]
