"""The sketch of frequent directions keeps its promises, whatever the order and the cuts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nonneg.cones.streaming import leading_direction, merged_sketch


def sketched(rows, n_kept, piece):
    sketch = np.zeros((n_kept, rows.shape[1]))
    for start in range(0, len(rows), piece):
        sketch = merged_sketch(sketch, rows[start : start + piece])
    return sketch


def check_promises(rows, sketch):
    """The gap is between zero and its bound, and the direction is the best one but for one part in n_kept."""
    n_kept = len(sketch)
    gaps = np.linalg.eigvalsh(rows.T @ rows - sketch.T @ sketch)
    squares = np.linalg.svd(rows, compute_uv=False) ** 2
    best = squares[1:].sum()
    small = 1e-10 * squares[0]
    assert gaps.min() >= -small
    assert gaps.max() <= best / n_kept + small
    direction, square = leading_direction(sketch)
    assert direction.min() >= 0
    assert np.linalg.norm(direction) == pytest.approx(1.0)
    left = np.sum(rows * rows) - np.sum((rows @ direction) ** 2)
    assert left <= np.sum(rows * rows) - square + small
    assert np.sum(rows * rows) - square <= (1 + 1 / n_kept) * best + small


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(2, 30), st.integers(1, 6), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_promises_hold_for_any_shape(seed, n_rows, n_features, n_kept, piece):
    rows = np.random.default_rng(seed).gamma(0.3, size=(n_rows, n_features)) + 1e-12
    check_promises(rows, sketched(rows, n_kept, piece))


def test_two_sketches_make_one_of_both(rng):
    rows = rng.gamma(0.5, size=(90, 25))
    parts = [sketched(part, 5, 7) for part in (rows[:50], rows[50:])]
    check_promises(rows, merged_sketch(*parts))


def test_rows_of_one_direction_lose_nothing(rng):
    direction = rng.random(30)
    lengths = rng.random(200)
    sketch = sketched(np.outer(lengths, direction), 4, 16)
    found, square = leading_direction(sketch)
    np.testing.assert_allclose(found, direction / np.linalg.norm(direction), rtol=1e-9)
    assert square == pytest.approx(np.sum(lengths**2) * np.sum(direction**2))
