"""Splits by track."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.lab.datasets import recorded_split, split_tracks, thinned
from lla_fusion_ros.types.errors import InputError
from support.tiny_datasets import make_trackset


def ids(trackset):
    return {track.id for track in trackset.tracks}


@settings(max_examples=25, deadline=None)
@given(
    classes=st.integers(2, 5),
    tracks=st.integers(1, 9),
    seed=st.integers(0, 1000),
    held=st.integers(0, 1),
)
def test_every_track_is_in_exactly_one_part(classes, tracks, seed, held):
    trackset = make_trackset(classes, tracks, frames=1, side=4)
    splits = split_tracks(trackset, holdout=range(held), seed=seed)
    parts = [ids(part) for part in (splits.train, splits.validation, splits.test, splits.outside)]
    assert sum(map(len, parts)) == len(trackset.tracks)
    assert set.union(*parts) == ids(trackset)


def test_each_class_is_dealt_out_by_the_fractions_and_three_tracks_to_all_parts():
    splits = split_tracks(make_trackset(classes=3, tracks=20, frames=1), fractions=(0.7, 0.15, 0.15))
    for part, expected in ((splits.train, 14), (splits.validation, 3), (splits.test, 3)):
        labels = [track.label for track in part.tracks]
        assert [labels.count(label) for label in range(3)] == [expected] * 3
    few = split_tracks(make_trackset(classes=2, tracks=3, frames=1))
    for part in (few.train, few.validation, few.test):
        assert {track.label for track in part.tracks} == {0, 1}


def test_held_out_classes_leave_the_list_and_the_others_are_numbered_from_0_again():
    trackset = make_trackset(classes=4, tracks=6, frames=1)
    splits = split_tracks(trackset, holdout=(1,))
    assert splits.train.class_names == ("class 0", "class 2", "class 3")
    assert {track.label for track in splits.outside.tracks} == {-1}
    assert {track.id.split("/")[0] for track in splits.outside.tracks} == {"1"}
    for part in (splits.train, splits.validation, splits.test):
        for track in part.tracks:
            assert part.class_names[track.label] == f"class {track.id.split('/')[0]}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fractions": (0.5, 0.2, 0.2)}, "sum to 1"),
        ({"fractions": (1.2, -0.1, -0.1)}, ">= 0"),
        ({"holdout": (7,)}, r"holdout \[7\] are no classes"),
        ({"holdout": (0, 1, 2)}, "leaves no class"),
    ],
)
def test_impossible_splits_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        split_tracks(make_trackset(frames=1), **options)


def test_holding_a_class_out_leaves_the_split_of_the_others_as_it_is():
    trackset = make_trackset(classes=4, tracks=10, frames=1)
    whole, some = split_tracks(trackset, seed=3), split_tracks(trackset, holdout=(0, 2), seed=3)
    for part in ("train", "validation", "test"):
        assert ids(getattr(some, part)) < ids(getattr(whole, part))
    assert ids(split_tracks(trackset, seed=3).train) == ids(whole.train)
    assert ids(split_tracks(trackset, seed=4).train) != ids(whole.train)


def divided_trackset():
    """Ten tracks of each class, the last four of which come as the data set's own test part."""
    whole = make_trackset(classes=3, tracks=10, frames=1)
    parts = ["train"] * 6 + ["test"] * 4
    tracks = tuple(replace(t, part=part) for t, part in zip(whole.tracks, parts * 3, strict=True))
    return replace(whole, tracks=tracks)


def test_the_own_test_part_is_the_test_and_the_rest_is_split_as_if_it_were_alone():
    divided = divided_trackset()
    splits = split_tracks(divided, holdout=(1,), fractions=(0.8, 0.2, 0.0), seed=3, own_test=True)
    assert {track.part for track in splits.test.tracks} == {"test"}
    assert len(splits.test.tracks) == 8 and len(splits.outside.tracks) == 10
    rest = replace(divided, tracks=tuple(track for track in divided.tracks if track.part == "train"))
    alone = split_tracks(rest, holdout=(1,), fractions=(0.8, 0.2, 0.0), seed=3)
    assert ids(splits.train) == ids(alone.train) and ids(splits.validation) == ids(alone.validation)
    assert {track.label for track in splits.test.tracks} == {0, 1}


def test_an_own_test_part_leaves_no_room_for_another_and_must_be_there():
    with pytest.raises(InputError, match="the third must be 0"):
        split_tracks(divided_trackset(), own_test=True)
    with pytest.raises(InputError, match="without a test part of its own"):
        split_tracks(make_trackset(), fractions=(0.8, 0.2, 0.0), own_test=True)


def test_a_bundles_record_gives_its_split_again():
    record = {"holdout": [], "fractions": [0.6, 0.2, 0.2], "split_seed": 7}
    divided = divided_trackset()
    assert ids(recorded_split(divided, record).test) == ids(
        split_tracks(divided, (), (0.6, 0.2, 0.2), 7).test
    )
    record = {**record, "fractions": [0.8, 0.2, 0.0], "own_test": True}
    assert {track.part for track in recorded_split(divided, record).test.tracks} == {"test"}


def test_a_thinned_split_keeps_every_training_object_and_all_classes_on_their_sides():
    whole = split_tracks(make_trackset(classes=3, tracks=20, frames=10))
    thin = thinned(whole, train_images=90, tracks=6)
    assert [track.id for track in thin.train.tracks] == [track.id for track in whole.train.tracks]
    assert sum(len(track.frames) for track in thin.train.tracks) <= 90
    for part, of in ((thin.validation, whole.validation), (thin.test, whole.test)):
        assert len(part.tracks) == 6 and {track.label for track in part.tracks} == {0, 1, 2}
        assert {track.id for track in part.tracks} <= {track.id for track in of.tracks}
    assert thinned(whole, 10_000, 100) == whole
