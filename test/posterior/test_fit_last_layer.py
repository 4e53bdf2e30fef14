"""Streaming: the same posterior whatever the batches, with state that does not grow."""

import numpy as np
import pytest
import torch

from lla_fusion_ros.posterior.cross import CrossSum
from lla_fusion_ros.posterior.fit import DiagonalSum, fit_last_layer, prior_precision_of
from lla_fusion_ros.posterior.full import FullSum
from lla_fusion_ros.posterior.kron import KronSum
from lla_fusion_ros.types.errors import InputError


@pytest.mark.parametrize("options", [{}, {"cross": True}, {"curvature": "full"}, {"curvature": "kron"}])
def test_batches_of_seven_equal_one_batch(ensemble, images, fresh, options):
    features = ensemble(fresh)[1].detach().numpy()
    whole = fit_last_layer(ensemble, [images], 0.5, **options)
    pieces = fit_last_layer(ensemble, ((batch,) for batch in images.split(7)), 0.5, **options)
    np.testing.assert_allclose(pieces.variance(features), whole.variance(features), rtol=1e-10)


@pytest.mark.parametrize("kind", [DiagonalSum, CrossSum, FullSum, KronSum])
def test_the_state_does_not_grow_with_the_data(kind):
    rng = np.random.default_rng(0)
    total = kind(2, 3, 5)

    def state_bytes():
        return sum(a.nbytes for a in vars(total).values() if isinstance(a, np.ndarray))

    before = state_bytes()
    for _ in range(20):
        total.add(rng.normal(size=(50, 2, 3)), rng.normal(size=(50, 2, 5)))
    assert state_bytes() == before


def test_the_prior_matches_the_weight_decay_of_training(ensemble, images):
    """At the minimum of the regularised mean loss the gradient of the log posterior is zero."""
    torch.manual_seed(3)
    network = ensemble.members[0]
    labels = torch.randint(0, 4, (len(images),))
    features = network.features(images).detach()
    weight = torch.zeros(4, 5, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight], max_iter=200, tolerance_grad=1e-12, tolerance_change=0, line_search_fn="strong_wolfe"
    )
    decay = 0.05

    def mean_loss():
        optimizer.zero_grad()
        loss = (
            torch.nn.functional.cross_entropy(features @ weight.T, labels) + decay / 2 * weight.square().sum()
        )
        loss.backward()
        return loss

    optimizer.step(mean_loss)
    precision = prior_precision_of(decay, len(images))
    log_posterior = (
        -torch.nn.functional.cross_entropy(features @ weight.T, labels, reduction="sum")
        - precision / 2 * weight.square().sum()
    )
    (gradient,) = torch.autograd.grad(log_posterior, weight)
    assert gradient.abs().max() < 1e-5


def test_progress_is_told_the_images_of_each_batch(ensemble, images):
    seen: list[int] = []
    fit_last_layer(ensemble, images.split(15), 1.0, progress=seen.append)
    assert seen == [15, 15, 10]


def test_training_mode_is_left_as_it_was(ensemble, images):
    ensemble.train()
    fit_last_layer(ensemble, [images], 1.0)
    assert ensemble.training


def test_bad_requests_name_their_cause(ensemble, images):
    with pytest.raises(InputError, match="loader is empty"):
        fit_last_layer(ensemble, [], 1.0)
    with pytest.raises(InputError, match="prior precision is -1"):
        fit_last_layer(ensemble, [images], -1.0)
    with pytest.raises(InputError, match="curvature is 'diag'"):
        fit_last_layer(ensemble, [images], 1.0, curvature="diag")
    with pytest.raises(InputError, match="needs curvature 'diagonal'"):
        fit_last_layer(ensemble, [images], 1.0, curvature="kron", cross=True)
    with pytest.raises(InputError, match="NaN or infinity"):
        fit_last_layer(ensemble, [images * np.nan], 1.0)
    with pytest.raises(InputError, match="no proper prior"):
        prior_precision_of(0.0, 100)
