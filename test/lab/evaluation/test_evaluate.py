"""The whole evaluation on a tiny bundle, its memory, and its verb."""

import json
import shutil
import tracemalloc
from dataclasses import fields, replace

import numpy as np
import pytest

from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.cli.main import main
from lla_fusion_ros.fusion import fusers
from lla_fusion_ros.lab.calibration.collect import views_of_tracks
from lla_fusion_ros.lab.datasets.sign_sets import GTSRB_NAMES
from lla_fusion_ros.lab.evaluation.evaluate import Options, evaluate
from lla_fusion_ros.lab.evaluation.fused import CHUNK
from lla_fusion_ros.lab.evaluation.selection import select_tracks
from lla_fusion_ros.lab.evaluation.track_scores import TrackScores
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.types.pmf import softmax
from support.tiny_bundle import tiny_bundle
from support.tiny_datasets import make_trackset, write_gtsrb, write_ppm
from support.watched_bundle import watched_bundle

FEW = ("last", "mean_pmf", "pool", "reliability")


class Silent:
    def crops(self, count):
        pass

    def stage(self, name):
        pass


@pytest.fixture(scope="module")
def watched():
    return watched_bundle()


def test_every_fuser_regime_length_and_number_of_networks_is_scored(watched, tmp_path):
    tracks = make_trackset(classes=5, tracks=4, frames=24)  # the fifth class is outside
    options = Options(lengths=(1, 5, 20), draws=1, resamples=50)
    evaluation = evaluate(watched, select_tracks(watched, tracks, "all"), options, tmp_path, Silent())
    keys = {(r["fuser"], r["regime"], r["L"], r["C"]) for r in evaluation.results}
    assert len(keys) == len(evaluation.results) == len(fusers()) * 3 * 3 * 2
    for record in evaluation.results:
        for score in ("accuracy", "nll", "brier", "ece", "flips", "frames_to_settle"):
            low, high = record[f"{score}_interval"]
            assert low <= high and np.isfinite(record[score])
    assert {(r["regime"], r["C"]) for r in evaluation.switch} == {(g, 2) for g in ("clean", "hard", "mixed")}
    combined = [r for r in evaluation.ood if r["score"] == "combined"]
    assert len(combined) == 9
    assert all(0 <= r[key] <= 1 for r in evaluation.ood for key in ("auroc", "aupr", "fpr95"))
    json.dumps([evaluation.results, evaluation.ood, evaluation.switch, evaluation.comparisons])


def test_every_draw_of_a_degraded_regime_counts_and_the_clean_one_has_one(watched, tmp_path):
    options = Options(regimes=("clean", "hard"), lengths=(5,), fusers=FEW, draws=3, resamples=20)
    selection = select_tracks(watched, make_trackset(classes=4, tracks=3, frames=8), "all")
    evaluation = evaluate(watched, selection, options, tmp_path, Silent())
    assert {regime: len(label) for regime, label in evaluation.labels.items()} == {"clean": 12, "hard": 36}
    own = [r for r in evaluation.comparisons if r["fuser"] == "pool"]
    assert own and all(r["nll_over_pool"] == 1 and r["nll_over_pool_interval"] == [1, 1] for r in own)
    assert evaluation.ood == []  # nothing outside was given
    single = [
        evaluate(watched, selection, replace(options, draws=1, seed=seed), tmp_path, Silent())
        for seed in options.seeds("hard")
    ]
    for position, record in enumerate(evaluation.results):
        parts = [own.results[position] for own in single]
        wanted = np.mean([own["nll"] for own in parts]) if record["regime"] == "hard" else parts[0]["nll"]
        assert record["nll"] == pytest.approx(wanted)


def test_safety_is_told_of_every_fuser_and_regime_where_asked_for(watched, tmp_path):
    tracks = make_trackset(classes=4, tracks=3, frames=8)
    options = Options(regimes=("clean",), lengths=(5,), fusers=FEW, draws=1, resamples=20, safety=True)
    evaluation = evaluate(watched, select_tracks(watched, tracks, "all"), options, tmp_path, Silent())
    found = {r["fuser"]: r for r in evaluation.safety}
    assert set(found) == set(FEW)
    assert found["mean_pmf"]["certainty_rise"] == pytest.approx(0.0, abs=1e-12)
    json.dumps(evaluation.safety)


def test_the_accuracy_of_single_frames_counts_every_frame_of_every_draw(watched, tmp_path):
    tracks = make_trackset(classes=4, tracks=3, frames=8)
    options = Options(regimes=("clean", "hard"), lengths=(5,), fusers=("mean_pmf",), draws=2, resamples=20)
    evaluation = evaluate(watched, select_tracks(watched, tracks, "all"), options, tmp_path, Silent())
    found = {(r["regime"], r["C"]): r for r in evaluation.single_frame}
    assert set(found) == {(regime, count) for regime in ("clean", "hard") for count in (1, 2)}
    classify, right = Classifier(watched), []
    for seed in options.seeds("hard"):
        views = views_of_tracks(
            classify, tracks, watched.input_size, watched.crop_margin, regimes=("hard",), seed=seed, longest=5
        )
        mean = softmax(views.logits.astype(float)).mean(axis=2)  # [tracks, five frames, classes]
        right.append(mean.argmax(axis=2) == views.label[:, None])
    assert found["hard", 2]["accuracy"] == pytest.approx(np.mean(right))
    low, high = found["hard", 2]["accuracy_interval"]
    assert low <= found["hard", 2]["accuracy"] <= high


