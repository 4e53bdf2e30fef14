"""Network outputs are computed once."""

from dataclasses import fields

import numpy as np
import pytest

import lla_fusion_ros.networks.classifier as classifier
from lla_fusion_ros.bundle import load_bundle, save_bundle
from lla_fusion_ros.lab.evaluation.cached_views import network_outputs
from support.tiny_bundle import tiny_bundle
from support.tiny_datasets import make_trackset


@pytest.fixture
def bundle(tmp_path):
    save_bundle(tiny_bundle(), tmp_path / "tiny.safetensors")
    return load_bundle(tmp_path / "tiny.safetensors")


def outputs(bundle, cache, regime="hard", seed=0, tracks=None, precision="float32"):
    chosen = tracks or make_trackset()
    return network_outputs(bundle, chosen, regime, seed, 3, cache, precision=precision)


def refuse(*args, **kwargs):
    raise AssertionError("the networks ran again")


def test_the_second_run_does_not_touch_the_networks(bundle, tmp_path, monkeypatch):
    first = outputs(bundle, tmp_path)
    monkeypatch.setattr(classifier, "Classifier", refuse)
    second = outputs(bundle, tmp_path)
    for field in fields(first):
        np.testing.assert_array_equal(getattr(first, field.name), getattr(second, field.name))


@pytest.mark.parametrize(
    "change",
    [{"regime": "mixed"}, {"seed": 1}, {"tracks": make_trackset(seed=5, tracks=3)}, {"precision": "int8"}],
)
def test_other_questions_are_not_answered_from_the_cache(bundle, tmp_path, monkeypatch, change):
    outputs(bundle, tmp_path)
    monkeypatch.setattr(classifier, "Classifier", refuse)
    with pytest.raises(AssertionError, match="ran again"):
        outputs(bundle, tmp_path, **change)


def test_a_damaged_cache_file_is_made_again(bundle, tmp_path):
    first = outputs(bundle, tmp_path)
    (file,) = (tmp_path / "views").glob("*.npz")
    file.write_bytes(file.read_bytes()[:200])
    np.testing.assert_array_equal(outputs(bundle, tmp_path).logits, first.logits)


def test_only_the_first_frames_are_used_and_progress_counts_them(bundle, tmp_path):
    seen = []
    tracks = make_trackset()  # 12 tracks of 5 frames
    views = network_outputs(bundle, tracks, "clean", 0, 3, tmp_path, seen.append)
    assert views.logits.shape[:2] == (12, 3)
    assert sum(seen) == 36
