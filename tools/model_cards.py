"""The card of a bundle: what is in the file, and how its default fuser does on its test tracks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from result_tables import Results

    from lla_fusion_ros.bundle import Bundle

MODELS = Path(__file__).resolve().parents[1] / "models"


def card(results: Results, name: str) -> str:
    """Facts and scores of one bundle; the commands that made it are in the file."""
    from result_tables import markdown, short

    from lla_fusion_ros.bundle import load_bundle  # torch: only where a card is made

    path = MODELS / f"{name}.safetensors"
    bundle, record = load_bundle(path), results[name]
    rows = []
    for regime, alone in record["single_frame"].items():
        own = [
            row
            for row in record["results"]
            if (row["fuser"], row["regime"]) == (record["default_fuser"], regime)
        ]
        last = own[-1]
        low, high = last["accuracy_interval"]
        rows.append(
            [
                regime,
                short(alone),
                ", ".join(f"{short(row['accuracy'])} (L={row['L']})" for row in own[:-1]),
                f"{short(last['accuracy'])} [{short(low)}, {short(high)}]",
                short(last["nll"]),
                short(last["ece"]),
            ]
        )
    header = ["regime", "single frames right", "fused", f"fused, L={last['L']}", "its NLL", "its ECE"]
    return (
        markdown(["", ""], _facts(bundle, path.stat().st_size))
        + f"\nThe {record['tracks']} test tracks, default fuser:\n\n"
        + markdown(header, rows)
    )


def _facts(bundle: Bundle, size: int) -> list[tuple[str, str]]:
    meta = bundle.meta
    tracks = meta.dataset["tracks"]
    weights = sum(array.size for name, array in bundle.tensors.items() if name.startswith("network."))
    channels = "-".join(str(count) for count in meta.architecture["channels"])
    chosen = meta.scores["default_fuser"]["cross_validated_nll"]
    return [
        ("file", f"{size / 1e6:.1f} MB, SHA-256 of its content `{bundle.hash[:16]}…`"),
        (
            "networks",
            f"{meta.networks} × `{meta.architecture['name']}` {channels}, {weights / 1e6:.1f} M weights",
        ),
        ("input", f"RGB crops of {meta.input_size} px, boxes grown by {meta.crop_margin:.0%} on each side"),
        (
            "tracks",
            f"{tracks['train']} training, {tracks['validation']} validation, {tracks['test']} test"
            + (" (the data set's own test part)" if meta.dataset.get("own_test") else ""),
        ),
        (
            "default fuser",
            f"`{meta.default_fuser}`, cross-validated NLL {chosen[meta.default_fuser]:.3f} "
            f"(`pool` {chosen['pool']:.3f})",
        ),
        ("Laplace", meta.scores["laplace"]["summary"]),
    ]
