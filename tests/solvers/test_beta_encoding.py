"""Encoding under beta divergences: optimality of every row, and independence of its neighbors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg._threads import threads
from nonneg.data import as_data_matrix
from nonneg.kernels.beta_products import kl_passes
from nonneg.losses.beta import BetaLoss, gradients, objective
from nonneg.losses.penalties import Penalties
from nonneg.solvers import beta_encoding
from nonneg.solvers.beta_encoding import encode_beta
from nonneg.solvers.row_newton import RowSubproblem

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
def test_only_wide_rows_with_few_nonzeros_wait_for_sweeps_to_be_compiled(n_columns, rng, monkeypatch):
    asked = []
    sweeps = beta_encoding._encode_nonzeros
    monkeypatch.setattr(
        beta_encoding, "_encode_nonzeros", lambda csr, *rest: asked.append(csr.shape) or sweeps(csr, *rest)
    )
    X = rng.poisson(0.1, size=(20, n_columns)).astype(float)
    Ht = rng.gamma(0.5, size=(n_columns, 3)) + 0.01
    data = as_data_matrix(X)
    W = encode_beta(data, Ht, beta=1.0, penalties=NONE)
    assert residual(data, W, Ht, 1.0, NONE) < 1e-8
    assert bool(asked) == (n_columns == 400)


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


def test_a_warm_start_ends_at_the_same_place(low_rank, components, rng):
    data = as_data_matrix(low_rank)
    cold = encode_beta(data, components, beta=1.0, penalties=NONE)
    warm = encode_beta(data, components, beta=1.0, penalties=NONE, start=rng.random((60, 4)))
    np.testing.assert_allclose(warm, cold, rtol=1e-6, atol=1e-8)


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


@pytest.mark.parametrize(
    ("n_columns", "n_nonzeros", "few"), [(99, 1, False), (100, 65, True), (100, 66, False)]
)
def test_few_nonzeros_are_a_quarter_of_a_wide_row_and_forty(n_columns, n_nonzeros, few):
    x = np.zeros((2, n_columns))
    x[1, :n_nonzeros] = 1.0
    assert beta_encoding._few_nonzeros(x).tolist() == [n_columns >= 100, few]


@pytest.mark.parametrize("beta", [0.0, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("masked", [False, True])
def test_rows_begin_with_the_best_multiple_of_equal_coefficients(beta, masked, rng):
    Ht, x = rng.random((9, 3)) + 0.1, rng.random((4, 9))
    mask = (rng.random((4, 9)) < 0.6).astype(float) if masked else None
    if masked:
        mask[2] = 0.0  # nothing is known of this row
        x = x * mask
    loss = BetaLoss.of(as_data_matrix(x), beta, 0.0)
    found = beta_encoding._best_multiple(x, Ht, loss, mask)
    seen = np.ones((4, 9)) if mask is None else mask
    b = Ht.sum(axis=1)
    whole = seen @ b**beta
    expected = np.divide(x @ b ** (beta - 1), whole, out=np.zeros(4), where=whole > 0)
    np.testing.assert_allclose(found, np.tile(expected[:, None], (1, 3)), rtol=1e-12)


@pytest.mark.parametrize(("max_iter", "rounds"), [(1, 1), (2, 1), (9, 4)])
def test_sweeps_begin_with_the_best_multiple_too(max_iter, rounds, rng, monkeypatch):
    seen = []

    def passes(csr, start, Ht, sums, **options):
        seen.append((start, options))
        return start, None, None

    monkeypatch.setattr(beta_encoding, "kl_passes", passes)
    X, Ht = sp.csr_array(rng.poisson(1.0, size=(5, 6)).astype(float)), rng.random((6, 2)).astype(np.float32)
    beta_encoding._encode_nonzeros(X, None, Ht, Ht.sum(axis=0), SOME, 1e-3, max_iter)
    start, options = seen.pop()
    assert start.dtype == np.float32
    np.testing.assert_allclose(start, np.tile(X.sum(axis=1)[:, None] / Ht.sum(), (1, 2)), rtol=1e-6)
    assert (options["l1"], options["l2"], options["tol"], options["max_rounds"]) == (0.3, 0.2, 1e-3, rounds)
    beta_encoding._encode_nonzeros(X, None, 0 * Ht, 0 * Ht.sum(axis=0), NONE, 1e-3, max_iter)
    np.testing.assert_array_equal(seen.pop()[0], 0.0)
    given = np.ones((5, 2))
    beta_encoding._encode_nonzeros(X, given, Ht, Ht.sum(axis=0), NONE, 1e-3, max_iter)
    assert seen.pop()[0] is given


@pytest.mark.parametrize(("more", "stored"), [(0, True), (-1, False)])
def test_products_of_pairs_are_stored_up_to_a_number(more, stored, low_rank, components, monkeypatch):
    monkeypatch.setattr(beta_encoding, "MAX_PAIRS", 40 * 4 * 5 // 2 + more)
    made = []
    make = beta_encoding.Pairs.of
    monkeypatch.setattr(beta_encoding.Pairs, "of", lambda other: made.append(1) or make(other))
    data = as_data_matrix(low_rank)
    W = encode_beta(data, components, beta=1.0, penalties=NONE)
    assert bool(made) == stored
    assert residual(data, W, components, 1.0, NONE) < 1e-7


def rows_of(beta=1.0, own="pairs", tol=1e-6, weights=None, max_iter=50):
    loss, problem = BetaLoss.of(as_data_matrix(np.ones((1, 2))), beta, 0.0), RowSubproblem(weights, 0.0, 0.0)
    return beta_encoding._Rows(loss, problem, np.ones((2, 1)), None, "shared", own, tol, max_iter)


@pytest.mark.parametrize("number", [0, 1, 2, 5])
@pytest.mark.parametrize("beta", [1.0, 0.0])
@pytest.mark.parametrize("own", ["pairs", None])
def test_rows_end_by_their_residuals(number, beta, own, monkeypatch):
    # tol and what a step that squares the residual needs to reach it: 1e-6 and 1e-3 / 30.
    after = np.array([1e-6, 1.1e-6, 3.3e-5, 3.4e-5, 0.03, 0.06, 0.01, 0.3])
    before = beta_encoding._Progress(
        residuals=np.array([0.04, 0.04, 0.04, 0.06, 0.04, 0.04, 0.04, 0.5]),
        near=np.full(8, 0.05),
        used=np.array([True] * 7 + [False]),
        going=np.array([True] * 7 + [False]),
    )
    seen = []

    def scripted(loss, problem, x, v, factor, Ht, squares, model, buffers, exact):
        seen.append((model, exact))
        return factor + 1.0, None, after

    monkeypatch.setattr(beta_encoding, "newton_step", scripted)
    new, now = rows_of(beta, own).step(number, np.ones((8, 2)), np.zeros((8, 1)), before)
    np.testing.assert_array_equal(new, 1.0)
    shared = number < 2 or own is None
    model, exact = seen.pop()
    assert model == ("shared" if shared else "pairs")
    guarded = beta == 0.0 and not shared
    nearer = [True, True, True, False, True, True, True, False]
    assert (exact is None) == (not guarded)
    assert exact is None or exact.tolist() == nearer
    quick = after <= 1e-3 / 30
    if guarded:
        quick &= nearer
    expected = (after > 1e-6) & ~(quick & (not shared)) & before.going
    assert now.going.tolist() == expected.tolist()
    np.testing.assert_array_equal(now.residuals, after)
    failed = before.used & (after > 0.5 * before.residuals) & guarded
    np.testing.assert_allclose(now.near, np.where(failed, 0.1 * after, 0.05))
    assert now.used.tolist() == (nearer if guarded else before.used.tolist())
