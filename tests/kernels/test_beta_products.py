"""Compiled kernels of the beta divergences against their portable twins."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg._threads import threads
from nonneg.kernels import batched_kl
from nonneg.kernels import beta_products as kernels
from nonneg.kernels.beta_products import array_api as portable

BETAS = [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
FLOOR = 1e-30


@pytest.fixture
def block(rng):
    x, v = rng.gamma(1.0, size=(9, 37)), rng.gamma(1.0, size=(9, 37)) + 0.05
    return x, v, 0.3 * (rng.random((9, 37)) - 0.5) * v, rng.random(37) + 0.5


@pytest.mark.parametrize("beta", BETAS)
def test_compiled_equals_portable(beta, block):
    x, v, _, weights = block
    mask = (x < 2.0).astype(float)
    tight = {"rtol": 1e-12, "atol": 1e-12}
    for got, wanted in zip(
        kernels.ratio_terms(x, v.copy(), beta, FLOOR), portable.ratio_terms(x, v, beta, FLOOR), strict=True
    ):
        if wanted is None:
            assert got is None
        else:
            np.testing.assert_allclose(got, wanted, **tight)
    for chosen in (None, weights, mask):
        got, wanted = (
            kernels.row_losses(x, v, beta, FLOOR, chosen),
            portable.row_losses(x, v, beta, FLOOR, chosen),
        )
        np.testing.assert_allclose(got, wanted, **tight)
        np.testing.assert_allclose(
            kernels.column_losses(x, v, beta, FLOOR, x[:, 0], chosen),
            portable.column_losses(x, v, beta, FLOOR, x[:, 0], chosen),
            **tight,
        )
        for exact in (False, True):
            for got, wanted in zip(
                kernels.newton_terms(x, v, chosen, beta, FLOOR, curvature_bound=0.3, exact=exact),
                portable.newton_terms(x, v, chosen, beta, FLOOR, curvature_bound=0.3, exact=exact),
                strict=True,
            ):
                np.testing.assert_allclose(got, wanted, **tight)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("length", [0.3, 1.0, 6.0])
def test_line_search_lowers_the_loss_and_equals_its_twin(beta, length, block, rng):
    x, v, d, weights = block
    slope, _ = portable.newton_terms(x, v, weights, beta, FLOOR)
    # A direction of descent, however long, that keeps the model positive.
    d = -np.sign(slope) * np.abs(d) * length
    d = np.maximum(d, -0.9 * v)
    linear, quadratic = 0.1 * rng.random(9), 0.1 * rng.random(9)
    slopes = np.sum(slope * d, axis=1) + linear
    got_v, got = kernels.line_search(x, v.copy(), d, weights, beta, FLOOR, linear, quadratic, slopes)
    wanted_v, wanted = portable.line_search(
        x, v, d, weights, beta, FLOOR, linear, quadratic, slopes, kernels.TRIES
    )
    np.testing.assert_allclose(got, wanted, rtol=1e-10)
    np.testing.assert_allclose(got_v, wanted_v, rtol=1e-10)
    before = portable.row_losses(x, v, beta, FLOOR, weights)
    after = portable.row_losses(x, got_v, beta, FLOOR, weights) + got * (linear + 0.5 * got * quadratic)
    assert np.all(after[slopes < 0] <= before[slopes < 0])
    assert np.all(got[slopes >= 0] == 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithm_is_accurate(dtype):
    x = np.geomspace(1e-30, 1e30, 4001).astype(dtype)[None, :]
    v = np.full_like(x, 1.7)
    wide = x.astype(float)
    expected = np.sum(1.7 - wide + wide * np.log(wide / np.float64(v[0, 0])))
    np.testing.assert_allclose(kernels.row_losses(x, v, 1.0, 1e-37)[0], expected, rtol=1e-7)
    one_by_one = kernels.row_losses(x.T.copy(), v.T.copy(), 1.0, 1e-37)
    exact = np.float64(v[0, 0]) - wide + wide * np.log(wide / np.float64(v[0, 0]))
    np.testing.assert_allclose(one_by_one, exact[0], rtol=1e-12)


def test_products_of_ratios_do_not_overflow():
    x = np.full((2, 400), 1e30)
    v = np.full((2, 400), 1e-30)
    v[1] *= 1e60
    losses = kernels.row_losses(x, v, 0.0, 1e-300)
    np.testing.assert_allclose(losses, [400 * (1e60 - 60 * np.log(10) - 1), 0.0], rtol=1e-12, atol=1e-9)


def kl_objective(X, F, other, l1, l2):
    V = F @ other.T
    loss = np.sum(V - np.where(X > 0, X * np.log(V + 1e-300), 0.0), axis=1)
    return loss + l1 * F.sum(1) + 0.5 * l2 * (F**2).sum(1)


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.4, 0.3)])
def test_coordinate_sweeps_lower_every_row(l1, l2, counts, rng):
    X, csr = counts.toarray(), (counts.indptr, counts.indices, counts.data)
    factor, other = rng.random((80, 5)), rng.random((50, 5))
    factor[:, 1] = 0
    before = kl_objective(X, factor, other, l1, l2)
    for _ in range(15):
        factor, logs, _ = kernels.kl_passes(csr, factor, other, other.sum(0), l1=l1, l2=l2)
        after = kl_objective(X, factor, other, l1, l2)
        assert np.all(after <= before + 1e-12 * np.abs(before))
        before = after
    V = factor @ other.T
    np.testing.assert_allclose(logs, np.sum(X * np.log(np.where(X > 0, V, 1.0)), axis=1), rtol=1e-12)


def test_coordinate_sweeps_reach_the_optimality_conditions(counts, rng):
    X, csr = counts.toarray(), (counts.indptr, counts.indices, counts.data)
    other = rng.random((50, 5)) * (rng.random((50, 5)) < 0.6)
    start = np.ones((80, 5))
    factor, _, residuals = kernels.kl_passes(
        csr, start, other, other.sum(0), max_rounds=300, max_sweeps=20, shrink=0.01, tol=1e-10
    )
    V = np.maximum(factor @ other.T, 1e-300)
    slope = other.sum(0) - np.where(X > 0, X / V, 0.0) @ other
    assert residuals.max() <= 1e-10
    assert slope.min() >= -1e-8
    assert np.abs(slope * factor).max() <= 1e-7
    assert np.mean(factor == 0) > 0.1


DTYPES = [(np.float64, 1e-9), (np.float32, 2e-3)]


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.4, 0.3)])
def test_sweeps_are_those_of_array_code(dtype, tolerance, l1, l2, counts, rng):
    csr = (counts.indptr, counts.indices.astype(np.int32), counts.data.astype(dtype))
    factor, other = (rng.random(shape).astype(dtype) for shape in ((80, 5), (50, 5)))
    factor[:9], factor[:, 1], other[:, 2] = 0, 0, 0
    for order in (None, np.array([4, 0, 2])):
        for sums in (other.sum(0), rng.random((80, 5)).astype(dtype) + 10):
            options = (order, l1, l2, 2, 3, 0.1, 0.0, 2.0)
            names = ("order", "l1", "l2", "max_rounds", "max_sweeps", "shrink", "tol", "unit")
            found = kernels.kl_passes(csr, factor, other, sums, **dict(zip(names, options, strict=True)))
            wanted = portable.kl_passes(csr, factor, other, sums, *options)
            for one, two in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, two, rtol=tolerance, atol=tolerance)
    assert not factor[:9].any()  # inputs are not modified


def test_array_code_solves_rows(counts, rng):
    csr, other = (
        (counts.indptr, counts.indices, counts.data),
        rng.random((50, 5)) * (rng.random((50, 5)) < 0.6),
    )
    options = {"max_rounds": 100, "max_sweeps": 6, "shrink": 0.1, "tol": 1e-9}
    found, _, residuals = kernels.kl_passes(csr, np.ones((80, 5)), other, other.sum(0), **options)
    own = (None, 0.0, 0.0, *options.values(), 1.0)
    wanted, _, own_residuals = portable.kl_passes(csr, np.ones((80, 5)), other, other.sum(0), *own)
    assert max(residuals.max(), own_residuals.max()) <= 1e-9
    losses = [kl_objective(counts.toarray(), W, other, 0.0, 0.0) for W in (found, wanted)]
    np.testing.assert_allclose(*losses, rtol=1e-9)


def test_no_rows():
    csr = np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0)
    for kernel, rest in ((kernels, ()), (portable, (None, 0.0, 0.0, 1, 1, 0.0, 0.0, 1.0))):
        factor, logs, residuals = kernel.kl_passes(csr, np.zeros((0, 3)), np.ones((4, 3)), np.ones(3), *rest)
        assert (factor.shape, logs.shape, residuals.shape) == ((0, 3), (0,), (0,))
    empty = np.zeros((0, 4))
    assert kernels.row_losses(empty, empty, 1.0, FLOOR).shape == (0,)
    np.testing.assert_array_equal(kernels.column_losses(empty, empty, 0.0, FLOOR), np.zeros(4))


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("n", [1, 3, 17])
def test_float32_equals_array_code(beta, n, rng):
    x, v = (rng.gamma(1.0, size=(5, n)).astype(np.float32) + np.float32(0.1) for _ in range(2))
    close = {"rtol": 2e-5, "atol": 2e-5}
    for name in ("row_losses", "column_losses"):
        found, wanted = (getattr(kernel, name)(x, v, beta, FLOOR) for kernel in (kernels, portable))
        np.testing.assert_allclose(found, wanted, **close)
    for found, wanted in zip(
        kernels.newton_terms(x, v, None, beta, FLOOR),
        portable.newton_terms(x, v, None, beta, FLOOR),
        strict=True,
    ):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, **close)


@pytest.mark.parametrize("beta", BETAS)
def test_a_missing_number_is_not_lost(beta, block):
    x, v, _, _ = block
    for array in (x, v):
        kept, array[2, 5] = array[2, 5], np.nan
        losses = kernels.row_losses(x, v, beta, FLOOR)
        assert np.flatnonzero(np.isnan(losses)).tolist() == [2]
        assert np.isnan(kernels.newton_terms(x, v, None, beta, FLOOR)[0][2, 5])
        if beta != 2:  # where the first term is x
            assert np.isnan(kernels.ratio_terms(x, v.copy(), beta, FLOOR)[0][2, 5])
        array[2, 5] = kept


def test_coordinate_sweeps_do_not_depend_on_threads(counts, rng):
    big = sp.csr_array(sp.vstack([counts] * 40))
    factor, other = rng.random((3200, 5)), rng.random((50, 5))
    results = []
    for n_jobs in (1, 3):
        with threads(n_jobs):
            results.append(
                kernels.kl_passes(
                    (big.indptr, big.indices, big.data), factor, other, other.sum(0), max_sweeps=3
                )
            )
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_zero_row_of_a_start_comes_alive(counts, rng):
    csr = (counts.indptr, counts.indices, counts.data)
    factor, _, _ = kernels.kl_passes(csr, np.zeros((80, 3)), rng.random((50, 3)) + 0.1, np.full(3, 25.0))
    assert np.all(factor.sum(axis=1) > 0)
    assert np.all(np.isfinite(factor))


@pytest.mark.parametrize("kernel", [kernels, portable])
def test_a_step_that_gains_nothing_is_shortened(kernel):
    # The whole step exchanges the two entries.
    x, v, d = (np.array([row]) for row in ([1.5, 1.5], [1.0, 2.0], [1.0, -1.0]))
    slope, _ = portable.newton_terms(x, v, None, 0.0, FLOOR)
    slopes, none = np.sum(slope * d, axis=1), np.zeros(1)
    assert slopes[0] < 0
    tries = () if kernel is kernels else (kernels.TRIES,)
    got, step = kernel.line_search(x, v.copy(), d, None, 0.0, FLOOR, none, none, slopes, *tries)
    np.testing.assert_allclose(step, 0.4)
    np.testing.assert_allclose(got, v + 0.4 * d)


@pytest.mark.covering(1)
@pytest.mark.torch
@pytest.mark.parametrize("weighted", ["no", "columns", "entries"])
@pytest.mark.parametrize("beta", BETAS)
def test_kernels_on_a_gpu_equal_portable(beta, weighted, block, rng, torch, device):
    x, v, d, weights = block
    x[x < 0.3] = 0.0 if beta >= 1 else 0.3
    weights = {"no": None, "columns": weights, "entries": rng.random(x.shape)}[weighted]
    slope, _ = portable.newton_terms(x, v, weights, beta, FLOOR)
    d = d if (slope * d).sum() < 0 else -d
    along = np.full(len(x), 0.1), np.full(len(x), 0.2), np.sum(slope * d, axis=1) + 0.1
    rows = rng.random(len(x))
    calls = [
        ("ratio_terms", (x, v, beta, FLOOR, weights)),
        ("ratio_terms_and_losses", (x, v, beta, FLOOR, weights)),
        ("row_losses", (x, v, beta, FLOOR, weights)),
        ("column_losses", (x, v, beta, FLOOR, None, weights)),
        ("column_losses", (x, v, beta, FLOOR, rows, weights)),
        ("newton_terms", (x, v, weights, beta, FLOOR)),
        ("line_search", (x, v, d, weights, beta, FLOOR, *along)),
    ]
    for name, arguments in calls:
        # Copies: the memory of the model may be used again.
        moved = [torch.tensor(a, device=device) if isinstance(a, np.ndarray) else a for a in arguments]
        bound = {"curvature_bound": 0.5} if name == "newton_terms" else {}
        got = getattr(kernels, name)(*moved, **bound)
        tries = (kernels.TRIES,) if name == "line_search" else ()
        if name == "ratio_terms_and_losses":
            wanted = *portable.ratio_terms(*arguments), portable.row_losses(*arguments)
        else:
            wanted = getattr(portable, name)(*arguments, *tries, **bound)
        for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, wanted)), strict=True):
            if other is None:
                assert one is None
            else:
                np.testing.assert_allclose(one.cpu().numpy(), other, rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.torch
@pytest.mark.parametrize("shared", [True, False])
def test_many_models_on_a_gpu_equal_those_of_numpy(shared, rng, torch, device):
    v = rng.gamma(1.0, size=(3, 7, 20)) * (rng.random((3, 7, 20)) < 0.8)
    x = rng.poisson(1.0, size=v.shape[shared:]).astype(float)
    bounds = np.array([1e-9, 1e-3, 1e-2])
    d, slopes = -0.3 * v * rng.random(v.shape), -rng.random((3, 7)) * (rng.random((3, 7)) < 0.8)
    results = []
    for given in (
        (x, v, d, slopes, bounds),
        [torch.asarray(a, device=device) for a in (x, v, d, slopes, bounds)],
    ):
        terms = batched_kl.newton_terms(*given[:2], None, 1.0, given[4])
        search = batched_kl.line_search(*given[:3], None, 1.0, given[4], 0.0, 0.0, given[3])
        results.append((*terms, search[1]))
    for wanted, one in zip(*results, strict=True):
        np.testing.assert_allclose(one.cpu().numpy(), wanted, rtol=1e-10, atol=1e-12)
