"""`lla-fusion import` from the command line: from somebody's network to a bundle that runs everywhere."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.cli.main import main
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.types.errors import BundleError, InputError
from support import small_networks as small
from support.toy_folder import write_toy_folder

WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name=name)
sys.meta_path.insert(0, NoTorch())
import numpy as np
from lla_fusion_ros import Classifier, FusionEngine, Observation, Pixels, cut_crops, load_bundle
bundle = load_bundle(sys.argv[1])
classify, engine = Classifier(bundle, precision="auto"), FusionEngine(bundle)
classify.warm_up(4)
image = np.random.default_rng(0).integers(0, 256, (60, 80, 3)).astype(np.uint8)
boxes = np.array([[20.0, 20.0, 12.0, 12.0], [50.0, 30.0, 20.0, 16.0]])
for step in range(5):
    crops = cut_crops(Pixels(image, "rgb"), boxes, bundle.input_size, bundle.crop_margin)
    result = engine.update(Observation("left", step * 10**8, ("1", "2"), classify(crops)))
assert result.pmf.shape == (2, bundle.classes) and abs(result.pmf.sum() - 2) < 1e-6
print(classify.engine)
"""


@pytest.fixture(scope="module", autouse=True)
def few_candidates():
    """Choosing among all fusers takes most of the time, and is tested by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lla_fusion_ros.lab.calibration.fusers.CANDIDATES", ("pool", "evidence_pool"))
        yield


@pytest.fixture(scope="module")
def crops(tmp_path_factory):
    return write_toy_folder(tmp_path_factory.mktemp("crops"))


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A network that never saw these classes."""
    module = small.made(lambda: small.mobilenet(7))
    folder = tmp_path_factory.mktemp("network")
    torch.save(module.state_dict(), folder / "net.pth")
    return small.write(module, folder / "net.onnx")


def run(out, crops, *words):
    data = ["--dataset", "folders", "--root", str(crops), "--quick", "--mean", "0.5", "--std", "0.25"]
    assert main(["import", *map(str, words), *data, "--out", str(out)]) == 0
    return load_bundle(out)


@pytest.fixture(scope="module")
def bundle(network, crops, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "mine.safetensors"
    return run(out, crops, "--onnx", network, "--head", "new", "--members", "3")


def test_new_heads_on_an_old_trunk_know_the_new_classes(bundle):
    assert bundle.class_names == ("left", "right", "top")
    assert bundle.networks == 3 and bundle.meta.trunks == (0, 0, 0)
    assert not bundle.for_torch and bundle.warning_model() is not None
    fused = [each for each in bundle.meta.scores["test"]["fused"] if each["regime"] == "clean"]
    assert max(each["accuracy"] for each in fused) > 0.8
    with pytest.raises(BundleError, match="not for torch to train"):
        bundle.members()
    with pytest.raises(InputError, match="use engine onnxruntime"):
        Classifier(bundle, engine="torch")


def test_heads_that_saw_the_validation_tracks_are_not_calibrated_on_them(bundle, crops, tmp_path, capsys):
    assert bundle.meta.training["saw_validation"]
    words = ["calibrate", bundle.source, "--dataset", "folders", "--root", str(crops)]
    assert main([*words, "--out", str(tmp_path / "a.safetensors")]) == 1
    assert "repeat the import" in capsys.readouterr().err


def test_nothing_of_an_imported_bundle_needs_torch(bundle):
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, bundle.source], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "onnxruntime"


def test_torch_and_onnx_give_the_same_bundle(bundle, network, crops, tmp_path):
    other = run(
        tmp_path / "a.safetensors",
        crops,
        *("--module", "support.small_networks:mobilenet7", "--weights", network.with_name("net.pth")),
        *("--size", "16", "--head", "new", "--members", "3"),
    )
    images = np.random.default_rng(1).integers(0, 256, (6, 16, 16, 3)).astype(np.uint8)
    first, second = (Classifier(each)(images) for each in (bundle, other))
    np.testing.assert_allclose(first.logits, second.logits, atol=1e-3)
    np.testing.assert_allclose(
        bundle.posterior().variance(first.features), other.posterior().variance(second.features), rtol=1e-3
    )


def test_a_network_keeps_its_head_and_its_classes(crops, tmp_path):
    path = small.write(small.made(lambda: small.resnet(4)), tmp_path / "a.onnx")
    (tmp_path / "labels.txt").write_text("top\nleft\nunseen\nright\n")
    words = ["--onnx", path, "--onnx", path, "--labels", tmp_path / "labels.txt"]
    bundle = run(tmp_path / "a.safetensors", crops, *words)
    assert bundle.class_names == ("top", "left", "unseen", "right")
    assert bundle.networks == 2 and bundle.meta.trunks == (0, 1)


def test_classes_that_do_not_fit_are_refused(network, crops, tmp_path, capsys):
    words = ["import", "--onnx", str(network), "--dataset", "folders", "--root", str(crops)]
    assert main([*words, "--out", str(tmp_path / "a.safetensors")]) == 1
    assert "7 classes, the data set names 3" in capsys.readouterr().err


def test_an_interrupted_import_goes_on_from_what_it_kept(network, crops, tmp_path, monkeypatch):
    words = ["--onnx", network, "--head", "new", "--cache", tmp_path / "kept"]
    first = run(tmp_path / "a.safetensors", crops, *words)
    monkeypatch.setattr(
        "lla_fusion_ros.networks.onnx_engine.Trunks.__call__", lambda *_: pytest.fail("ran again")
    )
    with monkeypatch.context() as trial:  # the network is still tried once
        trial.setattr(
            "lla_fusion_ros.lab.importing.sources.Trunks",
            lambda *_: lambda crops: [np.zeros((len(crops), 12))],
        )
        out = tmp_path / "b.safetensors"
        data = ["--dataset", "folders", "--root", str(crops), "--quick", "--mean", "0.5", "--std", "0.25"]
        assert (
            main(["import", *map(str, words), *data, "--out", str(out), "--json", str(tmp_path / "b.json")])
            == 0
        )
    assert json.loads((tmp_path / "b.json").read_text())["scores"] == first.meta.scores
