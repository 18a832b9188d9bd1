"""Data built against the proof of a statement: none of them makes a certificate say something false."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from reproduction.purification.perturbation import perturbed_features
from sklearn.exceptions import ConvergenceWarning

from nonneg import NMF, ConeNMF, MinVolNMF, learn_transform, purify, select_anchors
from nonneg.applications.hyperspectral.abundances import Mixtures, image_statements
from nonneg.cones.certificate import cone_statements
from nonneg.cones.geometry.size_angle import SizeAngles
from nonneg.data import as_data_matrix
from nonneg.metrics.mixing import mixing
from nonneg.minvol.certificate import scattering
from nonneg.results import Verdict
from nonneg.separable.certificate import conditioning_statement, hull_distance, mixture_noise


def distance_from_mixtures(point, vertices):
    """Return the distance of a point from the mixtures of vertices and the origin, by another solver."""
    far = 1e4 * np.abs(vertices).max()  # a heavy row makes the weights sum to one
    vertices = np.vstack([vertices, np.zeros(vertices.shape[1])])
    system = np.vstack([vertices.T, np.full(len(vertices), far)])
    # Not `nnls`, which fails on some of these in SciPy 1.13.
    weights = scipy.optimize.lsq_linear(
        system, np.append(point, far), (0, np.inf), method="bvls", tol=1e-14
    ).x
    return float(np.linalg.norm(point - weights / weights.sum() @ vertices))


def cornered(rng):
    """Return samples in as many dimensions as vertices: no residual is left by any, separable or not."""
    angles = np.linspace(0.0, math.pi / 2, 21)
    return {
        "cube": (rng.random((50, 3)), 3),
        "arc": (np.column_stack([np.cos(angles), np.sin(angles)]), 2),
        "corner": (np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.9], [0.5, 0.5]]), 2),
        "beside": (np.vstack([np.eye(3), [[0.9, -0.2, 0.3]], rng.dirichlet(np.ones(3), 9)]), 3),
    }


@pytest.mark.parametrize("kind", ["cube", "arc", "corner", "beside"])
def test_samples_in_the_span_of_the_vertices_and_outside_their_hull_are_noise(kind, rng):
    X, k = cornered(rng)[kind]
    found = select_anchors(X, k, method="spa")
    statement = found.certificate["recovery-bound"]
    assert statement.verdict is Verdict.NOT_VERIFIABLE
    left = max(distance_from_mixtures(x, X[found.anchors]) for x in X)
    assert statement.quantities["noise"] >= left - 1e-6


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_the_noise_of_a_recovery_bound_is_never_below_what_mixtures_leave(dtype, scale, rng):
    vertices = np.eye(3, 6) + 0.2 * rng.random((3, 6))
    X = np.vstack([vertices, vertices[:1], rng.dirichlet(np.ones(3), 20) @ vertices, np.zeros((1, 6))])
    X[10:14] += 0.05 * rng.standard_normal((4, 6))
    X = (scale * X).astype(dtype)
    found = mixture_noise(as_data_matrix(X), X[:3].astype(np.float64))
    exact = [distance_from_mixtures(x / scale, X[:3] / scale) for x in X * 1.0]
    assert found >= scale * (max(exact) - 1e-6)
    with_copies = select_anchors(np.vstack([np.eye(3), np.eye(3)]) * scale, 3, method="spa")
    assert with_copies.certificate["recovery-bound"].number <= 1e-10 * scale


def test_anchors_inside_the_hull_of_others_of_very_unequal_length_are_said_to_be(rng):
    for _ in range(20):
        k, m = int(rng.integers(3, 9)), int(rng.integers(2, 10))
        W = rng.random((k, m)) * np.logspace(0, -9, k)[:, None]
        W[-1] = rng.dirichlet(np.ones(k - 1)) @ W[:-1]
        assert hull_distance(W) <= 1e-14 * float(np.linalg.norm(W, axis=1).max())
        assert not conditioning_statement(W).holds
    # Where the distance is large, nothing is lost.
    assert hull_distance(np.eye(5)) == pytest.approx(math.sqrt(1.25), rel=1e-12)


def objective(X, C, lam, mu):
    """Return (18) of the MERIT paper in extended precision."""
    X, C = np.asarray(X, dtype=np.longdouble), np.asarray(C, dtype=np.longdouble)
    rest = X.T - X.T @ C
    top = C.max(axis=1, keepdims=True)
    smoothed = top[:, 0]
    if mu > 0:
        smoothed = smoothed + mu * np.log(np.exp((C - top) / mu).mean(axis=1))
    return float(0.5 * (rest**2).sum() + lam * smoothed.sum())


@pytest.mark.covering(1)
@pytest.mark.filterwarnings("ignore:Sample 10 was found as an anchor")
@pytest.mark.parametrize("kind", ["plain", "copies", "zeros", "one feature", "offset", "tiny"])
@pytest.mark.parametrize(("method", "lam"), [("merit", 0.0), ("merit", 0.3), ("merit-exact", 0.3)])
def test_no_feasible_point_is_below_the_dual_bound(kind, method, lam, rng):
    base = np.vstack([rng.random((4, 9)), rng.dirichlet(np.ones(4), 30) @ rng.random((4, 9))])
    zeros = base.copy()
    zeros[10:20] = 0.0
    X = {
        "plain": base, "copies": np.repeat(base[:6], 5, axis=0), "zeros": zeros, "one feature": base[:, :1],
        "offset": 1e-2 * base + 10.0, "tiny": 1e-9 * base,
    }[kind]  # fmt: skip
    for max_iter in (1, 4, 60):
        params = {"lam": lam * float(np.sum(X**2)) / len(X)}
        found = select_anchors(X, 1, method=method, max_iter=max_iter, method_params=params)
        statement = found.certificate["duality-gap"]
        lower, n = statement.quantities["lower_bound"], len(X)
        C = found.coefficients.toarray()
        assert statement.quantities["objective"] == pytest.approx(
            objective(X, C, found.lam, found.mu), rel=1e-9, abs=1e-12 * float(np.sum(X**2))
        )
        mean, first = np.full((n, n), 1.0 / n), np.zeros((n, n))
        first[0] = 1.0
        others = [np.eye(n), mean, first, 0.5 * (C + np.eye(n)), 0.9 * C + 0.1 * mean, C]
        lowest = min(objective(X, other, found.lam, found.mu) for other in others)
        assert lower <= lowest + 1e-12 * float(np.sum(X**2))


def test_a_transform_at_a_maximum_is_only_said_to_be_stationary():
    # Both variances are equal, and the gradient of L vanishes by symmetry: every rotation lowers L.
    root = np.linalg.cholesky(np.array([[1.0, 0.9], [0.9, 1.0]]))
    signs = math.sqrt(2.0) * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    frames = np.repeat((signs @ root.T)[:, None, :], 3, axis=1)
    result = learn_transform(frames, 1, method="jd", init=np.eye(2), max_iter=5, eps0=1e-9)
    np.testing.assert_allclose(result.transform, np.eye(2), atol=1e-8)

    def likelihood(angle):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        return float(np.log(np.mean((frames[:, 0] @ turn.T) ** 2, axis=0)).sum())

    assert likelihood(0.01) < likelihood(0.0)
    statement = result.certificate["skew-gradient"]
    assert statement.sentence.startswith("To first order, small rotations")
    assert "decrease" not in statement.sentence


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("angle", [1e-9, 1e-8, 1e-7, 1e-5])
def test_streams_of_samples_that_rounding_cannot_tell_apart(angle, dtype, rng):
    axis = rng.random(50) + 0.5
    axis /= np.linalg.norm(axis)
    side = rng.standard_normal(50)
    side -= (side @ axis) * axis
    side /= np.linalg.norm(side)
    angles = angle * rng.permutation(np.arange(20) / 19.0)
    X = (axis + np.outer(np.tan(angles), side)) * rng.uniform(0.5, 2.0, 20)[:, None]
    X = X.astype(dtype)
    model = ConeNMF(1).partial_fit(X)
    exact = X.astype(np.longdouble)
    units = exact / np.sqrt((exact**2).sum(axis=1))[:, None]
    rows = [np.asarray(each[0], dtype=np.longdouble) for each in (model.basis_, model.components_)]
    center, h = (row / np.sqrt((row**2).sum()) for row in rows)
    widest = float(np.max(2.0 * np.arcsin(np.sqrt(((units - center) ** 2).sum(axis=1)) / 2.0)))
    rest = exact - np.outer(exact @ h, h)
    error = float(np.sqrt((rest**2).sum() / (exact**2).sum()))
    assert model.certificate_["streamed-radius"].number >= widest
    assert model.certificate_["streamed-error"].number >= error


def test_a_bound_that_only_rounding_exceeds_is_said_to_be():
    angles, ones = np.full(2, 1e-9), np.ones(2)
    cones = SizeAngles(np.eye(2), angles, angles, angles, 3 * ones, ones, 1e-18 * ones, boundary=())
    found = {each.name: each for each in cone_statements(cones, 5e-9, 1e-8)}
    for name in ("cluster-bound", "largest-angle-bound", "exact-clustering-bound"):
        assert found[name].holds
        assert "up to rounding" in found[name].sentence
    found = {each.name: each for each in cone_statements(cones, 5e-7, 1e-8)}
    assert "is above 1e-09" in found["cluster-bound"].sentence
    assert not found["cluster-bound"].holds


@pytest.mark.parametrize("noise", [0.0, 1e-8, 1e-7, 3e-7, 1e-6, 1e-3])
def test_the_bound_of_an_image_is_below_what_rounding_leaves_of_it(noise, rng):
    # Two spectra and orthogonal noise of known size: the best two spectra leave `noise` of the norm.
    left, _ = np.linalg.qr(rng.standard_normal((400, 3)))
    right, _ = np.linalg.qr(rng.standard_normal((60, 3)))
    X = left * [1.0, 0.5, noise * math.sqrt(1.25)] @ right.T
    fitted = left[:, :2] * [1.0, 0.5] @ right[:, :2].T
    mixtures = Mixtures(np.zeros((400, 2)), np.zeros(400), X.T @ X, float(np.sum((X - fitted) ** 2)), 400)
    statement = image_statements(mixtures, np.ones((2, 60)))[0]
    assert statement.quantities["lower_bound"] <= noise
    assert statement.number is None or statement.number >= 1.0 - 1e-9
    if noise > 1e-5:
        assert statement.number == pytest.approx(1.0, rel=1e-3)


def test_weights_that_are_not_scattered_do_not_show_that_others_fit():
    # Without pure samples the components may still be unique: the condition is sufficient, not necessary.
    statement = scattering(np.array([0.6, 0.6, 0.6]), np.array([1, 2, 2]))
    assert statement.verdict is Verdict.FAILS
    assert "not met" in statement.sentence


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_the_residual_of_a_fit_has_no_units_at_the_ends_of_the_range(scale, rng):
    X = rng.random((30, 3)) @ rng.random((3, 12)) + 0.3 * rng.random((30, 12))
    with pytest.warns(ConvergenceWarning):
        plain, scaled = (NMF(3, max_iter=3, random_state=0).fit(each) for each in (X, scale * X))
    numbers = [model.certificate_["stationarity"].number for model in (plain, scaled)]
    assert numbers[1] == pytest.approx(numbers[0], rel=1e-6)
    assert not scaled.certificate_["stationarity"].holds


@pytest.mark.parametrize("kind", ["pairs", "exclusive", "opposite", "simplex", "one inside another"])
def test_dependent_weights_never_get_a_clean_certificate_for_wrong_features(kind):
    # The theorems ask for independent weights: from others the update moves away even from a good start.
    rng = np.random.default_rng(0)
    n, n_samples = 6, 3000
    H = np.abs(rng.standard_normal((n, 30))) * (rng.random((n, 30)) < 0.3) + np.eye(n, 30)
    W = (rng.random((n_samples, n)) < 0.3) * 1.0
    if kind == "pairs":
        W[:, 1] = W[:, 0]
    elif kind == "exclusive":
        W = np.eye(n)[rng.integers(0, n, n_samples)]
    elif kind == "opposite":
        W[:, 1] = 1.0 - W[:, 0]
    elif kind == "simplex":
        W = rng.dirichlet(np.ones(n), n_samples)
    else:
        W[:, 1] *= W[:, 0]
    init = perturbed_features(H, 0.1, rng=1)
    for update in ("regression", "covariance"):
        result = purify(W @ H, init, update=update, check_init="report", max_iter=30)
        wrong = mixing(H, result.H).e_norm > 0.3
        failing = [each.name for each in result.certificate if each.verdict is Verdict.FAILS]
        assert failing or not wrong


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_sums_of_many_equal_products_do_not_raise_the_eckart_young_bound(form):
    # A matrix of rank one: every term of its Gram matrix is rounded in the same direction.
    X = form(np.full((100_000, 2), 0.1))
    model = NMF(1, max_iter=5, random_state=0).fit(X)
    assert model.certify(X)["eckart-young-bound"].quantities["lower_bound"] == 0.0


def test_weights_on_anchors_alone_do_not_make_samples_mixtures(rng):
    X = rng.dirichlet(np.full(3, 0.5), 60) @ (rng.random((3, 12)) + 0.1) + 0.02 * rng.random((60, 12))
    found = select_anchors(X, 3, method="merit-exact", method_params={"lam": 50.0})
    statement = found.certificate["support"]
    assert statement.holds
    assert statement.sentence == "All weight is on the anchors: no sample is explained by another one."


def test_one_component_with_shade_is_not_said_to_be_the_mean(rng):
    X = rng.random((40, 6)) * np.logspace(-1, 0, 40)[:, None]
    model = MinVolNMF(1, constraint="at-most-one", max_iter=20).fit(X)
    assert np.abs(model.components_[0] - X.mean(axis=0)).max() > 0.1
    assert "mean" not in model.certificate_["sufficiently-scattered"].sentence
