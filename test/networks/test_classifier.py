"""Crops in, views out."""

import numpy as np
import pytest
import torch

from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.networks.torch_engine import AT_ONCE
from lla_fusion_ros.types.errors import InputError
from support.fake_device import FakeDevice
from support.tiny_bundle import tiny_bundle


@pytest.fixture(scope="module")
def bundle():
    return tiny_bundle(classes=5, networks=3)


def _crops(count, size=16, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, size, size, 3)).astype(np.uint8)


def test_views_are_what_the_members_say(bundle):
    crops = _crops(4)
    views = Classifier(bundle, device="cpu")(crops)
    images = bundle.normalisation()(torch.from_numpy(crops))
    with torch.no_grad():
        expected = torch.stack([member(images) for member in bundle.members()], 1).numpy()
    np.testing.assert_allclose(views.logits, expected, atol=1e-5)
    views.check(3, 5, bundle.posterior().features)


def test_a_view_does_not_depend_on_the_other_crops_of_the_batch(bundle):
    crops = _crops(6)
    classify = Classifier(bundle, device="cpu")
    np.testing.assert_allclose(classify(crops).logits[4:5], classify(crops[4:5]).logits, atol=1e-5)


def test_more_crops_than_run_at_once_keep_their_order(bundle):
    crops = _crops(2 * AT_ONCE + 5)
    classify = Classifier(bundle, "cpu")
    every, last = classify(crops), classify(crops[-5:])
    assert len(every) == len(crops)
    np.testing.assert_allclose(every.logits[-5:], last.logits, atol=1e-4)
    np.testing.assert_allclose(every.features[-5:], last.features, atol=1e-4)


def test_no_crops_give_no_views(bundle):
    views = Classifier(bundle, device="cpu")(_crops(0))
    assert len(views) == 0
    views.check(3, 5, bundle.posterior().features)


def test_some_of_the_networks_can_be_chosen(bundle):
    crops = _crops(2)
    some = Classifier(bundle, device="cpu", networks=(2, 0))(crops)
    everything = Classifier(bundle, device="cpu")(crops)
    np.testing.assert_allclose(some.logits, everything.logits[:, [2, 0]], atol=1e-5)


@pytest.mark.parametrize("crops", [_crops(2, size=8), _crops(2).astype(np.float32), _crops(2)[..., :1]])
def test_crops_of_another_kind_are_refused(bundle, crops):
    with pytest.raises(InputError, match="expected uint8"):
        Classifier(bundle, device="cpu")(crops)


def test_unknown_and_absent_devices_are_refused(bundle, monkeypatch):
    with pytest.raises(InputError, match="'quantum'"):
        Classifier(bundle, device="quantum")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="no CUDA"):
        Classifier(bundle, device="cuda")
    with pytest.raises(InputError, match="float16 needs a device of type cuda"):
        Classifier(bundle, device="cpu", precision="float16")
    with pytest.raises(InputError, match="'int4' is unknown"):
        Classifier(bundle, precision="int4")
    monkeypatch.setattr(
        "lla_fusion_ros.networks.torch_engine.choose_device", lambda name: torch.device("cuda")
    )
    with pytest.raises(InputError, match="int8 needs a device of type cpu, not 'cuda'"):
        Classifier(bundle, precision="int8")


def test_auto_is_eight_bits_where_the_cpu_and_the_networks_have_them(bundle, monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    assert Classifier(bundle, "cpu", "auto").precision == "int8"
    lenet = tiny_bundle(classes=5, networks=2, architecture={"name": "lenet", "size": 16, "width": 6})
    assert Classifier(lenet, "cpu", "auto").precision == "float32"
    with pytest.raises(InputError, match="int8 needs networks"):
        Classifier(lenet, "cpu", "int8")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "SVE256")
    assert Classifier(bundle, "cpu", "auto").precision == "float32"


def test_one_frame_costs_one_copy_to_the_device_and_one_back(bundle):
    """Also no wait for the device in between: on the fake one nothing can be read."""
    classify = Classifier(bundle, device=FakeDevice.name)
    with FakeDevice():
        classify(_crops(1))  # brings what is kept on the device
    with FakeDevice() as device:
        classify(_crops(4))
    back = 5 + bundle.posterior().features
    assert device.traffic == [("there", (4, 16, 16, 3)), ("back", (4, 3, back))]


def test_crops_go_to_the_device_from_memory_that_is_kept(bundle):
    classify = Classifier(bundle, device=FakeDevice.name)
    with FakeDevice():
        classify(_crops(1))
    with FakeDevice() as device:
        for count in (4, 9, 2):
            classify(_crops(count))
    assert len(device.sources) == 3 and len(set(device.sources)) == 1


@pytest.mark.parametrize(
    "careless",
    [
        lambda x: x.sum().item(),
        lambda x: bool((x > 0).any()),
        lambda x: x[x > 0],
        lambda x: x.to("cpu"),
        lambda x: x + torch.ones(3).to(x.device),
    ],
)
def test_the_fake_device_notices_every_wait_and_every_further_copy(careless):
    x = torch.ones(3, device=FakeDevice.name)
    with FakeDevice() as device:
        try:
            careless(x)
        except (RuntimeError, NotImplementedError):
            return  # a wait: there is nothing to read
    assert device.traffic


def test_warming_up_changes_nothing(bundle):
    classify = Classifier(bundle, device="cpu")
    before = classify(_crops(2)).logits
    classify.warm_up(4)
    np.testing.assert_array_equal(classify(_crops(2)).logits, before)
