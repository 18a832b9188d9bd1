"""Noise below zero: kept as it is, fitted by nonnegative factors, and better than any repair of it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from nonneg import NMF, factorize
from nonneg.exceptions import InvalidParameterError, NegativeDataError, UnsupportedError


def planted(seed=0, n=120, m=30, k=3):
    """Draw samples of which about a fifth of the entries are below zero, with their standard deviations."""
    rng = np.random.default_rng(seed)
    W, H = rng.gamma(0.7, size=(n, k)), rng.gamma(0.5, size=(k, m)) * (rng.random((k, m)) < 0.6)
    truth = W @ H
    # The noise of features differs by a factor of 100; of the hydrocarbons of Baton Rouge, by 500.
    deviations = rng.permutation(np.geomspace(0.03, 3.0, m)) * rng.uniform(0.3, 2.0, (n, m))
    size = 0.5 * truth.mean()
    return truth + size * deviations * rng.normal(size=truth.shape), size * deviations, H


def component_error(found, truth):
    """Return the relative distance of components of unit norm, after the best match."""
    found, truth = (
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300) for rows in (found, truth)
    )
    rows, columns = scipy.optimize.linear_sum_assignment(-truth @ found.T)
    return float(np.linalg.norm(truth[rows] - found[columns]) / np.linalg.norm(truth))


def fitted(X, **options):
    weights = {name: options.pop(name) for name in ("uncertainty",) if name in options}
    model = NMF(3, n_init=5, random_state=0, max_iter=500, **options).fit(X, **weights)
    return model.components_


def test_components_are_nearer_than_after_clipping_shifting_or_without_uncertainties():
    errors = []
    for seed in range(4):
        X, deviations, H = planted(seed)
        assert 0.1 < np.mean(X < 0) < 0.3
        errors.append([
            component_error(fitted(X, negative="keep", uncertainty=deviations), H),
            component_error(fitted(np.maximum(X, 0)), H),
            component_error(fitted(X - X.min()), H),
            component_error(fitted(X, negative="keep"), H),
        ])  # fmt: skip
    ours, *others = np.mean(errors, axis=0)
    assert ours <= 0.5 * min(others)


@pytest.mark.parametrize("solver", ["hals", "anls"])
def test_the_loss_is_that_of_the_data_as_they_are(solver):
    X, _, _ = planted()
    before = X.copy()
    result = factorize(X, 3, negative="keep", solver=solver, rng=0, max_iter=300)
    np.testing.assert_array_equal(X, before)
    assert result.loss == pytest.approx(0.5 * np.sum((X - result.W @ result.H) ** 2), rel=1e-9)
    assert min(result.W.min(), result.H.min()) >= 0
    assert np.diff(result.history.loss).max() <= 1e-12 * np.sum(X**2)
    same = factorize(sp.csr_array(X), 3, negative="keep", solver=solver, rng=0, max_iter=300)
    assert same.loss == pytest.approx(result.loss, rel=1e-6)


def test_bounds_stay_below_the_error():
    X, _, _ = planted()
    model = NMF(3, negative="keep", random_state=0).fit(X)
    bound = model.certify(X)["eckart-young-bound"].quantities
    tail = np.linalg.svd(X, compute_uv=False)[3:]
    assert bound["lower_bound"] == pytest.approx(np.linalg.norm(tail) / np.linalg.norm(X), rel=1e-6)
    assert bound["lower_bound"] <= bound["relative_error"]
    W = model.transform(X)
    slopes = W @ (model.components_ @ model.components_.T) - X @ model.components_.T
    assert np.abs(np.minimum(W, slopes)).max() < 1e-6  # the rows are minimizers


@pytest.mark.parametrize("init", ["random", "nndsvd", "nndsvda", "nndsvd-scaled"])
def test_data_below_zero_alone_are_best_fitted_by_zero(init):
    X = -np.random.default_rng(0).gamma(1.0, size=(20, 8))
    result = factorize(X, 2, negative="keep", init=init, rng=0)
    assert result.loss == pytest.approx(0.5 * np.sum(X**2), rel=1e-6)


def test_what_has_no_place_for_negative_entries_says_so():
    X, _, _ = planted()
    with pytest.raises(NegativeDataError, match="negative='keep'"):
        NMF(3).fit(X)
    with pytest.raises(InvalidParameterError, match="Frobenius loss"):
        NMF(3, negative="keep", beta_loss="kullback-leibler").fit(X)
    with pytest.raises(UnsupportedError, match="solver='mu'"):
        NMF(3, negative="keep", solver="mu").fit(X)
    with pytest.raises(UnsupportedError, match="init='cr1'"):
        NMF(3, negative="keep", init="cr1").fit(X)
