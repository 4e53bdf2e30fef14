"""The product against what a user would run instead: one plain network and an arg max, in ONNX Runtime.

CPU time of a view, in a replay and live over DDS, latency, and where the time goes. All run in turns, and
ratios are those within a turn.
"""

from __future__ import annotations

import json
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from bench.argmax_node import best_classes, without_quality
from bench.fusion import sign_crops
from bench.load_node import recorded
from bench.machine import dds_profile
from bench.scene import RATE, camera_names, write_scene
from bench.soak_result import balance
from bench.timing import Spread, interleaved
from lla_fusion_ros.bags.types import Message
from lla_fusion_ros.bundle import Bundle, save_bundle
from lla_fusion_ros.bundle.bundle import graph_tensors
from lla_fusion_ros.demo.processes import DemoError, Processes
from lla_fusion_ros.lab.importing.export import exported, in_eight_bits
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.stream.classify import ClassifyStage
from lla_fusion_ros.stream.frame_messages import fused_messages
from lla_fusion_ros.stream.perception import FuseStage, Perception
from lla_fusion_ros.stream.queues import ImageQueue
from lla_fusion_ros.types.settings import FusionSettings

# What is compared, and the precision of its networks.
RUNS = {"product": "auto", "product onnx": "int8", "plain": "float32", "plain int8": "int8"}
FUSED = ("product", "product onnx")
REPLAY = ((1, 1), (5, 1), (20, 1), (20, 2), (100, 1))  # objects of a frame, threads; 2 cameras
QUICK_REPLAY = (5, 1), (20, 1)
STAGES = ("decode", "pair", "crop", "network", "fuse", "encode")
# The methods of these stages; `encode` stands in `Offline`.
_METHODS: dict[tuple[Any, str], str] = {
    (ImageQueue, "offer"): "pair",
    (ClassifyStage, "_decode"): "decode",
    (ClassifyStage, "_name"): "crop",
    (ClassifyStage, "_cut"): "crop",
    (Classifier, "__call__"): "network",
    (FuseStage, "__call__"): "fuse",
}
Record = dict[str, Any]


class Load(NamedTuple):
    """What is sent to live nodes, ten times a second.

    Attributes:
        objects: of a frame.
        raw: 1080p, not compressed; else 640 x 480, JPEG.
    """

    cameras: int
    objects: int
    raw: bool = False


LIVE = (Load(1, 5), Load(2, 1), Load(2, 5), Load(2, 20), Load(2, 5, raw=True), Load(6, 5))
QUICK_LIVE = (Load(2, 5),)
OVERLOAD = Load(16, 10)


def measure_price(bundle: Bundle, quick: bool) -> Iterator[Record]:
    """Records of three kinds: replay and live, one for each of RUNS, and overload."""
    with TemporaryDirectory(prefix="lla_price_") as place:
        models = {"product": str(Path(bundle.source).absolute())}
        bundles = bundles_of(bundle)
        for run in list(RUNS)[1:]:
            models[run] = str(Path(place, f"{bundles[run].meta.networks}.safetensors"))
            save_bundle(bundles[run], Path(models[run]))

        def bag(load: Load) -> Path:
            path = Path(place, "_".join(map(str, load)))
            return path if path.exists() else write_scene(path, *load[:2], seconds=1.0, raw=load.raw)

        for objects, threads in QUICK_REPLAY if quick else REPLAY:
            yield from offline(bundles, bag(Load(2, objects)), objects, threads, 3 if quick else 7)
        loads = QUICK_LIVE if quick else LIVE
        for like in dict.fromkeys((load.cameras, load.raw) for load in loads):
            bags = {str(bag(load)): load for load in loads if (load.cameras, load.raw) == like}
            turns = live(models, like[0], list(bags), 2.0, 2 if quick else 5)
            for path, load in bags.items():
                yield from live_records({run: turns[run, path] for run in RUNS}, load)
        path = str(bag(OVERLOAD))
        turns = live({"product": models["product"]}, OVERLOAD.cameras, [path], 4.0 if quick else 20.0, 1)
        yield overload_record(turns["product", path], OVERLOAD)


def bundles_of(bundle: Bundle) -> dict[str, Bundle]:
    """The bundle of each run."""
    plain = in_onnx(first_network(bundle))
    return {"product": bundle, "product onnx": in_onnx(bundle), "plain": plain, "plain int8": plain}


