"""Both MERIT algorithms: the published iterates, and the minimum of the problem."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references import self_dictionary as reference
from tests.references.containers import TORCH, as_container

from nonneg import select_anchors
from nonneg.exceptions import InterruptedFitWarning, InvalidParameterError, UnsupportedError
from nonneg.iteration import StopReason
from nonneg.separable import merit


@pytest.mark.parametrize("form", ["dense", "csr", TORCH])
def test_iterates_are_those_of_the_paper(form, noisy):
    # Algorithm 1 with every array whole; the weights are integers, so that C is exact.
    lam, mu = 0.3, 1e-5
    found = select_anchors(
        as_container(noisy.X, form),
        6,
        method="merit",
        max_iter=30,
        tol=0,
        method_params={"lam": lam, "mu": mu},
    )
    C = reference.frank_wolfe(noisy.X.T, lam, mu, 30)
    np.testing.assert_allclose(found.coefficients.toarray(), C, rtol=0, atol=1e-14)
    assert found.objective == pytest.approx(reference.objective(noisy.X.T, C, lam, mu), rel=1e-9)
    assert found.gap == pytest.approx(reference.gap(noisy.X.T, C, lam, mu), rel=1e-9)
    maxima = C.max(axis=1)
    np.testing.assert_array_equal(found.anchors, np.argsort(-maxima, kind="stable")[:6])
    assert found.n_iter == 30


def test_the_weight_is_that_of_the_authors(noisy):
    # ||X - W H|| / (2 K) with SPA's anchors as W: half of what the paper prints.
    found = select_anchors(noisy.X, 6, method="merit", max_iter=1)
    W = noisy.X[select_anchors(noisy.X, 6, method="spa").anchors]
    residual = min_distance(noisy.X, W)
    assert found.lam == pytest.approx(np.sqrt(np.sum(residual**2)) / 12, rel=1e-6)
    printed = select_anchors(noisy.X, 6, method="merit", max_iter=1, method_params={"lam": "printed"})
    assert printed.lam == pytest.approx(2 * found.lam, rel=1e-3)


def min_distance(X, vertices):
    """Distances from the hull, by nonnegative least squares with a heavy row of ones."""
    from scipy.optimize import nnls

    heavy = 1e4 * np.linalg.norm(vertices)
    A = np.vstack([vertices.T, np.full(len(vertices), heavy)])
    return np.array([nnls(A, np.append(x, heavy))[1] for x in X])


def test_a_warm_start_continues(noisy):
    warm = select_anchors(noisy.X, 6, method="merit", init="spa", max_iter=20, tol=0)
    assert warm.details["t_init"] >= 1
    # Its first iterate is a convex combination of the start and vertices: columns still sum to one.
    np.testing.assert_allclose(np.asarray(warm.coefficients.sum(axis=0)), 1.0, rtol=1e-12)
    with pytest.raises(InvalidParameterError, match="no warm start"):
        select_anchors(noisy.X, 6, method="merit", method_params={"t_init": 5})


@pytest.mark.parametrize("n_before", [1, 9])
def test_ctrl_c_within_an_iteration_leaves_the_iterate_before_it(n_before, noisy, monkeypatch):
    # The next iterate is written over the last one, which is restored.
    expected = select_anchors(noisy.X, 6, method="merit", max_iter=n_before, tol=0)
    scan, scans = merit.minimizing_vertices, iter([*[None] * (n_before + 1), KeyboardInterrupt])

    def interrupted(*arguments):
        if error := next(scans, None):
            raise error
        return scan(*arguments)

    monkeypatch.setattr(merit, "minimizing_vertices", interrupted)
    with pytest.warns(InterruptedFitWarning, match=f"after {n_before} iterations"):
        stopped = select_anchors(noisy.X, 6, method="merit", max_iter=50, tol=0)
    assert stopped.n_iter == n_before
    assert (stopped.coefficients != expected.coefficients).nnz == 0
    assert stopped.gap == expected.gap


@pytest.mark.parametrize("method", ["merit", "merit-exact"])
def test_an_interrupted_run_resumes(method, noisy, tmp_path):
    whole = select_anchors(noisy.X, 6, method=method, max_iter=6, tol=0)
    stopped = select_anchors(
        noisy.X, 6, method=method, max_iter=6, tol=0, checkpoint=tmp_path, callback=lambda p: p.n_iter == 2
    )
    assert stopped.stop_reason is StopReason.CALLBACK
    resumed = select_anchors(noisy.X, 6, method=method, max_iter=6, tol=0, checkpoint=tmp_path)
    assert resumed.n_iter == whole.n_iter
    assert resumed.objective == pytest.approx(whole.objective, rel=1e-12)
    np.testing.assert_array_equal(resumed.anchors, whole.anchors)


def minimum_by_linear_programming(X, lam):
    """The minimum of 0.5 ||X - C'X||^2 + lam sum_n max_l c_nl by a general solver."""
    from scipy.optimize import minimize

    n = len(X)

    def smooth(C, mu):
        return reference.objective(X.T, C, lam, mu)

    logits = np.zeros((n, n)) + 3 * np.eye(n)

    def value(z):
        z = z.reshape(n, n)
        C = np.exp(z - z.max(axis=0))
        C /= C.sum(axis=0)
        slope = reference.gradient(X.T, C, lam, 1e-3)
        return smooth(C, 1e-3), (C * (slope - np.sum(C * slope, axis=0))).ravel()

    best = minimize(value, logits.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 4000})
    z = best.x.reshape(n, n)
    C = np.exp(z - z.max(axis=0))
    C /= C.sum(axis=0)
    return 0.5 * np.sum((X.T - X.T @ C) ** 2) + lam * C.max(axis=1).sum()


