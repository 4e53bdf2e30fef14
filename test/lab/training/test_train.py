"""Training: it learns, it repeats, it survives being killed."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import entropy
from torch import nn

from lla_fusion_ros.lab.training.data import epoch_batches, steps_per_epoch, training_data
from lla_fusion_ros.lab.training.train import (
    DISTILLATION,
    CheckpointFolder,
    distillation_loss,
    for_classes,
    repulsion_loss,
    train_ensemble,
)
from lla_fusion_ros.lab.training.training_settings import TrainSettings
from lla_fusion_ros.networks import build_network
from lla_fusion_ros.networks.network import parted
from lla_fusion_ros.types.errors import InputError
from support.toy_tracks import toy_tracks

CPU = torch.device("cpu")


def _settings(**changes):
    given = {
        "architecture": {"name": "road", "size": 16, "channels": [6, 8, 8], "width": 8},
        "members": 2,
        "epochs": 3,
        "batch": 20,
        "learning_rate": 1e-2,
        "averaging": 0.9,
    }
    return TrainSettings(**{**given, **changes})


@pytest.fixture(scope="module")
def data():
    return training_data(toy_tracks(), _settings())


def _states(members):
    return [{name: value.clone() for name, value in member.state_dict().items()} for member in members]


def _equal(first, second):
    return all(torch.equal(a[name], b[name]) for a, b in zip(first, second, strict=True) for name in a)


def test_networks_learn_the_toy_classes(data):
    members = train_ensemble(data, 3, _settings(epochs=12), CPU)
    assert _hits(members[0], data) > 0.9


def test_signs_are_mirrored_to_the_class_their_mirror_image_shows(data):
    plain = replace(data, images=data.images.copy(), mirrored=np.array([1, 0, -1]))
    plain.images[:, :, : data.images.shape[2] // 2] = 0  # the left half is dark in all of them
    plain.images[:, :, data.images.shape[2] // 2 :] = 200
    still = _settings(clean=1.0, hard=0.0, outliers=0.0)
    crops, labels = (torch.cat(parts) for parts in zip(*epoch_batches(plain, still, (0, 0, 0)), strict=True))
    mirrored = crops[:, :, :4].float().mean((1, 2, 3)) > crops[:, :, -4:].float().mean((1, 2, 3))
    assert [len(set(mirrored[labels == label].tolist())) for label in range(3)] == [2, 2, 1]
    assert not mirrored[labels == 2].any()


def test_equal_seeds_give_equal_networks_and_members_differ(data):
    seen = []
    first = _states(train_ensemble(data, 3, _settings(), CPU, report=seen.append))
    second = _states(train_ensemble(data, 3, _settings(), CPU))
    assert _equal(first, second)
    assert not _equal(first[:1], first[1:])
    assert not _equal(first, _states(train_ensemble(data, 3, _settings(seed=7), CPU)))
    assert [p.step for p in seen] == list(range(1, seen[-1].steps + 1))
    assert sum(p.last_of_epoch for p in seen) == 6
    assert all(np.isfinite(p.loss) and 0 <= p.accuracy <= 1 for p in seen)


@pytest.mark.parametrize(("repulsion", "shared"), [(0.0, 0), (0.5, 0), (0.0, 2)])
def test_a_killed_run_resumes_to_the_same_networks(data, tmp_path, repulsion, shared):
    settings = _settings(repulsion=repulsion, shared=shared)
    whole = _states(train_ensemble(data, 3, settings, CPU))

    def killed(progress):
        last_group = progress.member == (0 if repulsion or shared else 1)
        if last_group and progress.epoch == 2 and progress.step % 3 == 2:
            raise KeyboardInterrupt

    folder = CheckpointFolder(tmp_path, settings, "toy")
    with pytest.raises(KeyboardInterrupt):
        train_ensemble(data, 3, settings, CPU, folder, report=killed)
    seen = []
    resumed = train_ensemble(data, 3, settings, CPU, folder, resume=True, report=seen.append)
    assert _equal(whole, _states(resumed))
    assert seen[0].epoch == 2, "finished epochs are not trained again"


def test_members_share_as_many_convolutions_as_asked_and_learn(data):
    settings = _settings(epochs=12, shared=2)
    members = train_ensemble(data, 3, settings, CPU)
    stem, branches = parted([member.trunk for member in members])
    assert sum(isinstance(layer, nn.Conv2d) for layer in stem) == 2
    assert all(sum(isinstance(layer, nn.Conv2d) for layer in branch) == 1 for branch in branches)
    assert all(_hits(member, data) > 0.9 for member in members)
    with pytest.raises(InputError, match="3 convolutions in a row cannot share 4"):
        train_ensemble(data, 3, _settings(shared=4), CPU)


def test_members_follow_their_teachers_each_its_own(data):
    teachers = train_ensemble(data, 3, _settings(epochs=12), CPU)
    changed = {"name": "road", "size": 16, "channels": [6, 8, 6], "width": 8}
    settings = _settings(architecture=changed, epochs=8, shared=2, averaging=0.0)
    pupils = train_ensemble(data, 3, settings, CPU, teachers=teachers)
    images = _images(data)
    with torch.no_grad():
        apart = torch.tensor(
            [[(p.features(images) - t.features(images)).square().mean() for t in teachers] for p in pupils]
        )
        size = teachers[0].features(images).square().mean()
    assert (apart.diag() < apart.flip(0).diag() / 2).all() and (apart.diag() < size / 4).all()


def test_a_member_with_several_teachers_learns_the_mean_of_their_pmfs():
    rng = np.random.default_rng(0)
    taught = torch.from_numpy(rng.normal(size=(4, 5, 3)))  # [crops, teachers, classes]
    pmf = taught.softmax(-1)
    mean = torch.stack([pmf[:, :3].mean(dim=1), pmf[:, 3:].mean(dim=1)])
    shown, features = torch.zeros(4, 5, 9), torch.zeros(2, 4, 6)  # of different width: not compared
    assert distillation_loss(mean.log(), features, taught, shown, [3, 2]).item() == pytest.approx(0.0)
    other = torch.from_numpy(rng.normal(size=(2, 4, 3)))
    wanted = entropy(mean.numpy(), other.softmax(-1).numpy(), axis=-1).mean(axis=1).sum()
    found = distillation_loss(other, features, taught, shown, [3, 2]).item()
    assert found == pytest.approx(DISTILLATION * wanted)


def _images(data):
    side = slice(data.border, -data.border)
    return _settings().normalisation(torch.from_numpy(np.ascontiguousarray(data.images[:, side, side])))


def _hits(member, data):
    with torch.no_grad():
        return (member(_images(data)).argmax(1).numpy() == data.labels).mean()


def test_a_network_for_other_classes_keeps_the_rows_of_the_names_it_knows():
    torch.manual_seed(0)
    old = build_network(_settings().architecture, 3).eval()
    new = for_classes(old, ("a", "b", "c"), ("c", "x", "a", "y")).eval()
    images = torch.rand(2, 3, 16, 16)
    with torch.no_grad():
        before, after = old(images), new(images)
    torch.testing.assert_close(after[:, [0, 2]], before[:, [2, 0]])
    assert (new.head.weight[[1, 3]] == 0).all()


@pytest.mark.parametrize(("balance", "share"), [(0.0, 1 / 11), (0.5, 0.240), (1.0, 0.5)])
def test_rare_classes_are_drawn_as_often_as_asked(data, balance, share):
    common, rare = np.flatnonzero(data.labels == 0), np.flatnonzero(data.labels == 1)
    rows = np.r_[np.resize(common, 400), np.resize(rare, 40)]
    uneven = replace(data, images=data.images[rows], labels=data.labels[rows])
    settings = _settings(outliers=0.0, balance=balance)
    labels = torch.cat([own for epoch in range(10) for _, own in epoch_batches(uneven, settings, (1, epoch))])
    assert float((labels == 1).float().mean()) == pytest.approx(share, abs=0.02)


def test_every_crop_is_seen_once_an_epoch_and_outliers_are_marked(data):
    settings = _settings(outliers=0.2)
    batches = list(epoch_batches(data, settings, (1, 2)))
    assert len(batches) == steps_per_epoch(data, settings)
    for images, labels in batches:
        assert images.shape == (24, 16, 16, 3) and images.dtype == torch.uint8
        assert int((labels == -1).sum()) == 4
    known = torch.cat([labels for _, labels in batches])
    assert int((known >= 0).sum()) == len(batches) * settings.batch
    again = list(epoch_batches(data, settings, (1, 2)))
    assert all(torch.equal(a, b) for (a, _), (b, _) in zip(batches, again, strict=True))
    other = next(iter(epoch_batches(data, settings, (1, 3))))
    assert not torch.equal(other[0], batches[0][0])


def test_outlier_exposure_makes_networks_unsure_of_strange_crops(data):
    strange = torch.cat(
        [x[labels == -1] for x, labels in epoch_batches(data, _settings(outliers=1.0), (9, 9))]
    )
    images = _settings().normalisation(strange)

    def entropy(outliers):
        network = train_ensemble(data, 3, _settings(members=1, epochs=8, outliers=outliers), CPU)[0]
        with torch.no_grad():
            pmf = network(images).softmax(1)
        return float(-(pmf * pmf.clamp_min(1e-12).log()).sum(1).mean())

    assert entropy(0.3) > entropy(0.0)


@pytest.mark.parametrize(
    "change",
    [{"members": 0}, {"epochs": -1}, {"clean": 0.8, "hard": 0.4}, {"averaging": 1.0}, {"outliers": 2.0}],
)
def test_settings_out_of_range_are_named(change):
    with pytest.raises(InputError, match=next(reversed(change))):
        _settings(**change)


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(InputError, match="at least 2 members"):
        _settings(members=1, repulsion=1.0)
    one = toy_tracks(per_class=4)
    one = replace(one, tracks=tuple(track for track in one.tracks if track.label == 0))
    with pytest.raises(InputError, match="one class only"):
        training_data(one, _settings())


def test_a_checkpoint_of_another_run_and_a_damaged_one_are_refused(tmp_path):
    settings, place = _settings(), tmp_path / "c"
    folder = CheckpointFolder(place, settings, "toy")
    folder.save(0, {"epoch": 1})
    assert folder.load(0) == {"epoch": 1}
    for told in ((_settings(learning_rate=1e-3), "toy"), (settings, "other data")):
        with pytest.raises(InputError, match="other settings or data"):
            CheckpointFolder(place, *told).load(0)
    (place / "group-0.pt").write_bytes(b"half of a checkp")
    with pytest.raises(InputError, match="cannot be read"):
        folder.load(0)
    folder.clear()
    assert not place.exists()


def test_few_crops_are_trained_in_small_steps_from_the_networks_given():
    settings = _settings(batch=64, epochs=1, members=1, learning_rate=1e-9)
    few = training_data(toy_tracks(per_class=1, frames=4), settings)  # 12 crops
    assert steps_per_epoch(few, settings) == 4  # three crops leave no room for an outlier among them
    torch.manual_seed(0)
    start = build_network(settings.architecture, 3)
    (trained,) = train_ensemble(few, 3, settings, CPU, start=[start])
    torch.testing.assert_close(trained.trunk[0].weight, start.trunk[0].weight, atol=1e-5, rtol=0)


def test_the_repulsion_kernel_is_one_for_equal_members_and_its_gradient_pushes_apart():
    same = torch.zeros(2, 4, 3)
    assert float(repulsion_loss(same)) == pytest.approx(1.0)
    torch.manual_seed(0)
    logits = torch.randn(2, 4, 3, requires_grad=True)
    before = (logits[0].softmax(-1) - logits[1].softmax(-1)).square().sum().item()
    repulsion_loss(logits).backward()
    moved = (logits - 0.1 * logits.grad).detach()
    assert (moved[0].softmax(-1) - moved[1].softmax(-1)).square().sum().item() > before
