"""The tiny bundle with warnings fitted on tiny tracks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lla_fusion_ros.bundle import Bundle, make_bundle
from lla_fusion_ros.lab.calibration.collect import views_of_tracks
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.warnings.fit import fit_warnings
from support.tiny_bundle import tiny_bundle
from support.tiny_datasets import make_trackset


def watched_bundle() -> Bundle:
    """Its default fuser is `pool`, so that there is one to compare with."""
    plain = tiny_bundle()
    classify = Classifier(plain)
    size, margin = plain.input_size, plain.crop_margin
    inside = views_of_tracks(classify, make_trackset(classes=4, tracks=6, frames=24), size, margin)
    strange = make_trackset(classes=4, tracks=4, frames=24, seed=9)
    outside = views_of_tracks(classify, strange, size, margin, seed=3)
    outside = replace(outside, label=np.full(len(outside), -1))
    arrays, record = fit_warnings(plain.posterior(), inside, outside).to_parts()
    meta = replace(plain.meta, warnings=record, default_fuser="pool")
    return make_bundle(meta, plain.members(), plain.posterior(), arrays)
