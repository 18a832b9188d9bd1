"""Alternating exact least squares."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contracts.cases import close, entries, initial, run
from tests.references.least_squares import nonnegative_rows

from nonneg.data import as_data_matrix
from nonneg.losses.penalties import Penalties
from nonneg.solvers.anls import anls


def published(X, Ht, n_iter):
    for _ in range(n_iter):
        W = nonnegative_rows(Ht, X)
        Ht = nonnegative_rows(W, X.T)
    return W, Ht


def test_without_extrapolation_it_is_the_published_method():
    X, given = entries(2.0), initial()
    result = anls(
        as_data_matrix(X), given["W"], given["H"].T, penalties=Penalties(), max_iter=4, tol=0, momentum=0.0
    )
    W, Ht = published(X, given["H"].T, 4)
    close(result.state.W, W, 1e-8)
    close(result.state.Ht, Ht, 1e-8)


def test_the_right_factor_is_exact_for_the_left_one_after_every_iteration():
    X, given = entries(2.0), initial()

    def check(progress):
        expected = nonnegative_rows(progress.state.W, X.T)
        close(progress.state.Ht, expected, 1e-7)

    run(X, "anls", 2.0, max_iter=8, callback=check, **given)


def test_extrapolation_pays():
    rng = np.random.default_rng(0)
    X = rng.random((60, 6)) @ rng.random((6, 40)) + 0.01 * rng.random((60, 40))
    given = initial((60, 40), k=6)
    data, W, Ht = as_data_matrix(X), given["W"], given["H"].T
    plain, fast = (
        anls(data, W, Ht, penalties=Penalties(), max_iter=40, tol=0, momentum=momentum).history.loss[-1]
        for momentum in (0.0, 0.5)
    )
    assert fast < plain


@pytest.mark.parametrize("kind", ["twins", "more than features"])
def test_singular_problems_on_the_way_are_harmless(kind):
    X = entries(2.0, (12, 4) if kind != "twins" else (24, 15))
    k = 7 if kind != "twins" else 3
    given = initial(X.shape, k=k)
    if kind == "twins":
        given["H"][2] = given["H"][0]
        given["W"][:, 2] = given["W"][:, 0]
    losses = np.array(run(X, "anls", 2.0, k=k, max_iter=40, **given).history.loss)
    assert np.isfinite(losses).all()
    assert np.diff(losses).max() <= 1e-12 * float((X**2).sum())
