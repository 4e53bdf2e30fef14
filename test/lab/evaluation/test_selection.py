"""Which tracks are scored."""

from dataclasses import replace

import pytest

from lla_fusion_ros.lab.datasets import split_tracks
from lla_fusion_ros.lab.evaluation.selection import all_outside, select_tracks
from lla_fusion_ros.types.errors import InputError
from support.tiny_bundle import tiny_bundle
from support.tiny_datasets import make_trackset


def bundle_for(class_names, **dataset):
    bundle = tiny_bundle(classes=len(class_names))
    return replace(bundle, meta=replace(bundle.meta, class_names=tuple(class_names), dataset=dataset))


def test_classes_are_found_by_name_and_the_others_are_outside():
    bundle = bundle_for(["class 2", "something else", "class 0"])
    selection = select_tracks(bundle, make_trackset(classes=3, tracks=2), "all")
    assert [track.label for track in selection.inside.tracks] == [2, 2, 0, 0]
    assert [track.id for track in selection.outside.tracks] == ["1/0", "1/1"]
    assert {track.label for track in selection.outside.tracks} == {-1}


def test_the_test_split_is_the_one_training_kept_aside():
    tracks = make_trackset(classes=4, tracks=10)
    made = {"digest": tracks.digest, "holdout": [1], "fractions": [0.6, 0.2, 0.2], "split_seed": 7}
    bundle = bundle_for(["class 0", "class 2", "class 3"], **made)
    selection = select_tracks(bundle, tracks, "test")
    splits = split_tracks(tracks, [1], (0.6, 0.2, 0.2), 7)
    assert [t.id for t in selection.inside.tracks] == [t.id for t in splits.test.tracks]
    assert len(selection.outside.tracks) == 10


def test_a_bundle_that_kept_no_test_tracks_says_so():
    tracks = make_trackset(classes=2, tracks=4)
    made = {"digest": tracks.digest, "holdout": [], "fractions": [0.5, 0.5, 0.0], "split_seed": 0}
    with pytest.raises(InputError, match="without keeping test tracks aside"):
        select_tracks(bundle_for(["class 0", "class 1"], **made), tracks, "test")


def test_the_test_split_of_other_data_is_refused():
    bundle = bundle_for(["class 0", "class 1"], digest="1" * 64)
    with pytest.raises(InputError, match="--split all"):
        select_tracks(bundle, make_trackset(), "test")


def test_data_without_a_common_class_is_refused_by_name():
    with pytest.raises(InputError, match="no class of data set 'tiny'"):
        select_tracks(bundle_for(["cat", "dog"]), make_trackset(), "all")


def test_known_classes_do_not_count_as_the_outside_world():
    outside = all_outside(bundle_for(["class 0", "dog"]), make_trackset(classes=3, tracks=2))
    assert [track.id for track in outside.tracks] == ["1/0", "1/1", "2/0", "2/1"]
    with pytest.raises(InputError, match="nothing the bundle was not trained on"):
        all_outside(bundle_for(["class 0", "class 1"]), make_trackset(classes=2))
