"""Intervals of the factors: likelihood ends where they should be, and coverage of what was planted."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from scipy.sparse import csr_array

from nonneg import NMF, estimate_errors
from nonneg._compiled import instruction_set
from nonneg.exceptions import InvalidParameterError, NonnegError, UnsupportedError


def planted(n=40, m=8, k=2, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    W = rng.gamma(1.0, size=(n, k)) * (rng.random((n, k)) < 0.7)
    H = (rng.gamma(1.0, size=(k, m)) + 0.2) * (rng.random((k, m)) < 0.7)
    deviations = noise * (W @ H).mean() * rng.uniform(0.3, 2.0, (n, m))
    return W @ H + deviations * rng.normal(size=(n, m)), deviations, W, H


def fitted(X, deviations, k=2, **options):
    model = NMF(k, n_init=3, negative="keep", random_state=0, tol=1e-7, max_iter=2000, **options)
    return model.fit(X, uncertainty=deviations)


@pytest.mark.parametrize("method", ["displacement", "bootstrap"])
def test_intervals_cover_what_was_planted_about_as_often_as_they_say(method):
    covered = []
    for seed in range(2):
        X, deviations, W, H = planted(seed=seed)
        model = fitted(X, deviations)
        errors = estimate_errors(model, X, uncertainty=deviations, method=method, n_resamples=40, rng=seed)
        assert (errors.H_low <= errors.H_high).all()
        order = scipy.optimize.linear_sum_assignment(-np.corrcoef(errors.H, H)[:2, 2:])[1]
        scale = errors.W.mean(axis=0) / W[:, order].mean(axis=0)
        truth = H[order] / scale[:, None]
        covered.append((errors.H_low <= truth) & (truth <= errors.H_high))
        if method == "bootstrap":
            assert errors.recurrence.tolist() == [1.0, 1.0]
            # An entry that the fit puts at zero may be above it: noise hides small ones.
            assert (errors.W == 0).any()
            assert (errors.W_high[errors.W == 0] > 0).all()
            of_W = (errors.W_low <= W[:, order] * scale) & (W[:, order] * scale <= errors.W_high)
            assert 0.8 <= of_W.mean() <= 0.99
    # 32 entries, whose standard error is 0.05.
    assert 0.8 <= np.mean(covered) <= 1.0


def test_the_end_of_a_displacement_is_where_the_best_fit_with_it_is_worse_by_the_quantile():
    X, deviations, _, _ = planted(n=8, m=4)
    model = fitted(X, deviations)
    errors = estimate_errors(model, X, uncertainty=deviations, method="displacement", level=0.9)
    allowed = scipy.stats.chi2.ppf(0.9, 1)
    k, (n, m) = 2, X.shape
    a, j = np.unravel_index(np.argmax(errors.H), errors.H.shape)

    def squares(factors):
        W, H = factors[: n * k].reshape(n, k), factors[n * k :].reshape(k, m)
        return float(np.sum(((X - W @ H) / deviations) ** 2))

    def contribution(factors):
        W, H = factors[: n * k].reshape(n, k), factors[n * k :].reshape(k, m)
        return W[:, a].mean() * H[a, j]

    start = np.concatenate([errors.W.ravel(), errors.H.ravel()])
    options = {
        "bounds": [(0, None)] * len(start),
        "method": "SLSQP",
        "options": {"maxiter": 2000, "ftol": 1e-10},
    }
    best = scipy.optimize.minimize(squares, start, **options).fun
    for end in (errors.H_low[a, j], errors.H_high[a, j]):
        value = end * errors.W[:, a].mean()
        held = {"type": "eq", "fun": lambda factors, value=value: contribution(factors) - value}
        there = scipy.optimize.minimize(squares, start, constraints=held, **options).fun
        assert there - best == pytest.approx(allowed, rel=0.15)


def test_more_noise_and_a_higher_level_give_wider_intervals():
    X, deviations, _, _ = planted()
    model = fitted(X, deviations)

    def width(factor, level):
        options = {"n_resamples": 20, "rng": 0, "level": level}
        errors = estimate_errors(model, X, uncertainty=factor * deviations, **options)
        return np.mean(errors.H_high - errors.H_low)

    assert width(1.0, 0.5) < 0.7 * width(1.0, 0.95)
    assert 1.6 * width(1.0, 0.9) < width(2.0, 0.9)


def test_without_uncertainties_the_noise_is_that_of_the_residuals():
    rng = np.random.default_rng(1)
    X, _, _, _ = planted(noise=0.0)
    X = X + 0.2 * rng.normal(size=X.shape)
    model = NMF(2, negative="keep", random_state=0, max_iter=1000).fit(X)
    options = {"n_resamples": 40, "rng": 0}
    known = estimate_errors(model, X, uncertainty=np.full(X.shape, 0.2), **options)
    estimated = estimate_errors(model, X, **options)
    ratio = np.mean(estimated.H_high - estimated.H_low) / np.mean(known.H_high - known.H_low)
    assert ratio == pytest.approx(1.0, abs=0.15)


def test_what_has_no_known_noise_says_so():
    X, deviations, _, _ = planted()
    model = fitted(X, deviations)
    with pytest.raises(UnsupportedError, match="Frobenius"):
        estimate_errors(NMF(2, beta_loss=1, random_state=0).fit(np.abs(X)), np.abs(X))
    with pytest.raises(NonnegError, match="displacement"):
        estimate_errors(model, X, uncertainty=deviations, method="jackknife")
    with pytest.raises(UnsupportedError, match=r"estimate_errors needs X as a NumPy array.*X\.toarray"):
        estimate_errors(model, csr_array(np.abs(X)))
    with pytest.raises(InvalidParameterError, match="level"):
        estimate_errors(model, X, uncertainty=deviations, level=90)


def test_a_fit_with_uncertainties_needs_at_most_three_times_the_memory_of_the_data():
    rng = np.random.default_rng(0)
    X, uncertainty = rng.random((2000, 1000)), 0.1 + rng.random((2000, 1000))
    tracemalloc.start()
    try:
        NMF(20, max_iter=1, tol=0, n_jobs=2, random_state=0).fit(X, uncertainty=uncertainty)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Array code, without the core, has the Gram matrices of all rows at once, and copies of them.
    assert peak <= (4.0 if instruction_set() == "none" else 3.0) * X.nbytes
