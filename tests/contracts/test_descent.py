"""Every solver: the loss is the objective, never increases, and the factors stay in their set."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contracts.cases import BRANCHES, CASES, EVERY, PENALTIES, K, entries, initial, run
from tests.references.objectives import objective

from nonneg import factorize


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta"), EVERY)
@pytest.mark.parametrize("penalties", [{}, PENALTIES], ids=["plain", "penalized"])
@pytest.mark.parametrize(("dtype", "slack"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_the_loss_never_increases(name, beta, penalties, dtype, slack):
    X = entries(beta, dtype=dtype)
    losses = np.array(run(X, name, beta, max_iter=30, **initial(), **penalties).history.loss)
    assert len(losses) == 30
    assert np.diff(losses).max() <= slack * max(0.5 * float((X.astype(float) ** 2).sum()), losses[0])
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(("name", "beta"), CASES)
def test_the_loss_never_increases_from_starts_with_zeros_and_on_hard_data(name, beta):
    rng = np.random.default_rng(7)
    X = 10.0 ** rng.uniform(-4, 4, size=(15, 12))
    result = run(X, name, beta, k=5, max_iter=40, init="random", rng=3)
    losses = np.array(result.history.loss)
    assert np.isfinite(losses).all()
    assert np.diff(losses).max() <= 1e-12 * max(0.5 * float((X**2).sum()), losses[0])


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta"), EVERY)
@pytest.mark.parametrize("penalties", [{}, PENALTIES], ids=["plain", "penalized"])
def test_the_recorded_loss_is_the_objective_of_each_iterate(name, beta, penalties):
    X = entries(beta)
    weights = np.arange(24) % 3 + 0.5
    seen = []

    def keep(progress):
        seen.append(
            objective(X, progress.state.W, progress.state.Ht.T, beta=beta, weights=weights, **penalties)
        )

    result = run(X, name, beta, max_iter=12, callback=keep, sample_weight=weights, **initial(), **penalties)
    np.testing.assert_allclose(result.history.loss, seen, rtol=1e-8, atol=1e-10 * float((X**2).sum()))
    final = objective(X, result.W, result.H, beta=beta, weights=weights, **penalties)
    assert result.loss == pytest.approx(final, rel=1e-8)


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta"), BRANCHES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_are_finite_nonnegative_and_of_the_dtype_of_the_data(name, beta, dtype):
    result = run(entries(beta, dtype=dtype), name, beta)
    for factor, shape in ((result.W, (24, K)), (result.H, (K, 15))):
        assert factor.shape == shape
        assert factor.dtype == dtype
        assert np.isfinite(factor).all()
        assert factor.min() >= 0


@pytest.mark.parametrize(("name", "beta"), CASES)
def test_float32_agrees_with_float64(name, beta):
    X = entries(beta)
    wide, narrow = (
        run(X.astype(dtype), name, beta, max_iter=10, **initial()) for dtype in (float, np.float32)
    )
    assert narrow.loss == pytest.approx(wide.loss, rel=2e-3)


@pytest.mark.parametrize(("name", "beta"), CASES)
def test_the_scale_of_the_data_does_not_matter(name, beta):
    X = entries(beta)
    expected = run(X, name, beta, **initial())
    for size in (1e-6, 1e6):
        given = initial()
        given["H"] = given["H"] * size
        result = run(X * size, name, beta, **given)
        np.testing.assert_allclose(result.W, expected.W, rtol=1e-4, atol=1e-6 * expected.W.max())


@pytest.mark.parametrize(("name", "beta"), BRANCHES)
def test_the_same_call_gives_the_same_bytes(name, beta):
    X = entries(beta)
    results = [run(X, name, beta, init="random", rng=5, n_jobs=n_jobs) for n_jobs in (None, None, 1)]
    for other in results[1:]:
        assert other.W.tobytes() == results[0].W.tobytes()
        assert other.H.tobytes() == results[0].H.tobytes()


# More data sets, to the last byte: test_same_bytes.py.
@pytest.mark.covering(1)
@pytest.mark.parametrize(("name", "beta"), BRANCHES)
def test_the_number_of_threads_changes_nothing_but_rounding(name, beta):
    X = np.vstack([(1 + i / 800) * entries(beta) for i in range(400)])
    one, *others = (run(X, name, beta, init="random", rng=5, max_iter=5, n_jobs=n) for n in (1, 2, 3))
    for other in others:
        np.testing.assert_allclose(other.W @ other.H, one.W @ one.H, rtol=1e-7, atol=1e-9)
        assert other.loss == pytest.approx(one.loss, rel=1e-9)


@pytest.mark.parametrize(("name", "beta"), CASES)
def test_it_stops_at_the_tolerance_and_says_so(name, beta):
    X = entries(beta)
    result = factorize(X, K, solver=name, beta_loss=beta, max_iter=3000, tol=1e-3)
    assert result.stop_reason.name in ("CONVERGED", "STALLED")
    assert result.n_iter == len(result.history) < 3000
    assert result.solver == name


@pytest.mark.parametrize(("name", "beta"), CASES)
def test_data_with_rows_and_columns_of_zeros_or_constant_data_are_harmless(name, beta):
    X = entries(beta)
    if beta > 0:
        X[4], X[:, 6] = 0.0, 0.0
        result = run(X, name, beta, max_iter=20)
        assert np.isfinite(result.loss)
        fitted = result.W @ result.H
        assert fitted[4].max() <= 1e-3 * X.max()
        assert fitted[:, 6].max() <= 1e-3 * X.max()
        zero = run(np.zeros((6, 5)), name, beta, k=2)
        assert np.isfinite(zero.W).all()
        assert np.isfinite(zero.H).all()
        assert zero.loss == pytest.approx(0.0, abs=1e-12)
    constant = run(np.ones((6, 5)), name, beta, k=2, max_iter=100)
    np.testing.assert_allclose(constant.W @ constant.H, 1.0, atol=0.05)


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta"), BRANCHES)
@pytest.mark.parametrize("shape", [(10, 4), (4, 10)])
def test_more_components_than_one_side_work(name, beta, shape):
    result = run(entries(beta, shape), name, beta, k=7, max_iter=30)
    assert np.isfinite(result.W).all()
    losses = np.array(result.history.loss)
    assert losses[-1] < losses[0]


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta"), CASES)
@pytest.mark.parametrize("shape", [(1, 8), (8, 1), (1, 1)])
def test_one_row_or_one_column_is_fitted_exactly(name, beta, shape):
    X = entries(0.0, shape) + 1.0
    result = run(X, name, beta, k=1, max_iter=40)
    np.testing.assert_allclose(result.W @ result.H, X, rtol=1e-5)
