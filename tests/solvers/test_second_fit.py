"""The second fit of small data, which the default compares with its first."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import NMF, factorize
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidParameterError
from nonneg.solvers import second_fit

MODULE = sys.modules["nonneg.solvers.factorize"]  # its function has the same name


def swimmers():
    """Return 64 figures with three limbs, each in one of four positions, and a torso."""
    figures = []
    for number in range(64):
        image = np.zeros((3, 4, 3))
        for limb in range(3):
            image[limb, number // 4**limb % 4] = 1.0
        figures.append(np.append(image.ravel(), np.ones(4)))
    return np.array(figures)


def test_the_lower_loss_is_kept(monkeypatch):
    rng = np.random.default_rng(0)
    X = swimmers()
    once = factorize(X, 12, n_init=1)
    # The factors of which X is made, and some noise.
    W, Ht = X[:, :36:3] + 0.01 * rng.random((64, 12)), np.repeat(np.eye(12), 3, axis=0)
    Ht = np.concatenate([Ht, np.tile(np.repeat([1.0, 0.0], [4, 8]), (4, 1))]) + 0.01 * rng.random((40, 12))
    monkeypatch.setattr(MODULE, "second_factors", lambda data, k: (W.copy(), Ht.copy()))
    twice = factorize(X, 12)
    assert twice.loss < 0.5 * once.loss
    assert 0.5 * NMF(12).fit(X).reconstruction_err_ ** 2 == pytest.approx(twice.loss, abs=1e-6)


def test_a_first_fit_that_ends_as_low_is_kept_to_the_last_digit():
    rng = np.random.default_rng(0)
    X = rng.gamma(0.3, size=(40, 3)) @ rng.gamma(0.3, size=(3, 20)) + 0.01 * rng.random((40, 20))
    once, twice = factorize(X, 3, n_init=1), factorize(X, 3)
    np.testing.assert_array_equal(twice.W, once.W)
    np.testing.assert_array_equal(factorize(X, 3, rng=7).W, twice.W)  # no numbers are drawn


@pytest.mark.parametrize(
    "options",
    [{"n_init": 1}, {"init": "random"}, {"solver": "hals"}, {"beta_loss": 1}, {"tol": 1e-3}, {"n_init": 2}],
)
def test_whoever_asks_for_something_gets_one_fit(options, monkeypatch):
    monkeypatch.setattr(MODULE, "second_factors", lambda *_: pytest.fail("a second fit"))
    X = np.random.default_rng(0).random((30, 12))
    factorize(X, 3, rng=0, max_iter=5, **options)
    factorize(X, 3, W=X[:, :3], H=X[:3], max_iter=5)


def test_what_is_small_does_not_depend_on_the_container():
    X = np.random.default_rng(0).random((200, 60))
    X[X < 0.5] = 0.0
    for k, small in ((5, True), (130, False)):
        for data in (X, sp.csr_array(X), np.asfortranarray(X)):
            assert second_fit.is_small(as_data_matrix(data), k) == small


def test_a_fit_that_the_user_stops_is_the_last():
    X = np.random.default_rng(0).random((30, 12))
    seen = []
    result = factorize(X, 3, callback=lambda progress: seen.append(progress.n_iter) or len(seen) == 2)
    assert len(seen) == 2
    assert result.n_iter == seen[-1]


@pytest.mark.parametrize("wrong", ["all", 0, 1.5])
def test_other_numbers_of_restarts_are_refused(wrong):
    with pytest.raises(InvalidParameterError, match="n_init"):
        factorize(np.ones((4, 3)), 2, n_init=wrong)
