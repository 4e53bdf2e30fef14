"""Which bags are meant, and what makes two bags the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lla_fusion_ros.fleet.digest import bag_digest
from lla_fusion_ros.fleet.find import find_bags, means_many
from lla_fusion_ros.types.errors import BagError, InputError


@pytest.fixture
def recordings(tmp_path, monkeypatch) -> Path:
    """Two bags in folders of days, a loose file, results of earlier runs and things that are no bags."""
    for place in ("monday/a/a_0.mcap", "tuesday/b/b_0.db3", "b.mcap", "monday/a_fused/fused/fused.mcap",
                  "old/fleet.json", "old/bags/a-1/fused/fused.mcap", ".trash/c/c.mcap",
                  "notes/read.me"):  # fmt: skip
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(place.encode())
    (tmp_path / "days.txt").write_text("# of this week\nmonday\n\ntuesday/*\ngone/away.mcap\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["monday"], ["monday/a"]),
        (["monday/a"], ["monday/a"]),
        (["monday", "tuesday", "monday/a"], ["monday/a", "tuesday/b"]),
        (["*day/*"], ["monday/a", "monday/a_fused/fused", "tuesday/b"]),
        (["*.mcap"], ["b.mcap"]),
        (["days.txt"], ["gone/away.mcap", "monday/a", "tuesday/b"]),
    ],
)
def test_folders_globs_and_lists_stand_for_the_bags_in_them(recordings, words, found):
    assert [str(path.relative_to(recordings)) for path in find_bags(words)] == found


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["notes"], "'notes' holds no bag"),
        (["wednesday"], "bag 'wednesday' does not exist"),
        (["*.db4"], "no bag matches"),
        (["empty.txt"], "'empty.txt' is empty"),
    ],
)
def test_a_word_that_stands_for_nothing_is_refused(recordings, words, sentence):
    (recordings / "empty.txt").write_text("# nothing\n")
    with pytest.raises(InputError, match=sentence):
        find_bags(words)


def test_one_bag_is_no_fleet_but_a_folder_a_list_or_a_glob_of_bags_is(recordings):
    assert not means_many(["monday/a"]) and not means_many(["b.mcap"]) and not means_many(["gone"])
    assert all(map(means_many, (["monday"], ["days.txt"], ["*.mcap"], ["monday/a", "b.mcap"])))


def test_a_bag_is_known_by_its_content_not_by_its_name(recordings):
    shutil.copytree("monday/a", "copy")
    assert bag_digest(Path("copy")) == bag_digest(Path("monday/a"))
    file = recordings / "copy" / "a_0.mcap"
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    assert bag_digest(Path("copy"))[0] != bag_digest(Path("monday/a"))[0]
    file.rename(file.with_name("other.mcap"))
    assert bag_digest(Path("copy"))[1] == len("monday/a/a_0.mcap")
    with pytest.raises(BagError, match="holds no rosbag2 storage file"):
        bag_digest(Path("notes"))