def first_network(bundle: Bundle) -> Bundle:
    """A bundle of its first network alone."""
    own = {name: array for name, array in bundle.tensors.items() if name.startswith("network.0.")}
    own["posterior.factors"] = bundle.tensors["posterior.factors"][:1]
    temperature = bundle.meta.softmax_temperature[:1]
    meta = replace(bundle.meta, networks=1, softmax_temperature=temperature, warnings={})
    return Bundle(meta, own, source=bundle.source)


def in_onnx(bundle: Bundle) -> Bundle:
    """Its networks as graphs for ONNX Runtime, in float32 and int8."""
    fresh = exported(bundle)
    single, crops = fresh.graphs("float32"), sign_crops(30, 17, bundle.input_size)
    logging.disable(logging.WARNING)  # advice of the quantiser
    graphs = {"float32": single, "int8": [in_eight_bits(graph, crops) for graph in single]}
    logging.disable(logging.NOTSET)
    return replace(fresh, tensors={**fresh.tensors, **graph_tensors(graphs, fresh.heads())})


class Offline:
    """A bag through the same Perception that the nodes run, without DDS; a call plays it once."""

    def __init__(self, run: str, bundle: Bundle, messages: Sequence[Message], threads: int) -> None:
        self._messages, self._names, self.encoding = messages, bundle.class_names, 0.0
        self._cameras = sorted({message.topic.split("/")[1] for message in messages})
        self._fuses = run in FUSED
        self._core = Perception(
            bundle,
            Classifier(bundle, "cpu", RUNS[run], threads=threads),
            self._cameras,
            fusion_settings=FusionSettings() if self._fuses else None,
        )

    def __call__(self) -> None:
        self._core.reset()
        with nullcontext() if self._fuses else without_quality():
            for message in self._messages:
                camera, _, topic = message.topic.strip("/").partition("/")
                self._core.offer(camera, topic, message.data, now=message.time)
                if len(self._core.queue.ready) == len(self._cameras):
                    self._step()

    def _step(self) -> None:
        frames: Sequence[Any] = self._core.step() if self._fuses else self._core.views()
        begun = time.thread_time()
        for frame in frames:
            fused_messages(frame, self._names) if self._fuses else best_classes(frame)
        self.encoding += time.thread_time() - begun


def offline(
    bundles: dict[str, Bundle], bag: Path, objects: int, threads: int, rounds: int
) -> Iterator[Record]:
    """CPU time of a view, and of its stages where one thread does all."""
    messages = recorded(bag)
    views = objects * len(messages) // 2  # an image and its boxes
    runs = {run: Offline(run, bundles[run], messages, threads) for run in RUNS}
    timed = interleaved(runs, rounds, least=0.0).seconds
    for run, played in runs.items():
        yield {
            "kind": "replay",
            "objects": objects,
            "threads": threads,
            "run": run,
            **costs({name: 1e3 * seconds / views for name, seconds in timed.items()}, run),
            "stages_ms": stages_of(played, views) if threads == 1 else {},
        }


def costs(ms: dict[str, np.ndarray], run: str) -> Record:
    """CPU milliseconds of a view, and how many times those of one plain network they are."""
    return {
        **Spread.of(ms[run]).record("cpu_ms", 3),
        **Spread.of(ms[run] / ms["plain"]).record("of_plain", 3),
        **Spread.of(ms[run] / ms["plain int8"]).record("of_int8", 3),
    }


