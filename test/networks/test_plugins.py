"""Architectures of the user's own: by a module's name, or offered by an installed package."""

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from lla_fusion_ros.bundle import load_bundle, save_bundle
from lla_fusion_ros.networks import architectures, plugins
from lla_fusion_ros.types.errors import BundleError, InputError
from support.tiny_bundle import tiny_bundle

SOURCE = """
from lla_fusion_ros.networks import architectures, register_architecture
def trunk(size):
    return architectures._road(size, (4, 6, 8), 6)
register_architecture("mine", trunk)
"""


@pytest.fixture
def bundle(tmp_path, monkeypatch):
    monkeypatch.setattr(architectures, "_BUILDERS", dict(architectures._BUILDERS))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_networks.py").write_text(SOURCE)
    monkeypatch.delitem(sys.modules, "my_networks", raising=False)
    plain = tiny_bundle()
    meta = replace(plain.meta, architecture={"name": "mine", "size": 16}, plugins=("my_networks",))
    save_bundle(replace(plain, meta=meta), tmp_path / "a.safetensors")
    return load_bundle(tmp_path / "a.safetensors")


def test_a_bundle_names_the_plugin_it_lacks_and_imports_nothing_by_itself(bundle):
    with pytest.raises(BundleError, match="unknown network architecture 'mine'.* plugin my_networks"):
        bundle.members()
    assert "my_networks" not in sys.modules


def test_a_plugin_is_imported_by_name(bundle):
    plugins.import_plugins(["my_networks"])
    assert len(bundle.members()) == 2
    with pytest.raises(InputError, match="plugin 'nowhere' cannot be imported"):
        plugins.import_plugins(["nowhere"])


def test_an_installed_package_offers_its_architecture_by_entry_point(bundle, monkeypatch):
    entry = EntryPoint("mine", "my_networks:trunk", plugins.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry])
    assert len(bundle.members()) == 2
