"""The greedy loop: one pick after another, the same on every container, ties and ends as documented."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.data import as_data_matrix
from nonneg.data.greedy import GreedyRule, best_candidate, block_candidates, greedy_selection

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


def test_the_first_pick_may_be_given(points):
    found = greedy_selection(as_data_matrix(points), 5, RULE, first=17)
    assert found.indices.tolist() == by_hand(points, 5, 17)
    assert np.isnan(found.scores[0])


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


def test_a_negative_floor_lets_negative_scores_through(points):
    rule = GreedyRule(begin, lower, facts, n_kept=1)
    assert len(greedy_selection(as_data_matrix(points), 4, rule).indices) == 1
    assert len(greedy_selection(as_data_matrix(points), 4, rule, floor=-1e9).indices) == 4


def lower(block, nearest, *, pick):
    """Score as `advance`, but shifted below zero."""
    kept, scores = advance(block, nearest, pick=pick)
    return kept, scores - 1e6


def test_the_last_pass_may_be_left_out(points):
    passes = []

    def counted(row, n_picks):
        passes.append(n_picks)
        return facts(row, n_picks)

    rule = GreedyRule(begin, advance, counted, n_kept=1)
    found = greedy_selection(as_data_matrix(points), 4, rule, finish=False)
    assert passes == [1, 2, 3]
    assert np.isnan(found.best_left)
    assert found.indices.tolist() == by_hand(points, 4, int(found.indices[0]))


def test_a_callback_may_end_the_search(points):
    seen = []
    found = greedy_selection(
        as_data_matrix(points), 9, RULE, on_pick=lambda index, score: seen.append(index) or len(seen) == 3
    )
    assert found.indices.tolist() == seen
    assert len(seen) == 3


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


@pytest.mark.parametrize("container", ["dense", "dask"])
def test_blocks_report_what_else_they_found(container, points):
    heard = []
    rule = GreedyRule(begin_and_report, advance_and_report, facts, n_kept=1, listen=heard.append)
    found = greedy_selection(as_data_matrix(CONTAINERS[container](points)), 3, rule)
    sizes = [40] if container == "dense" else [7, 7, 7, 7, 7, 5]
    assert heard == [[("begin", size) for size in sizes]] + 3 * [[("advance", size) for size in sizes]]
    assert found.n_passes == 4


def begin_and_report(block):
    """As `begin`, and tell the size of the block."""
    return (*begin(block), [("begin", block.shape[0])])


def advance_and_report(block, nearest, *, pick):
    """As `advance`, and tell the size of the block."""
    return (*advance(block, nearest, pick=pick), [("advance", block.shape[0])])


def begin_with_rank(block):
    """As `begin`, with the index of the row kept as well."""
    kept, scores = begin(block)
    rank = block.to_device(np.arange(block.shape[0], dtype=float)[:, None])
    return (*kept, rank), scores


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_a_block_names_the_near_ties_that_may_win(share, rng):
    scores, second = rng.integers(10, 15, 30) / 10.0, rng.integers(0, 5, 30).astype(float)
    block = as_data_matrix(np.arange(60.0).reshape(30, 2) + 1)
    found = block_candidates(block, scores, second, share)
    least = scores.max() - share * scores.max()
    # None is dominated: as large a score with a larger second one, or with an equal one and a lower index.
    expected = [
        at
        for at in range(30)
        if scores[at] >= least
        and not any(
            scores[other] >= scores[at] and (second[other], -other) > (second[at], -at) for other in range(30)
        )
    ]
    assert sorted(place for _, place, _, _, _ in found) == expected
    for score, place, _, row, more in found:
        assert (score, more) == (scores[place], second[place])
        np.testing.assert_array_equal(row, [2 * place + 1, 2 * place + 2])
    # The last one has the size of the block, from which indices in the whole matrix follow.
    assert [size for _, _, size, _, _ in found] == [0] * (len(found) - 1) + [30]
    assert all(row is None for *_, row, _ in block_candidates(block, scores, second, share, rows=False))
    (alone,) = block_candidates(block, scores)
    assert alone[:3] == (scores.max(), int(np.argmax(scores)), 30)


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_the_best_of_all_blocks_is_that_of_the_whole(share, rng):
    X = as_data_matrix(np.ones((24, 2)))
    for _ in range(20):
        scores, second = rng.integers(-12, -8, 24) / 10.0, rng.integers(0, 3, 24).astype(float)
        candidates = []
        for cut in np.split(np.arange(24), [5, 6, 17]):
            candidates += block_candidates(X.select(cut), scores[cut], second[cut], share)
        near = np.flatnonzero(scores >= scores.max() - share * abs(scores.max()))
        winner = min(near, key=lambda at: (-second[at], at))
        found = best_candidate(candidates, share)
        assert found[:2] == (winner, scores[winner])


def test_scores_that_are_not_numbers_leave_the_first_candidate():
    nothing = [(np.nan, 2, 5, "a", 0.0), (np.nan, 1, 5, "b", 0.0)]
    assert best_candidate(nothing)[0] == 2
    assert best_candidate(nothing)[2] == "a"


@pytest.mark.parametrize("finish", [True, False])
def test_passes_are_counted_and_the_end_is_told(finish, points):
    found = greedy_selection(as_data_matrix(points), 3, RULE, finish=finish)
    assert found.n_passes == (4 if finish else 3)
    assert np.isnan(found.best_left) == (not finish)
    ended = greedy_selection(as_data_matrix(points), 3, RULE, finish=finish, on_pick=lambda *pick: True)
    assert len(ended.indices) == 1
    assert ended.n_passes == (2 if finish else 1)
    assert np.isnan(ended.best_left) == (not finish)
    none = greedy_selection(as_data_matrix(points), 0, RULE, finish=finish)
    assert (len(none.indices), none.n_passes) == (0, 1)
    assert greedy_selection(as_data_matrix(points), 3, RULE, floor=1e9).best_left == points.sum(axis=1).max()


def test_the_larger_of_both_floors_counts(points):
    start = points.sum(axis=1).max()
    strict = greedy_selection(as_data_matrix(points), 40, RULE, floor=0.3 * start, relative_floor=0.1)
    assert strict.indices.tolist() == (
        greedy_selection(as_data_matrix(points), 40, RULE, relative_floor=0.3).indices.tolist()
    )
    # A score that equals the floor is no longer picked.
    level = greedy_selection(as_data_matrix(points), 2, RULE, first=0).scores[1]
    ended = greedy_selection(as_data_matrix(points), 2, RULE, first=0, floor=level)
    assert (ended.indices.tolist(), ended.best_left) == ([0], level)
