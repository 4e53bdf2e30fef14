"""What the networks said of one regime is freed before those of the next are loaded: gigabytes of a run."""

import gc
import weakref

from lla_fusion_ros.lab.evaluation.evaluate import Options, evaluate
from lla_fusion_ros.lab.evaluation.selection import select_tracks
from lla_fusion_ros.types.track_views import TrackViews
from support.tiny_bundle import tiny_bundle
from support.tiny_datasets import make_trackset


class Watch:
    """Hears of stages, in which a regime is scored, and of crops, when the next one is loaded."""

    def __init__(self):
        self.seen, self.kept = {}, set()

    def stage(self, name):
        for views in (each for each in gc.get_objects() if type(each) is TrackViews):
            whole = views.logits if views.logits.base is None else views.logits.base
            self.seen.setdefault(id(whole), (name, weakref.ref(whole)))

    def crops(self, count):
        self.kept |= {name for name, array in self.seen.values() if array() is not None}
        self.seen.clear()


def test_nothing_of_a_regime_is_kept_while_the_next_is_loaded(tmp_path):
    bundle = tiny_bundle(classes=3, networks=2)
    selection = select_tracks(bundle, make_trackset(classes=3, tracks=2, frames=4), "all")
    options = Options(lengths=(1, 4), fusers=("pool", "last"), draws=2, resamples=10)
    watch = Watch()
    evaluate(bundle, selection, options, tmp_path, watch)
    assert any("mixed" in name for name, _ in watch.seen.values()), "the last regime was watched"
    assert watch.kept == set()
