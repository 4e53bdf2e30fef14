"""How the bags of a fleet are fused, and what makes two plans the same."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lla_fusion_ros import __version__
from lla_fusion_ros.fleet.find import bag_name
from lla_fusion_ros.types.printable import file_name

if TYPE_CHECKING:
    from lla_fusion_ros.bundle import Bundle
    from lla_fusion_ros.replay.output_folder import Wanted
    from lla_fusion_ros.replay.replay import ReplayOptions

FORMAT = "lla_fusion_ros fleet 1"
RECORD = "bag.json"
PICTURES = "pictures"
BAGS_FOLDER, PARTS_FOLDER = "bags", ".parts"


@dataclass(frozen=True, slots=True)
class Plan:
    """How every bag is fused, and where the results go; paths mean the same to all workers.

    Attributes:
        run: hash of all that decides on results besides the bag.
        bundle_hash: the file at `bundle` must have it.
        truths: folder of NAME.truth.json files.
        plugins: modules that workers import before they load the model.
    """

    out: Path
    bundle: Path
    bundle_hash: str
    options: ReplayOptions
    wanted: Wanted
    run: str
    truths: Path | None = None
    plugins: tuple[str, ...] = ()
    version: str = __version__


@dataclass(frozen=True, slots=True)
class Look:
    """What can be said of a bag before it is fused.

    Attributes:
        digest: of its content; empty where `error` says why there is none.
        name: of its folder of results.
        truth: hash of its truth file; empty where there is none.
    """

    path: Path
    digest: str = ""
    size: int = 0
    truth: str = ""
    error: str = ""

    @property
    def name(self) -> str:
        return f"{file_name(bag_name(self.path))}-{self.digest[:10]}"


def plan_hash(document: dict[str, Any]) -> str:
    """Of all that decides on results; equal for equal plans, whoever makes them."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()


def plan_document(bundle: Bundle, options: ReplayOptions, wanted: Wanted, truths: bool) -> dict[str, Any]:
    """What `fleet.json` says of a run, and what its hash is made of."""
    chosen = asdict(options)
    del chosen["device"], chosen["fusion"]["fuser"]  # the fuser in use is told by its name
    return {
        "version": __version__,
        "model": Path(bundle.source).stem,
        "bundle": bundle.hash,
        "classes": list(bundle.class_names),
        "fuser": options.fusion.fuser or bundle.meta.default_fuser,
        "options": chosen,
        "outputs": {key: value for key, value in asdict(wanted).items() if key not in ("truth", "overwrite")},
        "scored": truths,
    }
