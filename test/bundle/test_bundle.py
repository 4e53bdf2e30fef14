"""The model file: exact, checked, never trusted."""

import json
import os
import pickle
import re
import struct
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from lla_fusion_ros.bundle import container as container_module
from lla_fusion_ros.bundle import load_bundle, make_bundle, save_bundle
from lla_fusion_ros.bundle.bundle import network_tensors
from lla_fusion_ros.bundle.meta import meta_from_dict
from lla_fusion_ros.cli.info import bundle_lines
from lla_fusion_ros.networks import Normalisation
from lla_fusion_ros.types.errors import BundleError
from support.tiny_bundle import tiny_bundle


@pytest.fixture(scope="module")
def bundle():
    return tiny_bundle()


@pytest.fixture(scope="module")
def content(bundle, tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "model.safetensors"
    save_bundle(bundle, path)
    return path.read_bytes()


def test_a_round_trip_is_bit_exact(bundle, tmp_path):
    path = tmp_path / "a.safetensors"
    digest = save_bundle(bundle, path)
    loaded = load_bundle(path)
    assert loaded.meta == bundle.meta and loaded.hash == digest
    assert loaded.tensors.keys() == bundle.tensors.keys()
    for name, array in bundle.tensors.items():
        assert loaded.tensors[name].dtype == array.dtype
        assert loaded.tensors[name].tobytes() == array.tobytes()
    again = tmp_path / "b.safetensors"
    save_bundle(loaded, again)
    assert again.read_bytes() == path.read_bytes()


def test_a_file_that_knows_nothing_of_sizes_runs_and_says_so():
    older = tiny_bundle(default_fuser="evidence_pool")
    assert older.older == ()  # nothing was fitted at all
    older = replace(older, meta=replace(older.meta, fusers={"evidence_pool": {"alpha": 1.0}}))
    assert older.fuser().value["size"] == 2.0
    assert older.older[0] == "how much the size of a box counts: by its side to the power of 2"
    assert any(older.older[0] in line for line in bundle_lines(older, 0))
    fitted = replace(older, meta=replace(older.meta, fusers={"evidence_pool": {"alpha": 1.0, "size": 1.5}}))
    assert older.older[0] not in fitted.older


def test_info_tells_from_which_box_sizes_unknown_objects_are_judged():
    bundle = tiny_bundle()

    def lines(usual: dict) -> list[str]:
        return bundle_lines(replace(bundle, meta=replace(bundle.meta, warnings={"usual": usual})), 0)

    assert any("from 8 px" in line for line in lines({"distance": {"smallest": 8.04}}))
    assert any("judged without them" in line for line in lines({"lowest": 0.0}))
    assert not any(
        "in smaller ones" in line or "judged" in line for line in lines({"distance": {"smallest": 0.0}})
    )


def test_a_loaded_bundle_computes_the_same(bundle, tmp_path):
    import torch

    save_bundle(bundle, tmp_path / "a.safetensors")
    images = torch.rand(3, 3, bundle.input_size, bundle.input_size)
    loaded = load_bundle(tmp_path / "a.safetensors")
    for first, second in zip(bundle.ensemble()(images), loaded.ensemble()(images), strict=True):
        assert torch.equal(first, second)
    assert (loaded.posterior().factors == bundle.posterior().factors).all()


def test_weights_stored_in_half_precision_are_smaller_and_come_back_as_single(bundle, tmp_path):
    import torch

    small = make_bundle(bundle.meta, network_tensors(bundle.members(), half=True), bundle.posterior())
    save_bundle(small, tmp_path / "half.safetensors")
    loaded = load_bundle(tmp_path / "half.safetensors")
    assert sum(a.nbytes for a in loaded.tensors.values()) < sum(a.nbytes for a in bundle.tensors.values())
    states = [member.state_dict().values() for member in loaded.members()]
    assert all(value.dtype in (torch.float32, torch.int64) for state in states for value in state)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_flipped_bit_is_refused(content, tmp_path, data):
    place = data.draw(st.integers(0, len(content) - 1))
    bit = data.draw(st.integers(0, 7))
    broken = bytearray(content)
    broken[place] ^= 1 << bit
    path = tmp_path / "flipped.safetensors"
    path.write_bytes(bytes(broken))
    with pytest.raises(BundleError):
        load_bundle(path)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1, exclude_max=True))
def test_any_truncation_is_refused(content, tmp_path, share):
    path = tmp_path / "short.safetensors"
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(BundleError):
        load_bundle(path)


@pytest.mark.parametrize(
    "foreign",
    [b"", b"PK\x03\x04 a zip file, say", pickle.dumps({"weights": [1, 2]}), b"\0" * 64, b"\xff" * 64],
    ids=["empty", "zip", "pickle", "zeros", "ones"],
)
def test_a_foreign_file_is_refused(foreign, tmp_path):
    path = tmp_path / "foreign.safetensors"
    path.write_bytes(foreign)
    with pytest.raises(BundleError, match="foreign.safetensors"):
        load_bundle(path)


def with_header(content: bytes, old: str, new: str) -> bytes:
    """The file with a text of its header replaced, its length put right."""
    (length,) = struct.unpack("<Q", content[:8])
    header = content[8 : 8 + length].decode()
    assert old in header
    changed = header.replace(old, new, 1).encode()
    return struct.pack("<Q", len(changed)) + changed + content[8 + length :]


