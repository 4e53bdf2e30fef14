"""Parameters set at random while the drive plays."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from std_srvs.srv import Trigger

from faults.outcome import Checks
from faults.registry import fault
from faults.scene import PARAMS, Scene
from faults.stage import PATIENCE
from lla_fusion_ros.ros.node_settings import NODES, is_changeable

VALUES = [0, -1, 3, 10**9, -(2**63), 0.0, 0.3, -5.0, 1e308, float("nan"), float("inf"), "", "pool"]
VALUES += ["camera", "nonsense", "ä" * 1000, True, [1, 2], ["x"], [0.5], [True]]


@fault(
    "150 parameters set at random, known and unknown ones, to values of all types",
    "each is taken, or refused with a sentence; with the defaults set back, the drive goes on as ever",
)
def random_parameters(scene: Scene, checks: Checks) -> int:
    rng = np.random.default_rng(4)
    known = [(group, field) for group, _ in NODES["perception"] for field in fields(group)]
    names = [field.name for _, field in known] + ["cameras", "left.time_offset", "no_such_parameter", "ä"]
    refused, count = 0, max(scene.times(150), 100)
    for number in range(count):
        name = names[rng.integers(len(names))]
        value = VALUES[rng.integers(len(VALUES))]
        result = scene.set_parameter("perception", name, value)
        checks.that(result.successful or result.reason, f"{name} = {value!r} was refused without a word")
        refused += not result.successful
        if number % 3 == 0:
            scene.flow([scene.road.next()])
    checks.that(0 < refused < count, f"{refused} of {count} refused")
    changeable = [field for group, field in known if is_changeable(group, field.name)]
    for last in (False, True):  # twice, since some depend on each other
        for field in changeable:
            result = scene.set_parameter("perception", field.name, PARAMS.get(field.name, field.default))
            checks.that(result.successful or not last, f"{field.name} cannot be set back: {result.reason}")
    scene.graph.call(scene.vehicle, Trigger, "/perception/reset", Trigger.Request(), PATIENCE)
    scene.forget_answers()
    scene.drive(4)
    return count
