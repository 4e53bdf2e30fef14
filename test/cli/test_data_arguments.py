"""The options that say how to read one's own folders, as a user types them."""

import json

import numpy as np
import pytest

from lla_fusion_ros.cli.main import main
from support.tiny_datasets import write_ppm

WORDS = ["make-bag", "--dataset", "folders", "--root", "signs", "--out", "bag", "--json"]


@pytest.fixture
def signs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("stop", "yield"):
        (tmp_path / "signs" / name).mkdir(parents=True)
        for index in range(3):
            write_ppm(tmp_path / "signs" / name / f"a_{index}.ppm", np.full((20, 20, 3), index, np.uint8))
    return tmp_path / "signs"


def test_a_stray_name_is_refused_until_the_layout_is_said(signs, capsys):
    (signs / "stop" / "a_1.ppm").rename(signs / "stop" / "copy.ppm")
    assert main(WORDS) == 1
    assert "'stop/copy.ppm'" in capsys.readouterr().err
    assert main([*WORDS, "--layout", "images"]) == 0
    assert json.loads(capsys.readouterr().out)["tracks"] == 6


def test_bad_images_are_left_out_and_counted_where_that_is_asked_for(signs, capsys):
    (signs / "stop" / "a_1.ppm").write_bytes(b"P6 broken")
    (signs / "yield" / "a_2.ppm").write_bytes(b"")
    assert main(WORDS) == 1
    complaint = capsys.readouterr().err
    assert "2 of 6 images" in complaint and "stop/a_1.ppm" in complaint and "yield/a_2.ppm" in complaint
    assert main([*WORDS, "--skip-bad"]) == 0
    captured = capsys.readouterr()
    assert "left out 2 images" in captured.err and json.loads(captured.out)["views"] == 4


def test_an_option_that_a_data_set_does_not_have_is_refused_with_the_ones_it_has(signs, capsys):
    assert main([*WORDS, "--option", "lay_out=images"]) == 1
    assert "did you mean 'layout'?" in capsys.readouterr().err
