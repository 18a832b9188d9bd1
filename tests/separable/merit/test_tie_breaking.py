"""Where more rows have the same maximum than are wanted, the points that lie apart are the anchors."""

import numpy as np
import pytest
from tests.references.containers import TORCH, as_container

from nonneg import select_anchors
from nonneg.data import as_data_matrix
from nonneg.exceptions import UnknownNameError
from nonneg.separable.merit.tie_breaking import break_ties


@pytest.fixture
def square():
    """The corners of a square, each behind two near twins, and its middle."""
    corners = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 2.0], [2.0, 1.0]])
    middle = np.array([[1.0, 1.0]])
    twins = [0.99 * corner + 0.01 * middle[0] for corner in corners]
    return np.vstack(
        [
            middle,
            *[
                np.vstack([twin, 0.5 * (twin + corner), corner])
                for twin, corner in zip(twins, corners, strict=True)
            ],
        ]
    )


CORNERS = [3, 6, 9, 12]


def vertices(points, maxima, n_wanted, ties="farthest"):
    order = np.argsort(-np.asarray(maxima), kind="stable")
    rows, n_tied = break_ties(as_data_matrix(points), order, np.asarray(maxima)[order], n_wanted, ties)
    return rows.tolist(), n_tied


def test_ties_go_to_the_points_that_are_apart(square):
    maxima = np.full(13, 0.5)
    assert vertices(square, maxima, 4) == (CORNERS, 13)
    assert vertices(square, maxima, 4, "first") == ([0, 1, 2, 3], 13)


def test_distances_are_from_the_mixtures_of_the_rows_above_the_tie(square):
    maxima = np.full(13, 0.5)
    maxima[[3, 12]] = 0.9, 0.8
    # The middle is nearest to the first two corners, whatever its length.
    assert vertices(square, maxima, 4) == ([3, 12, 6, 9], 11)
    # One is wanted: the corners 6 and 9 are equally far from the segment's ends, of which the first is taken.
    assert vertices(square, maxima, 3)[0][:2] == [3, 12]
    assert vertices(square, maxima, 3)[0][2] in CORNERS


def test_distances_do_not_depend_on_where_the_points_lie(square):
    maxima = np.full(13, 0.5)
    maxima[3] = 0.9
    assert vertices(square + 1000.0, maxima, 4) == vertices(square, maxima, 4)


def test_larger_maxima_come_first_however_near_they_are(square):
    maxima = np.linspace(0.9, 0.1, 13)
    assert vertices(square, maxima, 4) == ([0, 1, 2, 3], 0)
    # A tie that is wanted as a whole is none.
    maxima[:4] = 0.9
    assert vertices(square, maxima, 4) == ([0, 1, 2, 3], 0)


def test_rounding_makes_no_difference_between_equal_maxima(square):
    maxima = np.full(13, 0.5) * (1 + 1e-15 * np.arange(13))
    assert sorted(vertices(square, maxima, 4)[0]) == CORNERS


@pytest.mark.parametrize("ties", ["farthest", "first"])
def test_one_point_is_never_two_anchors(square, ties):
    points = np.vstack([square[CORNERS], square[CORNERS], square[:1]])
    maxima = np.array([0.9, 0.9, 0.5, 0.5, 0.9, 0.9, 0.5, 0.5, 0.1])
    rows, _ = vertices(points, maxima, 5, ties)
    assert rows == [0, 1, 2, 3, 8]
    assert len(vertices(points, maxima, 9, ties)[0]) == 5


def test_points_within_the_mixtures_fill_the_last_places_by_index(square):
    maxima = np.full(13, 0.5)
    maxima[CORNERS] = 0.9
    assert vertices(square, maxima, 6) == ([*CORNERS, 0, 1], 9)


@pytest.mark.parametrize("container", ["csr", "strict", TORCH, "float32"])
def test_every_kind_of_points(square, container):
    points = square.astype(np.float32) if container == "float32" else as_container(square, container)
    assert vertices(points, np.full(13, 0.5), 4) == (CORNERS, 13)


def test_merit_takes_points_all_around_a_circle():
    # Every point is itself: all maxima are one.
    angles = 2.0 * np.pi * np.arange(12) / 12
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    first, apart = (
        select_anchors(
            circle,
            4,
            method_params={"lam": 0.0, "choice": "row-maxima", "ties": ties, "steps": "open-loop"},
            max_iter=5,
        )
        for ties in ("first", "farthest")
    )
    assert first.facts["tied"] == apart.facts["tied"] == 12
    assert np.array_equal(first.row_maxima, apart.row_maxima)
    assert first.anchors.tolist() == [0, 1, 2, 3]
    assert apart.anchors.tolist() == [0, 3, 6, 9]
    assert np.array_equal(apart.scores, apart.row_maxima[apart.anchors])


def test_an_unknown_rule_is_named(square):
    with pytest.raises(UnknownNameError, match="ties"):
        select_anchors(square, 4, method_params={"ties": "last"})