def stages_of(run: Offline, views: int, rounds: int = 3) -> dict[str, float]:
    """CPU milliseconds that a view spends in each stage."""
    spent: defaultdict[str, float] = defaultdict(float)
    kept = {(owner, name): getattr(owner, name) for owner, name in _METHODS}

    def timed(method: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            begun = time.thread_time()
            try:
                return method(*args, **named)
            finally:
                spent[stage] += time.thread_time() - begun

        return call

    for (owner, name), stage in _METHODS.items():
        setattr(owner, name, timed(kept[owner, name], stage))
    run.encoding = 0.0
    try:
        for _ in range(rounds):
            run()
    finally:
        for (owner, name), method in kept.items():
            setattr(owner, name, method)
    spent["encode"] = run.encoding
    return {stage: float(f"{1e3 * spent[stage] / views / rounds:.3g}") for stage in STAGES}


Turns = dict[tuple[str, str], list[Record]]  # by run and bag; the last record is of counters


def live(models: dict[str, str], cameras: int, bags: Sequence[str], seconds: float, rounds: int) -> Turns:
    """What the load says of nodes that take turns."""
    with TemporaryDirectory() as logs, Processes(Path(logs)) as processes:
        processes.environment |= dds_profile()
        pids = []
        for run, model in models.items():
            name = run.replace(" ", "_")
            settings = (
                f"cameras:=[{', '.join(camera_names(cameras))}]",
                f"model:={model}",
                f"precision:={RUNS[run]}",
                "threads:=1",
            )
            words = [word for setting in settings for word in ("-p", setting)]
            module = "lla_fusion_ros.ros perception" if run in FUSED else "bench.argmax_node"
            node = processes.start(name, module, ["--ros-args", "-r", f"__ns:=/{name}", *words])
            pids.append(f"{name}={node.pid}")
        arguments = [*bags, "--nodes", *pids, "--seconds", str(seconds), "--rounds", str(rounds)]
        load = processes.start("load", "bench.load_node", arguments, piped=True)
        out, _ = load.communicate()
        processes.check(*(pid.partition("=")[0] for pid in pids))
        if load.returncode:
            raise DemoError(f"the load node failed with exit code {load.returncode}")
    turns: Turns = defaultdict(list)
    for line in out.splitlines():
        if line.startswith("{"):
            found = json.loads(line)
            turns[found["node"].replace("_", " "), found["bag"]].append(found)
    return turns


def live_records(turns: dict[str, list[Record]], load: Load) -> Iterator[Record]:
    ms = {
        run: np.array([1e3 * turn["cpu_s"] / max(turn["answered"] * load.objects, 1) for turn in own[:-1]])
        for run, own in turns.items()
    }
    for run, own in turns.items():
        yield {
            "kind": "live",
            **load._asdict(),
            "run": run,
            **costs(ms, run),
            **latency(own[:-1]),
            "lost": round(1 - sum(turn["answered"] for turn in own[:-1]) / sent(own[:-1]), 4),
        }


def overload_record(turns: list[Record], load: Load) -> Record:
    """What is dropped and why; everything sent is counted."""
    *played, counted = turns
    answered = sum(turn["answered"] for turn in played)
    account = balance(sent(played), answered, counted["before"], counted["after"])
    fused = [
        own.get("fused_frames", 0) - counted["before"].get(camera, {}).get("fused_frames", 0)
        for camera, own in counted["after"].items()
    ]
    return {
        "kind": "overload",
        "cameras": load.cameras,
        "objects": load.objects,
        "frames_per_s": load.cameras * RATE,
        **{key: value for key, value in account.items() if value or key == "uncounted"},
        "fewest_of_a_camera": min(fused),
        "most_of_a_camera": max(fused),
        **latency(played),
    }


def sent(turns: Sequence[Record]) -> int:
    return sum(turn["sent"] for turn in turns)


def latency(turns: Sequence[Record]) -> Record:
    """Milliseconds from a frame's stamp to the answer."""
    ms = [each for turn in turns for each in turn["latency_ms"]]
    middle, high = np.percentile(ms or [np.nan], [50, 95])
    return {"p50_ms": round(float(middle), 1), "p95_ms": round(float(high), 1)}


def draw_price(rows: Sequence[Record], path: Path) -> None:
    """CPU time of a view by stage, live with two cameras; DDS is what a replay does not need."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    stages = {(row["objects"], row["run"]): row["stages_ms"] for row in rows if row.get("stages_ms")}
    heard = {
        (row["objects"], row["run"]): row["cpu_ms"]
        for row in rows
        if row["kind"] == "live" and row["cameras"] == 2 and not row["raw"]
    }
    shown = [objects for objects in dict.fromkeys(o for o, _ in heard) if (objects, "product") in stages]
    figure, axes = pyplot.subplots(1, len(shown), figsize=(11, 4), layout="constrained", squeeze=False)
    names = {"plain int8": "one network\nint8", "plain": "one network\nfloat32", "product": "this\npackage"}
    colours = pyplot.get_cmap("tab10").colors
    for axis, objects in zip(axes[0], shown, strict=True):
        for place, run in enumerate(names):
            spent, bottom = dict(stages[objects, run]), 0.0
            spent["ROS, DDS"] = max(heard[objects, run] - sum(spent.values()), 0.0)
            for (stage, height), colour in zip(spent.items(), colours, strict=False):
                axis.bar(place, height, 0.7, bottom, color=colour, label="" if place else stage)
                bottom += height
            axis.text(place, bottom, f"{bottom:.2f}", ha="center", va="bottom")
        axis.set_xticks(range(len(names)), list(names.values()), fontsize=8.5)
        axis.set_title(f"{objects} object{'s' if objects > 1 else ''} in a frame", fontsize=11)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(y=0.1)
    axes[0, 0].set_ylabel("CPU time of a view, ms; two cameras, live")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside right center", frameon=False)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
