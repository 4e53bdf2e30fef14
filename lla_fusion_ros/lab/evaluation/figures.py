"""The figures of `lla-fusion evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lla_fusion_ros.lab.evaluation.evaluate import FUSED_ENTROPY, Evaluation
from lla_fusion_ros.lab.evaluation.track_scores import TrackScores
from lla_fusion_ros.lab.plots import COLOURS, entropy_histograms, figure
from lla_fusion_ros.types.metrics import pr_curve, reliability_table, roc_curve

DASHES = ("-", "--", ":")
SHOWN = ("pool", "mean_pmf", "vote", "log_odds", "ema", "product", "last")  # behind the default


def against_length(
    results: Sequence[dict[str, Any]], fusers: Sequence[str], networks: int, path: Path
) -> None:
    """Accuracy and NLL against the number of frames, one column per regime."""
    regimes = list(dict.fromkeys(record["regime"] for record in results))
    with figure(path, 2, len(regimes), 3.6 * len(regimes), 5.4, sharex=True, sharey="row") as axes:
        for column, regime in enumerate(regimes):
            for row, score in enumerate(("accuracy", "nll")):
                axis = axes[row, column]
                for index, fuser in enumerate(fusers):
                    _line(axis, results, fuser, regime, networks, score, index)
                axis.set_xscale("log")
                lengths = sorted({record["L"] for record in results})
                axis.set_xticks(lengths, [str(length) for length in lengths])
                axis.minorticks_off()
                if score == "nll":
                    axis.set_yscale("log")
                    values = [r["nll"] for r in results if r["fuser"] in fusers and r["C"] == networks]
                    axis.set_ylim(0.8 * min(values), 1.2 * max(values))  # intervals may reach down to zero
            axes[0, column].set_title(f"{regime} tracks, {networks} network{'s' * (networks > 1)}")
            axes[1, column].set_xlabel("frames fused, L")
        axes[0, 0].set_ylabel("accuracy")
        axes[1, 0].set_ylabel("negative log-likelihood")
        axes[0, 0].legend(fontsize=7, ncols=2)


def _line(
    axis: Any,
    results: Sequence[dict[str, Any]],
    fuser: str,
    regime: str,
    networks: int,
    score: str,
    index: int,
) -> None:
    chosen = sorted(
        (r for r in results if (r["fuser"], r["regime"], r["C"]) == (fuser, regime, networks)),
        key=lambda r: r["L"],
    )
    lengths = [r["L"] for r in chosen]
    colour, dash = COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]
    values = [r[score] for r in chosen]
    width = 2.2 if index == 0 else 1.2
    axis.plot(lengths, values, dash, color=colour, marker="o", ms=2.5, lw=width, label=fuser)
    if index < 2:  # the default and its opponent; more bands would hide the lines
        low, high = zip(*(r[f"{score}_interval"] for r in chosen), strict=True)
        axis.fill_between(lengths, low, high, color=colour, alpha=0.12, lw=0)


def reliability_diagram(scores: dict[str, TrackScores], title: str, path: Path) -> None:
    """Accuracy against confidence in 15 bins; the diagonal is perfect calibration."""
    with figure(path, 1, 1, 4.2, 4.0) as axes:
        axis = axes[0, 0]
        axis.plot([0, 1], [0, 1], color="0.6", lw=1)
        for index, (name, own) in enumerate(scores.items()):
            bins = reliability_table(own.confidence, own.correct)
            some = bins.count > 0
            axis.plot(
                bins.confidence[some], bins.accuracy[some], marker="o", ms=3, lw=1.2,
                color=COLOURS[index % len(COLOURS)], label=name,
            )  # fmt: skip
        axis.set(xlabel="confidence", ylabel="accuracy", title=title, xlim=(0, 1), ylim=(0, 1.02))
        axis.legend(fontsize=7)


def detection_curves(scores: dict[str, tuple[np.ndarray, np.ndarray]], title: str, path: Path) -> None:
    """ROC and precision-recall of scores: name -> (inside, outside), larger is stranger."""
    with figure(path, 1, 2, 8.2, 3.8) as axes:
        for index, (name, (inside, outside)) in enumerate(scores.items()):
            values = np.concatenate([inside, outside])
            strange = np.concatenate([np.zeros(len(inside), bool), np.ones(len(outside), bool)])
            colour, dash = COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]
            false_alarm, detected, _ = roc_curve(values, strange)
            precision, recall, _ = pr_curve(values, strange)
            axes[0, 0].plot(false_alarm, detected, dash, color=colour, lw=1.2, label=name)
            axes[0, 1].plot(recall, precision, dash, color=colour, lw=1.2)
        axes[0, 0].set(xlabel="false alarms", ylabel="detected", title=f"ROC, {title}")
        axes[0, 1].set(xlabel="recall", ylabel="precision", title="precision and recall")
        axes[0, 0].legend(fontsize=6.5)


def all_figures(evaluation: Evaluation, document: dict[str, Any], folder: Path) -> None:
    """Every figure of one evaluation."""
    count = max(record["C"] for record in document["results"])
    lengths = sorted({record["L"] for record in document["results"]})
    length = 10 if 10 in lengths else lengths[-1]
    present = {record["fuser"] for record in document["results"]}
    default = document["default_fuser"]
    names = [name for name in dict.fromkeys((default, *SHOWN)) if name in present] or sorted(present)
    against_length(document["results"], names, count, folder / "against-length.png")
    for regime in dict.fromkeys(record["regime"] for record in document["results"]):
        own = {name: evaluation.scores[name, regime, count, length] for name in names[:6]}
        title = f"{regime} tracks, L = {length}, C = {count}"
        reliability_diagram(own, title, folder / f"reliability-{regime}.png")
        scores = {
            score: pair for (score, of, after), pair in evaluation.strangeness.items()
            if of == regime and after == length
        }  # fmt: skip
        if scores:
            detection_curves(scores, title, folder / f"detection-{regime}.png")
            pair = scores[FUSED_ENTROPY]
            entropy_histograms({default: pair}, folder / f"entropy-{regime}.png", ("known", "unknown"))
