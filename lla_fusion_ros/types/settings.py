"""What a user may set about fusion. The nodes declare their ROS parameters from these fields."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from lla_fusion_ros.types.errors import InputError

PAIR = "tuple[float, float]"  # the type of a setting of two numbers, as a dataclass names it
PRECISIONS = ("auto", "float32", "float16", "int8")  # of the networks
ENGINES = ("auto", "torch", "onnxruntime")  # where they run
LENGTHS = (1, 3, 5, 10, 20, 30)  # numbers of views L after which tracks are fitted and scored


def setting(
    default: Any, description: str, low: float | None = None, high: float | None = None, choices: tuple = ()
) -> Any:
    """A dataclass field that carries its own manual: description, range or choices."""
    metadata = {"description": description, "low": low, "high": high, "choices": choices}
    return field(default=default, metadata=metadata)


# Settings that had another name until the last release.
RENAMED = {"track_id_scope": "identity"}
HALF_LIFE = "class_half_life"  # accepted until the next release


def hazard_of(half_life: float) -> tuple[float, str]:
    """The `class_hazard` that an old `class_half_life` asks for, and a sentence about it."""
    hazard = min(1.0 / half_life, 100.0) if half_life > 0 else 0.1
    return hazard, f"'{HALF_LIFE}' is no more: {half_life:g} is taken as 'class_hazard' {hazard:g}"


def words(text: str) -> tuple[str, ...]:
    """The names in a setting that lists them, separated by commas or spaces."""
    return tuple(text.replace(",", " ").split())


def check_settings(settings: Any) -> None:
    """Refuse a settings dataclass with a value of another type, out of range or not among the choices."""
    for f in fields(settings):
        value, low, high = getattr(settings, f.name), f.metadata["low"], f.metadata["high"]
        if f.type == PAIR:
            _check_pair(f.name, value, low, high)
            continue
        kind: Any = {"str": str, "int": int, "float": (int, float), "bool": bool}[str(f.type)]
        if not isinstance(value, kind) or (isinstance(value, bool) and f.type != "bool"):
            raise InputError(f"setting '{f.name}' is {value!r}, it must be of type {f.type}")
        if low is not None and not low <= value <= high:
            raise InputError(f"setting '{f.name}' is {value}, it must be in [{low:g}, {high:g}]")
        choices = f.metadata["choices"]
        if choices and value not in choices:
            raise InputError(f"setting '{f.name}' is '{value}', choose one of {', '.join(choices)}")


def _check_pair(name: str, value: Any, low: float, high: float) -> None:
    numbers = isinstance(value, tuple) and all(type(part) in (int, float) for part in value)
    if not numbers or len(value) != 2 or not all(low <= part <= high for part in value):
        raise InputError(f"setting '{name}' is {value!r}, it must be two numbers in [{low:g}, {high:g}]")


@dataclass(frozen=True, slots=True)
class FusionSettings:
    """Settings of the FusionEngine; a value out of range is refused with a sentence that names it."""

    fuser: str = setting("", "fusion rule; empty: the one the model file was calibrated for")
    window: int = setting(
        30,
        "views that the fuser wls keeps of each track; over 3 GiB, or 5 ms for each view, is refused",
        1,
        100,
    )
    max_age: float = setting(600.0, "seconds after which a track starts again; 0: never", 0.0, 86400.0)
    idle_timeout: float = setting(5.0, "seconds without a view after which a track is forgotten", 0.1, 3600.0)
    capacity: int = setting(1000, "most tracks kept; the one not seen for longest goes", 1, 100_000)
    max_lateness: float = setting(0.5, "seconds a frame may be behind the newest and still count", 0.0, 60.0)
    clock_jump: float = setting(
        2.0,
        "seconds a camera's stamps must go back to clear all tracks",
        0.1,
        3600.0,
    )
    warnings: bool = setting(True, "compute warnings")
    min_views: int = setting(3, "views a track needs before it can be called out of distribution", 1, 1000)
    ood_false_alarm: float = setting(
        0.02, "share of ordinary tracks that may be called out of distribution", 0.0005, 0.5
    )
    switch_false_alarm: float = setting(
        0.01, "share of ordinary tracks in which an identity switch may be seen", 0.0005, 0.5
    )
    disagreement_false_alarm: float = setting(
        0.01, "share of ordinary tracks in which cameras may be said to disagree", 0.0005, 0.5
    )
    restart_on_switch: bool = setting(
        True,
        "start a track again when its class or its object has changed; if not, all its views count alike",
    )
    changing_classes: str = setting(
        "",
        "classes that change into each other under one id, such as red light, green light; all: every class; "
        "empty: those that the model file names",
    )
    identity_hazard: float = setting(
        0.0, "chance a second that an id moves to another object; 0: as the model file has it", 0.0, 100.0
    )
    class_hazard: float = setting(
        0.0,
        "chance a second that an object of a changing class changes it; 0: as the model file has it",
        0.0,
        100.0,
    )
    moment: float = setting(
        0.05, "seconds within which frames of several cameras are judged as one moment", 0.0, 1.0
    )

    def __post_init__(self) -> None:
        check_settings(self)
        if self.clock_jump <= self.max_lateness:
            raise InputError(
                f"setting 'clock_jump' ({self.clock_jump:g} s) must be larger than "
                f"'max_lateness' ({self.max_lateness:g} s)"
            )
