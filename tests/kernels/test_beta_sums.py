"""Tiles of beta-divergences on a GPU against sums over stored entries."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels import beta_products as entrywise
from nonneg.kernels import beta_sums
from nonneg.kernels.newton_targets import array_api as portable_targets
from nonneg.kernels.newton_targets import newton_targets
from nonneg.losses.beta import BetaLoss
from nonneg.solvers.row_newton import capped_squares, damped_squares, damping_of

BETAS = [-1.0, 0.0, 0.5, 1.0, 1.5, 1.2, 2.0]
# One row, one column, rank one, and sizes that are no multiple of a tile.
SHAPES = [(1, 7, 3), (9, 1, 2), (70, 37, 1), (45, 83, 20)]
LONG = (3, 700, 2)  # shared by several programs
SMALL = (13, 21, 5)
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


class Case:
    """Data, factors and weights, in NumPy and on the device."""

    def __init__(self, torch, device, shape, beta, dtype="float64", *, masked=False, weighted=False):
        rng = np.random.default_rng(0)
        m, n, k = shape
        self.W, self.Ht = rng.gamma(1.0, size=(m, k)), rng.gamma(1.0, size=(n, k))
        self.x = rng.gamma(1.0, size=(m, n)) * (self.W @ self.Ht.T + 0.1)
        self.mask = (rng.random((m, n)) < 0.7).astype(float) if masked else None
        if masked:
            self.x = self.x * self.mask
        self.weights = rng.random(m) + 0.5 if weighted else None
        self.exact = rng.random(m) < 0.5
        self.loss = BetaLoss(beta, 1e-14, 0.0, 0.3 if 1 < beta < 2 else 0.0)
        self.tolerance = TOLERANCE[dtype]
        self.on = lambda array: (
            None
            if array is None
            else torch.asarray(array, device=device)
            if array.dtype == bool
            else torch.asarray(array.astype(dtype), device=device)
        )

    @property
    def v(self):
        return self.W @ self.Ht.T

    def close(self, found, expected):
        found = found.cpu().numpy()
        assert np.isfinite(found).all()
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=self.tolerance, atol=self.tolerance * scale)


def cases():
    for beta in BETAS:
        yield beta, SHAPES[-1] if beta == 1.0 else SMALL, "float64", True
    for shape in (*SHAPES[:-1], LONG):
        yield 1.0, shape, "float64", False
    for beta in (0.0, 1.0, 1.2):
        yield beta, SMALL, "float32", beta != 1.2


@pytest.mark.covering(1)
@pytest.mark.torch
@pytest.mark.parametrize(("beta", "shape", "dtype", "masked"), list(cases()))
def test_sums_are_those_of_the_entries(beta, shape, dtype, masked, torch, device):
    case = Case(torch, device, shape, beta, dtype, masked=masked, weighted=masked)
    on, loss, x, v = case.on, case.loss, case.x, case.v
    bounds = beta, loss.lower_bound
    W, Ht, mask, weights = on(case.W), on(case.Ht), on(case.mask), on(case.weights)
    of_rows = np.ones(len(x)) if case.weights is None else case.weights

    ratio, power = entrywise.ratio_terms(x, v.copy(), *bounds, case.mask)
    found, cost, losses = beta_sums.ratio_sums(on(x), W, Ht, loss, mask=mask, want_loss=True)
    case.close(found, ratio @ case.Ht)
    case.close(losses, entrywise.row_losses(x, v, *bounds, mask=case.mask))
    assert losses.dtype == torch.float64
    assert (cost is None) == (power is None)
    columns = on(x).T, Ht, W
    options = {"mask": None if mask is None else mask.T, "weights": weights}
    found_H, cost_H, _ = beta_sums.ratio_sums(*columns, loss, **options)
    case.close(found_H, ratio.T @ (case.W * of_rows[:, None]))
    if power is not None:
        case.close(cost, power @ case.Ht)
        case.close(cost_H, power.T @ (case.W * of_rows[:, None]))

    exact = None if loss.convex else case.exact
    slope, curvature = entrywise.newton_terms(
        x, v, case.mask, *bounds, curvature_bound=loss.curvature_bound, exact=exact
    )
    for capped, squares in ((False, damped_squares(case.Ht)), (True, capped_squares(case.Ht))):
        gradient, diagonal, _, _ = beta_sums.newton_sums(
            on(x), W, Ht, loss, mask=mask, damping=damping_of(Ht), capped=capped, exact=on(exact)
        )
        case.close(gradient, slope @ case.Ht)
        case.close(diagonal, curvature @ squares)
    slope, curvature = entrywise.newton_terms(x, v, case.mask, *bounds, curvature_bound=loss.curvature_bound)
    gradient, diagonal, traces, losses = beta_sums.newton_sums(
        *columns, loss, traced=True, want_loss=True, **options
    )
    case.close(gradient, slope.T @ (case.W * of_rows[:, None]))
    case.close(diagonal, curvature.T @ (case.W**2 * of_rows[:, None]))
    case.close(traces, curvature.T @ of_rows)
    expected = entrywise.column_losses(x, v, *bounds, of_rows, case.mask)
    case.close(losses, expected)
    case.close(beta_sums.losses(*columns, loss, **options), expected)
    if device.type != "cuda":  # the interpreter has one order of sums
        return
    again = beta_sums.newton_sums(*columns, loss, traced=True, want_loss=True, **options)
    assert all(torch.equal(a, b) for a, b in zip(again, (gradient, diagonal, traces, losses), strict=True))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("beta", "length", "dtype"),
    [
        *((beta, length, "float64") for beta in BETAS for length in (0.3, 3.0)),
        (1.0, 3.0, "float32"),
        (0.0, 3.0, "float32"),
    ],
)
def test_steps_are_those_of_the_line_search(beta, length, dtype, torch, device):
    if length < 1 and beta not in (0.0, 1.0) and device.type != "cuda":
        pytest.skip("takes long in the interpreter")
    case = Case(torch, device, SHAPES[-1], beta, dtype, masked=beta == 1.5)
    on, x, v, rng = case.on, case.x, case.v, np.random.default_rng(1)
    bounds = beta, case.loss.lower_bound
    gradient = entrywise.newton_terms(x, v, case.mask, *bounds)[0] @ case.Ht
    direction = -np.sign(gradient) * rng.random(case.W.shape) * case.W * length
    direction = np.maximum(direction, -0.9 * case.W)
    direction[:5] = -direction[:5] * 0.1  # uphill
    linear, quadratic = 0.1 * rng.random(len(x)), 0.1 * rng.random(len(x))
    slopes = np.sum(gradient * direction, axis=1) + linear
    penalty = linear, quadratic, slopes
    _, expected = entrywise.line_search(x, v, direction @ case.Ht.T, case.mask, *bounds, *penalty)
    steps = beta_sums.step_lengths(
        on(x), on(case.W), on(direction), on(case.Ht), case.loss, *map(on, penalty), on(case.mask)
    )
    np.testing.assert_allclose(steps.cpu().numpy(), expected, rtol=1e-8 if dtype == "float64" else 1e-4)
    assert (expected == 0).any()
    assert len(np.unique(expected)) > (2 if length > 1 else 1)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("shape", "order", "dtype"),
    [
        ((40, 5), None, "float64"),
        ((9, 5), [0, 2], "float64"),
        ((33, 20), None, "float32"),
        ((2, 1), None, "float64"),
    ],
)
def test_targets_are_those_of_the_portable_code(shape, order, dtype, torch, device):
    rng = np.random.default_rng(0)
    factor, gradient = rng.gamma(0.3, size=shape), rng.standard_normal(shape)
    factor[rng.random(shape) < 0.2] = 0.0
    k = shape[1]
    correlations = np.corrcoef(rng.random((k, 30))).reshape(k, k) ** 2
    np.fill_diagonal(correlations, 1.0)
    arrays = [part.astype(dtype) for part in (factor, gradient, rng.gamma(1.0, size=shape), correlations)]
    order = None if order is None else np.array(order)
    expected = portable_targets.newton_targets(*arrays, order, 0.3, 0.2)
    found = newton_targets(*(torch.asarray(part, device=device) for part in arrays), order, 0.3, 0.2)
    tolerance = 2e-4 if dtype == "float32" else 1e-10
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.cpu().numpy(), other, rtol=tolerance, atol=tolerance)


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_largest_ranks_fit(dtype, torch, device):
    case = Case(torch, device, (20, 33, 255), 1.0, dtype)
    on, loss = case.on, case.loss
    ratio, _, _ = beta_sums.ratio_sums(on(case.x), on(case.W), on(case.Ht), loss)
    case.close(ratio, (case.x / case.v) @ case.Ht)
    assert beta_sums.is_supported(on(case.x), 256)
    assert not beta_sums.is_supported(on(case.x), 257)
    assert not beta_sums.is_supported(case.x, 5)
