"""How much of the NLL misread objects make: the parts add up, and a fit to the same tracks is no worse."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lla_fusion_ros.calibration.fusers import fit_fuser
from support.tiny_datasets import make_trackset
from support.watched_bundle import watched_bundle

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

import measure_misread  # noqa: E402  # a folder of scripts, not a package


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        bundle = watched_bundle()
        whole = make_trackset(classes=4, tracks=6, frames=3)
        tracks = tuple(
            replace(track, part="test" if number % 3 else "train")
            for number, track in enumerate(whole.tracks)
        )
        tracks = replace(whole, tracks=tracks)
        measured = measure_misread.views(bundle, tracks, "hard", 3, draws=2)
        assert len(measured.tracks) == 2 * 24  # every track once for each draw
        fitted = {
            name: fit_fuser(name, bundle.posterior(), measured, (1, 3)) for name in measure_misread.LEARNED
        }
        bundle = replace(bundle, meta=replace(bundle.meta, fusers=fitted))
        return measure_misread.judged(bundle, tracks, measured, 3, np.array([True, False, False, True]))


def test_misread_objects_and_the_rest_make_the_whole(record):
    assert 0 < record["misread"] < record["tracks"] == 24  # random networks are right by chance only
    assert record["tracks_of_rare"] == 12 and 0 <= record["misread_of_rare"] <= record["misread"]
    for own in record["fusers"].values():
        assert own["nll_misread"] + own["nll_rest"] == pytest.approx(own["nll"])


def test_the_parts_of_the_data_set_are_weighted_by_their_objects(record):
    assert record["parts"] == {"test": 16, "train": 8}
    for own in record["fusers"].values():
        parts = sum(own["nll_of_part"][part] * count for part, count in record["parts"].items())
        assert parts / 24 == pytest.approx(own["nll"])


def test_a_bundle_that_was_fitted_to_these_tracks_gains_nothing_from_that(record):
    for name in measure_misread.LEARNED:
        own = record["fusers"][name]
        assert own["nll_fitted_to_these"] == pytest.approx(own["nll"])


def test_the_record_is_told_in_words(record, capsys):
    measure_misread.show({"file": "x.safetensors", **record})
    told = capsys.readouterr().out
    assert f"x.safetensors: {record['misread']} of 24 objects" in told and "test " in told