@pytest.mark.covering(0)
@pytest.mark.parametrize("lam", [0.02, 0.3])
def test_the_exact_solver_reaches_the_minimum_and_bounds_it(lam, rng):
    X = np.vstack([np.eye(3), rng.dirichlet(np.ones(3), 9)]) @ rng.random((3, 5))
    found = select_anchors(X, 3, method="merit-exact", tol=1e-6, method_params={"lam": lam})
    other = minimum_by_linear_programming(X, lam)
    assert found.gap <= 1e-5 * found.objective
    # The other solver is feasible: it cannot be below the lower bound, and it is not far above.
    assert found.objective - found.gap <= other + 1e-12
    assert found.objective <= other * (1 + 1e-6)
    C = found.coefficients.toarray()
    assert C.min() >= 0
    np.testing.assert_allclose(C.sum(axis=0), 1.0)
    again = 0.5 * np.sum((X.T - X.T @ C) ** 2) + lam * C.max(axis=1).sum()
    assert found.objective == pytest.approx(again, rel=1e-9)


def test_the_automatic_weight_balances_both_terms_and_has_no_units(noisy):
    found = select_anchors(noisy.X, 6, method="merit-exact")
    W = noisy.X[select_anchors(noisy.X, 6, method="spa").anchors]
    assert found.lam == pytest.approx(np.sum(min_distance(noisy.X, W) ** 2) / 12, rel=1e-5)
    for unit in (1e-20, 1e20):
        scaled = select_anchors(unit * noisy.X, 6, method="merit-exact")
        assert set(scaled.anchors) == set(found.anchors)
        assert scaled.lam == pytest.approx(unit**2 * found.lam, rel=1e-6)


def test_some_samples_are_explained_and_all_may_be_anchors(rng):
    W = rng.random((5, 12))
    X = np.vstack([rng.dirichlet(np.ones(5), 595) @ W, W]) + 0.01 * rng.standard_normal((600, 12))
    found = select_anchors(X, 5, method="merit-exact", method_params={"n_explained": 100})
    assert set(found.anchors) == set(range(595, 600))
    assert found.coefficients is None
    assert found.details["n_explained"] == 100
    assert "100 of the 600 samples" in found.certificate["duality-gap"].sentence


@pytest.mark.parametrize("method", ["merit", "merit-exact"])
def test_data_without_noise(method, clean):
    found = select_anchors(clean.X, 6, method=method)
    assert set(found.anchors) == set(clean.anchors)
    assert set(select_anchors(sp.csr_array(clean.X), 6, method=method).anchors) == set(clean.anchors)


def test_rules_of_another_method_are_refused(noisy):
    with pytest.raises(UnsupportedError, match="merit-exact"):
        select_anchors(noisy.X, 6, method="merit", method_params={"lam": "auto"})
    with pytest.raises(UnsupportedError, match="merit"):
        select_anchors(noisy.X, 6, method="merit-exact", method_params={"lam": "paper"})
    with pytest.raises(InvalidParameterError, match="above 0"):
        select_anchors(noisy.X, 6, method="merit-exact", method_params={"lam": 0})
