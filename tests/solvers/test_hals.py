"""HALS: its variants, its inner passes, extrapolation with restarts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.contracts.cases import close, entries, initial, run
from tests.references.least_squares import coordinate_passes

from nonneg import factorize
from nonneg.data import as_data_matrix
from nonneg.kernels.rows import extrapolated
from nonneg.losses.penalties import Penalties
from nonneg.solvers.hals import hals, inner_passes


def test_the_accelerated_variant_does_several_passes_a_product():
    X, given = entries(2.0), initial()
    W, Ht = given["W"], given["H"].T
    result = hals(
        as_data_matrix(X),
        W,
        Ht,
        penalties=Penalties(),
        max_iter=2,
        tol=0,
        momentum=0.0,
        passes=(3, 2),
    )
    for _ in range(2):
        W, _ = coordinate_passes(W, [Ht.T @ Ht] * 24, X @ Ht, range(3), 3, 0.1)
        Ht, _ = coordinate_passes(Ht, [W.T @ W] * 15, X.T @ W, range(3), 2, 0.1)
    close(result.state.W, W, 1e-11)
    close(result.state.Ht, Ht, 1e-11)


def test_the_violation_is_that_of_the_slopes_met_and_ends_the_run():
    X, given = entries(2.0), initial()
    W, Ht = given["W"], given["H"].T
    result = run(X, "hals-plain", 2.0, max_iter=1, **given)
    W, left = coordinate_passes(W, [Ht.T @ Ht] * 24, X @ Ht, range(3), 1, 0.0)
    _, right = coordinate_passes(Ht, [W.T @ W] * 15, X.T @ W, range(3), 1, 0.0)
    assert result.history["violation"] == [pytest.approx(left + right)]
    ended = run(X, "hals-plain", 2.0, max_iter=1000, tol=0.1, **given)
    violations = ended.history["violation"]
    assert violations[-1] <= 0.1 * violations[0] < min(violations[:-1])


def test_every_container_counts_the_same_passes():
    X = entries(2.0)
    expected = inner_passes(as_data_matrix(X), 3)
    assert inner_passes(as_data_matrix(sp.csr_array(X)), 3) == expected
    assert min(expected) >= 1
    assert inner_passes(as_data_matrix(np.zeros((4, 4))), 3)[0] >= 1


def test_more_products_are_paid_for_by_more_passes():
    left, right = inner_passes(as_data_matrix(np.ones((10, 1000))), 2)
    assert left > right >= 1


def test_extrapolation_goes_on_and_stays_nonnegative(xp):
    new, old = np.array([[1.0, 0.2]]), np.array([[0.5, 1.0]])
    before = new.copy()
    found = extrapolated(xp.asarray(new), xp.asarray(old), 0.5)
    np.testing.assert_allclose(np.asarray(found), [[1.25, 0.0]])
    np.testing.assert_array_equal(new, before)


def test_extrapolation_pays_on_data_where_plain_steps_crawl():
    rng = np.random.default_rng(0)
    X = rng.random((60, 6)) @ rng.random((6, 40)) + 0.01 * rng.random((60, 40))
    given = initial((60, 40), k=6)
    losses = {
        name: run(X, name, 2.0, k=6, max_iter=60, **given).loss
        for name in ("hals", "hals-accelerated", "hals-plain")
    }
    assert losses["hals"] < losses["hals-accelerated"] < losses["hals-plain"]


@pytest.mark.parametrize(("name", "beta"), [("hals", 2.0), ("anls", 2.0), ("kl-cd", 1.0), ("newton", 1.0)])
def test_every_loss_has_the_published_momentum(name, beta):
    states = []
    run(
        entries(beta),
        name,
        beta,
        max_iter=30,
        callback=lambda progress: states.append(progress.state) and None,
        **initial(),
    )
    momenta = np.array([state.momentum for state in states])
    growth = momenta[1:][momenta[:-1] > 0] / momenta[:-1][momenta[:-1] > 0]
    assert momenta[0] == 0.5
    assert momenta.max() <= 1.0
    # It grows by at most 5%, and a rejected step divides it by 1.5 (or gives it up).
    assert growth.max() <= 1.05 + 1e-12
    assert growth[growth < 1 / 1.05].max(initial=0.0) <= 1 / 1.5 + 1e-12


def test_a_rejected_extrapolation_lowers_the_momentum_and_then_gives_it_up():
    X, given = entries(2.0), initial()
    states = []
    run(
        X,
        "hals",
        2.0,
        max_iter=400,
        callback=lambda progress: states.append(progress.state) and None,
        **given,
    )
    momenta = np.array([state.momentum for state in states])
    assert momenta[0] == 0.5
    assert (np.diff(momenta) > 0).any()
    assert momenta.max() <= 1.0
    assert max(state.restarts for state in states) >= 1


def test_shuffled_components_are_all_updated_and_seeded(low_rank):
    first, second, other = (factorize(low_rank, 4, shuffle=True, rng=seed, max_iter=3) for seed in (0, 0, 3))
    np.testing.assert_array_equal(first.H, second.H)
    assert not np.array_equal(first.H, other.H)
    assert not np.array_equal(first.H, factorize(low_rank, 4, max_iter=3).H)
