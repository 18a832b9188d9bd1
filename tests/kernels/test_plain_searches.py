"""Line searches, tridiagonal systems, cones and Gram matrices, not compiled, against formulas of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp
from tests.kernels.plain import plain

from nonneg.kernels.dual_constraints import constraint_sums
from nonneg.kernels.grams import (
    DenseGrams,
    ListedGrams,
    MaskedGrams,
    SharedGram,
    gram_matrices,
    numpy_gram,
    quadratic_form,
)
from nonneg.transforms.rotations.line_search import backtracking, strong_wolfe

TRANSFORMS = "nonneg.kernels.transforms.numba"
TRIDIAGONAL = "nonneg.kernels.shifted_tridiagonal"
DIAGONAL = "nonneg.kernels.dominating_diagonal.numba"


def cubic(t, c3=1.0, c2=-3.0, c1=-1.0):
    return c3 * t**3 + c2 * t**2 + c1 * t + 5.0


def test_a_bracket_is_cut_at_the_minimum_of_a_polynomial():
    kernels = plain(TRANSFORMS)
    # Through values at 0, 3 and 2.6 and the slope at 0, the cubic is itself; it is lowest near 2.155.
    lowest = (6.0 + np.sqrt(36.0 + 12.0)) / 6.0
    found = kernels.next_step(0.0, cubic(0.0), -1.0, 3.0, cubic(3.0), 2.6, cubic(2.6), False)
    assert found == pytest.approx(lowest)
    # A parabola: (t - 1)^2 from 0 to 3.
    parabola = kernels.next_step(0.0, 1.0, -2.0, 3.0, 4.0, 0.0, 0.0, True)
    assert parabola == pytest.approx(1.0)
    # Too near an end, or not finite: in half.
    assert kernels.next_step(0.0, 1.0, -0.01, 3.0, 4.0, 0.0, 0.0, True) == 1.5
    assert kernels.next_step(0.0, 1.0, -2.0, 3.0, np.inf, 0.0, 0.0, True) == 1.5
    assert [kernels.free_slot(*pair) for pair in ((0, 0), (0, 1), (1, 0), (2, 0), (1, 2))] == [1, 2, 2, 1, 0]


@pytest.mark.parametrize(
    ("low", "high", "last", "expected"),
    [
        (0.5, 3.0, 2.6, 2.1547005383792515),  # the cubic's own minimum, from every side
        (3.0, 0.5, 1.0, 2.1547005383792515),
        (1.0, 3.2, 5.0, 2.1547005383792515),
        (2.0, 3.0, 2.6, 2.125),  # too near the low end: that of a parabola
        (0.0, 2.3, 2.0, 1.15),  # too near the high end, and so is the parabola's
    ],
)
def test_a_bracket_is_cut_where_the_last_three_points_say(low, high, last, expected):
    slope = 3 * low**2 - 6 * low - 1
    given = low, cubic(low), slope, high, cubic(high), last, cubic(last)
    assert plain(TRANSFORMS).next_step(*given, False) == pytest.approx(expected)


def test_a_bracket_is_halved_where_no_polynomial_has_a_minimum_inside():
    kernels = plain(TRANSFORMS)
    falling = [-(t**3) - t for t in (0.0, 1.0, 0.5)]
    assert kernels.next_step(0.0, falling[0], -1.0, 1.0, falling[1], 0.5, falling[2], False) == 0.5
    # A parabola that is lowest at 1, near the high end.
    assert kernels.next_step(0.0, 1.0, -2.0, 1.05, 0.0025, 0.0, 0.0, True) == pytest.approx(0.525)


class Wavy:
    """A function of the step that `search` meets in place of rotations, and of the array code's lines."""

    def __init__(self, seed, monkeypatch):
        rng = np.random.default_rng(seed)
        self.bend, self.trend = 10.0 ** rng.uniform(-4, 1), rng.uniform(0.1, 3.0)
        self.sizes, self.speeds = rng.normal(size=3) * 0.3, rng.uniform(0.5, 6.0, 3)
        self.step, self.sloping, self.learning = 0.0, False, None
        kernels = self.kernels = plain(TRANSFORMS)
        monkeypatch.setattr(kernels, "exponential", lambda E, step, *_: self.go(step, True))
        monkeypatch.setattr(kernels, "polar", lambda E, step, *_: self.go(step, False))
        for name in ("multiply", "power_of", "cross_power_of"):
            monkeypatch.setattr(kernels, name, lambda *given: None)
        monkeypatch.setattr(kernels, "skew_gradient", lambda *given: setattr(self, "sloping", True))
        monkeypatch.setattr(kernels, "inner", self.inner)
        monkeypatch.setattr(kernels, "sum_of_logs", lambda *given: self.f(self.step))

    def go(self, step, learning):
        self.step, self.learning = step, learning

    def f(self, t):
        return self.bend * t**2 - self.trend * t + np.sum(self.sizes * np.sin(self.speeds * t))

    def d(self, t):
        return 2 * self.bend * t - self.trend + np.sum(self.sizes * self.speeds * np.cos(self.speeds * t))

    def inner(self, A, B):
        sloping, self.sloping = self.sloping, False
        return self.d(self.step) if sloping else self.f(self.step)

    def found(self, learning, max_trials):
        """Return step, value and success of the kernel's search."""
        room = np.zeros((3, 1, 1, 1)), np.zeros((10, 1, 1))
        slot, step, value, good = self.kernels.search(
            np.zeros((1, 1, 1)), None, None, 0.0, learning, self.f(0.0), self.d(0.0), max_trials, 0,
            room[0][:, 0], room[0], room[0][:, 0], room[0][:, 0], room[1], None,
        )  # fmt: skip
        assert (slot == 0) == (step == 0.0)
        assert self.learning in (learning, None)  # learning, steps are exponentials
        return step, value, good

    # What `nonneg.transforms.rotations.line_search` asks for.
    def at(self, step):
        return (step,)

    def value(self, point):
        return np.array([self.f(point[0][0])])

    def slope(self, point, step):
        return np.array([self.d(point[0][0])])


