"""The compiled pass over large tables against the pass that it replaces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.kernels.kl_newton import LARGE, is_large
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers.newton import NewtonProblem, NewtonState, scaled_newton

N_ROWS, N_COLUMNS = 150, 37  # more than one tile, and no multiple of one


def problems(rng, *, weights=None, penalties=None, dtype=np.float64, k=5):
    X = rng.poisson(rng.gamma(0.5, 20.0, size=(N_ROWS, 3)) @ rng.dirichlet(np.full(N_COLUMNS, 0.3), size=3))
    data = as_data_matrix(X.astype(dtype))
    data.weights = weights
    plain = NewtonProblem(
        data, BetaLoss.of(data, 1.0), penalties or Penalties(), None, True, N_COLUMNS * data.mean()
    )
    W, Ht = rng.random((N_ROWS, k)).astype(dtype), rng.random((N_COLUMNS, k)).astype(dtype)
    return plain, replace(plain, tiled=True), W, Ht


@pytest.mark.covering(1)
@pytest.mark.parametrize("penalties", [Penalties(), Penalties(0.3, 0.2, 0.1, 0.4)])
@pytest.mark.parametrize("k", [1, 5])
def test_a_pass_equals_the_one_of_all_other_data(rng, penalties, k, monkeypatch):
    monkeypatch.setattr("nonneg._threads.RATE", 1.0)  # all threads take part
    for weights in (None, rng.integers(0, 3, N_ROWS).astype(float)):
        plain, tiled, W, Ht = problems(rng, weights=weights, penalties=penalties, k=k)
        # A row that is far away; zeros that stay or come alive.
        W[3] *= 1e4
        W[5] = 0.0
        Ht[2] *= 1e-3
        before = W * rng.random(W.shape)
        for momentum, earlier in ((0.0, None), (0.7, before), (0.7, None)):
            state = NewtonState(W, Ht, W_before=earlier)
            (one, at_one), (other, at_other) = (each.evaluate(state, Ht, momentum) for each in (plain, tiled))
            np.testing.assert_allclose(at_other, at_one, rtol=1e-10)
            for name in ("W", "loss", "gradient", "diagonal", "gram", "total", "columns"):
                wanted = getattr(one, name)
                np.testing.assert_allclose(
                    getattr(other, name), wanted, rtol=1e-8, atol=1e-9 * np.abs(wanted).max(), err_msg=name
                )


@pytest.mark.parametrize("penalties", [Penalties(), Penalties(0.3, 0.2, 0.1, 0.4)])
def test_multiplicative_steps_of_rows_without_a_good_newton_step(rng, monkeypatch, penalties):
    plain, tiled, W, Ht = problems(rng, penalties=penalties)
    newton = tiled.evaluate(NewtonState(W, Ht), Ht, 0.0)[0].W
    for module in ("newton", "row_newton"):  # all steps count as too short
        monkeypatch.setattr(f"nonneg.solvers.{module}.SHORTEST_STEP", 2.0)
    one, other = (each.evaluate(NewtonState(W, Ht), Ht, 0.0)[0] for each in (plain, tiled))
    np.testing.assert_allclose(other.W, one.W, rtol=1e-10)
    np.testing.assert_allclose(other.loss, one.loss, rtol=1e-12)
    assert np.abs(newton - other.W).max() > 1e-3 * newton.max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_run_is_the_same_to_rounding(rng, monkeypatch, dtype):
    plain, _, W, Ht = problems(rng, dtype=dtype)
    options = {"penalties": Penalties(), "max_iter": 30, "tol": 0.0}
    monkeypatch.setattr("nonneg.solvers.newton.is_supported", lambda data, k: False)
    other = scaled_newton(plain.data, W, Ht, **options)
    monkeypatch.setattr("nonneg.solvers.newton.is_large", lambda data, k: True)
    tiled = scaled_newton(plain.data, W, Ht, **options)
    assert tiled.state.W.dtype == dtype
    np.testing.assert_allclose(
        tiled.history.loss, other.history.loss, rtol=1e-9 if dtype == np.float64 else 1e-4
    )
    assert np.all(np.diff(np.array(tiled.history.loss)) <= 0)


def test_which_data_are_large():
    X = np.ones((int(LARGE) // 6400 + 1, 64))
    assert is_large(as_data_matrix(X), 100)
    assert not is_large(as_data_matrix(X), 99)
    assert not is_large(as_data_matrix(np.asfortranarray(X)), 100)
    assert not is_large(as_data_matrix(X, mask=X > 2), 100)
