"""Evaluation keeps what the networks say of one regime, and a few numbers per track."""

import tracemalloc
from dataclasses import fields

import numpy as np

from lla_fusion_ros.lab.evaluation.evaluate import Options, evaluate
from lla_fusion_ros.lab.evaluation.fused import CHUNK
from lla_fusion_ros.lab.evaluation.selection import select_tracks
from lla_fusion_ros.lab.evaluation.track_scores import TrackScores
from support.tiny_bundle import tiny_bundle
from support.tiny_datasets import make_trackset

FRAMES, DRAWS, CLASSES = 10, 3, 12


class Silent:
    def crops(self, count):
        pass

    def stage(self, name):
        pass


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
