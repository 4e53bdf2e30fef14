"""Where another rule than the one in use has the better scores, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping

COMPARED = ("last", "vote", "mean_pmf", "pool")  # the rules that the one in use is compared with
SINGLE_FRAME = "single frame"  # the mean softmax of the networks
ONE_VIEW = "default, one view"  # the fuser in use, of every view by itself
LEAST_GAIN = 5e-4  # of accuracy that is worth a word; of the NLL ten times as much, as a share
Scored = Mapping[str, tuple[float, float]]  # accuracy and NLL by rule


def where_not_best(parts: Mapping[str, Scored], used: str) -> str:
    """By what is scored, such as "over lights", the best rule where it is not the one in use."""
    found = []
    for part, scores in parts.items():
        accuracy, nll = scores[used]
        told = []
        righter = max(scores, key=lambda rule: scores[rule][0])
        if scores[righter][0] > accuracy + LEAST_GAIN:
            told.append(f"{righter} is right more often ({scores[righter][0]:.2%}, {accuracy:.2%})")
        surer = min(scores, key=lambda rule: scores[rule][1])
        if scores[surer][1] < nll * (1 - 10 * LEAST_GAIN):
            told.append(f"{surer} has the lower NLL ({scores[surer][1]:.4f}, {nll:.4f})")
        if told:
            found.append(f"{part} {' and '.join(told)}")
    if found:
        return f"{used} is not the best everywhere: {'; '.join(found)}."
    return f"No other rule here is right more often than {used} or has a lower NLL."
