"""The named steps before a selection, and what lies under them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.containers import MAIN_FORMS, as_container, plain

from nonneg.data import as_data_matrix
from nonneg.separable.preprocessing import (
    Prepared,
    gathered,
    keep_energy,
    merge_near_duplicates,
    normalize_points,
    prepared,
    principal_directions,
    reduce_dimension,
    representatives,
)


def points(X, form="dense"):
    return Prepared(as_data_matrix(as_container(X, form)))


@pytest.mark.parametrize("form", MAIN_FORMS)
def test_energy_keeps_the_longest_points(form):
    rng = np.random.default_rng(0)
    X = rng.random((40, 5)) * np.geomspace(1, 1e-3, 40)[rng.permutation(40), None]
    kept = keep_energy(points(X, form), 0.99)
    squares = np.sum(X * X, axis=1)
    order = np.argsort(-squares)
    n = int(np.argmax(np.cumsum(squares[order]) >= 0.99 * squares.sum())) + 1
    assert kept.kept.tolist() == sorted(order[:n])
    assert kept.details["energy"] == {"share": 0.99, "n_kept": n}
    np.testing.assert_allclose(gathered(kept.data), X[kept.kept])


def test_energy_of_equal_points_and_of_all():
    assert keep_energy(points(np.ones((100, 2))), 0.99).kept.tolist() == list(range(99))
    assert keep_energy(points(np.ones((100, 2))), 1.0).kept is None


@pytest.mark.parametrize("form", MAIN_FORMS)
def test_normalisation_drops_points_of_zeros(form):
    X = np.random.default_rng(0).random((12, 4))
    X[[2, 7]] = 0.0
    result = normalize_points(points(X, form), "l1")
    rows = np.delete(X, [2, 7], axis=0)
    np.testing.assert_allclose(gathered(result.data), rows / rows.sum(axis=1, keepdims=True))
    assert result.kept.tolist() == [0, 1, 3, 4, 5, 6, 8, 9, 10, 11]
    assert result.details["normalize"]["n_zero"] == 2


@pytest.mark.parametrize("form", MAIN_FORMS)
@pytest.mark.parametrize("centered", [False, True])
def test_reduction_keeps_the_leading_directions(form, centered):
    rng = np.random.default_rng(1)
    X = rng.random((50, 3)) @ rng.random((3, 9)) + 1e-3 * rng.random((50, 9))
    result = reduce_dimension(points(X, form), 3, centered=centered)
    shown = X - X.mean(axis=0) if centered else X
    U, s, _ = np.linalg.svd(shown, full_matrices=False)
    expected = U[:, :3] * s[:3]
    reduced = gathered(result.data)
    np.testing.assert_allclose(reduced @ reduced.T, expected @ expected.T, atol=1e-9)
    assert result.details["reduce"] == {"n_dimensions": 3, "centered": centered}


def test_principal_directions_of_many_features():
    rng = np.random.default_rng(2)
    X = 5 + rng.normal(size=(60, 4)) @ (rng.normal(size=(4, 700)) * 3)
    directions, mean = principal_directions(as_data_matrix(X), 4, centered=True)
    np.testing.assert_allclose(mean, X.mean(axis=0))
    exact = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:4].T
    np.testing.assert_allclose(directions @ directions.T, exact @ exact.T, atol=1e-8)


def test_merging_keeps_the_longest_of_a_group():
    rng = np.random.default_rng(0)
    base = rng.random((30, 6))
    copies = np.concatenate([base * 0.9999, base, base * 0.9998])
    result = merge_near_duplicates(points(copies), 0.01)
    assert result.kept.tolist() == list(range(30, 60))
    np.testing.assert_array_equal(result.details["merge"]["labels"], np.tile(np.arange(30), 3))
    np.testing.assert_array_equal(gathered(result.data), base)


@pytest.mark.parametrize("radius", [0.02, 0.1, 0.4])
def test_representatives_cover_all_and_are_apart(radius):
    X = np.random.default_rng(3).random((400, 2))
    chosen, labels = representatives(X, radius)
    assert np.linalg.norm(X - X[chosen][labels], axis=1).max() <= radius
    gaps = np.linalg.norm(X[chosen][:, None] - X[chosen][None], axis=2)
    assert gaps[~np.eye(len(chosen), dtype=bool)].min() > radius
    assert labels[chosen].tolist() == list(range(len(chosen)))


def test_steps_run_in_order(clean):
    X = np.concatenate([clean.X, clean.X * 3, np.zeros((2, 20))])
    result = prepared(as_data_matrix(X), normalize="l1", reduce=6, merge=1e-6)
    assert list(result.details) == ["normalize", "reduce", "merge"]
    assert result.data.shape == (90, 6)
    # Copies of different length are the same point once normalized, and the first of equals stays.
    assert set(result.kept % 90) == set(range(90))


def test_reduced_points_stay_on_the_workers():
    da = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).random((30, 8))
    result = reduce_dimension(Prepared(as_data_matrix(da.from_array(X, chunks=(7, 8)))), 3)
    assert result.data.container == "dask"
    assert plain(result.data.take_rows([4])).shape == (1, 3)
