"""Train an ensemble: Adam, L2 prior, one-cycle learning rate, averaged weights, checkpoints."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from lla_fusion_ros.lab.training.data import TrainingData, epoch_batches, steps_per_epoch
from lla_fusion_ros.lab.training.training_settings import TrainSettings
from lla_fusion_ros.networks import Ensemble, SplitNetwork, build_network
from lla_fusion_ros.networks.eight_bits import NotInEightBitsError
from lla_fusion_ros.networks.network import share_layers
from lla_fusion_ros.networks.torch_engine import choose_precision
from lla_fusion_ros.types.errors import InputError


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run is; handed to the caller after every step.

    Attributes:
        member: index of the first member being trained now.
        step, steps: done and in all, over all members.
        last_of_epoch: whether this step ends an epoch.
        loss, accuracy: running averages of this epoch.
    """

    member: int
    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    accuracy: float
    last_of_epoch: bool


Report = Callable[[Progress], None]
DISTILLATION = 2.0  # weight of what teachers say, beside what labels say


def train_ensemble(
    data: TrainingData,
    classes: int,
    settings: TrainSettings,
    device: torch.device,
    checkpoints: CheckpointFolder | None = None,
    resume: bool = False,
    report: Report | None = None,
    start: Sequence[SplitNetwork] | None = None,
    teachers: Sequence[SplitNetwork] | None = None,
) -> list[SplitNetwork]:
    """Train all members and return them on the CPU, in evaluation mode.

    Members are trained one after the other, or together where they repel each other or share layers.
    `start` gives networks to begin from (fine-tuning, see `for_classes`) instead of fresh ones, `teachers`
    networks whose answers to the same crops are learnt as well as the labels; they are dealt out to members.
    """
    together = settings.members if settings.repulsion > 0 or settings.shared > 0 else 1
    trained: list[SplitNetwork] = []
    for group in range(settings.members // together):
        indices = range(group * together, (group + 1) * together)
        run = _Group(data, classes, settings, device, list(indices), start, teachers)
        state = checkpoints.load(group) if checkpoints is not None and resume else None
        if state is not None:
            run.load_state(state)
        while run.epoch < settings.epochs:
            run.train_epoch(report, settings.members // together)
            if checkpoints is not None:
                checkpoints.save(group, run.state())
        trained.extend(run.averaged())
    return trained


class _Group:
    """Members that are trained in one loop: one, or all of them if they repel each other or share layers."""

    def __init__(
        self,
        data: TrainingData,
        classes: int,
        settings: TrainSettings,
        device: torch.device,
        indices: list[int],
        start: Sequence[SplitNetwork] | None,
        teachers: Sequence[SplitNetwork] | None,
    ) -> None:
        self.data, self.settings, self.device, self.indices = data, settings, device, indices
        self.epoch = 0
        members = []
        for index in indices:
            torch.manual_seed(settings.seed + index)
            network = None if start is None else copy.deepcopy(start[index])
            members.append(network or build_network(settings.architecture, classes))
        self.teachers: Ensemble | None = None
        self.taught_by: list[int] = []  # how many teachers each member has
        if teachers is not None:
            own = [list(teachers[index :: settings.members]) for index in indices]
            self.taught_by = [len(each) for each in own]
            self.teachers = _teaching([teacher for each in own for teacher in each], device)
            if start is None:
                begin_as(members, [each[0] for each in own])
        self.stem, self.branches = share_layers(members, settings.shared)
        self.heads = [member.head for member in members]
        self.members = nn.ModuleList(members)
        self.members.to(device)
        self.members.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.average = {name: value.detach().clone() for name, value in self.members.state_dict().items()}
        self.optimiser = torch.optim.Adam(self._parameter_groups(), lr=settings.learning_rate)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimiser,
            settings.learning_rate,
            total_steps=settings.epochs * steps_per_epoch(data, settings),
            pct_start=0.2,
        )

    def _parameter_groups(self) -> list[dict[str, Any]]:
        """The L2 prior holds for weights; batch norm's scales and all offsets are left free."""
        weights = [p for p in self.members.parameters() if p.ndim > 1]
        others = [p for p in self.members.parameters() if p.ndim == 1]
        decay = self.settings.prior_precision / len(self.data)  # per crop, as in the mean cross-entropy
        return [{"params": weights, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]

    def train_epoch(self, report: Report | None, groups: int) -> None:
        settings, per_epoch = self.settings, steps_per_epoch(self.data, self.settings)
        stream = (settings.seed, self.indices[0], self.epoch)
        torch.manual_seed(
            hash(stream) & 0x7FFFFFFF
        )  # dropout; a resumed epoch draws what it would have drawn
        self.members.train()
        loss_sum = correct = 0.0
        for step, (crops, labels) in enumerate(epoch_batches(self.data, settings, stream), 1):
            images = settings.normalisation(crops.to(self.device, non_blocking=True))
            labels = labels.to(self.device, non_blocking=True)
            stem = self.stem(images)
            features = [branch(stem) for branch in self.branches]
            logits = torch.stack([head(own) for head, own in zip(self.heads, features, strict=True)])
            loss = self._loss(logits, labels)  # logits: [members, batch, classes]
            if self.teachers is not None:
                with torch.no_grad():
                    taught, shown = self.teachers(images)
                own = torch.stack(features)
                loss = loss + distillation_loss(logits, own, taught, shown, self.taught_by)
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            self.optimiser.step()
            self.schedule.step()
            self._update_average()
            if report is not None:
                loss_sum += loss.item() / len(self.members)
                known = labels >= 0
                correct += (logits[:, known].argmax(-1) == labels[known]).float().mean().item()
                done = (self.indices[0] // len(self.indices)) * settings.epochs + self.epoch
                report(
                    Progress(
                        self.indices[0],
                        self.epoch + 1,
                        settings.epochs,
                        done * per_epoch + step,
                        groups * settings.epochs * per_epoch,
                        loss_sum / step,
                        correct / step,
                        step == per_epoch,
                    )
                )
        self.epoch += 1

    def _loss(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Summed over members, so that each gets the gradient it would get alone."""
        known = labels >= 0
        loss = sum(
            functional.cross_entropy(own[known], labels[known], label_smoothing=self.settings.label_smoothing)
            for own in logits
        )
        if self.settings.outliers > 0 and not known.all():  # a batch of three crops has no outlier
            # cross-entropy to the uniform pmf, weighted by the outliers' share of the batch
            loss = loss - self.settings.outliers * logits[:, ~known].log_softmax(-1).mean(dim=(1, 2)).sum()
        if self.settings.repulsion > 0:
            loss = loss + self.settings.repulsion * len(logits) * repulsion_loss(logits[:, known])
        assert isinstance(loss, torch.Tensor)
        return loss

    @torch.no_grad()
    def _update_average(self) -> None:
        # the average must not drag the random start along: it follows quickly at first
        done = self.schedule.last_epoch
        decay = min(self.settings.averaging, done / (done + 10.0))
        for name, value in self.members.state_dict().items():
            kept = self.average[name]
            if kept.dtype.is_floating_point:
                kept.lerp_(value, 1.0 - decay)
            else:
                kept.copy_(value)

    def averaged(self) -> list[SplitNetwork]:
        self.members.load_state_dict(self.average)
        self.members.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        return [member for member in self.members.cpu().eval() if isinstance(member, SplitNetwork)]

    def state(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "members": self.members.state_dict(),
            "average": self.average,
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        self.epoch = state["epoch"]
        self.members.load_state_dict(state["members"])
        self.average = {name: value.to(self.device) for name, value in state["average"].items()}
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])


def _teaching(teachers: Sequence[SplitNetwork], device: torch.device) -> Ensemble:
    """The teachers in 8 bits where that is faster: they see every crop of every epoch."""
    try:
        return Ensemble(teachers, eight_bits=choose_precision("auto", device) == "int8").to(device)
    except NotInEightBitsError:
        return Ensemble(teachers).to(device)


@torch.no_grad()
def begin_as(members: Sequence[SplitNetwork], teachers: Sequence[SplitNetwork]) -> None:
    """Each member begins as its teacher where their layers have the same shape."""
    for member, teacher in zip(members, teachers, strict=True):
        known = teacher.state_dict()
        for name, value in member.state_dict().items():
            if name in known and known[name].shape == value.shape:
                value.copy_(known[name])


def distillation_loss(
    logits: torch.Tensor,
    features: torch.Tensor,
    taught: torch.Tensor,
    shown: torch.Tensor,
    taught_by: Sequence[int],
) -> torch.Tensor:
    """How far members are from their teachers: in pmf, and in features where each has one teacher; summed.

    Members' logits [members, crops, classes] and features [members, crops, d], the teachers' as an `Ensemble`
    gives them: [crops, teachers, ...], features with the trailing 1. `taught_by`: the first so many teachers
    are the first member's, and so on; a member with several learns the mean of their pmfs.
    """
    answers = taught.transpose(0, 1).log_softmax(-1).split(list(taught_by))
    wanted = torch.stack([own.logsumexp(dim=0) - math.log(len(own)) for own in answers])
    apart = functional.kl_div(logits.log_softmax(-1), wanted, reduction="none", log_target=True)
    loss = apart.sum(dim=-1).mean(dim=1)  # [members]
    if max(taught_by) == 1:
        aim = shown.transpose(0, 1)[..., :-1]
        error = (features - aim).square().mean(dim=(1, 2)) / aim.square().mean(dim=(1, 2)).clamp_min(1e-6)
        loss = loss + error
    return DISTILLATION * loss.sum()


def for_classes(network: SplitNetwork, old: Sequence[str], new: Sequence[str]) -> SplitNetwork:
    """A network for other classes: same trunk, same head for classes of the same name, zero for the rest."""
    width = network.head.in_features
    result = SplitNetwork(copy.deepcopy(network.trunk), width, len(new))
    with torch.no_grad():
        result.head.weight.zero_()
        result.head.bias.fill_(float(network.head.bias.min()))
        for row, name in enumerate(new):
            if name in old:
                result.head.weight[row] = network.head.weight[list(old).index(name)]
                result.head.bias[row] = network.head.bias[list(old).index(name)]
    return result


def repulsion_loss(logits: torch.Tensor) -> torch.Tensor:
    """Mean kernel value over pairs of members; high where they predict the same.

    k(c, e) = exp(-|p_c - p_e|^2 / h) on every crop, h the median squared distance of that batch (detached),
    so that the pull does not depend on the scale.   [members, crops, classes] -> scalar
    """
    pmf = logits.softmax(dim=-1)
    distance = (pmf[:, None] - pmf[None]).square().sum(dim=-1)  # [members, members, crops]
    first, second = torch.triu_indices(len(logits), len(logits), offset=1)
    pairs = distance[first, second]  # [pairs, crops]
    width = pairs.detach().median().clamp_min(1e-3)
    return torch.exp(-pairs / width).mean()


class CheckpointFolder:
    """One file per group of members, replaced after every epoch; `first` is the number of the first."""

    def __init__(self, folder: Path, settings: TrainSettings, digest: str, first: int = 0) -> None:
        self.folder, self._first = folder, first
        told = json.dumps({"settings": settings.as_dict(), "data": digest}, sort_keys=True)
        self._fingerprint = hashlib.sha256(told.encode()).hexdigest()

    def save(self, group: int, state: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(group)
        part = path.with_suffix(".part")
        torch.save({**state, "fingerprint": self._fingerprint}, part)
        os.replace(part, path)

    def load(self, group: int) -> dict[str, Any] | None:
        """The last state of a group, or None; InputError where it belongs to another run."""
        path = self._path(group)
        if not path.exists():
            return None
        try:
            state = torch.load(path, weights_only=True)  # never runs code
        except Exception as error:  # torch raises many kinds for a damaged file
            raise InputError(
                f"checkpoint '{path}' cannot be read ({error}); delete it to start again"
            ) from None
        if state.pop("fingerprint", None) != self._fingerprint:
            raise InputError(
                f"checkpoint '{path}' was made with other settings or data; "
                "use the same settings, or start without --resume"
            )
        return state

    def clear(self) -> None:
        """Remove the checkpoints, and the folder if nothing else is in it."""
        for path in self.folder.glob("group-*"):
            path.unlink()
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _path(self, group: int) -> Path:
        return self.folder / f"group-{self._first + group}.pt"
