"""Encoding under beta divergences: optimality of every row, and independence of its neighbors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.gradients import gradients

from nonneg._threads import threads
from nonneg.data import as_data_matrix
from nonneg.kernels.beta_products import kl_passes
from nonneg.losses.beta import objective
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode_beta

NONE = Penalties()
SOME = Penalties(l1_W=0.3, l2_W=0.2)


@pytest.fixture
def components(rng):
    return rng.gamma(0.7, size=(40, 4)) + 0.02


def residual(data, W, Ht, beta, penalties):
    """Unmet optimality: slopes below zero, and slopes of positive entries, beside the size of both halves."""
    slope, _ = gradients(data, W, Ht, beta=beta, penalties=penalties)
    V = W @ Ht.T
    scale = V ** (beta - 1) @ Ht + 1e-12
    return max(0.0, np.max(-slope / scale), np.max(np.abs(slope) * W / (W.max() * scale)))


@pytest.mark.parametrize("penalties", [NONE, SOME])
@pytest.mark.parametrize("beta", [1.0, 1.3, 1.8, 2.0])
def test_convex_problems_are_solved(beta, penalties, low_rank, components):
    data = as_data_matrix(low_rank)
    W = encode_beta(data, components, beta=beta, penalties=penalties)
    assert residual(data, W, components, beta, penalties) < 1e-8


@pytest.mark.parametrize("beta", [-1.0, 0.0, 0.5, 3.0])
def test_other_problems_end_where_nothing_descends(beta, low_rank, components):
    data = as_data_matrix(low_rank)
    W = encode_beta(data, components, beta=beta, penalties=SOME)
    assert residual(data, W, components, beta, SOME) < 1e-6


@pytest.mark.parametrize("n_columns", [64, 400])
def test_dense_rows_with_few_nonzeros_are_minima(n_columns, rng):
    X = rng.poisson(0.1, size=(20, n_columns)).astype(float)
    Ht = rng.gamma(0.5, size=(n_columns, 3)) + 0.01
    data = as_data_matrix(X)
    W = encode_beta(data, Ht, beta=1.0, penalties=NONE)
    assert residual(data, W, Ht, 1.0, NONE) < 1e-8


@pytest.mark.parametrize("penalties", [NONE, SOME])
def test_sparse_rows_are_solved(penalties, counts, rng):
    Ht = rng.gamma(0.5, size=(50, 5)) + 0.01
    sparse, dense = as_data_matrix(counts), as_data_matrix(counts.toarray())
    W = encode_beta(sparse, Ht, beta=1.0, penalties=penalties)
    assert residual(dense, W, Ht, 1.0, penalties) < 1e-8
    other = encode_beta(dense, Ht, beta=1.0, penalties=penalties)
    np.testing.assert_allclose(W, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        encode_beta(as_data_matrix(counts), Ht, beta=1.5, penalties=penalties),
        encode_beta(dense, Ht, beta=1.5, penalties=penalties),
        rtol=1e-9,
    )


@pytest.mark.parametrize("beta", [0.0, 1.0, 1.5])
def test_a_row_does_not_know_its_neighbors(beta, low_rank, components, rng):
    whole = encode_beta(as_data_matrix(low_rank), components, beta=beta, penalties=NONE)
    order = rng.permutation(60)
    shuffled = encode_beta(as_data_matrix(low_rank[order]), components, beta=beta, penalties=NONE)
    np.testing.assert_allclose(shuffled, whole[order], rtol=1e-8, atol=1e-10)
    alone = encode_beta(as_data_matrix(low_rank[17:18]), components, beta=beta, penalties=NONE)
    np.testing.assert_allclose(alone[0], whole[17], rtol=1e-8, atol=1e-10)


def test_a_sparse_row_does_not_know_its_neighbors(counts, rng):
    Ht = rng.gamma(0.5, size=(50, 5)) + 0.01
    whole = encode_beta(as_data_matrix(counts), Ht, beta=1.0, penalties=NONE)
    part = encode_beta(as_data_matrix(counts[[5, 70]]), Ht, beta=1.0, penalties=NONE)
    np.testing.assert_allclose(part, whole[[5, 70]], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_every_namespace_agrees(beta, xp, low_rank, components):
    expected = encode_beta(as_data_matrix(low_rank), components, beta=beta, penalties=SOME)
    got = encode_beta(as_data_matrix(xp.asarray(low_rank)), xp.asarray(components), beta=beta, penalties=SOME)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6, atol=1e-8)


def test_dask_agrees_and_weights_do_not_matter(low_rank, components):
    da = pytest.importorskip("dask.array")
    expected = encode_beta(as_data_matrix(low_rank), components, beta=1.0, penalties=SOME)
    data = as_data_matrix(da.from_array(low_rank, chunks=(23, 40)), weights=np.arange(60.0))
    got = encode_beta(data, components, beta=1.0, penalties=SOME).compute()
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "sparse", "array"])
def test_missing_entries_are_left_out(kind, low_rank, components, rng):
    mask = rng.random(low_rank.shape) < 0.6
    if kind == "sparse":
        data = as_data_matrix(sp.csr_array(low_rank), mask=sp.csr_array(mask))
    elif kind == "dense":
        data = as_data_matrix(low_rank, mask=mask)
    else:
        strict = pytest.importorskip("array_api_strict")
        data = as_data_matrix(strict.asarray(low_rank), mask=strict.asarray(mask))
    W = np.asarray(encode_beta(data, data.to_device(components), beta=1.0, penalties=SOME))
    for i in (0, 11, 59):
        seen = mask[i]
        alone = encode_beta(
            as_data_matrix(low_rank[i : i + 1, seen]), components[seen], beta=1.0, penalties=SOME
        )
        np.testing.assert_allclose(W[i], alone[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("beta", [0.0, 1.0, 1.5])
def test_single_precision_stays_and_is_near(beta, low_rank, components):
    exact = encode_beta(as_data_matrix(low_rank), components, beta=beta, penalties=NONE)
    data = as_data_matrix(low_rank.astype(np.float32))
    W = encode_beta(data, components.astype(np.float32), beta=beta, penalties=NONE)
    assert W.dtype == np.float32
    value = objective(data, W, components.astype(np.float32), beta=beta)
    np.testing.assert_allclose(
        value, objective(as_data_matrix(low_rank), exact, components, beta=beta), rtol=1e-3
    )


def test_zero_rows_are_encoded_as_zero(components):
    X = np.zeros((3, 40))
    X[1] = 1.0
    for data in (as_data_matrix(X), as_data_matrix(sp.csr_array(X))):
        W = encode_beta(data, components, beta=1.0, penalties=NONE)
        assert np.all(W[[0, 2]] == 0)
        assert W[1].max() > 0


def test_threads_do_not_matter(rng):
    X, Ht = rng.gamma(1.0, size=(400, 700)) + 0.01, rng.random((700, 3))
    found = []
    for n_jobs in (1, 2):
        with threads(n_jobs):
            found.append(encode_beta(as_data_matrix(X), Ht, beta=1.0, penalties=NONE))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-8)


@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-7, 0.0])
def test_rows_are_solved_in_a_few_rounds_where_components_nearly_repeat(gap, rng):
    H = rng.gamma(0.3, size=(3, 120)) + 1e-3
    Ht = np.concatenate([H * (1 + gap * rng.standard_normal(H.shape)) for _ in range(5)]).T.copy()
    counts = sp.csr_array(rng.poisson(0.3 * rng.gamma(0.5, size=(20, 15)) @ Ht.T).astype(float))
    start = np.repeat(counts.sum(axis=1)[:, None] / Ht.sum(), 15, axis=1)
    csr = counts.indptr, counts.indices, counts.data
    options = {"max_rounds": 12, "max_sweeps": 6, "shrink": 0.1, "tol": 1e-9}
    _, _, residuals = kl_passes(csr, start, Ht, Ht.sum(axis=0), **options)
    assert residuals.max() <= 1e-9
