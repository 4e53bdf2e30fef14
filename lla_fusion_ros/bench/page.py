"""docs/performance.md from the JSON of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lla_fusion_ros.bench.targets import targets

Document = dict[str, Any]
Column = tuple[str, str]  # field, heading

_PREDICTION: Sequence[Column] = (
    ("networks", "networks"),
    ("M", "M"),
    ("d", "d"),
    ("batch", "batch"),
    ("method", "method"),
    ("ratio_plain", "against plain"),
    ("plain_ms", "plain, ms"),
    ("ms", "with covariance, ms"),
)
_LAPLACE: Sequence[Column] = (
    ("M", "M"),
    ("d", "d"),
    ("batch", "batch"),
    ("speedup", "times as fast"),
    ("ms", "ms"),
    ("laplace_torch_ms", "laplace-torch, ms"),
)
_FUSION: Sequence[Column] = (
    ("tracks", "tracks a frame"),
    ("L", "L"),
    ("us_per_view", "µs per view"),
    ("ratio_forward", "against the networks' forward, float32"),
    ("ratio_forward_int8", "int8"),
    ("ratio_L10", "against L=10"),
    ("bytes_per_track", "bytes per track"),
)
_OTHERS: Sequence[Column] = (
    ("fuser", "fuser"),
    ("tracks", "tracks a frame"),
    ("us_per_view", "µs per view"),
    ("ratio_forward", "against the networks' forward"),
    ("bytes_per_track", "bytes per track"),
)
_FUSERS: Sequence[Column] = (
    ("fuser", "fuser"),
    ("us_per_view", "µs per view"),
    ("ratio_forward", "against the networks' forward"),
    ("ratio_L10", "L=1000 against L=10"),
    ("bytes_per_track", "bytes per track"),
)
_REPLAY: Sequence[Column] = (
    ("precision", "networks"),
    ("views_per_s", "views/s"),
    ("bare_views_per_s", "bare loop, views/s"),
    ("ratio_bare", "against the bare loop"),
    ("cpu_ratio_bare", "CPU per view against it"),
)
_LIVE: Sequence[Column] = (
    ("precision", "networks"),
    ("cameras", "cameras"),
    ("rate", "rate"),
    ("frames_per_s", "frames/s"),
    ("drops", "dropped"),
    ("frames", "of frames"),
    ("p50_ms", "p50, ms"),
    ("p95_ms", "p95, ms"),
    ("cpu_ms_per_view", "CPU ms per view"),
    ("cpu_ratio_plain", "CPU against plain node"),
    ("plain_drops", "plain dropped"),
    ("plain_p50_ms", "plain p50, ms"),
)
_FIT: Sequence[Column] = (
    ("networks", "networks"),
    ("curvature", "curvature"),
    ("N", "N"),
    ("seconds", "seconds"),
    ("ratio_forward", "against the forward passes alone"),
)


def performance_page(document: Document, images: str) -> str:
    """The page; `images` is the folder of the figures as seen from it."""
    parts = [_INTRODUCTION, _targets(document), _measured(document)]
    for section, write in (
        ("prediction", _prediction),
        ("laplace_torch", _laplace_torch),
        ("fusion", _fusion),
        ("replay", _replay),
        ("live", _live),
        ("fit", _fit),
        ("startup", _startup),
    ):
        if document.get(section):
            parts.append(write(document, images))
    return "\n\n".join(part.strip() for part in parts) + "\n"


_INTRODUCTION = """
# Performance

What uncertainty, fusion and warnings cost, as ratios to the same thing without them, measured in turns,
side by side. This page is made by `python tools/make_performance_page.py` from
[results/bench.json](results/bench.json), which is written by

    lla-fusion bench --laplace-torch --json docs/results/bench.json

Ratios and costs are CPU time of the measuring process (medians of rounds in which all candidates take
turns), so that other programs on the machine disturb them little; what is wall time says so. Quartiles
are in the JSON.

Fusers run on random views, with the networks, the posterior, the warnings and the fitted values of a bundle:
the road's (`gtsrb`, `--fusion-bundle`), and for the default fuser also the demo's (`signworld`, `--bundle`),
whose five networks together are so small that a frame of one track is mostly Python.

Nodes and replay run the networks' convolutions in 8 bits on an x86 CPU (`precision: auto`), which for frames
of ten objects and more takes about half of the time of single precision or less; [networks.md](networks.md)
has what it changes in the results. What fusion costs is given against both; prediction, fit and the
comparison with laplace-torch are in float32.
"""


def _targets(document: Document) -> str:
    rows = []
    for target in targets(document):
        if target.value is not None:
            sign = "≤" if target.at_most else "≥"
            verdict = "yes" if target.met else "**no**"
            rows.append((target.text, f"{target.value:.3g}", f"{sign} {target.limit:g}", verdict))
    return "## Numbers to reach\n\n" + _table(("number", "measured", "to reach", "met"), rows)


def _measured(document: Document) -> str:
    rows = [
        (
            name,
            facts["run"],
            facts["cpu"],
            facts["cores"],
            " ".join(f"{load:g}" for load in facts["load_average"]),
            facts["torch_threads"],
            facts["OMP_NUM_THREADS"],
            facts["torch"],
            "yes" if facts["quick"] else "no",
        )
        for name, facts in document.get("measured", {}).items()
    ]
    head = (
        "section",
        "run begun",
        "CPU",
        "cores",
        "load before (1, 5, 15 min)",
        "torch threads",
        "OMP",
        "torch",
        "--quick",
    )
    text = (
        "Where the load is far above the number of cores, ratios of CPU time hold roughly, wall times do not."
    )
    run = document.get("run")
    version = f"Version {run['version']}. " if run else ""
    note = f"\n\n{document['note']}" if "note" in document else ""  # what a reader must know of these runs
    return f"## Where it was measured\n\n{version}{text}{note}\n\n{_table(head, rows)}"


def _prediction(document: Document, images: str) -> str:
    records = document["prediction"]
    text = """## Prediction

