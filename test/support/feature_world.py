"""A world without images: classes are points in feature space, tracks are noisy walks around them."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.base import Fuser
from lla_fusion_ros.fusion.hypotheses import ChangeRates
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.warnings.model import USUAL_CHANGE, AlarmTable, WarningModel

NETWORKS, CLASSES, WIDTH = 3, 5, 12
STRANGE = 4  # kinds of objects outside the classes


class FeatureWorld:
    """Each network sees a class as a point, an object as a point near it, a view as a point near that."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._points = 2.0 * self._rng.normal(size=(NETWORKS, CLASSES + STRANGE, WIDTH))
        self.posterior = self._fit_posterior()

    def tracks(self, kinds: np.ndarray, steps: int = 12, cameras: int = 1) -> TrackViews:
        """Tracks of the given kinds; those beyond CLASSES are strangers with label -1."""
        count, rng = len(kinds), self._rng
        objects = self._points[:, kinds].transpose(1, 0, 2)[:, None] + 0.3 * rng.normal(
            size=(count, 1, NETWORKS, WIDTH)
        )
        plain = objects + 0.9 * rng.normal(size=(count, steps, NETWORKS, WIDTH))
        known = self._points[:, :CLASSES]
        logits = 0.5 * (np.einsum("nscd,cmd->nscm", plain, known) - 0.5 * (known**2).sum(-1))
        features = np.concatenate([plain, np.ones((count, steps, NETWORKS, 1))], axis=-1)
        return TrackViews(
            logits=logits.astype(np.float32),
            features=features.astype(np.float32),
            camera=np.broadcast_to(np.arange(steps) % cameras, (count, steps)),
            steps=np.full(count, steps),
            label=np.where(kinds < CLASSES, kinds, -1),
            regime=np.full(count, "clean"),
            source=np.arange(count),
        )

    def known(self, count: int, steps: int = 12, cameras: int = 1) -> TrackViews:
        """Tracks of known classes."""
        return self.tracks(self._rng.integers(0, CLASSES, count), steps, cameras)

    def strange(self, count: int, steps: int = 12) -> TrackViews:
        """Tracks of objects outside the classes."""
        return self.tracks(self._rng.integers(CLASSES, CLASSES + STRANGE, count), steps)

    def _fit_posterior(self) -> EnsemblePosterior:
        tracks = self.known(200, steps=1)
        phi, logits = tracks.features[:, 0].astype(float), tracks.logits[:, 0].astype(float)
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        pmf = powers / powers.sum(axis=-1, keepdims=True)
        blocks = np.einsum("ncm,ncd,nce->cmde", pmf * (1 - pmf), phi, phi) + np.eye(WIDTH + 1)
        return EnsemblePosterior(np.linalg.cholesky(blocks), 1.0)


class WorldModel:
    """What a bundle offers the engine, from a world without images."""

    def __init__(self, world: FeatureWorld, warnings: WarningModel | None, default_fuser: str) -> None:
        self._world, self._warnings, self._default = world, warnings, default_fuser

    def posterior(self) -> EnsemblePosterior:
        return self._world.posterior

    def fuser(self, name: str | None = None, window: int = 30) -> Fuser:
        return make_fuser(name or self._default, self._world.posterior, window=window)

    def warning_model(self) -> WarningModel | None:
        return self._warnings

    @property
    def reserved(self) -> tuple[str, ...]:
        return ()

    def change_rates(self) -> ChangeRates:
        return ChangeRates()

    def change_alarm(self) -> AlarmTable:
        return USUAL_CHANGE

    def changing(self, named: str = "") -> np.ndarray:
        """Classes by their numbers, as a bundle takes names."""
        numbers = [int(word) for word in named.split(",") if word.isdigit()]
        return np.isin(np.arange(CLASSES), numbers) | (named == "all")