@pytest.mark.parametrize("c2", [0.9, 0.01])
@pytest.mark.parametrize("max_trials", [1, 4, 20])
def test_searches_make_the_trials_of_the_array_code(c2, max_trials, monkeypatch):
    monkeypatch.setattr(plain(TRANSFORMS), "C2", c2)
    successes = set()
    for seed in range(12):
        line = Wavy(seed, monkeypatch)
        start = (np.zeros(1),)
        given = line, start, line.value(start), line.slope(start, start[0])
        expected = strong_wolfe(*given, c2=c2, max_trials=max_trials, synchronize=False)
        step, value, good = line.found(True, max_trials)
        assert (step, value) == pytest.approx((expected.step[0], expected.value[0]), rel=1e-9)
        assert good == expected.succeeded[0]
        successes.add(good)
        expected = backtracking(*given, max_trials=max_trials)
        step, value, good = line.found(False, max_trials)
        assert (step, value, good) == (expected.step[0], expected.value[0], expected.succeeded[0])
    assert any(successes)  # otherwise only failures were compared


@pytest.mark.parametrize("learning", [True, False])
@pytest.mark.parametrize("slope", [0.0, 1.0, -1e-16, -1.0])
@pytest.mark.parametrize("value", [1.0, -1.0])
def test_where_only_rounding_is_to_be_gained_the_point_stays(learning, slope, value, monkeypatch):
    line = Wavy(0, monkeypatch)
    line.f, line.d = lambda t: value, lambda t: slope  # the slope promises what the values do not hold
    assert line.found(learning, 20) == (0.0, value, slope > -1.0)


