"""Two fleets of the same bags, another model, fuser or setting: what changed, for better or worse.

Objects are paired by the content of their bag and their id; bags are read one after the other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lla_fusion_ros.fleet import tables
from lla_fusion_ros.fleet.folder import Record, read_fleet_file, read_records
from lla_fusion_ros.fleet.object_scores import LESS_IS_BETTER, METRICS, contributions, ece_of_bins, ratio
from lla_fusion_ros.fleet.plan import BAGS_FOLDER, PICTURES
from lla_fusion_ros.types.errors import InputError

MOST_CHANGED = 1000  # objects that are listed, those with the largest change
BAGS_FOR_INTERVALS = 10  # with fewer bags, objects are drawn again in place of bags
_RESAMPLES, _AT_ONCE = 1000, 100
_LIMIT = re.compile(r"\s*(?P<name>\w+)\s*(?P<sign>[<>])\s*(?P<value>[+-]?\d*\.?\d+)\s*(?P<unit>%?)\s*")


@dataclass(frozen=True, slots=True)
class Difference:
    """A number of both fleets; the interval covers 95% of what drawing the bags (or objects) again gives.

    Attributes:
        change: b - a; relative: as a share of a, None where a is 0.
    """

    name: str
    a: float
    b: float
    change: float
    low: float
    high: float
    relative: float | None

    @property
    def verdict(self) -> str:
        """better, worse, or empty where the interval holds 0 or neither is better."""
        if self.low <= 0 <= self.high or self.name in ("warned", "changes", "entropy", "other_class"):
            return ""
        return "better" if (self.change < 0) == (self.name in LESS_IS_BETTER) else "worse"


@dataclass(slots=True)
class Comparison:
    """Attributes:
    drawn: what the intervals draw again, "bags" or "objects".
    changed: objects of another class or other warnings, those with the largest change first.
    """

    a: str
    b: str
    settings: list[str]
    bags: int = 0
    objects: int = 0
    drawn: str = "bags"
    only_a: dict[str, int] = field(default_factory=dict)  # bags and objects
    only_b: dict[str, int] = field(default_factory=dict)
    other_class: int = 0
    warnings_gained: dict[str, int] = field(default_factory=dict)
    warnings_lost: dict[str, int] = field(default_factory=dict)
    moves: list[dict[str, Any]] = field(default_factory=list)  # from class, to class, objects
    differences: list[Difference] = field(default_factory=list)
    changed: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def compare_fleets(a: Path, b: Path) -> Comparison:
    """Read both; refused where they have no bag in common."""
    plans = [read_fleet_file(fleet)["plan"] for fleet in (a, b)]
    found = [{record["digest"]: record for record in read_records(fleet)} for fleet in (a, b)]
    both = sorted(found[0].keys() & found[1].keys(), key=lambda digest: found[0][digest]["name"])
    if not both:
        raise InputError(f"'{a}' and '{b}' have no bag in common")
    result = Comparison(str(a), str(b), list(_changed_settings(*plans)), len(both))
    result.only_a["bags"], result.only_b["bags"] = (len(own) - len(both) for own in found)
    result.only_a["objects"] = result.only_b["objects"] = 0
    names = [plan["classes"] for plan in plans]
    sums: list[np.ndarray] = []  # [objects or 1, metrics and one, 2, fleets]
    moves: Counter[tuple[str, str]] = Counter()
    gained: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for digest in both:
        folders = [
            fleet / BAGS_FOLDER / own[digest]["name"] for fleet, own in zip((a, b), found, strict=True)
        ]
        old, new = (tables.read(folder / tables.OBJECTS) for folder in folders)
        old, new = _pair(old, new, result)
        result.objects += len(old)
        rows = list(_changes(old.to_pylist(), new.to_pylist(), names, folders))
        for row in rows:
            gained.update(set(row["reasons_b"]) - set(row["reasons_a"]))
            lost.update(set(row["reasons_a"]) - set(row["reasons_b"]))
            if row["class_a"] != row["class_b"]:
                moves[row["class_a"], row["class_b"]] += 1
        result.changed = _largest([*result.changed, *rows])
        own = _sums(old, new)
        sums.append(own.sum(axis=0, keepdims=True) if len(both) >= BAGS_FOR_INTERVALS else own)
    result.other_class = moves.total()
    result.warnings_gained, result.warnings_lost = dict(sorted(gained.items())), dict(sorted(lost.items()))
    result.moves = [{"from": old, "to": new, "objects": n} for (old, new), n in moves.most_common()]
    result.drawn = "bags" if len(both) >= BAGS_FOR_INTERVALS else "objects"
    bins = [np.array([_bins(own[digest]) for digest in both]) for own in found]  # each [bags, bins, 3]
    result.differences = _differences(np.concatenate(sums), bins)
    return result


def _changed_settings(a: Any, b: Any, name: str = "") -> Iterable[str]:
    """What the two plans do not have in common."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted({*a, *b}):
            yield from _changed_settings(a.get(key), b.get(key), key)
    elif a != b:
        yield f"{name}: {str(a)[:60]} → {str(b)[:60]}"


