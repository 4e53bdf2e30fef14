"""When tracks are asked about: often in the beginning, together later, never forgotten."""

import numpy as np

from lla_fusion_ros.warnings.watch import PATIENCE, _to_ask


def _asks(views, asked, frames):
    """Let every track be seen in each frame; in which frames each is asked about, by number of its view."""
    views, asked = np.array(views, float), np.array(asked, float)
    found = [[] for _ in views]
    for _ in range(frames):
        views += 1
        about = _to_ask(views, asked)
        asked[about] = views[about]
        for track in about:
            found[track].append(int(views[track]))
    return found


def test_a_track_alone_is_asked_about_ever_more_rarely_but_never_forgotten():
    (asked,) = _asks([0], [0], 20_000)
    assert asked[:12] == [1, 2, 3, 4, 5, 10, 15, 20, 25, 30, 35, 40]
    gaps = np.diff(asked)
    assert gaps.max() == 30 and (gaps[5:10] == 5).all() and (gaps[-100:] == 30).all()


def test_tracks_of_one_frame_fall_into_step():
    together = _asks([0, 6, 13, 27], [0, 5, 11, 24], 200)
    begun = np.array([0, 6, 13, 27])
    frames = [set((np.array(views) - first).tolist()) for views, first in zip(together, begun, strict=True)]
    last = [{frame for frame in each if frame > 150} for each in frames]
    assert len(set.union(*last)) <= 4  # about one frame in 25 asks, for all of them
    for views in together:
        waited = np.diff(views)
        assert (waited <= PATIENCE[np.minimum(views[1:], len(PATIENCE) - 1)]).all()


def test_a_frame_of_nobody_asks_nobody():
    assert len(_to_ask(np.zeros(0), np.zeros(0))) == 0
