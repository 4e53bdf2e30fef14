"""The faces of signs and other objects."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lla_fusion_ros.signworld import CLASS_NAMES, OUTSIDE_KINDS
from lla_fusion_ros.signworld.canvas import Canvas, write
from lla_fusion_ros.signworld.scenery import draw_scenery
from lla_fusion_ros.signworld.signs import face_of

ALL = (*CLASS_NAMES, *OUTSIDE_KINDS)


def test_there_are_enough_classes_and_enough_things_outside_them():
    assert len(set(CLASS_NAMES)) >= 12
    assert len(set(OUTSIDE_KINDS)) >= 4
    assert not set(CLASS_NAMES) & set(OUTSIDE_KINDS)


@pytest.mark.parametrize("name", ALL)
def test_a_face_is_solid_inside_clear_outside_and_smooth_between(name):
    face = face_of(name)
    alpha = face[..., 3]
    assert face.shape == (192, 192, 4)
    assert alpha[96, 96] == 255
    assert alpha[0, 0] == 0
    assert ((alpha > 0) & (alpha < 255)).any()
    assert (face[..., :3] <= alpha[..., None]).all()  # colours are multiplied by alpha


def test_all_faces_differ_clearly():
    for one, other in itertools.combinations(ALL, 2):
        difference = np.abs(face_of(one).astype(int) - face_of(other)).max(axis=-1) > 60
        assert difference.mean() > 0.01, (one, other)  # 30 and 80 come nearest


@pytest.mark.parametrize("kind", ("tree", "conifer", "bush", "house", "van", "post", "lamp"))
def test_scenery_stands_on_its_lower_edge(kind):
    picture = draw_scenery(kind, np.random.default_rng(0))
    assert picture[-1, :, 3].max() > 100
    assert (picture[..., :3] <= picture[..., 3:]).all()


def test_letters_grow_with_their_height():
    sizes = []
    for height in (0.4, 0.8):
        canvas = Canvas(64)
        write(canvas, "50", (0, 0), height, (255, 255, 255))
        rows = np.flatnonzero(canvas.finish()[..., 3].any(axis=1))
        sizes.append(rows[-1] - rows[0] + 1)
    assert sizes[1] == pytest.approx(2 * sizes[0], abs=3)
    assert sizes[0] == pytest.approx(0.4 * 32, abs=2)
