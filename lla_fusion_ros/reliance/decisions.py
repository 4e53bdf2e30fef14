"""Decisions of least expected cost, from a file of costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lla_fusion_ros.types.errors import InputError, unknown_name
from lla_fusion_ros.types.pmf import decide

OTHERWISE, UNKNOWN = "otherwise", "unknown"


@dataclass(frozen=True, slots=True)
class Costs:
    """What each decision costs.

    Attributes:
        decisions: their names.
        cost: of each decision under each class.                       [decisions, classes]
        unknown: of each decision where the object is none of them.    [decisions]
    """

    decisions: tuple[str, ...]
    cost: np.ndarray
    unknown: np.ndarray

    def decide(self, pmf: np.ndarray, unknown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The decision of least expected cost for each object, and that cost.

        pmf [n, classes]; unknown [n] bool: warned of as no known object, or not readable -> [n] int, [n]
        """
        best, cost = decide(pmf, self.cost)
        without = int(self.unknown.argmin())
        return np.where(unknown, without, best), np.where(unknown, self.unknown[without], cost)


def read_costs(path: str | Path, class_names: Sequence[str]) -> Costs:
    """A YAML file: for each decision the cost by class name or number, `otherwise` and `unknown`.

    stop:     {stop: 0, otherwise: 1, unknown: 2}
    drive on: {stop: 100, otherwise: 0, unknown: 10}
    """
    import yaml  # only where somebody wants decisions

    try:
        document = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"cannot read the costs '{path}': {error}") from None
    if not isinstance(document, Mapping) or not document:
        raise InputError(
            f"costs '{path}': expected decisions with their costs, as in 'stop: {{otherwise: 1}}'"
        )
    rows = [_row(str(path), str(name), costs, class_names) for name, costs in document.items()]
    cost = np.array(rows)  # [decisions, classes + 1]
    return Costs(tuple(map(str, document)), cost[:, :-1], cost[:, -1])


def _row(path: str, decision: str, costs: Any, class_names: Sequence[str]) -> list[float]:
    """Costs under every class, then where it is unknown."""
    if not isinstance(costs, Mapping) or OTHERWISE not in costs:
        raise InputError(
            f"costs '{path}': decision '{decision}' needs costs by class, '{OTHERWISE}' among them"
        )
    row = [costs[OTHERWISE]] * len(class_names) + [costs.get(UNKNOWN, costs[OTHERWISE])]
    for key, cost in costs.items():
        name = str(key)
        if name in (OTHERWISE, UNKNOWN):
            continue
        if name in class_names:
            row[list(class_names).index(name)] = cost
        elif name.isdigit() and int(name) < len(class_names):
            row[int(name)] = cost
        else:
            raise InputError(
                f"costs '{path}', decision '{decision}': {unknown_name('class', name, class_names)}"
            )
    numbers = all(isinstance(cost, int | float) and np.isfinite(cost) for cost in row)
    if not numbers:
        raise InputError(f"costs '{path}': decision '{decision}' has a cost that is no finite number")
    return [float(cost) for cost in row]
