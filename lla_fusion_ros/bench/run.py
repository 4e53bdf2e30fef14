"""All sections of the benchmark, one after the other, into one JSON document."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lla_fusion_ros import __version__
from lla_fusion_ros.bench.machine import machine

SECTIONS = ("prediction", "laplace_torch", "fusion", "fusion_live", "replay", "live", "fit", "startup")
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What a user may set.

    Attributes:
        sections: which to run, of SECTIONS.
        model: bundle of fusion_live, replay, live and startup: a path, or a name of one that ships.
        fusion_model: bundle of fusion; the real road's, where the others need what is in the sign world.
        quick: fewer rounds and cases: a look, not a measurement.
        threads: of torch.
    """

    sections: tuple[str, ...]
    model: str = "signworld"
    fusion_model: str = "gtsrb"
    quick: bool = False
    threads: int = 1


def run_bench(
    options: BenchOptions,
    document: Document,
    progress: Callable[[str, int], None],
    save: Callable[[Document], None],
) -> list[str]:
    """Fill an empty `document` section by section, saved after each; what could not be run, as sentences.

    A document is one run: numbers of different moments are never put side by side.
    """
    import torch

    from lla_fusion_ros.errors import LlaFusionError

    torch.set_num_threads(options.threads)
    document["run"] = {
        "version": __version__,
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    notes = []
    for name in (section for section in SECTIONS if section in options.sections):
        facts = machine(options.threads)
        begun = time.monotonic()
        progress(name, 0)
        try:
            records = []
            for record in _records(name, options):
                records.append(record)
                progress(name, len(records))
        except LlaFusionError as error:
            notes.append(f"{name} was left out: {error}")
            continue
        if name == "laplace_torch":
            document[name] = records[0]["records"]
            document.setdefault("fit", []).extend(records[0]["fit"])
        else:
            document.setdefault(name, []).extend(records)
        facts |= {
            "run": document["run"]["started"],
            "quick": options.quick,
            "seconds": round(time.monotonic() - begun, 1),
        }
        document.setdefault("measured", {})[name] = facts
        save(document)
    return notes


def _records(name: str, options: BenchOptions) -> Iterator[dict[str, Any]]:
    """The records of one section."""
    quick = options.quick
    if name == "prediction":
        from lla_fusion_ros.bench.prediction import measure_prediction

        return measure_prediction(5 if quick else 25, quick)
    if name in ("fusion", "fusion_live"):
        from lla_fusion_ros.bench.fusion import measure_fusion
        from lla_fusion_ros.bundle import load_bundle
        from lla_fusion_ros.resources import find_model

        live = name == "fusion_live"
        bundle = load_bundle(find_model(options.model if live else options.fusion_model))
        return measure_fusion(bundle, 5 if quick else 15, quick, default_only=live)
    if name == "fit":
        from lla_fusion_ros.bench.fit import measure_fit

        return measure_fit(1 if quick else 2, quick)
    if name == "laplace_torch":
        from lla_fusion_ros.bench.laplace_torch import measure_laplace_torch

        return iter([measure_laplace_torch(5 if quick else 15, 2_000 if quick else 10_000)])
    return _end_to_end(name, options)


def _end_to_end(name: str, options: BenchOptions) -> Iterator[dict[str, Any]]:
    from lla_fusion_ros.bench.bag import six_camera_bag
    from lla_fusion_ros.bundle import load_bundle
    from lla_fusion_ros.resources import find_model

    quick = options.quick
    model = find_model(options.model).resolve()
    bag = six_camera_bag(1.0 if quick else 4.0)
    if name == "replay":
        from lla_fusion_ros.bench.replay import measure_replay

        return measure_replay(bag, load_bundle(model), 2 if quick else 5)
    from lla_fusion_ros.bench.live import measure_live, measure_startup

    if name == "live":
        return measure_live(bag, str(model), 2.0 if quick else 6.0, 1 if quick else 3)
    return measure_startup(bag, str(model), 1 if quick else 3)


def write_document(document: Document, path: Path) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    lines = ["{"]
    for number, (key, value) in enumerate(document.items()):
        comma = "," if number < len(document) - 1 else ""
        if isinstance(value, list):  # one record a line: differences between runs can be read
            rows = ",\n  ".join(json.dumps(record) for record in value)
            lines.append(f' "{key}": [\n  {rows}\n ]{comma}')
        else:
            lines.append(f' "{key}": {json.dumps(value, indent=2)}{comma}')
    part.write_text("\n".join([*lines, "}"]) + "\n")
    os.replace(part, path)
