"""Classes of one data set that another has nothing like: for testing warnings, never for fitting them."""

from __future__ import annotations

# Belgian signs that Germany lacks. Left out are signs that differ in details only: double bends, speed bump
# ahead, speed limits without their number, the arrow for left or right.
_BELGIAN_NOT_GERMAN = frozenset(
    {
        "cattle",
        "railway crossing with gates",
        "road narrows",
        "road narrows on the left",
        "crossing, give way to the right",
        "give way to oncoming traffic",
        "no bicycles",
        "weight limit",
        "width limit",
        "height limit",
        "no left turn",
        "no right turn",
        "path for pedestrians and bicycles",
        "bicycle path",
        "divided path for bicycles and pedestrians",
        "no parking",
        "no stopping",
        "no parking from 1st to 15th",
        "no parking from 16th to 31st",
        "priority over oncoming traffic",
        "parking",
        "parking for disabled people",
        "parking for cars",
        "parking for lorries",
        "parking for coaches",
        "parking on the verge",
        "residential zone",
        "end of residential zone",
        "one way",
        "dead end",
        "end of works",
        "pedestrian crossing",
        "bicycle crossing",
        "parking this way",
        "speed bump",
        "end of priority road",
    }
)

# (trained on, met): classes of the second; without an entry they are those whose name the first lacks.
STRANGERS = {("gtsrb", "belgiumtsc"): _BELGIAN_NOT_GERMAN}
