"""Names from outside on terminals, in tables and as names of files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lla_fusion_ros.types.printable import escaped, file_name, printable

# Few letters, so that names are much alike.
NAMES = st.text(st.sampled_from("aA_x1/:b%~. -\\\x1b\x9b\n\u202e\udcffé語"))


@given(st.lists(NAMES, unique=True), st.sampled_from(["", "long " * 40]))
def test_every_name_is_another_one_in_a_table_and_as_a_file(names, before):
    for made in (escaped, file_name):
        found = [made(before + name) for name in names]
        assert len(set(found)) == len(names) and all(map(str.isprintable, found))


@given(NAMES | st.text(st.characters(exclude_categories=())), st.integers(1, 60))
def test_any_name_is_that_of_a_file_here(tmp_path_factory, name, times):
    found = file_name(name * times)
    assert not set(found) & set("/\\:") and not found.startswith(".") and found == found.strip(" .")
    assert 0 < len(found.encode()) <= 100
    (tmp_path_factory.getbasetemp() / f"of a file {found}").touch()


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("track 1_b-2.0+", "track 1_b-2.0+"),
        ("Ampel grün 語", "Ampel grün 語"),
        ("a/b", "a%2Fb"),
        ("a:b", "a%3Ab"),
        ("100%", "100%25"),
        ("..", "%2E%2E"),
        (".hidden ", "%2Ehidden%20"),
        ("", "%"),
        ("\x1b[2J", "%1B%5B2J"),
    ],
)
def test_ordinary_names_stay_and_others_are_read_as_in_addresses(name, file):
    assert file_name(name) == file


def test_what_nobody_sees_is_shown_and_ordinary_text_stays():
    assert printable("\x1b[2Jgone\t\u202e\udcff") == "\\x1b[2Jgone\\t\\u202e\\udcff"
    assert printable(r"C:\drive grün 語") == r"C:\drive grün 語"
    assert escaped("\x1b") == r"\x1b" and escaped(r"\x1b") == r"\\x1b"
