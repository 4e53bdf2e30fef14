"""What a user is told of the data before a training run."""

from dataclasses import replace

from lla_fusion_ros.datasets import Frame, Track, TrackSet, split_tracks
from lla_fusion_ros.training.settings import TrainSettings
from lla_fusion_ros.training.summary import cautions, summary
from support.tiny_datasets import make_trackset

SETTINGS = TrainSettings({"name": "road", "size": 16})


def told(tracks: TrackSet, settings: TrainSettings = SETTINGS) -> str:
    return "\n".join(cautions(tracks, split_tracks(tracks), settings))


def test_a_good_data_set_needs_no_caution():
    tracks = make_trackset(classes=2, tracks=200, frames=2)
    assert told(tracks) == ""
    lines = summary(tracks, split_tracks(tracks, holdout=[1]))
    assert lines[0].endswith("1 classes, 400 tracks, 800 images")
    assert "held out 200 tracks (400 images)" in lines[1]


def test_rare_classes_are_named_with_their_number_of_tracks():
    tracks = make_trackset(classes=3, tracks=20, frames=4)
    frame = tracks.tracks[0].frames[0]
    rare = tuple(track for track in tracks.tracks if track.label != 1)
    rare += tuple(Track(f"rare {number}", 1, (frame,)) for number in range(2))
    uneven = replace(tracks, tracks=rare)
    said = told(uneven)
    assert "1 of 3 classes have fewer than 5 tracks ('class 1' 2)" in said
    assert "times the training images" in said and "--balance" in said
    assert "--balance" not in told(uneven, replace(SETTINGS, balance=0.5))
    assert "tracks of a class: 2 ('class 1') to 20" in "\n".join(summary(uneven, split_tracks(uneven)))


def test_calibration_on_few_tracks_and_too_few_images_for_a_batch_are_named():
    said = told(make_trackset(classes=3, tracks=12, frames=2))
    assert "calibration rests on 6 validation tracks" in said
    assert "fewer than one batch of 128" in said


def test_images_that_look_like_one_long_track_are_doubted():
    tracks = make_trackset(classes=2, tracks=30, frames=3)
    one = tuple(track for track in tracks.tracks if track.label == 0)
    frames: tuple[Frame, ...] = tuple(frame for track in tracks.tracks for frame in track.frames)
    long = replace(tracks, tracks=(*one, Track("IMG", 1, frames)))
    assert "class 'class 1' is a single track" in told(long) and "--layout images" in told(long)
