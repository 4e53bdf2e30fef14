"""Fusers against each other over several regimes and lengths, on the same tracks."""

from __future__ import annotations

from typing import Any

from lla_fusion_ros.lab.evaluation.bootstrap import Resamples
from lla_fusion_ros.lab.evaluation.score_rows import OPPONENT, TrackScores, nll_ratio

BASELINES = ("last", "vote", "mean_pmf", "product", "log_odds", "ema")  # what users have today
SHORTEST = (1, 3, 10)  # pooled over all lengths from here on


def comparisons(
    scores: dict[tuple[str, str, int, int], TrackScores], draws: Resamples
) -> list[dict[str, Any]]:
    """NLL of every fuser divided by `pool`'s and by the best baseline's, per regime and over all regimes."""
    fusers = list(dict.fromkeys(key[0] for key in scores))
    regimes = list(dict.fromkeys(key[1] for key in scores))
    counts = sorted({key[2] for key in scores})
    lengths = sorted({key[3] for key in scores})
    records = []
    for count in counts:
        for regime in (*regimes, "all"):
            used = regimes if regime == "all" else [regime]
            for shortest in SHORTEST:
                cells = [(r, count, length) for r in used for length in lengths if length >= shortest]
                if not cells:
                    continue
                of = {name: [scores[(name, *cell)] for cell in cells] for name in fusers}
                best = _best_baseline(of)
                for name in fusers:
                    record: dict[str, Any] = {"fuser": name, "regime": regime, "C": count, "L_from": shortest}
                    for other in dict.fromkeys(n for n in (OPPONENT, best) if n in of):
                        ratio, limits = nll_ratio(of[name], of[other], draws)
                        key = "pool" if other == OPPONENT else "best_baseline"
                        record |= {f"nll_over_{key}": ratio, f"nll_over_{key}_interval": limits}
                    record["best_baseline"] = best
                    records.append(record)
    return records


def _best_baseline(of: dict[str, list[TrackScores]]) -> str | None:
    """The baseline with the lowest mean NLL on these cells."""
    losses = {name: sum(s.nll.mean() for s in of[name]) for name in BASELINES if name in of}
    return min(losses, key=losses.__getitem__) if losses else None
