"""What a planner may rely on, as messages: `track_status`, `class_sets`, `decisions`; made when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.detections import Listing, write_detections
from lla_fusion_ros.messages.status import Status, write_diagnostics
from lla_fusion_ros.reliance.decisions import Costs
from lla_fusion_ros.reliance.statements import CONFIDENCE, Reliance
from lla_fusion_ros.stream.frame_messages import Outgoing
from lla_fusion_ros.stream.frames import FusedFrame
from lla_fusion_ros.warnings.result import CANNOT_TELL, NOTHING_THERE, OUT_OF_DISTRIBUTION, REASONS

_STRANGE = [REASONS.index(OUT_OF_DISTRIBUTION), REASONS.index(CANNOT_TELL)]


@dataclass(frozen=True, slots=True)
class Statements:
    """Makes the messages of one bundle.

    Attributes:
        reliance: of the bundle; None: sets hold all classes, bounds are 1.
        costs: of the decisions; None: there are none.
        coverage: share of objects whose set is to hold the true class.
        named: `class_id` is the class's name and not its number.
    """

    class_names: Sequence[str]
    reliance: Reliance | None
    costs: Costs | None
    coverage: float
    named: bool = False

    def messages(
        self, fused: FusedFrame, wanted: Callable[[str], bool] = lambda topic: True
    ) -> Iterator[Outgoing]:
        """All that somebody wants of the three."""
        makers = {contract.TRACK_STATUS: self.track_status, contract.CLASS_SETS: self.class_sets}
        if self.costs is not None:
            makers[contract.DECISIONS] = self.decisions
        return (make(fused) for topic, make in makers.items() if wanted(topic))

    def class_sets(self, fused: FusedFrame) -> Outgoing:
        """The classes of each object's set, surest first; all classes of what is unknown or unreadable."""
        result, names = fused.result, self.class_names if self.named else None
        counts = self.sets(fused).sum(axis=1)
        bbox = fused.frame.bbox[result.kept]
        listing = Listing(class_names=names, numbers=counts, rest=False)
        data = write_detections(fused.frame.header, result.ids, bbox, result.pmf, listing)
        return Outgoing(contract.CLASS_SETS, contract.DETECTIONS, data)

    def decisions(self, fused: FusedFrame) -> Outgoing:
        """The decision of least expected cost for each object, and that cost as its score."""
        assert self.costs is not None
        result, rows = fused.result, np.arange(len(fused.result.ids))
        best, cost = self.costs.decide(result.pmf, _strange(fused))
        scores = np.full((len(rows), len(self.costs.decisions)), -np.inf)
        scores[rows, best] = cost
        bbox = fused.frame.bbox[result.kept]
        listing = Listing(most=1, class_names=self.costs.decisions, rest=False)
        data = write_detections(fused.frame.header, result.ids, bbox, scores, listing)
        return Outgoing(contract.DECISIONS, contract.DETECTIONS, data)

    def track_status(self, fused: FusedFrame) -> Outgoing:
        """Everything that is known of every object of the frame."""
        sets, bounds, strange = self.sets(fused), self.bounds(fused), _strange(fused)
        statuses = []
        for row, (name, verdict) in enumerate(zip(fused.result.ids, fused.result.verdicts, strict=True)):
            answer = "unknown" if strange[row] else "known"
            for reason in (NOTHING_THERE, CANNOT_TELL):
                answer = reason.replace("_", " ") if reason in verdict.reasons else answer
            inside = [i for i in np.argsort(-verdict.pmf, kind="stable") if sets[row, i]]
            everything = len(inside) == len(self.class_names)
            values = {
                "answer": answer,
                "top class": self.class_names[verdict.top],
                "p": f"{verdict.probability:.6f}",
                "error at most": f"{bounds[row]:.6f}",
                "confidence": f"{CONFIDENCE:g}",
                "set": "any" if everything else "; ".join(self.class_names[i] for i in inside),
                "coverage": f"{self.coverage:g}",
                "entropy": f"{verdict.entropy:.6f}",
                **{key: f"{p:.6g}" for key, p in verdict.p_values.items()},
                "views per camera": " ".join(f"{camera}={n}" for camera, n in verdict.views.items()),
                "members": " ".join(fused.result.members[row]) if fused.result.members else "",
                "class changed": "yes" if name in fused.result.changed else "no",
                "reason": " ".join(verdict.reasons),
            }
            statuses.append(Status(int(verdict.level), f"track {name}", answer, fused.camera, values))
        data = write_diagnostics(fused.frame.header, statuses)
        return Outgoing(contract.TRACK_STATUS, contract.DIAGNOSTICS, data)

    def sets(self, fused: FusedFrame) -> np.ndarray:
        """Nothing is promised of an object that is warned of as strange.  [objects, classes] bool"""
        pmf, views = fused.result.pmf, fused.result.verdicts.views.sum(axis=1)
        if self.reliance is None:
            return np.ones(pmf.shape, bool)
        return self.reliance.sets(pmf, views, self.coverage) | _strange(fused)[:, None]

    def bounds(self, fused: FusedFrame) -> np.ndarray:
        """Of the error; 1 where nothing is promised.  [objects]"""
        if self.reliance is None:
            return np.ones(len(fused.result.pmf))
        return np.where(_strange(fused), 1.0, self.reliance.upper_bounds(fused.result.pmf))


def _strange(fused: FusedFrame) -> np.ndarray:
    """Objects that are warned of as unknown, or that nobody can read.  [objects] bool"""
    return np.asarray(fused.result.verdicts.raised[:, _STRANGE].any(axis=1))
