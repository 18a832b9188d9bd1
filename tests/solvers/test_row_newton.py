"""Parts of Newton steps on rows, and of batches one at a time, against plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.least_squares import coordinate_passes

from nonneg.data import as_data_matrix
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers import online, row_newton
from nonneg.solvers.online import OnlineState, decay_of
from nonneg.solvers.row_newton import (
    DAMPING,
    Buffers,
    Pairs,
    RowSubproblem,
    capped_squares,
    correlations_of,
    damped_squares,
    damping,
    damping_of,
    newton_step,
    own_target,
    shared_correlations,
    tiled_step,
)


@pytest.fixture
def other(rng):
    return rng.random((9, 3)) * [1.0, 5.0, 0.2]


@pytest.mark.parametrize("l2", [0.0, 0.4])
def test_hessians_come_from_products_of_pairs(other, rng, l2):
    curvature = rng.random((4, 9))
    pairs = Pairs.of(other)
    assert pairs.products.shape == (9, 6)
    expected = np.einsum("ij,ja,jb->iab", curvature, other, other) + l2 * np.eye(3)
    np.testing.assert_allclose(pairs.hessians(curvature, l2), expected)


@pytest.mark.parametrize("beta", [0.0, 1.0, 1.5, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_correlations_are_those_of_the_mean_curvature(other, rng, beta, weighted):
    means, weights = rng.random(9), rng.random(9) if weighted else None
    means[0] = 0.0
    loss = BetaLoss(beta, 1e-12)
    scale = np.maximum(means / means.max(), 1e-6) ** (beta - 2) * (1.0 if weights is None else weights)
    gram = (other * scale[:, None]).T @ other
    norms = np.sqrt(np.diag(gram))
    found = shared_correlations(loss, other, means, weights)
    np.testing.assert_allclose(found, gram / np.outer(norms, norms), rtol=1e-9)
    np.testing.assert_allclose(np.diag(found), 1.0)
    # Data of zeros have means of zero, and a component of zeros correlates with none.
    assert np.isfinite(shared_correlations(loss, other, 0 * means, None)).all()
    np.testing.assert_array_equal(correlations_of(np.diag([4.0, 0.0])), np.eye(2))


def test_squares_are_damped_by_the_mean(other):
    means = other.mean(axis=0)
    np.testing.assert_allclose(damping(other), DAMPING * means**2)
    np.testing.assert_allclose(damped_squares(other), other**2 + DAMPING * means**2)
    np.testing.assert_allclose(damping_of(other), [*(DAMPING * means**2), DAMPING])
    tiny = other.copy()
    tiny[2] = 1e-9
    largest = (tiny**2).max(axis=1, keepdims=True)
    expected = tiny**2 + DAMPING * np.minimum(tiny.mean(axis=0) ** 2, largest)
    np.testing.assert_allclose(capped_squares(tiny), expected)


def test_memory_is_used_again_for_numpy_alone(rng):
    a, b = rng.random((4, 3)), rng.random((3, 5))
    buffers = Buffers(6, 5, a)
    first = buffers.product("one", a, b)
    np.testing.assert_allclose(first, a @ b)
    assert np.shares_memory(first, buffers.product("one", a, 2 * b))
    assert buffers.take("one", 2).shape == (2, 5)
    one, two = buffers.pair("one", "two", rows=3)
    assert one.shape == two.shape == (3, 5)
    assert not np.shares_memory(one, two)
    inner = buffers.inner_product("inner", a, a)
    np.testing.assert_allclose(inner, a.T @ a)
    assert np.shares_memory(inner, buffers.inner_product("inner", a, 2 * a))
    xp = pytest.importorskip("array_api_strict")
    elsewhere = Buffers(6, 5, xp.asarray(a))
    assert elsewhere.take("one", 2) is None
    assert elsewhere.pair("one", "two", rows=2) is None
    np.testing.assert_allclose(elsewhere.product("one", xp.asarray(a), xp.asarray(b)), a @ b)
    np.testing.assert_allclose(elsewhere.inner_product("one", xp.asarray(a), xp.asarray(a)), a.T @ a)


def test_the_target_is_the_minimum_of_the_model_and_residuals_are_scaled(rng):
    factor = rng.random((5, 3)) + 0.1
    A = rng.random((5, 6, 3))
    hessians = np.einsum("ija,ijb->iab", A, A)
    gradient = rng.standard_normal((5, 3))
    roots = np.sqrt(np.einsum("iaa->ia", hessians))
    scaled, slope = factor * roots, gradient / roots
    projected = scaled - np.maximum(scaled - slope, 0.0)
    expected = np.linalg.norm(projected, axis=1) / np.linalg.norm(scaled, axis=1)
    kept = hessians.copy()
    residuals, target = own_target(factor, gradient, hessians)
    np.testing.assert_allclose(residuals, expected)
    assert (target >= 0).all()
    slopes = gradient + np.einsum("iab,ib->ia", kept, target - factor)
    assert np.abs(slopes[target > 1e-9]).max() < 1e-8
    assert slopes[target <= 1e-9].min(initial=0.0) > -1e-8


@pytest.mark.parametrize("beta", [0.0, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_a_step_lowers_the_penalized_divergence(rng, beta, own, masked):
    other, factor = rng.random((9, 3)) + 0.1, rng.random((6, 3)) + 0.1
    x = (rng.random((6, 3)) + 0.1) @ other.T * (0.8 + 0.4 * rng.random((6, 9)))
    mask = (rng.random((6, 9)) < 0.8).astype(float) if masked else None
    loss, problem = BetaLoss(beta, 1e-12), RowSubproblem(mask, 0.1, 0.2)
    model = Pairs.of(other) if own else shared_correlations(loss, other, other.sum(axis=1), None)
    data = as_data_matrix(
        x if mask is None else np.where(mask, x, 0.0), mask=None if mask is None else mask > 0
    )
    penalties = Penalties(l1_W=0.1, l2_W=0.2)

    def value(W):
        return loss.value(data, W, other) + penalties.of_W(W)

    entries = x if mask is None else np.where(mask > 0, x, 0.0)
    new, v, residuals = newton_step(
        loss,
        problem,
        entries,
        factor @ other.T,
        factor,
        other,
        damped_squares(other),
        model,
        Buffers(6, 9, factor),
    )
    assert (new >= 0).all()
    np.testing.assert_allclose(v, new @ other.T, rtol=1e-9)
    assert value(new) < value(factor)
    assert (residuals > 0).all()
    for _ in range(30):
        new, _, residuals = newton_step(
            loss,
            problem,
            entries,
            new @ other.T,
            new,
            other,
            damped_squares(other),
            model,
            Buffers(6, 9, new),
        )
    assert residuals.max() < (1e-6 if own else 1e-3)


def test_the_shortest_steps_are_multiplicative(rng, monkeypatch):
    monkeypatch.setattr(row_newton, "SHORTEST_STEP", 2.0)  # every step is shorter
    other, factor = rng.random((9, 3)) + 0.1, rng.random((6, 3)) + 0.1
    x, weights = rng.random((6, 9)), rng.random(9)
    for beta, columns in ((1.0, None), (1.0, weights), (2.0, weights)):
        loss, problem = BetaLoss(beta, 1e-12), RowSubproblem(columns, 0.1, 0.0)
        model = shared_correlations(loss, other, other.sum(axis=1), columns)
        new, v, _ = newton_step(
            loss,
            problem,
            x,
            factor @ other.T,
            factor,
            other,
            damped_squares(other),
            model,
            Buffers(6, 9, factor),
        )
        scale = np.ones(9) if columns is None else columns
        model_v = factor @ other.T
        ratio = (scale * x * model_v ** (beta - 2)) @ other
        power = (scale * model_v ** (beta - 1)) @ other
        np.testing.assert_allclose(new, factor * ratio / (power + 0.1), rtol=1e-9)
        np.testing.assert_allclose(v, new @ other.T, rtol=1e-9)


@pytest.mark.parametrize(("size", "n", "expected"), [(10, 40, 0.7 ** (1 / 4)), (40, 10, 0.7), (10, 10, 0.7)])
def test_a_batch_forgets_the_past_by_its_size(size, n, expected):
    assert decay_of(0.7, size, n) == pytest.approx(expected)


@pytest.mark.parametrize("beta", [2.0, 1.0])
def test_sums_of_the_past_decay_and_unknown_ones_are_like_the_next_batch(rng, beta):
    X, W, Ht = rng.random((8, 5)) + 0.1, rng.random((8, 2)) + 0.1, rng.random((5, 2)) + 0.1
    data = as_data_matrix(X)
    step = online._least_squares_step if beta == 2.0 else online._multiplicative_step
    given = (data, W, Ht)
    more = (Penalties(),) if beta == 2.0 else (beta, Penalties())
    if beta == 2.0:
        numerator, denominator = X.T @ W, W.T @ W
    else:
        numerator, denominator = Ht * ((X / (W @ Ht.T)).T @ W), np.tile(W.sum(axis=0), (5, 1))

    def state_after(past):
        return step(*given, past, *more)[1]

    first = state_after(OnlineState(decay=0.5))
    np.testing.assert_allclose(first.numerator, numerator, rtol=1e-9)
    np.testing.assert_allclose(first.denominator, denominator, rtol=1e-9)
    assert (first.n_samples, first.decay) == (8, 0.5)
    second = state_after(first)
    np.testing.assert_allclose(second.numerator, 1.5 * numerator, rtol=1e-9)
    np.testing.assert_allclose(second.denominator, 1.5 * denominator, rtol=1e-9)
    assert second.n_samples == 12
    # After a fit of 16 samples: twice the denominator of this batch, and a numerator that keeps H.
    fitted = state_after(OnlineState(n_samples=16.0, decay=0.5))
    np.testing.assert_allclose(fitted.denominator, 2 * denominator, rtol=1e-9)
    kept = Ht @ denominator if beta == 2.0 else Ht * denominator
    np.testing.assert_allclose(fitted.numerator, kept + numerator, rtol=1e-9)
    assert fitted.n_samples == 16


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("offset", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["none", "columns", "entries"])
def test_multiplicative_steps_of_some_rows(rng, beta, offset, kind):
    other, factor, x = rng.random((9, 3)) + 0.1, rng.random((2, 3)) + 0.1, rng.random((6, 9)) + offset
    chosen = np.array([1, 4])
    weights = {"none": None, "columns": rng.random(9), "entries": rng.random((6, 9))}[kind]
    loss = BetaLoss.of(as_data_matrix(x), beta, offset)
    found = row_newton._multiplicative(loss, RowSubproblem(weights, 0.1, 0.2), x, chosen, factor, other)
    own = np.ones((2, 9)) if kind == "none" else np.broadcast_to(weights, (6, 9))[chosen]
    v = factor @ other.T + offset
    ratio = (own * x[chosen] * v ** (beta - 2)) @ other
    cost = (own * v ** (beta - 1)) @ other + 0.1
    # The root of cost u^a + l2 w u^(a + 1), or of (cost + l2 w) u for the squared loss.
    u, a = found / factor, max(2.0 - beta, 1.0)
    ridge = 0.2 * factor * (u if beta == 2.0 else u ** (a + 1))
    np.testing.assert_allclose(cost * u**a + ridge, ratio, rtol=1e-6)


def test_targets_of_other_namespaces_are_the_same(rng):
    strict = pytest.importorskip("array_api_strict")
    factor, A = rng.random((5, 3)) + 0.1, rng.random((5, 6, 3))
    hessians, gradient = np.einsum("ija,ijb->iab", A, A), rng.standard_normal((5, 3))
    expected = own_target(factor, gradient, hessians.copy())
    found = own_target(*(strict.asarray(each) for each in (factor, gradient, hessians)))
    for mine, theirs in zip(expected, found, strict=True):
        np.testing.assert_allclose(np.asarray(theirs), mine, rtol=1e-6, atol=1e-8)


def test_a_row_with_a_singular_hessian_has_a_target(rng):
    # Fewer entries than components.
    A = rng.random((4, 1, 3))
    hessians, factor = np.einsum("ija,ijb->iab", A, A), rng.random((4, 3)) + 0.1
    gradient = np.einsum("iab,ib->ia", hessians, factor - 2.0 * factor)
    kept = hessians.copy()
    _, target = own_target(factor, gradient, hessians)
    assert (target >= 0).all()
    moved = np.einsum("iab,ib->ia", kept, target - factor) + gradient
    np.testing.assert_allclose(moved, 0.0, atol=1e-5)


@pytest.mark.parametrize("beta", [2.0, 1.0])
@pytest.mark.parametrize(("n_samples", "rounds"), [(0.0, "FIRST_ROUNDS"), (5.0, "ROUNDS")])
def test_a_batch_is_encoded_and_learned_from_in_turns(rng, monkeypatch, beta, n_samples, rounds):
    X, Ht = rng.random((8, 5)) + 0.1, rng.random((5, 2)) + 0.1
    data, past = as_data_matrix(X), OnlineState(n_samples=n_samples, decay=0.5)
    monkeypatch.setattr(online, "FIRST_ROUNDS", 4)
    monkeypatch.setattr(online, "ROUNDS", 2)
    options = {"beta": beta, "penalties": Penalties(0.01, 0.02, 0.03, 0.04)}
    expected = Ht
    for _ in range(getattr(online, rounds)):
        W, _ = online.encode(data, expected, **options)
        if beta == 2.0:
            expected, state = online._least_squares_step(data, W, expected, past, options["penalties"])
        else:
            expected, state = online._multiplicative_step(data, W, expected, past, beta, options["penalties"])
    found, after = online.online_step(data, Ht, past, **options)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(after.numerator, state.numerator, rtol=1e-9)
    assert after.n_samples == 0.5 * n_samples + 8


def test_penalties_on_components_count_as_often_as_samples(rng):
    X, W, Ht = rng.random((8, 5)), rng.random((8, 2)), rng.random((5, 2))
    data, past = as_data_matrix(X), OnlineState(rng.random((5, 2)), np.eye(2), 12.0, 0.5)
    new, state = online._least_squares_step(data, W, Ht, past, Penalties(l1_H=0.1, l2_H=0.2))
    gram, cross = 0.5 * np.eye(2) + W.T @ W, 0.5 * past.numerator + X.T @ W
    np.testing.assert_allclose(state.numerator, cross)
    share = (0.5 * 12 + 8) / 8
    expected, _ = coordinate_passes(
        Ht, [gram + 0.2 * share * np.eye(2)] * 5, cross - 0.1 * share, range(2), online.PASSES, 0.0
    )
    np.testing.assert_allclose(new, expected, rtol=1e-9)


def test_missing_entries_are_those_of_the_model(rng):
    X, W, Ht = rng.random((8, 5)), rng.random((8, 2)), rng.random((5, 2))
    mask = rng.random((8, 5)) < 0.6
    _, state = online._least_squares_step(
        as_data_matrix(X, mask=mask), W, Ht, OnlineState(decay=0.5), Penalties()
    )
    np.testing.assert_allclose(state.numerator, np.where(mask, X, W @ Ht.T).T @ W)
    np.testing.assert_allclose(state.denominator, W.T @ W)


def test_multiplicative_updates_of_a_batch_have_penalties(rng):
    X, W, Ht = rng.random((8, 5)) + 0.1, rng.random((8, 2)) + 0.1, rng.random((5, 2)) + 0.1
    penalties = Penalties(l1_H=0.1, l2_H=0.2)
    for beta, exponent in ((1.0, 1.0), (0.0, 0.5)):
        new, state = online._multiplicative_step(
            as_data_matrix(X), W, Ht, OnlineState(decay=0.5), beta, penalties
        )
        V = W @ Ht.T
        denominator = (V ** (beta - 1)).T @ W + 0.1 + 0.2 * Ht
        numerator = Ht ** (1 / exponent) * ((X * V ** (beta - 2)).T @ W)
        np.testing.assert_allclose(state.denominator, denominator, rtol=1e-9)
        np.testing.assert_allclose(state.numerator, numerator, rtol=1e-9)
        np.testing.assert_allclose(new, (numerator / denominator) ** exponent, rtol=1e-9)


class TileSums:
    """What the kernels for tiles return, from the whole model."""

    @staticmethod
    def _model(x, left, right, loss):
        return x + loss.offset, left @ right.T + loss.offset

    @classmethod
    def newton_sums(cls, x, left, right, loss, *, mask, damping, capped, exact, want_loss):
        np.testing.assert_allclose(damping, damping_of(right))
        assert want_loss == (not loss.convex)
        slope, curvature = row_newton.beta_kernels.newton_terms(
            *cls._model(x, left, right, loss), mask, loss.beta, loss.lower_bound,
            curvature_bound=loss.curvature_bound, exact=exact,
        )  # fmt: skip
        squares = capped_squares(right) if capped else damped_squares(right)
        return slope @ right, curvature @ squares, None, "losses"

    @classmethod
    def step_lengths(cls, x, left, direction, right, loss, linear, quadratic, slopes, mask, losses):
        entries, v = cls._model(x, left, right, loss)
        bounds = loss.beta, loss.lower_bound
        return row_newton.beta_kernels.line_search(
            entries, v, direction @ right.T, mask, *bounds, linear, quadratic, slopes
        )[1]

    @classmethod
    def ratio_sums(cls, x, left, right, loss, *, mask, wanted):
        entries, v = cls._model(x, left, right, loss)
        own = np.ones_like(v) if mask is None else mask
        power = (own * v ** (loss.beta - 1)) @ right
        found = (own * entries * v ** (loss.beta - 2)) @ right
        return found, None if loss.beta == 1 and mask is None else power, None


@pytest.mark.parametrize("beta", [0.0, 1.0, 1.5])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("shortest", "offset", "l1", "l2"), [(0.02, 0.0, 0.1, 0.2), (2.0, 0.3, 0.0, 0.0)])
def test_a_step_in_tiles_is_the_same(rng, monkeypatch, beta, own, masked, shortest, offset, l1, l2):
    monkeypatch.setattr(row_newton, "beta_sums", TileSums)
    monkeypatch.setattr(row_newton, "SHORTEST_STEP", shortest)
    monkeypatch.setattr(row_newton, "HESSIAN_ENTRIES", 20)  # two rows at a time
    other, factor = rng.random((9, 3)) + 0.1, rng.random((5, 3)) + 0.1
    mask = (rng.random((5, 9)) < 0.8).astype(float) if masked else None
    x = rng.random((5, 9)) * (1.0 if mask is None else mask)
    loss, problem = BetaLoss.of(as_data_matrix(x + 0.01), beta, offset), RowSubproblem(mask, l1, l2)
    model = Pairs.of(other) if own else shared_correlations(loss, other, other.sum(axis=1), None)
    exact = np.array([True, False, True, True, False]) if beta == 0.0 else None
    new, residuals = tiled_step(loss, problem, x, factor, other, damping_of(other), model, exact=exact)
    expected, _, wanted = newton_step(
        loss, problem, x + offset, factor @ other.T + offset, factor, other, damped_squares(other), model,
        Buffers(5, 9, factor), exact,
    )  # fmt: skip
    np.testing.assert_allclose(residuals, wanted, rtol=1e-9)
    np.testing.assert_allclose(new, expected, rtol=1e-7, atol=1e-10)
    assert not np.allclose(new, factor)