def test_frames_are_exchanged_and_measured(rng):
    kernels = plain(TRANSFORMS)
    X = rng.standard_normal((3, 4, 5))
    frames = np.zeros((4, 15))
    kernels.exchange(frames, X, False)
    np.testing.assert_array_equal(frames, np.concatenate(list(X), axis=1))
    back = np.zeros_like(X)
    kernels.exchange(frames, back, True)
    np.testing.assert_array_equal(back, X)
    V, cross = np.zeros((1, 4, 5)), np.zeros((1, 6, 5))
    kernels.moment_range(frames[None], np.zeros_like(X), V, cross, 0, 1)
    np.testing.assert_allclose(V[0], np.sum(X**2, axis=0))
    np.testing.assert_allclose(cross[0, 0], np.sum(X[:, 0] * X[:, 1], axis=0))
    facts, inverse = np.zeros((3, 2)), rng.random((2, 4, 5))
    kernels.measure_range(V, 0.1, inverse, facts, 0, 2)
    for p in range(2):
        ratio = (V[0] + 0.1) * inverse[p]
        L = 20 + np.sum(np.log(V[0] + 0.1))
        np.testing.assert_allclose(
            facts[:, p], [ratio.sum() - np.log(inverse[p]).sum(), L, np.sum(ratio - 1 - np.log(ratio))]
        )
    likelihoods = np.zeros(1)
    kernels.likelihood_range(V, 0.1, likelihoods, 0, 1)
    assert likelihoods[0] == pytest.approx(20 + np.sum(np.log(V[0] + 0.1)))


@pytest.mark.parametrize("learning", [True, False])
def test_rotations_lower_their_objective_and_stay_orthogonal(learning, rng):
    kernels = plain(TRANSFORMS)
    R, m, n, eps = 3, 4, 6, 1e-3
    v = rng.standard_normal((R, m, n))
    transform = np.linalg.qr(rng.standard_normal((m, m)))[0]
    X = transform @ v
    V, inverse = np.sum(X**2, axis=0), 0.5 + rng.random((m, n))
    before = np.concatenate(list(X), axis=1)[None]
    moments = [V[None].copy(), np.zeros((1, m, n)), np.zeros((1, 6, n)), np.zeros((1, 6, n))]
    kernels.moment_range(before, np.zeros_like(X), moments[0], moments[2], 0, 1)
    workspace = (
        np.zeros((3, m, m)), np.zeros((10, m, m)), np.zeros((3, R, m, n)), np.zeros((4, m, n)),
        np.zeros((3, 6, n)),
    )  # fmt: skip
    new, after, facts, model = (
        transform[None].copy(),
        np.zeros_like(before),
        np.zeros((3, 1)),
        inverse[None].copy(),
    )
    kernels.rotate_range(
        v, eps, learning, new, (before, after), moments, model, 3, 20, facts, workspace, 0, 1
    )

    def objective(phi):
        power = np.sum((phi @ v) ** 2, axis=0)
        return np.sum(power * inverse) if learning else np.sum(np.log(power + eps))

    assert objective(new[0]) < objective(transform)
    np.testing.assert_allclose(new[0] @ new[0].T, np.eye(m), atol=1e-10)
    np.testing.assert_allclose(after[0], np.concatenate(list(new[0] @ v), axis=1))
    np.testing.assert_allclose(moments[1][0], np.sum((new[0] @ v) ** 2, axis=0))
    if learning:
        crosses = [(a, b) for a in range(m) for b in range(a + 1, m)]
        turned = new[0] @ v
        np.testing.assert_allclose(
            moments[3][0], [np.sum(turned[:, a] * turned[:, b], axis=0) for a, b in crosses]
        )
    assert facts[2, 0] == 1.0
    assert facts[1, 0] > 0.0


