"""Scans of a self-dictionary problem against whole matrices in float64."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.kernels import self_dictionary
from nonneg.kernels.self_dictionary import Dictionary, PenaltyGradient, constraint_sums, minimizing_vertices


def gradient_of(rng, n, n_columns):
    """Return a gradient with a base per row and more at some entries, and the same as a matrix."""
    extra = sp.random_array((n_columns, n), density=0.05, rng=rng, format="coo")
    base = 0.1 * rng.random(n)
    whole = base[:, None] + extra.toarray().T
    order = np.lexsort((extra.col, extra.row))
    return PenaltyGradient(base, extra.col[order], extra.row[order], extra.data[order]), whole


def in_form(X, form):
    if form == "csr":
        return sp.csr_array(X)
    if form == "torch":
        return pytest.importorskip("torch").asarray(X)
    return X.astype(np.float32) if form == "float32" else X


@pytest.mark.parametrize("form", ["dense", "float32", "csr", "torch"])
@pytest.mark.parametrize("n", [1, 7, 700])
def test_vertices_minimize_the_scores(form, n, rng, monkeypatch):
    monkeypatch.setattr(self_dictionary, "POINTS", 64)  # several tiles, as 700 points are in the core
    X = rng.random((n, 9)).astype(np.float32).astype(np.float64) + 3.0
    residual = rng.standard_normal((n, 9))
    gradient, whole = gradient_of(rng, n, n)
    found = minimizing_vertices(Dictionary.of(in_form(X, form)), residual, gradient)
    scores = (X - X.mean(axis=0)) @ residual.T + whole
    np.testing.assert_allclose(scores[found, np.arange(n)], scores.min(axis=0), rtol=0, atol=1e-12)


def test_of_equal_scores_the_lowest_index_wins(rng):
    X = np.repeat(rng.random((20, 5)), 3, axis=0)[rng.permutation(60)]
    nothing = np.zeros(0, dtype=np.int64)
    gradient = PenaltyGradient(np.zeros(60), nothing, nothing, np.zeros(0))
    residual = np.vstack([rng.standard_normal((59, 5)), np.zeros((1, 5))])
    found = minimizing_vertices(Dictionary.of(X), residual, gradient)
    for column, row in enumerate(found):
        assert row == np.flatnonzero((X[row] == X).all(axis=1))[0]
        assert column < 59 or row == 0


@pytest.mark.parametrize("form", ["dense", "csr", "torch"])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_constraint_sums_are_upper_bounds_and_nearly_exact(form, unit, rng):
    X, residual, levels = unit * rng.random((300, 7)), rng.standard_normal((50, 7)), rng.standard_normal(50)
    found = constraint_sums(Dictionary.of(in_form(X, form)), residual, levels)
    scores = (X - X.mean(axis=0)) @ residual.T
    exact = np.clip(levels - scores, 0.0, None).sum(axis=1)
    assert (found >= exact * (1 - 1e-12)).all()
    assert (found <= exact + 1e-4 * (1.0 + unit) * 50).all()
