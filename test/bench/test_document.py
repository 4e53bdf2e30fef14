"""The JSON of the benchmark, the targets and the page made from them."""

from __future__ import annotations

import json

import pytest
import torch

from lla_fusion_ros.bench.fusion import measure_fusion
from lla_fusion_ros.bench.page import performance_page
from lla_fusion_ros.bench.prediction import plain_softmax
from lla_fusion_ros.bench.run import BenchOptions, run_bench, write_document
from lla_fusion_ros.bench.targets import targets
from lla_fusion_ros.bench.workload import random_bundle, random_crops
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.classifier import Classifier
from lla_fusion_ros.errors import LlaFusionError
from lla_fusion_ros.plots.performance import draw_performance
from lla_fusion_ros.resources import find_model


@pytest.fixture(scope="module")
def fusion_records():
    """A measurement as small as it can be, but a real one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lla_fusion_ros.bench.fusion.TRACKS", (1, 10))
        patch.setattr("lla_fusion_ros.bench.fusion.fusers", lambda: ("pool", "ella"))
        return list(measure_fusion(load_bundle(find_model("signworld")), rounds=2, quick=True))


def test_the_plain_network_and_the_classifier_see_the_same_logits():
    bundle = random_bundle(4, 6, networks=2)
    crops = random_crops(3)
    logits = torch.from_numpy(Classifier(bundle, "cpu")(crops).logits)
    torch.testing.assert_close(torch.from_numpy(plain_softmax(bundle)(crops)), logits.softmax(-1))


def test_fusion_records_have_the_fields_that_programs_read(fusion_records):
    wanted = {"fuser", "L", "tracks", "ratio_forward", "ratio_L10", "bytes_per_track", "default"}
    assert all(wanted <= record.keys() for record in fusion_records)
    assert {(r["L"], r["tracks"]) for r in fusion_records if r["default"]} == {
        (length, tracks) for length in (1, 10, 1000) for tracks in (1, 10)
    }
    assert {r["fuser"] for r in fusion_records if not r["default"]} == {"pool", "ella"}


def test_no_track_takes_more_memory_after_a_thousand_views(fusion_records):
    for name in ("pool", "ella"):
        sizes = {r["bytes_per_track"] for r in fusion_records if r["fuser"] == name and not r["default"]}
        assert len(sizes) == 1
    assert len({r["bytes_per_track"] for r in fusion_records if r["default"]}) == 1


def test_a_run_replaces_what_is_in_the_file(tmp_path, monkeypatch):
    file = tmp_path / "bench.json"
    write_document({"fit": [{"N": 1}], "startup": [{"first_fused_class_s": 1.0}]}, file)
    monkeypatch.setattr("lla_fusion_ros.bench.run._records", lambda name, options: iter([{"N": 2}]))
    notes = run_bench(BenchOptions(("fit",)), {}, lambda *_: None, lambda d: write_document(d, file))
    written = json.loads(file.read_text())
    assert notes == [] and written["fit"] == [{"N": 2}] and "startup" not in written
    assert written["measured"]["fit"]["torch_threads"] == 1
    assert written["run"].keys() == {"version", "started"}


def test_the_fit_of_laplace_torch_stands_with_the_other_fits(monkeypatch):
    def records(name, options):
        return iter([{"records": [{"M": 43}], "fit": [{"N": 3}]}] if name == "laplace_torch" else [{"N": 2}])

    monkeypatch.setattr("lla_fusion_ros.bench.run._records", records)
    document: dict = {}
    run_bench(BenchOptions(("fit", "laplace_torch")), document, lambda *_: None, lambda _: None)
    assert document["laplace_torch"] == [{"M": 43}]
    assert sorted(record["N"] for record in document["fit"]) == [2, 3]


def test_a_section_that_cannot_run_is_left_out_with_a_sentence(monkeypatch):
    def fail(name, options):
        raise LlaFusionError("no network here")

    monkeypatch.setattr("lla_fusion_ros.bench.run._records", fail)
    document: dict = {}
    notes = run_bench(BenchOptions(("laplace_torch",)), document, lambda *_: None, lambda _: None)
    assert notes == ["laplace_torch was left out: no network here"] and "laplace_torch" not in document


def test_targets_know_met_missed_and_not_measured():
    record = {"M": 43, "d": 84, "batch": 16, "speedup": 9.0}
    found = {t.text: t.met for t in targets({"laplace_torch": [record], "live": [_live(1, 0)]})}
    assert found["speed against laplace-torch kron, M=43, d=84, batch 16"] is False
    assert found["live, 1× (6 cameras, 10 Hz, 20 objects): dropped frames"] is True
    assert found["replay: views/s against the bare loop, both in int8"] is None


def test_the_page_tells_what_was_measured_and_nothing_else(fusion_records, tmp_path):
    document = {"fusion": fusion_records, "live": [_live(1, 0), _live(2, 7)]}
    page = performance_page(document, "images")
    assert "## Fusion" in page and "## Live" in page and "## Replay" not in page
    assert "performance-cameras.png" in page
    drawn = draw_performance(document, tmp_path)
    assert len(drawn) == 3 and all(file.stat().st_size > 1000 for file in drawn)


def _live(rate, drops):
    return {
        "precision": "auto",
        "rate": float(rate),
        "cameras": 6,
        "drops": drops,
        "p50_ms": 10.0,
        "p95_ms": 20.0,
        "cpu_cores": 0.5,
        "cpu_ratio_plain": 1.1,
    }
