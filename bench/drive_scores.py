"""Scores of whole drives: how right, how surely wrong and why, how late after a change, how often unknown."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from bench.drive_runs import FAR, DriveViews, Told
from lla_fusion_ros.types.metrics import LOWEST_PROBABILITY, accuracy, ece
from lla_fusion_ros.warnings.result import REASONS

SURE = 0.9
CAUSES = ("stale", "mixed track", "join", "far", "other")
PARTS = ("all", "lights", "signs")  # of known objects: all, those whose class changes, the others
SIZES = (FAR, 20.0, 32.0)  # sides of boxes in pixels between which rates are told
ANY = "any warning"
NEVER = 10**6  # frames until a new state leads that never does
MOMENT = 0.05  # seconds within which frames of several cameras are of one moment
DRAWS = 2000  # of the bootstrap over objects


@dataclass(frozen=True)
class Rows:
    """What was shown in all drives, with the truth, in the order of each drive; all [n].

    Attributes:
        object: a number over all drives.
        label: the true class, -1 of unknown objects.
        changing: whether that is one that changes under one id.
        told: beside these; `track` is a number over all drives.
        stale: whether what is shown is an earlier state of the object.
    """

    drive: np.ndarray
    object: np.ndarray
    stamp: np.ndarray
    label: np.ndarray
    size: np.ndarray
    changing: np.ndarray
    stale: np.ndarray
    told: Told

    def part(self, name: str) -> np.ndarray:
        """[n] bool"""
        chosen = {"all": np.ones(len(self.label), bool), "lights": self.changing, "signs": ~self.changing}
        return (self.label >= 0) & chosen[name]

    @property
    def right(self) -> np.ndarray:
        return self.told.top == self.label

    @property
    def loss(self) -> np.ndarray:
        """The negative log-likelihood of each; of unknown objects it means nothing."""
        return np.asarray(-np.log(np.maximum(self.told.truth, LOWEST_PROBABILITY)))


def rows_of(
    drives: Sequence[DriveViews], told: Sequence[Told], class_names: Sequence[str], changing: np.ndarray
) -> Rows:
    """All drives in one table.

    Args:
        changing: the classes that change under one id.   [classes] bool
    """
    numbers = {name: number for number, name in enumerate(class_names)}
    parts: dict[str, list[np.ndarray]] = defaultdict(list)
    for number, (drive, own) in enumerate(zip(drives, told, strict=True)):
        box = own.box.astype(int)
        labels = np.array([numbers.get(name, -1) for name in drive.names.tolist()], int)[box]
        objects = drive.objects[box]
        before: dict[str, list[int]] = defaultdict(list)  # states of the object so far, the newest last
        stale = np.zeros(len(box), bool)
        for row, (thing, label, top) in enumerate(
            zip(objects.tolist(), labels.tolist(), own.top.tolist(), strict=True)
        ):
            if not before[thing] or before[thing][-1] != label:
                before[thing].append(label)
            stale[row] = top != label and top in before[thing][:-1]
        parts["drive"].append(np.full(len(box), number))
        parts["object"].append(np.array([f"{number}/{thing}" for thing in objects], str))
        parts["track"].append(np.array([f"{number}/{track}" for track in own.track], str))
        parts["stamp"].append(drive.stamp[drive.frame[box]])
        parts["label"].append(labels)
        parts["size"].append(drive.sizes[box])
        parts["changing"].append((labels >= 0) & changing[labels])
        parts["stale"].append(stale)
        for each in fields(Told):
            if each.name != "track":
                parts[each.name].append(getattr(own, each.name))
    column = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    for name in ("object", "track"):
        column[name] = np.unique(column[name], return_inverse=True)[1]
    whole = Told(**{each.name: column.pop(each.name) for each in fields(Told)})
    return Rows(**column, told=whole)


def rule_scores(rows: Rows, part: str) -> dict[str, Any]:
    """Of one rule; `sure_wrong` are frames shown at SURE or more, by cause."""
    chosen = rows.part(part)
    pairs = np.stack([rows.told.truth, rows.told.rival], axis=1)[chosen]
    label = np.zeros(len(pairs), int)
    newest = {track: place for place, track in enumerate(rows.told.track[chosen].tolist())}
    causes = Counter(_causes(rows)[chosen & ~rows.right & (rows.told.p >= SURE)].tolist())
    return {
        "views": len(pairs),
        "accuracy": accuracy(pairs, label),
        "nll": float(rows.loss[chosen].mean()),
        "ece": ece(pairs, label),
        "last_accuracy": float(rows.right[chosen][list(newest.values())].mean()),
        "sure_wrong": {cause: causes[cause] for cause in CAUSES},
    }


def _causes(rows: Rows) -> np.ndarray:
    """The likeliest reason of a wrong frame, the first that fits.  [n] str"""
    told = rows.told
    return np.select([rows.stale, told.mixed, told.joined, told.far], CAUSES[:4], CAUSES[4])


def lags(rows: Rows) -> dict[str, Any]:
    """How many moments of an object after its change the new state leads.

    A moment at which one camera sees it before the change and the next one after it counts as before.
    Attributes of the record: `first`, `second`: share of changes in which it leads at the first moment, and
    by the second; `stale`: moments a change at which an old state stands at SURE or more.
    """
    found, stale = [], 0
    for thing in np.unique(rows.object[rows.changing]):
        own = np.flatnonzero(rows.object == thing)
        first = np.concatenate([[True], np.diff(rows.stamp[own]) > MOMENT * 1e9])
        moments = np.split(own, np.flatnonzero(first)[1:])
        states = [int(rows.label[moment[0]]) for moment in moments]
        stale += sum(bool((rows.stale & (rows.told.p >= SURE))[moment].any()) for moment in moments)
        begins = [at for at in range(1, len(states)) if states[at] != states[at - 1]]
        for begin, end in zip(begins, [*begins[1:], len(states)], strict=False):
            leads = [bool(rows.right[moment[-1]]) for moment in moments[begin:end]]
            found.append(leads.index(True) if True in leads else NEVER)
    lag = np.array(found)
    return {
        "changes": len(lag),
        "first": float((lag == 0).mean()) if len(lag) else None,
        "second": float((lag <= 1).mean()) if len(lag) else None,
        "stale": stale / len(lag) if len(lag) else None,
    }


def difference(rows: Rows, other: Rows, part: str) -> dict[str, Any]:
    """Mean NLL over that of `other`, with a 95% interval over objects."""
    chosen = rows.part(part)
    things = np.unique(rows.object[chosen], return_inverse=True)[1]
    gap = np.bincount(things, (rows.loss - other.loss)[chosen])
    count = np.bincount(things)
    drawn = np.random.default_rng(0).integers(0, len(count), (DRAWS, len(count)))
    low, high = np.quantile(gap[drawn].sum(axis=1) / count[drawn].sum(axis=1), (0.025, 0.975)).tolist()
    return {
        "objects": len(count),
        "nll_difference": float(gap.sum() / count.sum()),
        "interval": [low, high],
        "ratio": float(rows.loss[chosen].sum() / other.loss[chosen].sum()),
    }


def warned(rows: Rows) -> list[dict[str, Any]]:
    """By kind of object and size of the box: of each reason that was given, the shares of objects that ever
    had it, and of views."""
    edges = (0.0, *SIZES, np.inf)
    sizes = [(0.0, np.inf), (FAR, np.inf), *zip(edges, edges[1:], strict=False)]
    records = []
    for kind, of_kind in (("ordinary", rows.label >= 0), ("unknown", rows.label < 0)):
        for low, high in sizes:
            own = of_kind & (rows.size >= low) & (rows.size < high)
            things = rows.object[own]
            objects, views = len(np.unique(things)), int(own.sum())
            told = rows.told.raised[own]
            by_reason = {ANY: told.any(axis=1), **dict(zip(REASONS, told.T, strict=True))}
            reasons = {
                reason: [len(np.unique(things[raised])) / objects, int(raised.sum()) / views]
                for reason, raised in by_reason.items()
                if raised.any()
            }
            about = {"kind": kind, "size": _named(low, high), "objects": objects, "views": views}
            records.append({**about, "reasons": reasons})
    return records


def _named(low: float, high: float) -> str:
    """Sides from one to the other."""
    if high < np.inf:
        return f"{low:g}-{high:g}" if low else f"< {high:g}"
    return f">= {low:g}" if low else "any"


def all_scores(
    tables: Mapping[tuple[str, str], Rows], single: str, alone: str, defaults: Mapping[str, str]
) -> dict[str, list[dict[str, Any]]]:
    """The records of every way and rule.

    Args:
        tables: by way and rule.
        single, alone: names of single frames and of the default of one view among the rules.
        defaults: by way, the default.
    """
    found: dict[str, list[dict[str, Any]]] = {"rules": [], "lag": [], "against": [], "warned": []}
    for (way, rule), rows in tables.items():
        base, one_view = tables[way, single], tables[way, alone]
        for part in PARTS:
            if rows.part(part).any():
                scores = rule_scores(rows, part)
                scores["of_single"] = scores["nll"] / float(base.loss[base.part(part)].mean())
                scores["of_one_view"] = scores["nll"] / float(one_view.loss[one_view.part(part)].mean())
                default = rule == defaults[way]
                found["rules"].append({"way": way, "rule": rule, "part": part, "default": default, **scores})
        found["lag"].append({"way": way, "rule": rule, **lags(rows)})
        if rule == defaults[way]:
            found["against"] += [
                {"way": way, "rule": other, "part": part, **difference(rows, tables[way, other], part)}
                for other in (own for at, own in tables if at == way and own != rule)
                for part in PARTS
                if rows.part(part).any()
            ]
            found["warned"] += [{"way": way, **record} for record in warned(rows)]
    return found