def _pair(a: pa.Table, b: pa.Table, result: Comparison) -> tuple[pa.Table, pa.Table]:
    """The rows of objects that both have, in the same order."""
    places = [{name: row for row, name in enumerate(table["object"].to_pylist())} for table in (a, b)]
    both = [name for name in places[0] if name in places[1]]
    result.only_a["objects"] += len(a) - len(both)
    result.only_b["objects"] += len(b) - len(both)
    return a.take([places[0][name] for name in both]), b.take([places[1][name] for name in both])


def _changes(
    a: Sequence[dict], b: Sequence[dict], names: Sequence[Sequence[str]], folders: Sequence[Path]
) -> Iterable[dict[str, Any]]:
    for old, new in zip(a, b, strict=True):
        if old["fused_class"] == new["fused_class"] and old["reasons"] == new["reasons"]:
            continue
        pictures = [
            f / PICTURES / o["picture"] for f, o in zip(folders, (old, new), strict=True) if o["picture"]
        ]
        yield {
            "bag": old["bag"],
            "object": old["object"],
            "views": new["views"],
            "class_a": old["fused_class"],
            "class_b": new["fused_class"],
            "p_a": old["fused_p"],
            "p_b": new["fused_p"],
            "moved": _moved(old["pmf"], new["pmf"], names),
            "reasons_a": old["reasons"],
            "reasons_b": new["reasons"],
            "truth": old["truth"],
            "outside": old["outside"],
            "picture": str(pictures[0]) if pictures else None,
        }


def _moved(a: Sequence[float], b: Sequence[float], names: Sequence[Sequence[str]]) -> float:
    """How much probability went to other classes: the total variation distance, 0 to 1."""
    old, new = dict(zip(names[0], a, strict=True)), dict(zip(names[1], b, strict=True))
    return sum(abs(old.get(name, 0.0) - new.get(name, 0.0)) for name in {**old, **new}) / 2


