"""The points farthest from the axes of clusters, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.cones import unit_rows

from nonneg.cones.geometry.farthest import farthest_points
from nonneg.data import as_data_matrix


def plain_farthest(X, labels, axes, weights, wanted, n_points):
    """Return rows, chords, counts and sums cluster by cluster."""
    rows, chords, counts, sums = [], [], [], np.zeros((2, len(axes)))
    for c, axis in enumerate(axes):
        own = [i for i in range(len(X)) if wanted[c] and labels[i] == c and weights[i] > 0 and X[i].any()]
        gaps = {i: np.linalg.norm(X[i] / np.linalg.norm(X[i]) - axis) for i in own}
        rows.append(sorted(own, key=lambda i, gaps=gaps: (-round(gaps[i], 12), i))[:n_points])
        chords.append(max(gaps.values(), default=-1.0))
        counts.append(len(own))
        sums[0, c] = sum(weights[i] * X[i] @ X[i] for i in own)
        sums[1, c] = sum(weights[i] * (X[i] @ X[i] - (X[i] @ axis) ** 2) for i in own)
    return rows, chords, counts, sums


@pytest.mark.parametrize("form", ["dense", "sparse", "dask"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_points", [1, 3, 50])
def test_the_farthest_points_are_those_of_a_plain_search(form, weighted, n_points, rng):
    X = rng.random((30, 4)) * (rng.random((30, 4)) < 0.8)
    X[5], X[11] = 0.0, X[10]
    labels = rng.integers(-1, 3, 30)
    weights = rng.integers(0, 3, 30).astype(float) if weighted else np.ones(30)
    axes = unit_rows(rng.random((4, 4)))
    X[20] = 2.0 * axes[labels[20]]  # on the axis, up to rounding
    wanted = np.array([True, False, True, True])  # nobody is in the last one
    given = X if form == "dense" else sp.csr_array(X)
    if form == "dask":
        given = pytest.importorskip("dask.array").from_array(X, chunks=(11, -1))
    data = as_data_matrix(given, weights=weights if weighted else None)
    found = farthest_points(data, data.to_sample_array(labels[:, None]), axes, wanted, n_points)
    rows, chords, counts, sums = plain_farthest(X, labels, axes, weights, wanted, n_points)
    assert [list(each) for each in found.rows] == rows
    np.testing.assert_allclose(found.chords, chords, atol=1e-7)
    np.testing.assert_array_equal(found.counts, counts)
    np.testing.assert_allclose(found.sums, sums, atol=1e-12)
