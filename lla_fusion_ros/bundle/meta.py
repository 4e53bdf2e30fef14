"""What a bundle says about itself: the JSON part."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from lla_fusion_ros.types.errors import BundleError

MOST_CLASSES = 1000  # what a message can list
MOST_NETWORKS = 1000
LARGEST_CROP = 4096
# Fusers of older releases, and what a bundle that has one of them as its default uses now.
REPLACED = {"dual_pool": "evidence_pool", "reliable_pool": "evidence_pool"}


@dataclass(frozen=True, slots=True)
class BundleMeta:
    """The metadata of a bundle.

    Attributes:
        architecture: what `build_network` takes; {"name": "onnx"} where the networks are ONNX graphs only.
        networks: C, the number of ensemble members.
        class_names: in the order of the logits.
        reserved: those of them, the last, that are no kinds of objects, as that nothing is there.
        input_size: side of the crops in pixels.
        crop_margin: by how much of its side a box is grown on each side before it is cut.
        normalisation: fields of `networks.Normalisation`; a graph does it by itself.
        softmax_temperature: of temperature scaling, one per network; the stored heads are already
            divided by it, so it is a record, nothing to apply.
        prior_precision: of the Laplace posterior, lambda.
        posterior_temperature: T_theta; 0 means that the Laplace term is inactive on this data.
        weight_prior: lambda_w, the prior used where variances serve as weights.
        trunks: of the ONNX graphs, where there are any: the trunk that each network stands on.
        changing: names of classes that change into each other under one id, as the states of a light do.
        changes: how often objects change, and how often ordinary tracks look so (`Bundle.change_rates`).
        plugins: Python modules that register the architecture, where it is not the package's own.
        default_fuser: chosen by cross-validation on validation tracks.
        fusers: the fitted scalars of every fuser.
        warnings: the fitted warning models and thresholds, with their false-alarm rates.
        reliance: the calibration of sets and bounds (`reliance.statements`), for the default fuser.
        scores: measured on validation and test tracks.
        dataset: name, digest, split seed, held-out classes, number of tracks.
        training: the command, seeds, epochs and settings it was made with.
        package_version: of lla_fusion_ros when the file was made.
    """

    architecture: dict[str, Any]
    networks: int
    class_names: tuple[str, ...]
    input_size: int
    crop_margin: float
    normalisation: dict[str, Any]
    prior_precision: float
    posterior_temperature: float
    default_fuser: str
    softmax_temperature: tuple[float, ...] = ()
    trunks: tuple[int, ...] = ()
    changing: tuple[str, ...] = ()
    changes: dict[str, Any] = field(default_factory=dict)
    reserved: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    weight_prior: float | None = None
    fusers: dict[str, dict[str, Any]] = field(default_factory=dict)
    warnings: dict[str, Any] = field(default_factory=dict)
    reliance: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)
    dataset: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    package_version: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def meta_from_dict(document: Any, where: str) -> BundleMeta:
    """Check the JSON part of a file; `where` names the file in errors."""
    if not isinstance(document, dict):
        raise BundleError(f"bundle '{where}' has no metadata")
    known = {f.name for f in fields(BundleMeta)}
    unknown = sorted(set(document) - known)
    if unknown:
        raise BundleError(f"bundle '{where}' has metadata this package does not know: {', '.join(unknown)}")
    values = dict(document)
    try:
        values["class_names"] = tuple(_listed(values["class_names"], str))
        values["softmax_temperature"] = tuple(_listed(values.get("softmax_temperature", []), int | float))
        values["trunks"] = tuple(_listed(values.get("trunks", []), int))
        values["reserved"] = tuple(_listed(values.get("reserved", []), str))
        values["changing"] = tuple(_listed(values.get("changing", []), str))
        values["plugins"] = tuple(_listed(values.get("plugins", []), str))
        meta = BundleMeta(**values)
        for name in (
            "architecture",
            "normalisation",
            "fusers",
            "warnings",
            "reliance",
            "changes",
            "scores",
            "dataset",
            "training",
        ):
            _typed(name, getattr(meta, name), dict)
        _check_normalisation(meta.normalisation)
        for name, fitted in meta.fusers.items():
            _typed(f"fusers.{name}", fitted, dict)
        for name in ("networks", "input_size"):
            _typed(name, getattr(meta, name), int)
        for name in ("crop_margin", "prior_precision", "posterior_temperature"):
            _typed(name, getattr(meta, name), int | float)
        _typed("default_fuser", meta.default_fuser, str)
        meta = replace(
            meta,
            default_fuser=REPLACED.get(meta.default_fuser, meta.default_fuser),
            fusers={name: fitted for name, fitted in meta.fusers.items() if name not in REPLACED},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(f"bundle '{where}' has incomplete metadata: {error}") from None
    possible = (
        1 <= meta.networks <= MOST_NETWORKS
        and 4 <= meta.input_size <= LARGEST_CROP
        and 0 <= meta.crop_margin < 10
        and 2 <= len(meta.class_names) <= MOST_CLASSES
        and 0 < meta.prior_precision < math.inf
        and 0 <= meta.posterior_temperature < math.inf
        and (not meta.trunks or len(meta.trunks) == meta.networks and min(meta.trunks) >= 0)
    )
    if not possible:
        raise BundleError(
            f"bundle '{where}' has impossible metadata: {meta.networks} networks, "
            f"crops of {meta.input_size} px, margin {meta.crop_margin}, {len(meta.class_names)} classes, "
            f"prior precision {meta.prior_precision}, posterior temperature {meta.posterior_temperature}"
        )
    named = len(meta.class_names) - len(meta.reserved)
    if named < 1 or meta.class_names[named:] != meta.reserved:
        raise BundleError(f"bundle '{where}': the reserved classes are not the last of class_names")
    return meta


def _check_normalisation(values: dict[str, Any]) -> None:
    """The names and types of `networks.Normalisation`, which needs torch: not for those who only fuse."""
    unknown = sorted(set(values) - {"kind", "mean", "std", "floor", "gray"})
    if unknown:
        raise ValueError(f"'normalisation' has an unknown '{unknown[0][:60]}'")
    _typed("normalisation.kind", values.get("kind", ""), str)
    for name in ("mean", "std", "floor"):
        _typed(f"normalisation.{name}", values.get(name, 0.0), int | float)
    if not isinstance(values.get("gray", False), bool):
        raise ValueError(f"'normalisation.gray' is {str(values['gray'])[:60]!r}, not true or false")


def _typed(name: str, value: Any, kind: Any) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"'{name}' is {str(value)[:60]!r}, a {type(value).__name__}")


def _listed(values: Any, kind: Any) -> list[Any]:
    _typed("a list", values, list | tuple)
    for value in values:
        _typed("an entry of a list", value, kind)
    return list(values)
