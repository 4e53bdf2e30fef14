"""Scores of a replay against a truth file, for the fuser in use and for others on the same views."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.engine.engine import FusionEngine
from lla_fusion_ros.report.comparison import SINGLE_FRAME, where_not_best
from lla_fusion_ros.report.tracks import reasons_of
from lla_fusion_ros.report.truth import OUTSIDE, Judge, Truth
from lla_fusion_ros.stream.frame_messages import view_pmf
from lla_fusion_ros.stream.frames import FusedFrame
from lla_fusion_ros.stream.perception import FuseStage
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.metrics import Reliability, accuracy, auroc, ece, nll, reliability
from lla_fusion_ros.types.pmf import among_named, entropy
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.tally import Tally
from lla_fusion_ros.warnings.result import CANNOT_TELL, IDENTITY_SWITCH, NOTHING_THERE, OUT_OF_DISTRIBUTION

_SWITCH_SEEN_WITHIN = 10  # views of the track after the id has moved


@dataclass(frozen=True, slots=True)
class FuserScores:
    """Scores over all views of known objects; AUROC of the entropy for telling unknown objects from known.

    Attributes:
        changing, fixed: accuracy and NLL over views of objects whose class changes under one id, and of the
            others; None where there are none of either.
        last_accuracy: share of tracks whose last shown class is right.
        auroc: None where the bag holds no unknown objects, or nothing else.
    """

    fuser: str
    accuracy: float
    nll: float
    ece: float
    auroc: float | None
    last_accuracy: float
    views: int
    changing: tuple[float, float] | None = None
    fixed: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class WarningScores:
    """How the warnings did, counted in tracks.

    Attributes:
        outside, outside_warned: unknown objects, and how many of them were called out of distribution.
        switches, switches_seen: ids that moved to another object, and how many were flagged soon after.
        inside, false_alarms: known objects with one id, and how many were warned of all the same.
        changes, changes_seen: of the class of an object, where it is one that changes, and how many were told
            soon after.
        cannot_tell: tracks of any kind whose pictures were called too bad to tell.
        ood_auroc: of the warning model's score over all views.
    """

    outside: int = 0
    outside_warned: int = 0
    switches: int = 0
    switches_seen: int = 0
    inside: int = 0
    false_alarms: int = 0
    changes: int = 0
    changes_seen: int = 0
    cannot_tell: int = 0
    ood_auroc: float | None = None

    @property
    def raised(self) -> int:
        return self.outside_warned + self.switches_seen

    @property
    def missed(self) -> int:
        return self.outside + self.switches - self.raised


@dataclass(frozen=True, slots=True)
class ReplayScores:
    """Everything a truth file lets us say; `reliability` by fuser, single frames among them."""

    fusers: tuple[FuserScores, ...]
    warnings: WarningScores
    reliability: dict[str, Reliability] = field(default_factory=dict)

    def of(self, fuser: str) -> FuserScores:
        return next(scores for scores in self.fusers if scores.fuser == fuser)

    def remark(self, used: str) -> str:
        """Where the fuser in use is not the best, in a sentence."""
        parts = {"over all views": {each.fuser: (each.accuracy, each.nll) for each in self.fusers}}
        changing = {each.fuser: each.changing for each in self.fusers if each.changing is not None}
        fixed = {each.fuser: each.fixed for each in self.fusers if each.fixed is not None}
        if changing and fixed:
            parts |= {"where classes change": changing, "where they do not": fixed}
        return where_not_best(parts, used)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "fusers": [asdict(scores) for scores in self.fusers],
            "warnings": {
                **asdict(self.warnings),
                "raised": self.warnings.raised,
                "missed": self.warnings.missed,
            },
        }


class _Column:
    """What one fuser said: per view of a known object p(truth) and the strongest rival, which is all that
    accuracy, NLL and ECE need; per view of any object the entropy."""

    def __init__(self) -> None:
        self.truth, self.rival, self.entropy = array("f"), array("f"), array("f")
        self.labels = array("h")
        self.last: dict[str, bool] = {}

    def add(self, ids: Sequence[str], pmf: np.ndarray, labels: np.ndarray) -> None:
        self.entropy.extend(entropy(pmf).tolist())
        known = np.flatnonzero(labels >= 0)
        own = pmf[known, labels[known]]
        others = pmf[known].copy()
        others[np.arange(len(known)), labels[known]] = 0.0
        rival = others.max(axis=1, initial=0.0)
        self.truth.extend(own.tolist())
        self.labels.extend(labels[known].tolist())
        self.rival.extend(rival.tolist())
        for row, right in zip(known.tolist(), own > rival, strict=True):
            self.last[ids[row]] = bool(right)

    def pairs(self) -> np.ndarray:
        """[views, 2]: probability of the truth and of the strongest other class."""
        return np.stack([np.asarray(self.truth), np.asarray(self.rival)], axis=1)


def _check_classes(truth: Truth, bundle: Bundle, unknown_classes: bool) -> None:
    """Scores of a model on classes it was not made for look plausible and mean nothing."""
    named = truth.named
    known = named & set(bundle.named_classes)
    if known and (unknown_classes or 2 * len(known) >= len(named)):
        return
    if not named:
        raise InputError("the truth file names no class: there is nothing to score")
    strange = sorted(named - known)
    listed = ", ".join(f"'{name[:60]}'" for name in strange[:3]) + (", …" if len(strange) > 3 else "")
    raise InputError(
        f"the model '{bundle.source}' knows {len(known)} of the {len(named)} classes in the truth file "
        f"(not {listed}): give the model of these classes with --bundle"
        + (", or --unknown-classes to count the others as unknown objects" if known else "")
    )


class ScoreSink:
    """Takes every fused frame; runs the other fusers on the same views.

    Args:
        unknown_classes: accept a truth most of whose classes the bundle does not know.
    """

    def __init__(
        self,
        truth: Truth,
        bundle: Bundle,
        settings: FusionSettings,
        compare: Sequence[str] = (),
        unknown_classes: bool = False,
    ) -> None:
        self.judge = Judge(truth)
        self._numbers = {name: index for index, name in enumerate(bundle.named_classes)}
        self._reserved = len(bundle.reserved)
        _check_classes(truth, bundle, unknown_classes)
        self.used = settings.fuser or bundle.meta.default_fuser
        self._others = {
            name: FuseStage(FusionEngine(bundle, replace(settings, fuser=name)), Tally())
            for name in compare
            if name != self.used
        }
        self._columns = {name: _Column() for name in (SINGLE_FRAME, self.used, *self._others)}
        self._outside, self._ood = array("b"), array("f")
        self._warned: dict[str, set[str]] = {}  # track id -> reasons
        self._seen: dict[str, list[tuple[int, int]]] = {}  # track id -> (label, views under it), in order
        self._switch_flags: dict[str, list[int]] = {}  # track id -> at which view a switch was flagged
        self._change_flags: dict[str, list[int]] = {}  # the same of a class change
        self._changing = np.flatnonzero(bundle.changing(settings.changing_classes))

    def take(self, time: int, fused: FusedFrame) -> None:
        labels = self.judge(fused.frame).labels(self._numbers)
        self._add(SINGLE_FRAME, fused, view_pmf(fused.frame)[fused.result.kept], labels)
        self._add(self.used, fused, fused.result.pmf, labels)
        self._watch(fused, labels[fused.result.kept])
        joined = zip(fused.result.kept.tolist(), fused.result.members, strict=True)
        members = {fused.frame.ids[row]: group for row, group in joined if group}
        frame = replace(fused.frame, members={**fused.frame.members, **members})  # the same objects
        for name, stage in self._others.items():
            for other in stage([frame]):
                self._add(name, other, other.result.pmf, labels)

    def scores(self) -> ReplayScores:
        rows, diagrams = [], {}
        outside = np.asarray(self._outside, bool)
        for name, column in self._columns.items():
            pairs = column.pairs()
            if not len(pairs):
                raise InputError(self.judge.why_nothing())
            label = np.zeros(len(pairs), int)
            changes = np.isin(column.labels, self._changing)
            diagrams[name] = reliability(pairs, label)
            rows.append(
                FuserScores(
                    fuser=name,
                    accuracy=accuracy(pairs, label),
                    nll=nll(pairs, label),
                    ece=ece(pairs, label),
                    auroc=_auroc(np.asarray(column.entropy), outside),
                    last_accuracy=float(np.mean(list(column.last.values()))),
                    views=len(pairs),
                    changing=_accuracy_and_nll(pairs[changes]),
                    fixed=_accuracy_and_nll(pairs[~changes]),
                )
            )
        return ReplayScores(tuple(rows), self._warning_scores(outside), diagrams)

    def _add(self, name: str, fused: FusedFrame, pmf: np.ndarray, labels: np.ndarray) -> None:
        """`labels` of all views of the frame; the fused ones are `pmf`.  [views], [fused, classes]"""
        labels, pmf = labels[fused.result.kept], among_named(pmf, self._reserved)
        said = np.flatnonzero(labels >= OUTSIDE)
        known = labels[said]
        self._columns[name].add([fused.result.ids[row] for row in said], pmf[said], known)
        if name == self.used:
            self._outside.extend((known == OUTSIDE).tolist())
            self._ood.extend(fused.result.verdicts.ood_score[said].tolist())

    def _watch(self, fused: FusedFrame, labels: np.ndarray) -> None:
        for track, label, reasons in zip(fused.result.ids, labels.tolist(), reasons_of(fused), strict=True):
            if label < OUTSIDE:
                continue
            spans = self._seen.setdefault(track, [])
            if not spans or spans[-1][0] != label:
                spans.append((label, 0))
            spans[-1] = label, spans[-1][1] + 1
            if IDENTITY_SWITCH in reasons:
                self._switch_flags.setdefault(track, []).append(sum(count for _, count in spans))
            if track in fused.result.changed:
                self._change_flags.setdefault(track, []).append(sum(count for _, count in spans))
            self._warned.setdefault(track, set()).update(reasons)

    def _warning_scores(self, outside: np.ndarray) -> WarningScores:
        count: Counter[str] = Counter()
        for track, spans in self._seen.items():
            reasons = self._warned.get(track, set())
            count["cannot_tell"] += CANNOT_TELL in reasons
            labels = [label for label, _ in spans]
            if OUTSIDE in labels:
                count["outside"] += 1
                count["outside_warned"] += OUT_OF_DISTRIBUTION in reasons
            elif len(spans) == 1 or np.isin(labels, self._changing).all():
                count["inside"] += 1
                count["false_alarms"] += bool(reasons - {CANNOT_TELL, NOTHING_THERE})
            moved = 0
            for (label, views), after in zip(spans, labels[1:], strict=False):
                moved += views
                change = np.isin([label, after], self._changing).all()
                name = "changes" if change else "switches"
                flags = (self._change_flags if change else self._switch_flags).get(track, ())
                count[name] += 1
                count[f"{name}_seen"] += any(moved < flag <= moved + _SWITCH_SEEN_WITHIN for flag in flags)
        return WarningScores(**count, ood_auroc=_auroc(np.asarray(self._ood), outside))


def _accuracy_and_nll(pairs: np.ndarray) -> tuple[float, float] | None:
    label = np.zeros(len(pairs), int)
    return (accuracy(pairs, label), nll(pairs, label)) if len(pairs) else None


def _auroc(score: np.ndarray, outside: np.ndarray) -> float | None:
    return auroc(score, outside) if outside.any() and not outside.all() else None
