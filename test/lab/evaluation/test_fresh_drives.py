"""What the shipped sign world says of whole drives that nobody has seen: the stated rates hold."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.images.crops import Pixels, cut_crops
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.signworld import Conditions, Drive, DriveSettings, Stretch
from lla_fusion_ros.signworld.camera import through_jpeg
from lla_fusion_ros.signworld.scene import place_object
from lla_fusion_ros.signworld.signs import OUTSIDE_KINDS, SIGN_NAMES
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.warnings.flow import rates

DUSK = Stretch(4.0, 8.0, Conditions(light=0.32, blur=1.1, smear=2.0, noise=0.03, jitter=0.05))
PHASES = ((2.0, "red light"), (1.4, "yellow light"), (2.0, "green light"))
STATED = rates(FusionSettings())


def road(seed: int):
    """Signs, an unknown object after every fourth of them, and lights that change while they are in view."""
    rng = np.random.default_rng(seed)
    names = [str(rng.choice(SIGN_NAMES)) for _ in range(18)]
    names[3::5] = [str(name) for name in rng.choice(OUTSIDE_KINDS, len(names[3::5]), replace=False)]
    signs = [place_object(name, f"{i:03d}", 20.0 + 6.5 * i, rng) for i, name in enumerate(names)]
    lights = [
        replace(place_object("red light", f"L{i}", z, rng, right=0.0), phases=PHASES)
        for i, z in enumerate((33.0, 62.0))
    ]
    return tuple(signs + lights)


@pytest.fixture(scope="module")
def tracks():
    """By drive and id: labels and reasons, view by view, and at which views a class change was told."""
    bundle = load_bundle("signworld")
    classify = Classifier(bundle, "cpu")
    seen = defaultdict(lambda: {"labels": [], "reasons": set(), "changed": []})
    for seed in (901, 902, 903):
        settings = DriveSettings(
            seed=seed, duration=9.0, rate=5.0, objects=road(seed), occluded=(), stretches=(DUSK,)
        )
        engine = FusionEngine(bundle)
        for frame in Drive(settings):
            pixels = Pixels(through_jpeg(frame.image, 92), "rgb")
            crops = cut_crops(pixels, frame.boxes, bundle.input_size, bundle.crop_margin)
            result = engine.update(Observation(frame.camera, frame.stamp, frame.ids, classify(crops)))
            for place, verdict in zip(result.kept, result.verdicts, strict=True):
                track = seen[seed, frame.ids[place]]
                if frame.ids[place] in result.changed:
                    track["changed"].append(len(track["labels"]))
                track["labels"].append(int(frame.labels[place]))
                track["reasons"].update(verdict.reasons)
    return [track for track in seen.values() if len(track["labels"]) >= 3]


def test_known_objects_are_warned_of_no_more_often_than_stated(tracks):
    known = [track for track in tracks if min(track["labels"]) >= 0]
    assert len(known) >= 30
    for reason, rate in STATED.items():
        warned = sum(reason in track["reasons"] for track in known)
        # dusk is one condition: 1.75 times the rate is what any single one may have
        assert warned <= binom.ppf(0.999, len(known), 1.75 * rate), (reason, warned, len(known))


def test_unknown_objects_are_found_though_not_all(tracks):
    unknown = [track for track in tracks if max(track["labels"]) < 0]
    found = [track for track in unknown if track["reasons"] & {"out_of_distribution", "cannot_tell"}]
    assert len(unknown) >= 6 and len(found) > len(unknown) / 3


def test_lights_that_change_are_told_to_and_are_no_identity_switches(tracks):
    told = []
    for track in tracks:
        labels = track["labels"]
        moments = [i for i in range(3, len(labels) - 6) if labels[i] != labels[i - 1]]
        told += [any(moment <= view <= moment + 6 for view in track["changed"]) for moment in moments]
        if moments:
            assert "identity_switch" not in track["reasons"]
    assert len(told) >= 3 and sum(told) > len(told) / 2
