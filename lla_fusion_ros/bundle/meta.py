"""What a bundle says about itself: the JSON part."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from lla_fusion_ros.errors import BundleError


@dataclass(frozen=True, slots=True)
class BundleMeta:
    """The metadata of a bundle.

    Attributes:
        architecture: what `build_network` takes.
        networks: C, the number of ensemble members.
        class_names: in the order of the logits.
        input_size: side of the crops in pixels.
        crop_margin: by how much of its side a box is grown on each side before it is cut.
        normalisation: fields of `networks.Normalisation`.
        softmax_temperature: of temperature scaling, one per network; the stored heads are already
            divided by it, so it is a record, nothing to apply.
        prior_precision: of the Laplace posterior, lambda.
        posterior_temperature: T_theta; 0 means that the Laplace term is inactive on this data.
        weight_prior: lambda_w, the prior used where variances serve as weights.
        default_fuser: chosen by cross-validation on validation tracks.
        fusers: the fitted scalars of every fuser.
        warnings: the fitted warning models and thresholds, with their false-alarm rates.
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
    weight_prior: float | None = None
    fusers: dict[str, dict[str, Any]] = field(default_factory=dict)
    warnings: dict[str, Any] = field(default_factory=dict)
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
        values["class_names"] = tuple(str(name) for name in values["class_names"])
        values["softmax_temperature"] = tuple(float(t) for t in values.get("softmax_temperature", ()))
        meta = BundleMeta(**values)
        networks, size, margin = int(meta.networks), int(meta.input_size), float(meta.crop_margin)
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(f"bundle '{where}' has incomplete metadata: {error}") from None
    if networks < 1 or size < 4 or not 0 <= margin < 10 or len(meta.class_names) < 2:
        raise BundleError(
            f"bundle '{where}' has impossible metadata: {networks} networks, crops of {size} px, "
            f"margin {margin}, {len(meta.class_names)} classes"
        )
    return meta
