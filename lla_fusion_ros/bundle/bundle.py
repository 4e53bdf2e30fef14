"""One model file <-> networks, posterior, fusers and warning models.

Tensors in the file: `network.<c>.<parameter>` for every member (of networks that are ONNX graphs only the
head; what a trunk has in common with that of network 0 stands there only), `graph.<number>.<precision>` the
bytes of a graph of one trunk or several, `basis.<trunk>` (see `networks/heads.py`), `posterior.factors`
(packed lower triangles, [networks, classes, D (D + 1) / 2]), `posterior.cross` where present,
`warnings.<name>`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lla_fusion_ros.bundle.container import read_container, write_container
from lla_fusion_ros.bundle.meta import BundleMeta, meta_from_dict
from lla_fusion_ros.bundle.resources import NO_NETWORKS, SCORES, find_model
from lla_fusion_ros.fusion.hypotheses import ChangeRates
from lla_fusion_ros.networks.heads import Head
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import BundleError, InputError, LlaFusionError, unknown_name

if TYPE_CHECKING:  # torch takes seconds to import; a fusion node without networks never needs it
    from lla_fusion_ros.networks import Ensemble, Normalisation, SplitNetwork
    from lla_fusion_ros.reliance.statements import Reliance
    from lla_fusion_ros.warnings.model import AlarmTable, WarningModel

ONNX = "onnx"  # the name of the architecture whose networks are graphs only
PMF_FUSERS = ("ema", "last", "log_linear", "log_odds", "mean_pmf", "pool", "product", "vote")
# How wrong a detector's sure score can be, and how high the log-odds of a change rise for detectors that are
# wrong in up to a fifth of the frames; where a file for scores has no numbers of its own.
SCORE_CHANGES: dict[str, Any] = {
    "lapse": 0.03,
    "alarm": {
        "thresholds": (-5.5, -2.6, -1.8, -0.75, 0.1, 1.0, 1.7, 3.1, 4.0, 4.9, 5.7, 7.7),
        "tracks": 0,
    },
}
_NETWORK = "network."
_WARNINGS = "warnings."


@dataclass(frozen=True)  # no slots: cached_property keeps the posterior in the instance
class Bundle:
    """A trained, fitted and calibrated ensemble; `source` names it in errors."""

    meta: BundleMeta
    tensors: dict[str, np.ndarray]
    hash: str = ""
    source: str = "in memory"

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.meta.class_names

    @property
    def classes(self) -> int:
        return len(self.meta.class_names)

    @property
    def reserved(self) -> tuple[str, ...]:
        """Outcomes that are no kinds of objects; they stand last."""
        return self.meta.reserved

    @property
    def named_classes(self) -> tuple[str, ...]:
        """The classes of objects."""
        return self.class_names[: self.classes - len(self.reserved)]

    @property
    def is_open(self) -> bool:
        """Whether messages name the classes as they come."""
        return bool(self.meta.architecture.get("open"))

    @property
    def networks(self) -> int:
        return self.meta.networks

    @property
    def input_size(self) -> int:
        return self.meta.input_size

    @property
    def crop_margin(self) -> float:
        return self.meta.crop_margin

    @property
    def for_torch(self) -> bool:
        """Whether torch can run the networks."""
        return self.meta.architecture.get("name") not in (ONNX, SCORES)

    @property
    def for_scores(self) -> bool:
        """Whether there are no networks: the scores that detections carry are fused."""
        return self.meta.architecture.get("name") == SCORES

    @property
    def older(self) -> tuple[str, ...]:
        """What was not fitted yet when the file was written, and what stands in its place."""
        sentences = []
        values = self.meta.fusers.get(self.meta.default_fuser)
        used = self.fuser().value
        if values and "size" in used and "size" not in values:
            sentences.append(
                f"how much the size of a box counts: by its side to the power of {used['size']:g}"
            )
        if values and "alarm" not in self.meta.changes:
            sentences.append("how often ordinary objects look changed: as often as is usual")
        usual = self.meta.warnings.get("usual")
        if usual and "distance" not in usual:
            sentences.append("what box sizes and focus say of unknown objects: judged without them")
        return tuple(sentences)

    def graphs(self, precision: str) -> list[bytes]:
        """The networks' trunks as ONNX graphs; none where the file holds none of this precision."""
        found: list[bytes] = []
        while (stored := self.tensors.get(f"graph.{len(found)}.{precision}")) is not None:
            found.append(stored.tobytes())
        return found

    def heads(self) -> list[Head]:
        """The last layers, to stand on the trunks of the graphs."""
        single = [
            (self._head(c).astype(np.float32), self._tensor(f"{_NETWORK}{c}.head.bias").astype(np.float32))
            for c in range(self.networks)
        ]
        return [
            Head(trunk, weight, bias, self._basis(trunk))
            for trunk, (weight, bias) in zip(self.meta.trunks, single, strict=True)
        ]

    def _basis(self, trunk: int) -> np.ndarray | None:
        return self.tensors.get(f"basis.{trunk}")

    def members(self) -> list[SplitNetwork]:
        """The networks as they were trained, batch norm included."""
        if not self.for_torch:
            raise BundleError(f"bundle '{self.source}': ONNX graphs are not for torch to train")
        import torch

        from lla_fusion_ros.networks import build_network

        self._check_architecture()
        result = []
        common = {name: array for name, array in self._stored(0).items() if name.startswith("trunk.")}
        for index in range(self.networks):
            network = build_network(self.meta.architecture, self.classes)
            state = {
                name: torch.from_numpy(array.astype(_module_dtype(array)))
                for name, array in {**common, **self._stored(index)}.items()
            }
            try:
                network.load_state_dict(state)
            except RuntimeError as error:
                raise BundleError(
                    f"bundle '{self.source}': network {index} does not fit its architecture: {error}"
                ) from None
            result.append(network.eval())
        return result

    def _stored(self, network: int) -> dict[str, np.ndarray]:
        prefix = f"{_NETWORK}{network}."
        return {name[len(prefix) :]: a for name, a in self.tensors.items() if name.startswith(prefix)}

    def _check_architecture(self) -> None:
        """Refuse an architecture that the stored weights are not of, before room is made for its own."""
        import torch

        from lla_fusion_ros.networks import build_network

        try:
            with torch.device("meta"):  # shapes without numbers
                planned = build_network(self.meta.architecture, self.classes).state_dict()
        except InputError as error:
            made = ", ".join(self.meta.plugins)
            hint = f"; it was made with the plugin {made}: set `plugins` to that" if made else ""
            raise BundleError(f"bundle '{self.source}': {error}{hint}") from None
        except (RuntimeError, ValueError, TypeError, ArithmeticError, AttributeError) as error:
            raise BundleError(f"bundle '{self.source}' has an impossible architecture: {error}") from None
        prefix = f"{_NETWORK}0."
        for name, value in planned.items():
            stored = self.tensors.get(prefix + name)
            if stored is None or stored.size != value.numel():  # the file keeps scalars as lists of one
                found = "nothing" if stored is None else f"{stored.shape}"
                raise BundleError(
                    f"bundle '{self.source}': network 0 does not fit its architecture: '{name}' should be "
                    f"of shape {tuple(value.shape)}, the file has {found}"
                )

    def ensemble(self, networks: Sequence[int] | None = None, eight_bits: bool = False) -> Ensemble:
        """All members, or some of them, in one module for inference."""
        from lla_fusion_ros.networks import Ensemble

        members = self.members()
        chosen = members if networks is None else [members[index] for index in networks]
        return Ensemble(chosen, eight_bits=eight_bits)

    def normalisation(self) -> Normalisation:
        from lla_fusion_ros.networks import Normalisation

        return Normalisation(**self.meta.normalisation)

    @cached_property
    def _posterior(self) -> EnsemblePosterior:
        packed = self._packed_factors().astype(np.float64)
        size = self._features()
        rows, columns = np.tril_indices(size)
        factors = np.zeros((*packed.shape[:-1], size, size))
        factors[..., rows, columns] = packed
        cross = self.tensors.get("posterior.cross")
        return EnsemblePosterior(
            factors,
            self.meta.prior_precision,
            self.meta.posterior_temperature,
            None if cross is None else np.asarray(cross, np.float64),
        )

    def _features(self, network: int = 0) -> int:
        """D: width of the last hidden layer plus one, as the stored heads or their bases have it."""
        width = self._head(network).shape[1]
        basis = self._basis(self.meta.trunks[network]) if self.meta.trunks else None
        if basis is None:
            return width + 1
        if basis.ndim != 2 or basis.dtype != np.float32 or len(basis) != width:
            raise BundleError(f"bundle '{self.source}': the basis of network {network} does not fit its head")
        return basis.shape[1] + 2

    def _head(self, network: int) -> np.ndarray:
        """[classes, width]"""
        head = self._tensor(f"{_NETWORK}{network}.head.weight")
        if head.ndim != 2 or head.dtype.kind != "f":
            raise BundleError(f"bundle '{self.source}': the head of network {network} is no matrix")
        return head

    def _packed_factors(self) -> np.ndarray:
        """The stored triangles; shapes are compared before anything of their size is made."""
        packed = self._tensor("posterior.factors")
        width = self._features()
        expected = (self.networks, self.classes, width * (width + 1) // 2)
        if packed.shape != expected or packed.dtype.kind != "f":
            raise BundleError(
                f"bundle '{self.source}': posterior of shape {packed.shape} does not fit "
                f"{self.networks} networks, {self.classes} classes and {width} features"
            )
        return packed

    def posterior(self) -> EnsemblePosterior:
        """The Laplace posterior of the last layers, computed once."""
        return self._posterior

    def fuser(self, name: str | None = None, window: int = 30) -> Any:
        """A fuser with the scalars fitted for these networks; the bundle's default without a name."""
        from lla_fusion_ros.fusion import make_fuser

        chosen = name or self.meta.default_fuser
        if self.for_scores and chosen not in PMF_FUSERS:
            raise BundleError(
                f"fuser '{chosen}' needs networks, and bundle '{self.source}' has scores only: choose one of "
                + ", ".join(PMF_FUSERS)
            )
        return make_fuser(chosen, self.posterior(), self.meta.fusers.get(chosen), window)

    def with_warnings(self, model: WarningModel) -> Bundle:
        """The same with other warnings."""
        arrays, record = model.to_parts()
        kept = {name: array for name, array in self.tensors.items() if not name.startswith(_WARNINGS)}
        kept |= {_WARNINGS + name: array for name, array in arrays.items()}
        return replace(self, meta=replace(self.meta, warnings=record), tensors=kept)

    def warning_model(self) -> WarningModel | None:
        """The fitted warning models and thresholds, or None where nothing was fitted."""
        if not self.meta.warnings:
            return None
        from lla_fusion_ros.warnings.model import WarningModel

        arrays = {
            name[len(_WARNINGS) :]: array
            for name, array in self.tensors.items()
            if name.startswith(_WARNINGS)
        }
        return WarningModel.from_parts(arrays, self.meta.warnings)

    def changing(self, named: str = "") -> np.ndarray:
        """Classes that change into each other under one id.  [classes] bool

        named: classes, separated by commas; all: every one; empty: those that the bundle names
        """
        known = self.named_classes
        names = self.meta.changing if not named else tuple(name.strip() for name in named.split(","))
        if named == "all":
            names = known
        for name in names:
            if name not in known and not self.is_open:
                raise InputError(f"changing classes: {unknown_name('class', name, known)}")
        return np.isin(self.class_names, names)

    @property
    def _changes(self) -> dict[str, Any]:
        return self.meta.changes or (SCORE_CHANGES if self.for_scores else {})

    def change_rates(self) -> ChangeRates:
        """How often objects and classes change; what the file does not say is usual."""
        stored = self._changes
        rates = ChangeRates(
            **{f.name: float(stored[f.name]) for f in fields(ChangeRates) if f.name in stored}
        )
        if not (0 <= rates.identity <= 100 and 0 <= rates.change <= 100 and 0 < rates.lapse < 1):
            raise BundleError(f"bundle '{self.source}' has impossible rates of change: {rates}")
        return rates

    def change_alarm(self) -> AlarmTable:
        """How often the log-odds of a change of ordinary tracks ever rise how high."""
        from lla_fusion_ros.warnings.model import USUAL_CHANGE, AlarmTable

        if "alarm" not in self._changes:
            return USUAL_CHANGE
        try:
            table = AlarmTable.from_dict(self._changes["alarm"])
        except (KeyError, TypeError) as error:
            raise BundleError(f"bundle '{self.source}': the thresholds of changes lack {error}") from None
        table.check()
        return table

    def reliance(self) -> Reliance | None:
        """The calibration of sets and bounds, or None where nothing was fitted."""
        if not self.meta.reliance:
            return None
        from lla_fusion_ros.reliance.statements import Reliance

        return Reliance.from_dict(self.meta.reliance)

    def _tensor(self, name: str) -> np.ndarray:
        if name not in self.tensors:
            raise BundleError(f"bundle '{self.source}' lacks the tensor '{name}'")
        return self.tensors[name]

    def check(self) -> None:
        """Refuse a bundle whose parts do not fit each other."""
        if self.meta.softmax_temperature and len(self.meta.softmax_temperature) != self.networks:
            raise BundleError(
                f"bundle '{self.source}' has {self.networks} networks "
                f"but {len(self.meta.softmax_temperature)} softmax temperatures"
            )
        if self.for_scores:
            self._check_scores()
        elif not self.for_torch and not (self.meta.trunks and self.graphs("float32")):
            raise BundleError(f"bundle '{self.source}' holds neither networks nor graphs")
        for index in range(self.networks):
            head = self._head(index)
            if len(head) != self.classes:
                raise BundleError(
                    f"bundle '{self.source}' has {len(head)} classes but class_names lists {self.classes}"
                )
            if self._features(index) != self._features():
                raise BundleError(f"bundle '{self.source}': network {index} has features of its own number")
        for name, array in self.tensors.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise BundleError(f"bundle '{self.source}': the tensor '{name}' holds NaN or infinity")
        try:
            self.posterior()
            self.fuser()
            self.reliance()
            self.changing()
            self.change_rates()
            self.change_alarm()
            model = self.warning_model()
            if model is not None:
                model.check(self.networks, self._features())
        except LlaFusionError as error:
            raise BundleError(f"bundle '{self.source}': {error}") from None

    def _check_scores(self) -> None:
        said = self.meta.architecture.get("said", list(self.named_classes))
        wrong = not isinstance(said, list) or not all(isinstance(name, str) for name in said)
        if wrong or len(said) != len(self.named_classes):
            raise BundleError(f"bundle '{self.source}' does not say how messages call its classes")
        confusion = self.tensors.get("scores.confusion")
        if confusion is not None and (
            confusion.shape != (self.classes,) * 2 or confusion.dtype.kind != "f" or (confusion < 0).any()
        ):
            raise BundleError(f"bundle '{self.source}' has a confusion matrix of shape {confusion.shape}")


def _module_dtype(array: np.ndarray) -> np.dtype[Any]:
    """Weights may be stored in half precision; modules compute in single. Counters stay integers."""
    return np.dtype(np.float32) if array.dtype.kind == "f" else array.dtype


def network_tensors(members: Sequence[SplitNetwork], half: bool = False) -> dict[str, np.ndarray]:
    """Networks of torch as a bundle stores them; `half`: weights in 16 bits."""
    tensors: dict[str, np.ndarray] = {}
    for index, member in enumerate(members):
        for name, value in member.state_dict().items():
            array = value.detach().cpu().numpy().copy()
            array = array.astype(np.float16) if half and array.ndim > 1 else array
            common = tensors.get(f"{_NETWORK}0.{name}") if name.startswith("trunk.") else None
            if common is None or not np.array_equal(array, common):
                tensors[f"{_NETWORK}{index}.{name}"] = array
    return tensors


def graph_tensors(graphs: Mapping[str, Sequence[bytes]], heads: Sequence[Head]) -> dict[str, np.ndarray]:
    """Graphs by precision, and the heads on them, as a bundle stores them."""
    tensors: dict[str, np.ndarray] = {}
    for precision, parts in graphs.items():
        for number, graph in enumerate(parts):
            tensors[f"graph.{number}.{precision}"] = np.frombuffer(graph, np.uint8)
    for index, head in enumerate(heads):
        tensors[f"{_NETWORK}{index}.head.weight"] = head.weight.astype(np.float32)
        tensors[f"{_NETWORK}{index}.head.bias"] = head.bias.astype(np.float32)
        if head.basis is not None:
            tensors[f"basis.{head.trunk}"] = head.basis.astype(np.float32)
    return tensors


def make_bundle(
    meta: BundleMeta,
    networks: Sequence[SplitNetwork] | Mapping[str, np.ndarray],
    posterior: EnsemblePosterior,
    warning_tensors: dict[str, np.ndarray] | None = None,
) -> Bundle:
    """Put trained parts together; `networks` may be what `network_tensors` or `graph_tensors` give."""
    tensors = dict(networks) if isinstance(networks, Mapping) else network_tensors(networks)
    rows, columns = np.tril_indices(posterior.features)
    tensors["posterior.factors"] = posterior.factors[..., rows, columns].astype(np.float32)
    if posterior.cross is not None:
        tensors["posterior.cross"] = posterior.cross.astype(np.float32)
    for name, array in (warning_tensors or {}).items():
        tensors[f"{_WARNINGS}{name}"] = array.astype(np.float32) if array.dtype == np.float64 else array
    bundle = Bundle(meta, tensors)
    bundle.check()
    return bundle


def save_bundle(bundle: Bundle, path: str | Path) -> str:
    """Write the bundle atomically; returns its hash."""
    bundle.check()
    return write_container(Path(path), bundle.meta.as_dict(), bundle.tensors)


def load_bundle(name_or_path: str | Path) -> Bundle:
    """Read and check a bundle, by its path or the name of one that ships; BundleError says why not.

    `scores` is the uncalibrated bundle without networks.
    """
    if str(name_or_path) == SCORES:
        from lla_fusion_ros.bundle.score_bundle import score_bundle

        return score_bundle()
    path = find_model(name_or_path)
    document, tensors, digest = read_container(path)
    bundle = Bundle(meta_from_dict(document, str(path)), tensors, digest, str(path))
    bundle.check()
    return bundle


def load_ensemble(name_or_path: str | Path) -> Bundle:
    """The same for what needs networks; BundleError where the bundle has none."""
    bundle = load_bundle(name_or_path)
    if bundle.for_scores:
        raise BundleError(NO_NETWORKS.format(bundle.source))
    return bundle
