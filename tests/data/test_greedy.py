"""The greedy loop: one pick after another, the same on every container, ties and ends as documented."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.data import as_data_matrix
from nonneg.data.greedy import GreedyRule, greedy_selection

CONTAINERS = {
    "dense": np.asarray,
    "csr": sp.csr_array,
    "torch": lambda X: pytest.importorskip("torch").asarray(X),
    "array_api_strict": lambda X: pytest.importorskip("array_api_strict").asarray(X),
    "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(7, -1)),
}


def begin(block):
    """Score rows by their sums; keep the distance to the picks, at first the largest."""
    xp = block.xp
    scores = block.times(block.to_device(np.ones((block.shape[1], 1))))
    return (xp.full_like(scores, 1e6),), scores[:, 0]


def advance(block, nearest, *, pick):
    """Score rows by their squared distance to the nearest pick."""
    xp = block.xp
    squares = block.squared_row_norms()[:, None]
    distance = squares - 2 * block.times(pick[:, None]) + xp.sum(pick * pick)
    nearest = xp.where(distance < nearest, distance, nearest)
    return (nearest,), nearest[:, 0]


def facts(row, n_picks):
    """Hand the pick on."""
    return {"pick": row}


RULE = GreedyRule(begin, advance, facts, n_kept=1)


def by_hand(X, n_picks, first):
    """Farthest-first picks, all distances computed afresh each time."""
    picks = [first]
    while len(picks) < n_picks:
        distances = ((X[:, None, :] - X[picks][None]) ** 2).sum(axis=2).min(axis=1)
        picks.append(int(np.argmax(distances)))
    return picks


@pytest.fixture
def points(rng):
    """Forty points of the plane's positive part."""
    return rng.gamma(2.0, size=(40, 3))


@pytest.mark.parametrize("container", CONTAINERS)
def test_picks_are_those_of_the_definition_on_every_container(container, points):
    data = as_data_matrix(CONTAINERS[container](points))
    found = greedy_selection(data, 6, RULE)
    wanted = by_hand(points, 6, int(np.argmax(points.sum(axis=1))))
    assert found.indices.tolist() == wanted
    np.testing.assert_allclose(np.stack([np.asarray(row) for row in found.rows]), points[wanted])
    assert found.scores[0] == pytest.approx(points.sum(axis=1).max())
    # The distances after the last pick are kept, and the best of them is told.
    kept = found.kept[0]
    kept = np.asarray(kept.compute() if hasattr(kept, "compute") else kept)[:, 0]
    left = ((points[:, None, :] - points[wanted][None]) ** 2).sum(axis=2).min(axis=1)
    np.testing.assert_allclose(kept, left, atol=1e-9)
    assert found.best_left == pytest.approx(left.max())


@pytest.mark.parametrize("chunk", [1, 3, 20])
def test_of_equal_scores_the_lowest_index_wins_whatever_the_chunks(chunk):
    da = pytest.importorskip("dask.array")
    X = np.array([[1.0, 0.0], [0.0, 3.0], [3.0, 0.0], [0.0, 3.0], [3.0, 0.0], [1.0, 1.0]])
    found = greedy_selection(as_data_matrix(da.from_array(X, chunks=(chunk, -1))), 2, RULE)
    assert found.indices.tolist() == [1, 2]


def test_the_search_ends_when_nothing_is_left(points):
    X = np.repeat(points[:3], 5, axis=0)
    found = greedy_selection(as_data_matrix(X), 10, RULE, floor=1e-9)
    assert sorted(found.indices.tolist()) == [0, 5, 10]
    assert found.best_left <= 1e-9
    # A share of the first score, which is a sum here, ends it as well.
    start = greedy_selection(as_data_matrix(points), 1, RULE).scores[0]
    few = greedy_selection(as_data_matrix(points), 40, RULE, relative_floor=0.1)
    assert 1 < len(few.indices) < 40
    assert few.scores[1:].min() > 0.1 * start >= few.best_left


def test_a_pick_may_be_refined(points):
    def next_one(data, kept, index, row):
        np.testing.assert_allclose(row, points[index])
        return (index + 1) % 40, points[(index + 1) % 40]

    rule = GreedyRule(begin, advance, facts, n_kept=1, refine=next_one)
    found = greedy_selection(as_data_matrix(points), 3, rule)
    best = int(np.argmax(points.sum(axis=1)))
    assert found.indices[0] == (best + 1) % 40
    np.testing.assert_allclose(found.rows[0], points[found.indices[0]])
    assert found.indices[1] == (by_hand(points, 2, int(found.indices[0]))[1] + 1) % 40


@pytest.mark.parametrize("container", ["dense", "dask"])
def test_arrays_may_be_handed_in_beside_the_rows(container, points):
    data = as_data_matrix(CONTAINERS[container](points))
    favor = np.zeros((3, 40, 1))
    favor[0, 11] = favor[1, 5] = favor[2, 29] = 1e9

    def beside(n_picks):
        return (data.to_sample_array(favor[n_picks]),)

    rule = GreedyRule(favored, favored_next, facts, n_kept=1, beside=beside)
    found = greedy_selection(data, 3, rule, finish=False)
    assert found.indices.tolist() == [11, 5, 29]


def favored(block, numbers):
    """Score rows by what was handed in."""
    (nearest,), scores = begin(block)
    return (nearest,), scores + numbers[:, 0]


def favored_next(block, nearest, numbers, *, pick):
    """Score rows by their distance and what was handed in."""
    kept, scores = advance(block, nearest, pick=pick)
    return kept, scores + numbers[:, 0]


def test_near_ties_are_decided_by_a_kept_array():
    X = np.array([[3.0, 0.0], [3.0 - 1e-9, 0.0], [1.0, 0.0]])
    rule = GreedyRule(begin_with_rank, advance, facts, n_kept=2, tie_break=(1, 1e-6))
    assert greedy_selection(as_data_matrix(X), 1, rule, finish=False).indices.tolist() == [1]


def test_of_near_ties_that_are_equal_otherwise_the_lowest_index_wins():
    X = np.array([[3.0 - 2e-9, 0.0], [3.0 - 1e-9, 0.0], [3.0, 0.0], [1.0, 0.0]])
    rule = GreedyRule(begin, advance, facts, n_kept=1, tie_break=(0, 1e-6))
    assert greedy_selection(as_data_matrix(X), 1, rule, finish=False).indices.tolist() == [0]


def begin_with_rank(block):
    """As `begin`, with the index of the row kept as well."""
    kept, scores = begin(block)
    rank = block.to_device(np.arange(block.shape[0], dtype=float)[:, None])
    return (*kept, rank), scores
