"""Ends of runs: at stationary points, at one for all solvers of a loss, at the planted one if unique."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from tests.contracts.cases import CASES, FEW, entries, run, run_until_settled
from tests.references.objectives import objective, slopes

BY_LOSS = {}
for case in CASES:
    BY_LOSS.setdefault(case.values[1], []).append(case.values[0])


def near_a_truth():
    """Noisy data with two planted components, and an initialization near them."""
    rng = np.random.default_rng(0)
    W, H = rng.gamma(0.7, size=(16, 2)), rng.gamma(0.7, size=(2, 10))
    X = (W @ H + 0.1) * np.exp(0.1 * rng.normal(size=(16, 10)))
    return X, {"W": W * np.exp(0.1 * rng.normal(size=W.shape)) + 0.01, "H": H + 0.01}


# With penalties, solvers end in different local minima for losses that are not convex in a factor (beta < 0);
# below, the end of each is stationary. Multiplicative updates take short steps; for beta > 2 they need 60,000
# of them.
@pytest.mark.parametrize(
    ("beta", "penalties", "max_iter"),
    [
        pytest.param(
            beta,
            penalties,
            max_iter,
            marks=() if beta in FEW and not (penalties and beta != 1.0) else pytest.mark.slow,
        )
        for beta, names in BY_LOSS.items()
        for penalties, max_iter in (({}, 300), ({"alpha_W": 0.01, "alpha_H": 0.01}, 1000))
        if len(names) > 1 and beta <= 2 and (not penalties or beta >= 0)
    ],
)
def test_all_solvers_of_a_loss_reach_one_optimum(beta, penalties, max_iter):
    if penalties and beta == 0:
        max_iter = 500
    X, given = near_a_truth()
    losses = [
        run_until_settled(
            X, name, beta, k=2, max_iter=10_000 if name == "mu" else max_iter, **given, **penalties
        ).loss
        for name in BY_LOSS[beta]
    ]
    np.testing.assert_allclose(losses, min(losses), rtol=1e-8)


@pytest.mark.covering(1)
@pytest.mark.parametrize(("name", "beta"), CASES)
@pytest.mark.parametrize("penalties", [{}, {"alpha_W": 0.01, "alpha_H": 0.01}], ids=["plain", "penalized"])
def test_the_end_is_stationary_by_finite_differences(name, beta, penalties):
    X, given = near_a_truth()
    result = run_until_settled(X, name, beta, k=2, max_iter=3000, **given, **penalties)
    first = run(X, name, beta, k=2, max_iter=1, **given, **penalties)

    def residual(W, H):
        by_W = slopes(lambda W: objective(X, W, H, beta=beta, **penalties), W)
        by_H = slopes(lambda H: objective(X, W, H, beta=beta, **penalties), H)
        return max(np.abs(np.minimum(W, by_W)).max(), np.abs(np.minimum(H, by_H)).max())

    assert residual(result.W, result.H) < 0.05 * residual(first.W, first.H)
    assert result.certificate["stationarity"].number < 1e-3
    assert first.certificate["stationarity"].number > 3 * result.certificate["stationarity"].number


@pytest.mark.parametrize("solver", BY_LOSS[2.0])
def test_the_certificate_of_the_frobenius_loss_follows_from_finite_differences(solver):
    X = entries(2.0)
    weights = np.arange(24) % 3 + 0.5
    penalties = {"alpha_W": 0.003, "alpha_H": 0.002, "l1_ratio": 0.6}
    result = run(X, solver, 2.0, max_iter=2, sample_weight=weights, **penalties)
    W, H = np.asarray(result.W), np.asarray(result.H)
    by_W = slopes(lambda W: objective(X, W, H, weights=weights, **penalties), W) / weights[:, None]
    by_H = slopes(lambda H: objective(X, W, H, weights=weights, **penalties), H)
    curvature_W = np.diag(H @ H.T) + 15 * 0.003 * 0.4
    curvature_H = np.diag(W.T @ (weights[:, None] * W)) + weights.sum() * 0.002 * 0.4
    scale = float(weights @ (X**2).sum(axis=1))
    left = weights[:, None] * curvature_W * np.minimum(W, by_W / curvature_W) ** 2
    right = curvature_H[:, None] * np.minimum(H, by_H / curvature_H[:, None]) ** 2
    statement = result.certificate["stationarity"]
    assert statement.quantities["residual_W"] == pytest.approx(
        np.sqrt(left.sum() / scale), rel=1e-4, abs=1e-8
    )
    assert statement.quantities["residual_H"] == pytest.approx(
        np.sqrt(right.sum() / scale), rel=1e-4, abs=1e-8
    )


@pytest.mark.covering(1)
@pytest.mark.parametrize(("name", "beta"), [case for case in CASES if 0 <= case.values[1] <= 2])
def test_planted_factors_are_found_up_to_order_and_scale(name, beta):
    # Some rows are a pure component and some columns belong to one alone: the factorization is unique.
    rng = np.random.default_rng(1)
    W = np.vstack([np.eye(3) + 0.02, np.eye(3) + 0.02, rng.dirichlet([0.3] * 3, size=40)])
    H = np.hstack([3 * np.eye(3) + 0.02, rng.dirichlet([0.3] * 20, size=3)])
    X = W @ H
    best = min(
        (run(X, name, beta, max_iter=120, init=init, rng=0) for init in (None, "random")),
        key=lambda r: r.loss,
    )
    found = np.asarray(best.H) / np.linalg.norm(best.H, axis=1, keepdims=True)
    truth = H / np.linalg.norm(H, axis=1, keepdims=True)
    likeness = found @ truth.T
    rows, columns = scipy.optimize.linear_sum_assignment(-likeness)
    assert likeness[rows, columns].min() > 0.99
