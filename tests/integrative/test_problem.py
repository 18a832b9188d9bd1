"""The updates of integrative NMF against their formulas, one data set and one row at a time."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.least_squares import coordinate_passes, nonnegative_rows

from nonneg.data import as_data_matrix
from nonneg.integrative import problem
from nonneg.integrative.problem import (
    Components,
    DataSet,
    Sums,
    encode,
    objective,
    residual_energies,
    update_components,
)

K, P, LAM = 3, 7, 0.6
FORMS = [("dense", False), ("dense", True), ("csr", False), ("csr", True)]


def matrix(n, seed, form="dense", weighted=False):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(n, P)) * (rng.random((n, P)) < 0.8)
    X[:, 2] = 0.0  # a feature that is never seen
    weights = rng.random(n) + 0.5 if weighted else None
    given = sp.csr_array(X) if form == "csr" else X
    return X, np.ones(n) if weights is None else weights, as_data_matrix(given, weights=weights)


def components(n_sets=2, seed=5):
    rng = np.random.default_rng(seed)
    return Components(rng.random((P, K)), rng.random((n_sets, P, K)) * (rng.random((n_sets, P, K)) < 0.7))


def sums_of(X, w, W):
    return Sums(W.T @ (w[:, None] * W), X.T @ (w[:, None] * W))


def three_sets():
    """Three scaled data sets with weights, and their sums."""
    sets, sums = [], []
    for seed, n in enumerate((9, 5, 6)):
        X, w, data = matrix(n, seed, weighted=seed == 1)
        one = DataSet.of(data)
        W = np.random.default_rng(seed + 20).random((n, K))
        sets.append((X / one.scale[:, 0], w, W, one))
        sums.append(sums_of(X / one.scale[:, 0], w, W))
    return sets, sums


@pytest.mark.parametrize(("form", "weighted"), FORMS)
def test_columns_are_divided_by_their_root_mean_square(form, weighted):
    X, w, data = matrix(11, 0, form, weighted)
    mean_squares = w @ X**2 / w.sum()
    scale = np.where(mean_squares > 0, np.sqrt(mean_squares), 1.0)
    one = DataSet.of(data)
    assert one.scale.shape == (P, 1)
    np.testing.assert_allclose(one.scale[:, 0], scale)
    assert one.scale[2, 0] == 1.0
    assert one.squared_norm == pytest.approx(w @ (X / scale) ** 2 @ np.ones(P))
    given = np.arange(1.0, P + 1)
    other = DataSet.of(data, scale=given)
    np.testing.assert_array_equal(other.scale[:, 0], given)
    assert other.squared_norm == pytest.approx(w @ (X / given) ** 2 @ np.ones(P))


def test_sums_of_squares_do_not_depend_on_blocks(monkeypatch):
    X, _, data = matrix(11, 0)
    monkeypatch.setattr(type(data), "row_blocks", lambda self, size: [(0, 4), (4, 9), (9, 11)])
    assert DataSet.of(data, scale=np.ones(P)).squared_norm == pytest.approx(np.sum(X**2))


@pytest.mark.parametrize(("form", "weighted"), FORMS)
@pytest.mark.parametrize("started", [False, True])
def test_weights_are_the_minimizers_and_come_with_their_sums(form, weighted, started):
    X, w, data = matrix(11, 0, form, weighted)
    one, found = DataSet.of(data), components(1)
    Ht, Vt = found.Ht, found.Vt[0]
    scaled = X / one.scale[:, 0]
    # The penalty is that of more features, which are zero.
    system = np.vstack([Ht + Vt, np.sqrt(LAM) * Vt])
    expected = nonnegative_rows(system, np.hstack([scaled, np.zeros_like(scaled)]))
    start = np.random.default_rng(3).random((11, K)) if started else None
    W, sums, violation = encode(one, Ht, Vt, LAM, start)
    np.testing.assert_allclose(W, expected, rtol=1e-8, atol=1e-10)
    plain = sums_of(scaled, w, expected)
    np.testing.assert_allclose(sums.gram, plain.gram, rtol=1e-8)
    np.testing.assert_allclose(sums.cross, plain.cross, rtol=1e-8)
    again, _, left = encode(one, Ht, Vt, LAM, expected)
    np.testing.assert_allclose(again, expected, rtol=1e-8, atol=1e-10)
    assert 0 <= left < 1e-9
    if started:
        # A row of weight w counts w times.
        gram = system.T @ system
        rows = [coordinate_passes(start[i : i + 1], [gram], (scaled @ (Ht + Vt))[i : i + 1], range(K), 1, 0)
                for i in range(11)]  # fmt: skip
        assert violation == pytest.approx(sum(u * v for u, (_, v) in zip(w, rows, strict=True)), rel=1e-6)


def test_components_that_vanish_give_weights_of_zero():
    _, _, data = matrix(4, 0)
    W, sums, violation = encode(DataSet.of(data), np.zeros((P, K)), np.zeros((P, K)), LAM)
    np.testing.assert_array_equal(W, 0.0)
    np.testing.assert_array_equal(sums.gram, 0.0)
    assert violation == 0.0


def exact(gram, target):
    """Minimize over nonnegative rows, by SciPy."""
    root = np.linalg.cholesky(gram).T
    return nonnegative_rows(root, np.linalg.solve(root.T, target.T).T)


def test_components_are_updated_exactly_one_after_the_other():
    _, sums = three_sets()
    found = components(3)
    Ht, Vt = found.Ht, list(found.Vt)
    for _ in range(problem.SWEEPS):
        for at, own in enumerate(sums):
            Vt[at] = exact((1 + LAM) * own.gram, own.cross - Ht @ own.gram)
        Ht = exact(
            sum(own.gram for own in sums),
            sum(own.cross - V @ own.gram for own, V in zip(sums, Vt, strict=True)),
        )
    new, _ = update_components(found, sums, LAM)
    np.testing.assert_allclose(new.Ht, Ht, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(new.Vt, np.stack(Vt), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("passes", [1, 2])
def test_passes_are_those_of_coordinate_descent(passes, monkeypatch):
    monkeypatch.setattr(problem, "SWEEPS", 1)
    _, sums = three_sets()
    found = components(3)

    def descended(factor, gram, target):
        return coordinate_passes(factor, [gram] * P, target, range(K), passes, 0.0)

    Vt, violation = [], 0.0
    for own, V in zip(sums, found.Vt, strict=True):
        rows, left = descended(V, (1 + LAM) * own.gram, own.cross - found.Ht @ own.gram)
        violation += left
        Vt.append(rows)
    target = sum(own.cross - V @ own.gram for own, V in zip(sums, Vt, strict=True))
    Ht, left = descended(found.Ht, sum(own.gram for own in sums), target)
    new, found_violation = update_components(found, sums, LAM, passes=passes)
    np.testing.assert_allclose(new.Vt, np.stack(Vt), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(new.Ht, Ht, rtol=1e-9, atol=1e-12)
    assert found_violation == pytest.approx(violation + left)


def test_the_violation_is_that_before_the_update(monkeypatch):
    _, sums = three_sets()
    found = components(3)
    _, twice = update_components(found, sums, LAM)
    monkeypatch.setattr(problem, "SWEEPS", 1)
    new, once = update_components(found, sums, LAM)
    assert twice == once > 0
    for _ in range(300):
        new, left = update_components(new, sums, LAM)
    assert 0 <= left < 1e-6 * once


def test_one_data_set_has_no_specific_components():
    _, sums = three_sets()
    found = Components(components(1).Ht, np.zeros((1, P, K)))
    new, _ = update_components(found, sums[:1], LAM)
    np.testing.assert_array_equal(new.Vt, 0.0)
    np.testing.assert_allclose(new.Ht, exact(sums[0].gram, sums[0].cross), rtol=1e-7, atol=1e-10)


def test_the_objective_is_that_of_the_entries():
    sets, sums = three_sets()
    found = components(3)
    expected = 0.0
    for (X, w, W, _), V in zip(sets, found.Vt, strict=True):
        rows = np.sum((X - W @ (found.Ht + V).T) ** 2, axis=1) + LAM * np.sum((W @ V.T) ** 2, axis=1)
        expected += 0.5 * w @ rows
    total = sum(one.squared_norm for *_, one in sets)
    assert objective(found, sums, LAM, total) == pytest.approx(expected)
    # Rounding never takes it below zero.
    assert objective(found, sums, LAM, -1e9) == 0.0


def test_residual_energies_are_those_of_newton_steps_of_single_entries():
    sets, sums = three_sets()
    found = components(3)

    def energy(factor, gram, cross, weights=None):
        curvature = np.diagonal(gram)
        step = np.minimum((factor @ gram - cross) / curvature, factor)
        rows = (curvature * step**2).sum(axis=1)
        return rows.sum() if weights is None else weights @ rows

    of_W = of_V = 0.0
    for (X, w, W, _), own, V in zip(sets, sums, found.Vt, strict=True):
        both = found.Ht + V
        of_W += energy(W, both.T @ both + LAM * V.T @ V, X @ both, w)
        of_V += energy(V, (1 + LAM) * own.gram, own.cross - found.Ht @ own.gram)
    of_H = energy(
        found.Ht,
        sum(own.gram for own in sums),
        sum(own.cross - V @ own.gram for own, V in zip(sums, found.Vt, strict=True)),
    )
    energies = residual_energies([one for *_, one in sets], [W for _, _, W, _ in sets], found, sums, LAM)
    assert energies == pytest.approx((of_W, of_H, of_V))
