"""How many restarts share a product, what a restart keeps, and shares of programs."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from nonneg.consensus import restarts
from nonneg.consensus.combine import ConsensusOptions, _kept, _usage_shares
from nonneg.consensus.fit import warn_unless_converged
from nonneg.consensus.restarts import RestartData, RestartOptions, batch_size, restart_seed
from nonneg.data import as_data_matrix
from nonneg.exceptions import NonnegWarning
from nonneg.iteration import StopReason
from nonneg.losses.penalties import Penalties


class Losses(list):
    """A history of the loss alone."""

    @property
    def loss(self):
        return self


def options(**changes):
    return RestartOptions(**{"beta": 2.0, "penalties": Penalties(), **changes})


def data_of(X, beta=2.0):
    matrix = as_data_matrix(X)
    return RestartData.of(matrix, matrix, None, 5, beta)


@pytest.mark.parametrize(("k", "size"), [(1, 4 * 64), (9, 4 * 7), (64, 4), (65, 4)])
def test_restarts_on_sparse_data_share_products(k, size, monkeypatch, rng):
    monkeypatch.setattr(restarts, "COLUMNS", 64)
    X = rng.random((20, 12))
    sparse, dense = data_of(sp.csr_array(X)), data_of(X)
    assert batch_size(sparse, k, options()) == size
    assert batch_size(dense, k, options()) == 1
    assert batch_size(sparse, k, options(beta=1.0)) == 1
    assert batch_size(sparse, k, options(resample="bootstrap")) == 1


def test_the_seed_of_a_restart_depends_on_its_rank_and_number():
    expected = np.random.SeedSequence([7, 3, 11]).generate_state(1, np.uint32)[0]
    assert restart_seed(7, 3, 11) == expected
    assert len({restart_seed(7, k, number) for k in range(3) for number in range(3)}) == 9


@pytest.mark.parametrize("n", [5, 1000, 1003])
def test_labels_are_kept_of_some_samples(n, rng):
    points = data_of(rng.random((n, 3))).points
    expected = np.sort(np.random.default_rng([5, 1]).permutation(n)[:1000])
    np.testing.assert_array_equal(points, expected)


@pytest.mark.parametrize(
    ("sparse", "beta", "single"),
    [(True, 2.0, True), (True, 1.0, True), (False, 2.0, False), (False, 1.0, True)],
)
def test_large_data_are_factorized_in_single_precision(sparse, beta, single, monkeypatch, rng):
    X = rng.random((6, 5)) + 0.1
    given = sp.csr_array(X) if sparse else X
    for most, expected in ((30, single), (31, False)):
        monkeypatch.setattr(restarts, "SINGLE_PRECISION", most)
        monkeypatch.setattr(restarts, "SINGLE_PRECISION_KL", most)
        found = data_of(given, beta)
        for matrix in (found.scaled, found.counts):
            assert matrix.dtype == (np.float32 if expected else np.float64)
            np.testing.assert_allclose(np.asarray(matrix.dense_rows(0, 6)), X, rtol=1e-6)


@pytest.mark.parametrize(("reason", "tol", "converged"), [
    (StopReason.MAX_ITER, 1e-4, False), (StopReason.MAX_ITER, 0.0, True), (StopReason.CONVERGED, 1e-4, True),
])  # fmt: skip
def test_what_a_restart_keeps(reason, tol, converged, rng):
    W, Ht = rng.random((6, 2)), rng.random((4, 2)) * [1.0, 5.0]
    run = SimpleNamespace(
        state=SimpleNamespace(W=W, Ht=Ht), history=Losses([3.0, 2.0]), n_iter=9, stop_reason=reason
    )
    data = SimpleNamespace(points=np.array([0, 2, 5]))
    found = restarts._finished(data, run, 2, 4, 77, options(tol=tol))
    np.testing.assert_array_equal(found.spectra, Ht.T)
    # By what the components add to a sample, whatever their scale.
    np.testing.assert_array_equal(found.labels, (W * Ht.sum(axis=0))[[0, 2, 5]].argmax(axis=1))
    assert found.labels.dtype == np.int32
    assert (found.n_components, found.number, found.seed, found.loss, found.n_iter) == (2, 4, 77, 2.0, 9)
    assert found.converged is converged
    run.history = Losses([])
    assert math.isnan(restarts._finished(data, run, 2, 4, 77, options()).loss)


def test_shares_of_programs_are_those_of_each_sample():
    W = np.array([[1.0, 3.0], [0.0, 0.0], [10.0, 0.0]])
    _, (found,) = _usage_shares(SimpleNamespace(xp=np), W)
    np.testing.assert_allclose(found, [1.25, 0.75])


def test_a_threshold_that_leaves_too_few_components_is_told():
    density = np.array([0.1, 0.9, 0.3, 0.7, 0.5, 0.6])
    chosen = ConsensusOptions(density_threshold=0.4)
    words = (
        "density_threshold=0.4 leaves 2 of 6 components for 2 clusters: no outliers were removed at "
        "n_components=2. Its restarts hardly agree; 4 components have a density below 0.60."
    )
    with pytest.warns(NonnegWarning) as told:
        np.testing.assert_array_equal(_kept(density, 2, chosen), range(6))
    assert str(told[0].message) == words
    np.testing.assert_array_equal(_kept(density, 1, chosen), [0, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(
            _kept(np.full(6, 3.0), 2, ConsensusOptions(density_threshold=2.0)), range(6)
        )


@pytest.mark.parametrize(("n_converged", "tol", "told"), [(9, 1e-4, False), (8, 1e-4, True), (8, 0.0, False)])
def test_restarts_that_did_not_converge_are_told(n_converged, tol, told):
    table = SimpleNamespace(converged=np.arange(12) < n_converged, of=lambda k: np.arange(10))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_unless_converged(table, 3, 50, tol)
    assert len(found) == told
    if told:
        assert found[0].category is ConvergenceWarning
        assert str(found[0].message) == (
            "20% of the restarts with 3 components reached the maximum number of iterations before the "
            "tolerance tol was reached. Raise max_iter (now 50) or tol (now 0.0001)."
        )
