"""Huber's loss: its value, its stationary points, and outliers that no longer count."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from nonneg import NMF, factorize
from nonneg.exceptions import InvalidParameterError, NonnegError, UnsupportedInputError


def spoiled(seed=0, n=80, m=20, k=3):
    rng = np.random.default_rng(seed)
    W, H = rng.gamma(0.7, size=(n, k)), rng.gamma(0.5, size=(k, m))
    deviations = rng.uniform(0.05, 0.2, (n, m))
    X = W @ H + deviations * rng.normal(size=(n, m))
    places = rng.choice(n * m, 30, replace=False)
    X.flat[places] += 100 * deviations.flat[places]
    return X, deviations, H, places


def huber(X, W, H, deviations, c):
    z = np.abs(X - W @ H) / deviations
    return float(np.sum(np.where(z > c, c * (z - c / 2), z * z / 2)))


@pytest.mark.covering(0)
@pytest.mark.parametrize("threshold", [1.5, 4.0])
def test_the_loss_is_hubers_and_cannot_be_lowered_in_a_row(threshold):
    X, deviations, _, _ = spoiled(n=40)
    model = NMF(
        3,
        robust="huber",
        robust_threshold=threshold,
        negative="keep",
        tol=1e-8,
        max_iter=2000,
        random_state=0,
    )
    W = model.fit_transform(X, uncertainty=deviations)
    H, result = model.components_, model.result_
    assert result.loss == pytest.approx(huber(X, W, H, deviations, threshold), rel=1e-10)
    assert result.loss_name == "huber"
    assert np.diff(result.history.loss).max() <= 1e-10 * result.history.loss[0]
    assert result.certificate["stationarity"].holds
    assert "Huber loss" in result.certificate["stationarity"].sentence
    np.testing.assert_allclose(model.transform(X, uncertainty=deviations), W, rtol=1e-6, atol=1e-8)
    for row in range(0, 40, 10):
        here = slice(row, row + 1)

        def loss(w, here=here):
            return huber(X[here], w[None], H, deviations[here], threshold)

        best = scipy.optimize.minimize(
            loss,
            np.full(3, 0.5),
            bounds=[(0, None)] * 3,
            method="L-BFGS-B",
            options={"ftol": 0, "gtol": 1e-9},
        )
        assert loss(W[row]) <= best.fun * (1 + 1e-7)


def test_outliers_are_listed_and_hardly_move_the_components():
    X, deviations, H, places = spoiled(1)
    options = {"negative": "keep", "uncertainty": deviations, "rng": 0, "n_init": 5, "max_iter": 500}
    robust, plain = factorize(X, 3, robust="huber", **options), factorize(X, 3, **options)
    listed = robust.outliers[:, 0] * X.shape[1] + robust.outliers[:, 1]
    assert len(set(places) & set(listed)) >= 28  # of 30
    assert len(listed) <= 40
    z = np.abs(X - robust.W @ robust.H) / deviations
    assert (np.diff(z[tuple(robust.outliers.T)]) <= 0).all()

    def error(found):
        found, truth = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (found, H))
        rows, columns = scipy.optimize.linear_sum_assignment(-truth @ found.T)
        return np.linalg.norm(truth[rows] - found[columns])

    assert error(robust.H) <= 0.3 * error(plain.H)


def test_a_threshold_beyond_all_residuals_is_the_squared_loss():
    X, deviations, _, _ = spoiled()
    options = {"negative": "keep", "uncertainty": deviations, "rng": 0, "tol": 1e-7, "max_iter": 3000}
    plain = factorize(X, 3, **options)
    robust = factorize(X, 3, robust="huber", robust_threshold=1e6, **options)
    assert len(robust.outliers) == 0
    assert robust.loss == pytest.approx(plain.loss, rel=1e-4)
    assert robust.loss <= plain.loss


def test_what_has_no_robust_loss_says_so():
    X, deviations, _, _ = spoiled()
    with pytest.raises(InvalidParameterError, match="Frobenius loss"):
        factorize(X, 3, robust="huber", beta_loss=1, negative="error")
    with pytest.raises(UnsupportedInputError, match="dense array"):
        factorize(sp.csr_array(X), 3, robust="huber", negative="keep")
    with pytest.raises(NonnegError, match="huber"):
        factorize(X, 3, robust="tukey")
    with pytest.raises(InvalidParameterError, match="partial_fit"):
        NMF(3, robust="huber", negative="keep").partial_fit(X)
    model = NMF(3, robust="huber", negative="keep", random_state=0).fit(X, uncertainty=deviations)
    assert model.certify(X)["eckart-young-bound"].verdict.name == "NOT_VERIFIABLE"


def test_whole_samples_that_are_outliers_count_by_their_distance():
    rng = np.random.default_rng(0)
    H = rng.gamma(0.5, size=(3, 20))
    X = rng.gamma(0.7, size=(150, 3)) @ H + 0.05 * rng.random((150, 20))
    bad = np.arange(0, 150, 10)
    X[bad] = 3 * rng.gamma(0.3, size=(len(bad), 20))
    options = {"n_init": 5, "max_iter": 1000, "random_state": 0}
    model = NMF(3, robust="huber-rows", robust_threshold=0.1, **options).fit(X)
    W, found = model.transform(X), model.components_
    z = np.linalg.norm(X - W @ found, axis=1) / 20**0.5
    loss = 20 * np.sum(np.where(z > 0.1, 0.1 * (z - 0.05), z * z / 2))
    assert model.result_.loss == pytest.approx(loss, rel=1e-8)
    assert np.diff(model.result_.history.loss).max() <= 1e-10 * model.result_.history.loss[0]
    assert set(bad) <= set(model.result_.outliers[:, 0])
    assert model.certificate_["stationarity"].holds

    def error(rows):
        unit = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in (rows, H)]
        return 1 - (unit[0] @ unit[1].T).max(axis=0).min()

    assert error(found) < 0.01 < error(NMF(3, **options).fit(X).components_)


def test_parameters_are_checked_and_no_limit_is_none():
    X = spoiled(n=30)[0]
    with pytest.raises(InvalidParameterError, match="'n_components' parameter of factorize must be an int"):
        factorize(X, "two", negative="keep", robust="huber")
    options = {"negative": "keep", "robust": "huber", "tol": 1e-5, "rng": 0}
    without, limited = (factorize(X, 2, max_iter=most, **options) for most in (np.inf, 100_000))
    assert without.n_iter == limited.n_iter > 20


@pytest.mark.parametrize("max_iter", [0, 3, 10, 25])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_more_iterations_than_asked_for(max_iter):
    X, deviations, _, _ = spoiled(n=30)
    options = {"negative": "keep", "uncertainty": deviations, "tol": 0.0, "rng": 0}
    result = factorize(X, 3, robust="huber", max_iter=max_iter, **options)
    assert result.n_iter == max_iter
    assert result.loss == pytest.approx(huber(X, result.W, result.H, deviations, 4.0), rel=1e-10)