def rotated(kernels, v, inverse, learning, found, monkeypatch, *, eps0=0.1):
    """Return what three rotations give to their searches, which find nothing new, and what comes out."""
    seen = []

    def search(*given):
        seen.append((given[1].copy(), given[2].copy(), *given[3:8]))
        return 0, found[0], given[5], found[1]

    monkeypatch.setattr(kernels, "search", search)
    R, m, n = v.shape
    pairs = [(a, b) for a in range(m) for b in range(a + 1, m)]
    frames = np.concatenate(list(v), axis=1)[None], np.full((1, m, R * n), 9.0)
    cross = np.array([np.sum(v[:, a] * v[:, b], axis=0) for a, b in pairs])[None]
    moments = np.sum(v**2, axis=0)[None], np.zeros((1, m, n)), cross, np.zeros_like(cross)
    sizes = (3, m, m), (10, m, m), (3, R, m, n), (4, m, n), (3, len(pairs), n)
    facts, workspace = np.full((3, 1), 9.0), tuple(np.zeros(size) for size in sizes)
    kernels.rotate_range(
        v,
        eps0,
        learning,
        np.eye(m)[None],
        frames,
        moments,
        inverse[None].copy(),
        3,
        20,
        facts,
        workspace,
        0,
        1,
    )
    return seen, facts[:, 0], frames


@pytest.mark.parametrize(("good", "taken", "searches"), [(True, 0.0, 3), (False, 0.0, 1), (False, 0.5, 3)])
def test_a_search_that_failed_is_not_repeated(good, taken, searches, monkeypatch, rng):
    v, inverse = rng.standard_normal((1, 2, 3)), np.ones((2, 3))
    seen, facts, frames = rotated(plain(TRANSFORMS), v, inverse, True, (taken, good), monkeypatch)
    assert len(seen) == searches
    assert facts[1:].tolist() == [taken, float(good)]
    # Frames are written anew only where a step was taken: here, those of an empty workspace.
    np.testing.assert_array_equal(frames[1], 0.0 if taken else frames[0])


@pytest.mark.parametrize("learning", [True, False])
def test_directions_are_gradients_divided_by_curvatures(learning, monkeypatch, rng):
    v, eps0 = rng.standard_normal((3, 4, 5)), 0.1
    power, inverse = np.sum(v**2, axis=0), 0.5 + rng.random((4, 5))
    seen, facts, _ = rotated(plain(TRANSFORMS), v, inverse, learning, (0.0, False), monkeypatch, eps0=eps0)
    if not learning:
        power = power + eps0
        inverse = 1.0 / power
    gradient = np.einsum("rai,rbi,ai->ab", v, v, inverse) - np.einsum("rai,rbi,bi->ab", v, v, inverse)
    bend = power @ inverse.T + inverse @ power.T - (0 if learning else 2 * 5)
    expected = np.where(np.eye(4) > 0, 0.0, -gradient / np.where(np.eye(4) > 0, 1.0, bend))
    E, model, eps, given, value, slope, max_trials = seen[0]
    np.testing.assert_allclose(E, expected, atol=1e-12)
    np.testing.assert_allclose(model, inverse)
    assert (eps, given, max_trials) == (eps0, learning, 20)
    assert value == pytest.approx(np.sum(power * inverse) if learning else np.sum(np.log(power)))
    assert slope == pytest.approx(np.sum(gradient * expected))
    assert facts[0] == pytest.approx(np.linalg.norm(gradient) / (2 * 5))


@pytest.mark.parametrize("m", [1, 2, 6])
def test_sums_of_solutions_of_tridiagonal_systems(m, rng):
    A = np.tril(np.triu(rng.random((m, m)), -1))
    A = A @ A.T
    T = np.diag(np.diag(A)) + np.diag(np.diag(A, 1), 1) + np.diag(np.diag(A, 1), -1) if m > 1 else A
    T += 3.0 * np.eye(m)
    shifts, scales, Y = np.array([0.5, 2.0]), np.array([1.0, -0.3]), rng.random((m, 3))
    out = np.full((m, 3), 9.0)
    plain(TRIDIAGONAL).sum_of_solutions(np.diag(T).copy(), np.diag(T, 1).copy(), shifts, scales, Y, out)
    expected = sum(
        scale * np.linalg.solve(T + shift * np.eye(m), Y) for shift, scale in zip(shifts, scales, strict=True)
    )
    np.testing.assert_allclose(out, expected)


