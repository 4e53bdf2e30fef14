"""The paper's experiments, on a handful of images."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from lla_fusion_ros.cli.main import main
from lla_fusion_ros.cli.tables import print_paper_tables
from lla_fusion_ros.lab.paper import experiments
from lla_fusion_ros.lab.paper.figures import draw_clouds, draw_sequence
from lla_fusion_ros.lab.paper.methods import fit_methods
from lla_fusion_ros.lab.paper.network_outputs import Images, record
from lla_fusion_ros.lab.paper.reproduce import TABLE_1, TABLE_2, seed_scores, summary
from lla_fusion_ros.networks import build_network
from lla_fusion_ros.types.errors import InputError
from support.tiny_datasets import write_mnist

SMALL = replace(
    experiments.EXPERIMENTS["mnist"],
    networks=3,
    epochs=15,
    validation=60,
    batch=16,
    architecture={"name": "dense", "size": 8, "hidden": [24, 16, 12, 8]},
)


def stripes(count, seed, outside=False):
    """Four classes: a bright row at one of four heights; outside: bright columns."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, count)
    images = rng.normal(60, 35, (count, 8, 8))
    for image, label in zip(images, labels, strict=True):
        image[(slice(None), 2 * label) if outside else 2 * label] += 120
    images = np.clip(images, 0, 255).astype(np.uint8)
    return Images(np.repeat(images[..., None], 3, axis=-1), labels)


def silent(what, done, total):
    pass


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    data = stripes(360, 0), stripes(150, 1), stripes(100, 2, outside=True)
    return record(SMALL, *data, 0, tmp_path_factory.mktemp("cache"), silent)


@pytest.fixture(scope="module")
def methods(recorded):
    return fit_methods(recorded)


def test_every_method_gives_class_distributions_and_learns_the_task(recorded, methods):
    for key, method in methods.items():
        pmf = method.predict(recorded.test)
        assert pmf.shape == ((3 if key in ("temperature_scaling", "lla") else 1), 150, 4)
        np.testing.assert_allclose(pmf.sum(axis=-1), 1.0, atol=1e-6)
        assert (pmf.argmax(axis=-1) == recorded.test.labels).mean() > 0.7, key


def test_the_tables_hold_every_score_beside_the_papers(recorded, methods):
    scores = {seed: seed_scores(recorded, methods) for seed in (0, 1)}
    rows = {row["method"]: row["scores"] for row in summary("mnist", scores, methods)}
    assert rows["fusion"]["accuracy"]["paper"] == TABLE_1["mnist"]["fusion"]["accuracy"]
    assert rows["ella"]["auroc"]["paper"] == TABLE_2["ella"]["auroc"]
    assert rows["ella_mixture"]["nll"]["paper"] is None
    assert rows["fusion"]["accuracy"]["spread"] == 0  # the same ensemble twice
    assert rows["deep_ensemble"]["auroc"]["mean"] > 0.6  # columns are not rows


def test_networks_are_trained_once(recorded, tmp_path):
    data = stripes(360, 0), stripes(150, 1), None
    first = record(SMALL, *data, 3, tmp_path, silent)
    told = []
    second = record(SMALL, *data, 3, tmp_path, lambda *what: told.append(what))
    np.testing.assert_array_equal(first.test.logits, second.test.logits)
    assert told == []
    assert record(replace(SMALL, epochs=1), *data, 3, tmp_path, silent).test.logits.shape == (150, 3, 4)


def test_the_verb_prints_and_writes_the_table(tmp_path, monkeypatch, capsys):
    write_mnist(tmp_path / "mnist", count=120)
    write_mnist(tmp_path / "fashion-mnist", count=40)
    tiny = replace(SMALL, architecture={"name": "dense", "size": 28, "hidden": [8, 8, 8, 6]}, epochs=1)
    monkeypatch.setitem(experiments.EXPERIMENTS, "mnist", tiny)
    out = tmp_path / "mnist.json"
    words = [
        "reproduce",
        "mnist",
        "--root",
        str(tmp_path),
        "--seeds",
        "0",
        "--cache",
        str(tmp_path / "cache"),
    ]
    assert main([*words, "--json", str(out), "--plots", str(tmp_path / "figures")]) == 0
    document = json.loads(out.read_text())
    assert [row["method"] for row in document["table"]][:2] == ["temperature_scaling", "deep_ensemble"]
    assert (tmp_path / "figures" / "evidence-mnist-entropy.png").is_file()
    printed = capsys.readouterr().out
    assert "fusion cross" in printed and "table 2" in printed


def test_the_printed_table_is_whole_on_80_columns(recorded, methods, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    table = summary("mnist", {0: seed_scores(recorded, methods)}, methods)
    print_paper_tables({"table": table, "experiment": "mnist", "networks": 3, "epochs": 15, "seeds": [0]})
    printed = capsys.readouterr().out
    assert "…" not in printed and max(map(len, printed.splitlines())) <= 80
    assert all(word in printed for word in ("acc.", "brier", "paper", "auroc", "scaling", "ensemble"))


def test_a_temperature_on_the_fused_pmf_lowers_its_nll_where_it_was_fitted(recorded, methods):
    plain, scaled = (
        seed_scores(replace(recorded, test=recorded.validation), {key: methods[key]})[key]
        for key in ("fusion", "fusion_scaled")
    )
    assert scaled["nll"] <= plain["nll"] + 1e-6 and scaled["accuracy"] == plain["accuracy"]


def test_the_figures_of_sequences_and_clouds_are_drawn_where_there_are_examples(recorded, tmp_path):
    test, posterior = recorded.test, recorded.posterior.with_temperature(1.0)
    logits = 1.5 * np.eye(4, dtype=np.float32)[test.labels][:, None].repeat(3, axis=1)  # right with p near .6
    logits[np.flatnonzero(test.labels == 0)[3]] = [0, 3, 0, 0]
    made = replace(test, logits=1.4 * logits)
    draw_sequence(posterior, made, 0, "abcd", tmp_path / "sequence.png")
    draw_clouds(posterior, made, "abcd", tmp_path / "clouds.png")
    assert (tmp_path / "sequence.png").stat().st_size > 10_000 < (tmp_path / "clouds.png").stat().st_size
    with pytest.raises(InputError, match="no 6 images of class 1 in a row"):
        draw_sequence(posterior, made, 1, "abcd", tmp_path / "none.png")


def test_a_missing_data_set_is_named_with_the_way_to_get_it(tmp_path, capsys):
    assert main(["reproduce", "cifar10", "--root", str(tmp_path)]) == 1
    assert "get_datasets.py" in capsys.readouterr().err


def test_the_network_for_cifar_takes_its_images_and_gives_as_many_features_as_lenet5():
    network = build_network(experiments.experiment("cifar10").architecture, 10)
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert network.head.in_features == 84