FRAMES, DRAWS, CLASSES = 10, 3, 12


def test_memory_grows_by_the_network_outputs_and_the_scores_of_each_track(tmp_path):
    bundle = tiny_bundle(classes=CLASSES, networks=3, width=12, default_fuser="pool")
    options = Options(
        regimes=("hard", "mixed"),
        lengths=(1, FRAMES),
        fusers=("pool", "last", "ella"),
        draws=DRAWS,
        networks=(3,),
        resamples=10,
    )

    def peak(tracks_of_a_class):
        tracks = make_trackset(classes=CLASSES, tracks=tracks_of_a_class, frames=FRAMES)
        selection = select_tracks(bundle, tracks, "all")
        evaluate(bundle, selection, options, tmp_path, Silent())  # fills the cache of network outputs
        tracemalloc.start()
        evaluate(bundle, selection, options, tmp_path, Silent())
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    few, many = 3, 7  # tracks of a class
    assert few * CLASSES * DRAWS > 2 * CHUNK
    posterior = bundle.posterior()
    outputs = FRAMES * posterior.networks * (posterior.classes + posterior.features) * np.float32().nbytes
    lengths = len(options.lengths)
    scores = len(options.fusers) * lengths * len(fields(TrackScores)) * 8 + lengths * CLASSES * 8
    scores *= len(options.regimes)
    per_track = (peak(many) - peak(few)) / ((many - few) * CLASSES * DRAWS)
    # some scores stand there twice, while they are joined out of the chunks' own
    assert per_track < 1.25 * outputs + 1.5 * scores


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Images of the bundle's classes and of one more, as a user would keep them."""
    root = tmp_path_factory.mktemp("signs")
    for track in make_trackset(classes=5, tracks=3, frames=6).tracks:
        folder = root / f"class {track.label}"
        folder.mkdir(exist_ok=True)
        for number, frame in enumerate(track.frames):
            write_ppm(folder / f"{track.id[-1]}_{number}.ppm", frame.image)
    return root


def run_verb(bundle, folders, tmp_path, *more):
    save_bundle(bundle, tmp_path / "tiny.safetensors")
    words = ["evaluate", str(tmp_path / "tiny.safetensors"), "--dataset", "folders", "--root", str(folders)]
    words += ["--lengths", "1,5", "--fusers", ",".join(FEW), "--resamples", "20", "--draws", "1"]
    words += ["--cache", str(tmp_path)]
    return main([*words, *more])


def test_the_verb_writes_a_table_json_and_figures(watched, folders, tmp_path, capsys):
    out, plots = tmp_path / "scores.json", tmp_path / "figures"
    assert (
        run_verb(watched, folders, tmp_path, "--regimes", "hard", "--json", str(out), "--plots", str(plots))
        == 0
    )
    document = json.loads(out.read_text())
    assert {"results", "ood", "switch", "default_fuser", "tracks", "bundle", "command"} <= set(document)
    assert (document["tracks"], document["outside_tracks"]) == (12, 3)
    table = " ".join(capsys.readouterr().out.split())
    assert "pool *" in table
    assert "L of 3 and more" in table, "the longest is 5"
    assert {p.name for p in plots.iterdir()} >= {
        "against-length.png",
        "reliability-hard.png",
        "detection-hard.png",
    }


def test_json_on_standard_output_is_nothing_but_json(watched, folders, tmp_path, capsys):
    assert run_verb(watched, folders, tmp_path, "--json", "-", "--regimes", "clean") == 0
    assert json.loads(capsys.readouterr().out)["default_fuser"] == "pool"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--regimes", "foggy"], "foggy"),
        (["--lengths", "ten"], "ten"),
        (["--networks", "9"], "9"),
        (["--fusers", "magic"], "magic"),
        (["--fusers", "pool,Relaibility"], "did you mean 'reliability'?"),
        (["--split", "test"], "--split all"),
        (["--ood-root", "somewhere"], "--ood-dataset"),
        (["--json", "no/such/folder/x.json"], "--json"),
        (["--draws", "0"], "--draws"),
    ],
)
def test_a_wrong_word_is_answered_with_one_sentence_that_names_it(
    watched, folders, tmp_path, capsys, words, named
):
    assert run_verb(watched, folders, tmp_path, *words) == 1
    complaint = capsys.readouterr().err.strip()
    assert named in complaint and "\n" not in complaint


def test_whoever_says_all_may_bring_a_part_of_a_data_set(watched, tmp_path, capsys):
    """Otherwise a lost folder would make test tracks of training tracks."""
    part = write_gtsrb(tmp_path / "GTSRB", tracks=2, frames=6)
    shutil.rmtree(part / "00042")
    known = watched.classes
    bundle = replace(watched, meta=replace(watched.meta, class_names=tuple(GTSRB_NAMES[:known])))
    words = ("--dataset", "gtsrb", "--regimes", "clean", "--json", str(tmp_path / "scores.json"))
    assert run_verb(bundle, part, tmp_path, *words) == 1
    assert "partial=true" in capsys.readouterr().err
    assert run_verb(bundle, part, tmp_path, *words, "--split", "all") == 0
    document = json.loads((tmp_path / "scores.json").read_text())
    assert (document["tracks"], document["outside_tracks"]) == (2 * known, 2 * (42 - known))