def test_a_key_that_stands_twice_is_refused_wherever_it_stands(bundle, content, tmp_path, monkeypatch):
    path = tmp_path / "twice.safetensors"
    for old, new in (
        ('{"__metadata__"', '{"__metadata__":{},"__metadata__"'),
        ('{\\"format\\"', '{\\"format\\":1,\\"format\\"'),
    ):
        path.write_bytes(with_header(content, old, new))
        with pytest.raises(BundleError, match="stands twice"):
            load_bundle(path)

    class TwoNames:  # the hash of such a file is right: whoever makes it can also sum it up
        dumps = staticmethod(
            lambda value, **options: json.dumps(value, **options).replace(
                '"networks"', '"networks": 9, "networks"', 1
            )
        )

    monkeypatch.setattr(container_module, "json", TwoNames)
    save_bundle(bundle, path)
    monkeypatch.undo()
    with pytest.raises(BundleError, match="'networks' stands twice"):
        load_bundle(path)


def test_a_huge_file_is_refused_by_its_head_before_the_rest_is_read(content, tmp_path):
    import tracemalloc

    path = tmp_path / "sparse.safetensors"
    for head in (b"", content):  # zeros, and a bundle with gigabytes behind it
        path.write_bytes(head)
        os.truncate(path, 2 * 1024**3)
        tracemalloc.start()
        with pytest.raises(BundleError, match=r"sparse.safetensors"):
            load_bundle(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20_000_000


def test_a_pickle_that_would_run_code_runs_none(tmp_path):
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    path = tmp_path / "harm.safetensors"
    path.write_bytes(pickle.dumps(Harm()))
    with pytest.raises(BundleError):
        load_bundle(path)
    assert not (tmp_path / "harm").exists()


def test_somebody_elses_safetensors_is_named_as_such(tmp_path):
    save_file({"weight": np.zeros(3, np.float32)}, tmp_path / "other.safetensors")
    with pytest.raises(BundleError, match="not a bundle"):
        load_bundle(tmp_path / "other.safetensors")


def test_another_version_is_named_in_the_error(bundle, tmp_path, monkeypatch):
    monkeypatch.setattr(container_module, "VERSION", 99)
    save_bundle(bundle, tmp_path / "future.safetensors")
    monkeypatch.undo()
    with pytest.raises(BundleError, match=f"version 99.*version {container_module.VERSION}"):
        load_bundle(tmp_path / "future.safetensors")


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(BundleError, match="does not exist"):
        load_bundle(tmp_path / "nothing.safetensors")
    with pytest.raises(BundleError, match="cannot be read"):
        load_bundle(tmp_path)


def test_writing_into_a_missing_folder_is_one_sentence(bundle, tmp_path):
    with pytest.raises(BundleError, match="cannot be written"):
        save_bundle(bundle, tmp_path / "nowhere" / "a.safetensors")


def test_a_failed_write_leaves_the_old_file(bundle, tmp_path, monkeypatch):
    path = tmp_path / "a.safetensors"
    save_bundle(bundle, path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(container_module.os, "replace", full)
    with pytest.raises(BundleError, match="No space"):
        save_bundle(tiny_bundle(seed=5), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]


def test_class_names_that_do_not_fit_the_networks_are_refused(bundle, tmp_path):
    wrong = replace(bundle, meta=replace(bundle.meta, class_names=("a", "b", "c")))
    with pytest.raises(BundleError, match="4 classes but class_names lists 3"):
        save_bundle(wrong, tmp_path / "wrong.safetensors")


def test_reserved_classes_are_the_last(bundle):
    document = {**bundle.meta.as_dict(), "reserved": [bundle.class_names[-1]]}
    loaded = replace(bundle, meta=meta_from_dict(document, "a"))
    assert bundle.reserved == () and loaded.reserved == bundle.class_names[-1:]
    with pytest.raises(BundleError, match="not the last"):
        meta_from_dict({**document, "reserved": [bundle.class_names[0]]}, "a")


def test_networks_of_another_architecture_are_refused(bundle):
    other = {**bundle.meta.architecture, "width": 9}
    with pytest.raises(BundleError, match="network 0 does not fit"):
        replace(bundle, meta=replace(bundle.meta, architecture=other)).members()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"kkind": "fixed"}, "'normalisation' has an unknown 'kkind'"),
        ({"kind": 3}, "'normalisation.kind' is '3', a int"),
        ({"floor": "low"}, "'normalisation.floor' is 'low', a str"),
        ({"gray": 1}, "'normalisation.gray' is '1', not true or false"),
    ],
)
def test_a_normalisation_that_cannot_be_is_refused_when_loading(bundle, wrong, sentence):
    document = {**bundle.meta.as_dict(), "normalisation": wrong}
    with pytest.raises(BundleError, match=re.escape(sentence)):
        meta_from_dict(document, "a file")


def test_every_normalisation_is_accepted_when_loading(bundle):
    full = Normalisation("fixed", 0.1, 2.0, 0.0, True).as_dict()
    assert len(full) == len(fields(Normalisation))
    loaded = meta_from_dict({**bundle.meta.as_dict(), "normalisation": full}, "a file")
    assert Normalisation(**loaded.normalisation).as_dict() == full


def test_the_header_is_plain_json_that_any_tool_can_read(content, bundle):
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["lla_fusion_ros"])
    document = json.loads(header["bundle"])
    assert tuple(document["class_names"]) == bundle.class_names