def _largest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def order(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["class_a"] == row["class_b"], -row["moved"], row["bag"], row["object"]

    return sorted(rows, key=order)[:MOST_CHANGED]


def _sums(a: pa.Table, b: pa.Table) -> np.ndarray:
    """Of every pair of objects.   [objects, metrics and one, 2, fleets]"""
    other = np.array(a["fused_class"].to_pylist(), object) != np.array(b["fused_class"].to_pylist(), object)
    ones = np.ones(len(a))
    columns = [np.stack([share, ones], axis=-1)[:, None] for share in (0 * ones, other.astype(float))]
    return np.stack(
        [np.concatenate([contributions(t), c], axis=1) for t, c in zip((a, b), columns, strict=True)], axis=-1
    )


def _bins(record: Record) -> np.ndarray:
    from lla_fusion_ros.types.metrics import ECE_BINS

    return np.asarray(record.get("bins", np.zeros((ECE_BINS, 3))), float)


def _differences(sums: np.ndarray, bins: Sequence[np.ndarray]) -> list[Difference]:
    """All numbers that both fleets have."""
    drawn = np.concatenate(list(_draws(sums)))  # [resamples, metrics and one, fleets]
    with np.errstate(invalid="ignore", divide="ignore"):
        total = sums.sum(axis=0)
        values = total[:, 0] / total[:, 1]
    found = [
        _difference(name, values[row, 0], values[row, 1], drawn[:, row, 1] - drawn[:, row, 0])
        for row, name in enumerate((*METRICS, "other_class"))
        if np.isfinite(values[row]).all()
    ]
    ece = [ece_of_bins(each.sum(axis=0)) for each in bins]
    if ece[0] is not None and ece[1] is not None:
        again = np.array(list(_ece_draws(bins)))
        found.insert(2, _difference("ece", ece[0], ece[1], again))
    return found


def _draws(sums: np.ndarray) -> Iterable[np.ndarray]:
    """The ratios when the units (first axis) are drawn again with replacement."""
    rng = np.random.default_rng(0)
    flat = sums.reshape(len(sums), -1)
    for _ in range(0, _RESAMPLES, _AT_ONCE):
        weights = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=_AT_ONCE)
        total = (weights @ flat).reshape(_AT_ONCE, *sums.shape[1:])
        with np.errstate(invalid="ignore", divide="ignore"):
            yield total[:, :, 0] / total[:, :, 1]


def _ece_draws(bins: Sequence[np.ndarray]) -> Iterable[float]:
    rng = np.random.default_rng(0)
    for _ in range(_RESAMPLES):
        rows = rng.integers(len(bins[0]), size=len(bins[0]))
        old, new = (ece_of_bins(each[rows].sum(axis=0)) for each in bins)
        if old is not None and new is not None:
            yield new - old


def _difference(name: str, a: float, b: float, drawn: np.ndarray) -> Difference:
    drawn = drawn[np.isfinite(drawn)]
    low, high = np.quantile(drawn, [0.025, 0.975]) if len(drawn) else (np.nan, np.nan)
    return Difference(name, float(a), float(b), float(b - a), float(low), float(high), ratio(b - a, a))


@dataclass(frozen=True, slots=True)
class Limit:
    """`nll>+2%`: too much where B's number is more than 2% above A's; without % the difference itself."""

    text: str
    name: str
    above: bool
    value: float
    relative: bool

    def broken_by(self, differences: Sequence[Difference]) -> str:
        """A sentence, empty where the limit holds."""
        found = next((each for each in differences if each.name == self.name), None)
        if found is None:
            return f"{self.text}: the fleets do not have this number; is there a truth?"
        change = found.relative if self.relative else found.change
        if change is None:  # from 0 to anything is beyond every share
            change = np.copysign(np.inf, found.change) if found.change else 0.0
        if (change <= self.value) if self.above else (change >= self.value):
            return ""
        shown = f"{change:+.2%}" if self.relative else f"{change:+.4g}"
        return f"{self.text}: {self.name} went from {found.a:.4g} to {found.b:.4g} ({shown})"


def read_limit(text: str) -> Limit:
    known = (*METRICS, "ece", "other_class")
    match = _LIMIT.fullmatch(text)
    if match is None or match["name"] not in known:
        raise InputError(
            f"--fail-if {text!r}: expected NAME>VALUE or NAME<VALUE, for example 'nll>+2%' or "
            f"'accuracy<-0.005', with a name out of {', '.join(known)}"
        )
    relative = match["unit"] == "%"
    value = float(match["value"]) / (100 if relative else 1)
    return Limit(text.strip(), match["name"], match["sign"] == ">", value, relative)
