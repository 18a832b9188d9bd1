"""IntegrativeNMF and mini-batches: what is passed on and kept, and formulas of its methods."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.least_squares import nonnegative_rows

from nonneg import NMF, IntegrativeNMF
from nonneg.exceptions import InvalidParameterError, UnknownNameError
from nonneg.solvers.online import OnlineState

rng = np.random.default_rng(0)
SETS = {"a": rng.gamma(0.7, size=(9, 5)) + 0.1, "b": rng.gamma(0.7, size=(6, 5)) + 0.1}
LAM = 0.7


@pytest.fixture(scope="module")
def model():
    """Components that are given, not learned."""
    found = IntegrativeNMF(2, lam=LAM)
    rng = np.random.default_rng(1)
    found.n_features_in_, found.n_components_ = 5, 2
    found.batch_names_ = ["a", "b"]
    found.components_, found.specific_components_ = rng.random((2, 5)), rng.random((2, 2, 5))
    found.batch_scale_ = np.stack([np.sqrt(np.mean(X**2, axis=0)) for X in SETS.values()])
    return found


def weights_of(model, X, at):
    """Minimize the objective of every row, by SciPy."""
    V = 0.0 * model.components_ if at is None else model.specific_components_[at]
    scale = np.sqrt(np.mean(model.batch_scale_**2, axis=0)) if at is None else model.batch_scale_[at]
    system = np.hstack([model.components_ + V, np.sqrt(LAM) * V])
    return nonnegative_rows(system.T, np.hstack([X / scale, np.zeros_like(X)])), model.components_ + V, scale


def test_weights_errors_and_products_are_those_of_the_data_set(model):
    X = SETS["b"]
    found = model.transform(SETS)
    errors = []
    for at, (name, own) in enumerate(SETS.items()):
        W, K, scale = weights_of(model, own, at)
        np.testing.assert_allclose(found[name], W, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(model.inverse_transform(W, batch=name), W @ K * scale)
        errors.append((own / scale - W @ K) ** 2)
    assert model.score(SETS) == pytest.approx(-np.concatenate(errors).mean())
    weights = np.arange(1.0, 16.0)
    rows = np.concatenate(errors).mean(axis=1)
    assert model.score(SETS, sample_weight=weights) == pytest.approx(-weights @ rows / weights.sum())
    W, K, scale = weights_of(model, X, None)
    np.testing.assert_allclose(model.transform(X), W, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(W), W @ K * scale)
    assert model.score(X) == pytest.approx(-np.mean((X / scale - W @ K) ** 2))
    with pytest.raises(UnknownNameError, match="'c' is not known"):
        model.transform(X, batch="c")


def test_a_scale_cannot_be_that_of_one_batch():
    with pytest.raises(InvalidParameterError, match="partial_fit does not accept scale='max'"):
        NMF(2, scale="max").partial_fit(SETS["a"])


@pytest.mark.parametrize(
    ("numerator", "denominator", "good"),
    [
        (None, None, True),
        (np.ones((5, 2)), np.ones((2, 2)), True),
        (np.ones((5, 2)), np.ones((5, 2)), True),
        (np.ones((5, 2)), np.ones((3, 2)), False),
        (np.ones((5, 2)), None, False),
    ],
)
def test_sums_of_past_batches_fit_the_components(numerator, denominator, good):
    model = NMF(2)
    model._complete_loaded()
    model.components_, model._online = np.ones((2, 5)), OnlineState(numerator, denominator)
    if good:
        model._complete_loaded()
    else:
        with pytest.raises(ValueError, match="do not fit the components"):
            model._complete_loaded()
