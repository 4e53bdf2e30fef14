from __future__ import annotations

import csv
import json

import cv2
import numpy as np
import pytest

from lla_fusion_ros.cli.main import main
from lla_fusion_ros.lab.datasets import load_dataset
from lla_fusion_ros.types.errors import DatasetError

SPECIES = ("eland", "kudu", "lynx")


@pytest.fixture(scope="module")
def traps(tmp_path_factory):
    """Sequences of three frames at six sites; the lynx is rare."""
    root, rng = tmp_path_factory.mktemp("traps"), np.random.default_rng(0)
    rows = []
    for number in range(62):
        species = SPECIES[2] if number < 2 else SPECIES[number % 2]
        site, track = f"S{number % 6 if number % 12 < 6 else (number + 1) % 6}", f"{number:04d}"
        for frame in range(3):
            image = rng.integers(0, 90, (40, 40, 3), np.uint8)
            image[..., SPECIES.index(species)] += 80
            file = root / species / f"{site}x{track}_{frame:02d}.png"
            file.parent.mkdir(exist_ok=True)
            cv2.imwrite(str(file), image)
            rows.append((f"{species}/{file.name}", species, site, track, frame))
    with (root / "tracks.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("file", "class", "site", "track", "frame"), *rows])
    return root


def test_rare_species_are_the_outside_world_and_tracks_know_their_site(traps):
    tracks = load_dataset("karoo", traps, split_by="site")
    assert (tracks.name, tracks.class_names) == ("karoo", SPECIES[:2])
    assert sum(track.label < 0 for track in tracks.tracks) == 2
    assert {track.group for track in tracks.tracks} == {f"S{site}" for site in range(6)}
    with pytest.raises(DatasetError, match="has no tracks.csv"):
        load_dataset("karoo", traps / "eland")


def test_the_experiment_from_scratch_scores_every_fuser_on_sites_never_seen(traps, tmp_path, capsys):
    out = tmp_path / "out.json"
    words = ["reproduce", "cameratraps", "--root", str(traps), "--seeds", "0", "--threads", "1"]
    assert main([*words, "--cache", str(tmp_path / "cache"), "--json", str(out)]) == 0
    rows = {(row["fuser"], row["L"]): row for row in json.loads(out.read_text())["rows"]}
    assert {row["by"] for row in rows.values()} == {"site"}
    assert rows["pool", "all"]["accuracy"] > 0.9  # colours tell the species
    assert 0 <= rows["wls", 2]["ece"] <= 1 and 0 <= rows["pool", "all"]["auroc"] <= 1
    assert "camera traps" in capsys.readouterr().out
