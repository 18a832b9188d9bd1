"""Integrative NMF: where it begins, which restart it returns, and what a mini-batch changes."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._random import generator, spawn
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidParameterError
from nonneg.integrative.factorize import initial_components, integrate
from nonneg.integrative.problem import DataSet, encode, objective
from nonneg.iteration import StopReason

K, P, LAM = 3, 8, 0.5


def data_sets(weighted=False):
    rng = np.random.default_rng(0)
    H = rng.gamma(0.5, size=(K, P))
    found = []
    for n in (12, 7):
        X = rng.gamma(0.5, size=(n, K)) @ (H + 0.3 * rng.random(H.shape)) + 0.1 * rng.random((n, P))
        weights = rng.random(n) + 0.5 if weighted else None
        found.append(DataSet.of(as_data_matrix(X, weights=weights)))
    return found


def stacked(sets):
    """All samples with features in units of their scale, times the roots of their weights."""
    rows = []
    for one in sets:
        X = one.matrix.dense_rows(0, one.matrix.shape[0]) / one.scale[:, 0]
        weights = one.matrix.weights
        rows.append(X if weights is None else X * np.sqrt(weights)[:, None])
    return np.vstack(rows)


@pytest.mark.parametrize("weighted", [False, True])
def test_nndsvd_is_that_of_all_scaled_samples(weighted):
    sets = data_sets(weighted)
    k = 6  # with parts of both signs among them
    U, s, Vt = np.linalg.svd(stacked(sets), full_matrices=False)
    expected = np.zeros((P, k))
    for j in range(k):
        sides = [(np.maximum(side * U[:, j], 0), np.maximum(side * Vt[j], 0)) for side in (1, -1)]
        sizes = [np.linalg.norm(u) * np.linalg.norm(v) for u, v in sides]
        v = sides[int(np.argmax(sizes))][1]
        expected[:, j] = np.sqrt(s[j] * max(sizes)) * v / np.linalg.norm(v)
    found = initial_components(sets, k, init="nndsvd", rng=generator(0)).Ht
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_best_restart_is_returned():
    sets = data_sets()
    options = {"lam": LAM, "init": "random", "max_iter": 4, "tol": 0.0}
    each = [integrate(sets, K, rng=random, **options) for random in spawn(7, 4)]
    best = integrate(sets, K, n_init=4, rng=7, **options)
    last = [one.history.loss[-1] for one in each]
    np.testing.assert_array_equal(best.components.Ht, each[int(np.argmin(last))].components.Ht)
    assert best.history.loss[-1] == min(last) < max(last)
    assert (best.n_iter, best.stop_reason) == (4, StopReason.MAX_ITER)


def test_restarts_need_random_numbers():
    with pytest.raises(InvalidParameterError, match="n_init=2 with init='nndsvd': all restarts would be eq"):
        integrate(data_sets(), K, lam=LAM, n_init=2)


def test_the_result_is_that_of_its_components():
    sets = data_sets()
    found = integrate(sets, K, lam=LAM, max_iter=3, tol=0.0)
    for at, one in enumerate(sets):
        W, own, _ = encode(one, found.components.Ht, found.components.Vt[at], LAM)
        np.testing.assert_allclose(found.W[at], W, atol=1e-12)
        np.testing.assert_allclose(found.sums[at].gram, own.gram)
    total = sum(one.squared_norm for one in sets)
    assert found.loss == pytest.approx(objective(found.components, found.sums, LAM, total))
    assert found.loss <= found.history.loss[-1]
    statement = found.certificate["stationarity"]
    assert statement.quantities["lam"] == LAM
    assert statement.number == max(statement.quantities[f"residual_{name}"] for name in "WHV")


def test_no_iterations_return_the_initialization():
    found = integrate(data_sets(), K, lam=LAM, init="random", n_init=2, max_iter=0, rng=0)
    first = initial_components(data_sets(), K, init="random", rng=spawn(0, 2)[0])
    np.testing.assert_array_equal(found.components.Ht, first.Ht)
    assert found.n_iter == 0


def test_a_callback_ends_all_restarts():
    seen = []
    found = integrate(
        data_sets(), K, lam=LAM, init="random", n_init=3, rng=0,
        callback=lambda progress: bool(seen.append(progress.n_iter)) or progress.n_iter == 2,
    )  # fmt: skip
    assert seen == [1, 2]
    assert found.stop_reason is StopReason.CALLBACK


@pytest.mark.parametrize("n_init", [1, 2])
def test_every_restart_has_a_folder_of_its_own(tmp_path, n_init):
    options = {"lam": LAM, "init": "random", "n_init": n_init, "tol": 0.0, "rng": 0, "checkpoint": tmp_path}
    integrate(data_sets(), K, max_iter=2, **options)
    folders = sorted(path.parent for path in tmp_path.rglob("run.npz"))
    assert folders == ([tmp_path] if n_init == 1 else [tmp_path / "restart-0", tmp_path / "restart-1"])
    resumed = integrate(data_sets(), K, max_iter=5, **options)
    assert resumed.n_iter == 5
    assert resumed.history.n_iter == [1, 2, 3, 4, 5]
    whole = integrate(data_sets(), K, max_iter=5, **options | {"checkpoint": None})
    np.testing.assert_allclose(resumed.components.Ht, whole.components.Ht, atol=1e-9)
    # Another weight is another problem, which begins anew.
    assert integrate(data_sets(), K, max_iter=1, **options | {"lam": 2.0}).n_iter == 1