def test_rows_are_projected_onto_the_cone_of_their_diagonal(rng):
    n = 5
    C, weights = 1.5 * rng.standard_normal((n, n)), 0.5 + rng.random(n)
    weights[3] = 0.0
    found = plain(DIAGONAL).dominating_diagonal(C, weights, 100)
    for i in range(n):
        if weights[i] == 0.0:
            expected = np.maximum(C[i], 0.0)
            expected[i] = min(expected[i], 1.0)
            np.testing.assert_allclose(found[i], expected)
            continue

        def distance(level, i=i):
            row = np.clip(C[i], 0.0, weights * level / weights[i])
            row[i] = level
            return np.sum((row - C[i]) ** 2)

        best = scipy.optimize.minimize_scalar(
            distance, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10}
        )
        lowest = min(best.fun, distance(0.0), distance(1.0))
        assert np.sum((found[i] - C[i]) ** 2) == pytest.approx(lowest, abs=1e-8)
        assert 0.0 <= found[i, i] <= 1.0
        others = np.delete(np.arange(n), i)
        assert (found[i, others] <= weights[others] * found[i, i] / weights[i] + 1e-12).all()
    given = C.copy()
    assert plain(DIAGONAL).dominating_diagonal(C, weights, 100, out=given) is given
    np.testing.assert_array_equal(given, found)


@pytest.fixture
def grams(rng):
    other, mask = rng.random((7, 3)), rng.random((5, 7)) < 0.6
    exact = np.array([other[row].T @ other[row] for row in mask])
    listed, missing = sp.csr_array(mask), sp.csr_array(~mask)
    return {
        "listed": (ListedGrams(np.zeros((3, 3)), 1.0, other, listed.indptr, listed.indices), exact),
        "missing": (ListedGrams(other.T @ other, -1.0, other, missing.indptr, missing.indices), exact),
        "masked": (MaskedGrams(mask, other), exact),
        "dense": (DenseGrams(exact), exact),
        "shared": (SharedGram(other.T @ other), np.tile(other.T @ other, (5, 1, 1))),
    }


@pytest.mark.parametrize("kind", ["listed", "missing", "masked", "dense", "shared"])
def test_gram_matrices_of_every_kind(kind, grams, rng):
    gram, exact = grams[kind]
    factor = rng.random((5, 3))
    found = gram_matrices(gram)
    np.testing.assert_allclose(np.broadcast_to(found, exact.shape), exact, atol=1e-12)
    forms = np.einsum("ia,iab,ib->", factor, exact, factor)
    assert quadratic_form(factor, gram) == pytest.approx(forms)
    ridged = gram.plus_ridge(0.3)
    assert quadratic_form(factor, ridged) == pytest.approx(forms + 0.3 * np.sum(factor**2))
    np.testing.assert_allclose(
        np.broadcast_to(gram_matrices(ridged), exact.shape), exact + 0.3 * np.eye(3), atol=1e-12
    )
    assert quadratic_form(factor, gram.plus_ridge(0.0)) == pytest.approx(forms)
    both = gram + (SharedGram(np.eye(3)) if kind == "shared" else DenseGrams(np.tile(np.eye(3), (5, 1, 1))))
    np.testing.assert_allclose(
        np.broadcast_to(gram_matrices(both), exact.shape), exact + np.eye(3), atol=1e-12
    )
    if kind != "shared":
        np.testing.assert_allclose(numpy_gram(gram).dense().matrices, exact, atol=1e-12)
        if kind != "dense":
            np.testing.assert_allclose(gram.dense_rows(1, 4), exact[1:4], atol=1e-12)


@pytest.mark.parametrize("n", [3, 300, 1100])
def test_sums_of_violated_constraints_are_upper_bounds(n, rng):
    points, residual, levels = (
        rng.standard_normal((n, 4)),
        rng.standard_normal((n, 4)),
        rng.standard_normal(n),
    )
    radius = np.linalg.norm(points, axis=1).max()
    found = constraint_sums(lambda start, stop: points[start:stop], n, radius, residual, levels)
    exact = np.maximum(levels[None, :] - points @ residual.T, 0.0).sum(axis=1)
    assert (found >= exact).all()
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-4 * n)