Logits, their Laplace variances and the pmf (closed form `probit`, or 64 Sobol points) of a batch of
crops, from uint8 pixels to numpy, against forward pass and softmax of the same networks. `road` is the
vehicle's network (24-48-96-96 channels, 32 px); `lenet` the paper's LeNet5-like one, the hardest case:
its forward pass costs so little that the M (d+1)² products of the variances weigh more."""
    for network in dict.fromkeys(r["network"] for r in records):
        rows = [r for r in records if r["network"] == network]
        text += f"\n\n`{network}`:\n\n" + _records(rows, _PREDICTION)
    return text


def _laplace_torch(document: Document, images: str) -> str:
    text = f"""## Against laplace-torch 0.3

One `road` network, last layer, kron, probit; the same process, torch and crops, in turns. laplace-torch
forms dense Jacobians of the logits; here the features are multiplied once with a whitened matrix.

{_records(document["laplace_torch"], _LAPLACE)}"""
    for record in (r for r in document.get("fit", []) if "against" in r):
        text += (
            f"\n\nFitting on N = {record['N']} crops takes laplace-torch "
            f"{record['laplace_torch_seconds']:.1f} s, this package {record['seconds']:.1f} s with kron "
            f"({record['speedup']:.2g}× as fast) and {record['diagonal_seconds']:.1f} s with the paper's "
            "diagonal curvature, forward passes included."
        )
    return text


def _fusion(document: Document, images: str) -> str:
    records = document["fusion"]
    default = [r for r in records if r["default"]]
    others = [r for r in records if not r["default"] and r["with_warnings"] and r["L"] == 100]
    fusers = [r for r in records if not r["with_warnings"] and r["L"] == 1000 and r["tracks"] == 10]
    small = document.get("fusion_live", [])
    name, small_name = (rows[0]["fuser"] if rows else "none" for rows in (default, small))
    return f"""## Fusion

A whole `FusionEngine.update` with the default fuser of a bundle: tracks, fusion, all three warnings,
verdicts. A track's memory does not grow with its length.

The road's bundle (`{name}`):

{_records(default, _FUSION)}

The demo's bundle (`{small_name}`):

{_records(small, _FUSION)}

The road's bundle with the other fusers that may be chosen as a default, at L = 100:

{_records(others, _OTHERS)}

Every fuser alone (update and predict), L = 1000, 10 tracks a frame; `wls` keeps a window of 30 views:

{_records(fusers, _FUSERS)}

![cost against the length of a track]({images}/performance-length.png)

![cost against tracks a frame]({images}/performance-tracks.png)"""


def _replay(document: Document, images: str) -> str:
    return f"""## Replay

A drive with six cameras (640×480 JPEG, 20 tracked objects a frame) through `lla-fusion replay`'s core,
without output files, with the shipped sign-world model, against a bare loop that only decodes, crops,
forwards and takes the arg max, eight frames in a batch like the replay, networks in the same precision. Wall
time; the replay classifies and fuses in two threads.

{_records(document["replay"], _REPLAY)}"""


def _live(document: Document, images: str) -> str:
    return f"""## Live

The same drive over DDS (localhost) into the `perception` node, at 1×, 2× and 4× of 10 Hz a camera; stamps
are the present, so latency is from image stamp to the receipt of `/fused_classes`. The *plain* node
shares inputs, crops and networks, in the same precision, and publishes only the arg max of each single frame.
The load generator runs on the same two cores.

{_records(document["live"], _LIVE)}

![cost against cameras]({images}/performance-cameras.png)"""


def _fit(document: Document, images: str) -> str:
    return f"""## Fit

One pass over N crops with 43 classes and 84 features, forward passes included.

{_records((r for r in document["fit"] if "against" not in r), _FIT)}"""


def _startup(document: Document, images: str) -> str:
    record = document["startup"][0]
    imports = ", ".join(
        f"`{key.removeprefix('import_').removesuffix('_s')}` {value:.2f} s"
        for key, value in record.items()
        if key.startswith("import_")
    )
    return f"""## Start-up

From the start of the `perception` process to the first fused class on the graph:
{record["first_fused_class_s"]:.1f} s of wall time, six cameras waiting. Imports: {imports} (`fusion_only`
is what `class_fusion` needs: no torch)."""


def _records(records: Iterable[dict[str, Any]], columns: Sequence[Column]) -> str:
    return _table(
        [heading for _, heading in columns], [[_cell(r.get(f)) for f, _ in columns] for r in records]
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return "" if value is None else str(value)
