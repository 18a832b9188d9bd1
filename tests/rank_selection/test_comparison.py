"""Several proposals and one judge: what is recommended, and what is said where they differ."""

from __future__ import annotations

import copy
import json
import threading
from _thread import interrupt_main
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import nonneg
from nonneg import compare_ranks
from nonneg.datasets import circular_cones
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnknownNameError
from nonneg.results import RankComparison, RankCurve, RankResult

RATIO, HELD_OUT = "singular-value-ratio", "cross-validation"


def test_the_estimates_on_planted_data(low_rank):
    found = compare_ranks(low_rank, k_max=6, rng=0)
    assert found.rank == 4
    assert list(found.estimates) == [RATIO, HELD_OUT]
    table = found.table()
    # One component is no candidate, but what all are compared with.
    assert [row["k"] for row in table] == [1, 2, 3, 4, 5, 6]
    for name in ("ratio", "held_out_error"):
        assert all(row[name] is not None for row in table[1:])
    assert "held_out_error_spread" in table[1]
    assert "ratio_spread" not in table[1]
    assert table[3]["held_out_error"] < 0.1 * table[2]["held_out_error"]
    assert json.loads(json.dumps(found.as_dict()))["rank"] == 4
    again = copy.deepcopy(found)
    assert isinstance(again, RankComparison)
    assert again.as_dict() == found.as_dict()
    assert repr(found).startswith("RankComparison(rank=4; singular-value-ratio: 4")


def test_the_largest_ratio_stands_unless_held_out_entries_speak_against_it():
    # A feature that is correlated with no other cannot be predicted: fewer cones predict as well.
    rng = np.random.default_rng(0)
    X = circular_cones(600, 100, 12, size_angle=0.2, rng=rng).X
    found = compare_ranks(X + 0.03 * rng.random(X.shape), k_max=24, rng=0)
    judge = found.estimates[HELD_OUT]
    assert found.rank == found.estimates[RATIO].rank == 12
    assert 12 in judge.as_good
    assert judge.rank == 2 > min(judge.as_good) == 1
    assert f"The held-out error with 12 is {judge.scores[12]:.4g}" in found.reason
    assert found.reason.endswith(
        "1 predicts as well, up to chance: held-out errors do not single out 12. None of 19 permutations "
        "of the entries of each column gives the same samples a ratio as large as their own."
    )


@pytest.mark.filterwarnings("ignore:X has missing entries")
@pytest.mark.parametrize("kind", ["dense", "sparse", "missing"])
def test_no_number_stands_out_of_noise(kind):
    rng = np.random.default_rng(3)
    X = rng.random((120, 40))
    if kind == "sparse":
        X = sp.csr_array(rng.poisson(0.3, (120, 60)).astype(float))
    if kind == "missing":
        X[::7, ::5] = np.nan
    found = compare_ranks(X, rng=0, missing="mask" if kind == "missing" else "error")
    judge = found.estimates[HELD_OUT]
    assert 1 in judge.as_good
    assert found.rank == judge.rank == 2
    assert found.reason.startswith("no number stands out: the ")
    if kind == "missing":  # all candidates are worse, and the ratio sees zeros where entries are missing
        assert found.reason.endswith(" with 1). So are those of all candidates.")
        return
    assert "of 19 permutations of the entries of each column give the same samples a" in found.reason
    assert f"predicts held-out entries as well: error {judge.scores[1]:.4g}" in found.reason


def test_no_number_stands_out_where_held_out_entries_speak_against_the_ratio(rng):
    # Two strong components make the largest ratio, four weaker ones are real all the same.
    H = rng.gamma(0.3, size=(6, 60))
    W = rng.gamma(0.3, size=(200, 6)) * np.array([30, 30, 1, 1, 1, 1])
    X = np.maximum(W @ H + 0.15 * rng.standard_normal((200, 60)), 0.0)
    found = compare_ranks(X, methods=[RATIO, HELD_OUT], rng=0)
    judge = found.estimates[HELD_OUT]
    assert found.estimates[RATIO].rank == 2
    assert found.rank == judge.rank == 6
    assert 2 not in judge.as_good
    assert found.reason.startswith("no number stands out: the singular values propose 2, ")
    # The judge's number is printed for both.
    assert f"error with 2 components, {judge.scores[2]:.4g}, is significantly" in found.reason
    k = judge.rank
    error = "" if judge.scores[k] == min(judge.scores.values()) else f" ({judge.scores[k]:.4g})"
    assert found.reason.endswith(f"{k} is the smallest number with an error that is not{error}.")


def test_the_same_seed_gives_the_same_opinion_whatever_else_is_asked(low_rank):
    options = {"candidates": [3, 4, 5], "method_params": {"n_folds": 3}, "rng": 5}
    both = compare_ranks(low_rank, methods=[HELD_OUT, RATIO], **options).estimates[HELD_OUT]
    alone = compare_ranks(low_rank, methods=[HELD_OUT], **options).estimates[HELD_OUT]
    np.testing.assert_array_equal(both.curve.mean, alone.curve.mean)


def test_a_method_that_cannot_be_used_is_left_out(rng):
    X = rng.random((5, 5))
    found = compare_ranks(X, rng=0)
    assert list(found.left_out) == [HELD_OUT]
    assert "X has 25 observed entries" in found.left_out[HELD_OUT]
    assert found.rank == found.estimates[RATIO].rank
    with pytest.raises(InvalidDataError, match="25 observed entries"):
        compare_ranks(X, methods=[HELD_OUT])


def test_a_matrix_of_zeros_has_rank_one():
    found = compare_ranks(np.zeros((20, 15)))
    assert found.rank == 1
    assert "X is zero" in found.reason
    assert found.table() == []


def test_one_opinion_is_given_as_it_is(low_rank):
    found = compare_ranks(low_rank, methods=[RATIO])
    assert found.reason.startswith("the singular-value ratio alone was used: the ratio of singular values")


def test_wrong_methods_are_refused(low_rank):
    with pytest.raises(UnknownNameError, match="Did you mean 'cross-validation'"):
        compare_ranks(low_rank, methods=["crossvalidation"])
    with pytest.raises(InvalidParameterError, match="methods must name at least one of"):
        compare_ranks(low_rank, methods=[])


def test_missing_entries_do_not_mislead_the_judge(rng):
    X = rng.gamma(1.0, size=(60, 3)) @ rng.gamma(1.0, size=(3, 20))
    X = X * (1 + 0.02 * rng.random(X.shape))
    X[3, 4] = np.nan
    found = compare_ranks(X, methods=[RATIO, HELD_OUT], missing="mask", rng=0)
    assert found.rank == found.estimates[HELD_OUT].rank == 3


@pytest.mark.parametrize(
    "find",
    [compare_ranks, partial(nonneg.estimate_rank, method=HELD_OUT)],
    ids=["comparison", HELD_OUT],
)
@pytest.mark.usefixtures("ctrl_c")
def test_control_c_in_one_of_many_fits_ends_all(find):
    # Seconds of fits, each of which would return its best so far; the first call imports what they need.
    find(np.random.default_rng(0).random((20, 12)), candidates=[2, 3], rng=0)
    ctrl_c = threading.Timer(0.3, interrupt_main)
    ctrl_c.start()
    with pytest.raises(KeyboardInterrupt):
        find(np.random.default_rng(0).random((900, 300)), candidates=range(2, 40), rng=0, n_jobs=1)
    ctrl_c.join()


def test_a_table_has_the_candidates_that_were_fitted_and_those_recommended():
    def curve(name, candidates, spread):
        size = len(candidates)
        return RankCurve(name, candidates, np.arange(1.0, size + 1), np.full(size, spread))

    ratio = RankResult(
        9, {}, "", RATIO, np.ones(3), 3, 2, 3, (curve("singular-value ratio", tuple(range(2, 12)), 0.0),)
    )
    fits = RankResult(4, {}, "", HELD_OUT, np.ones(3), 3, 2, 3, (curve("held-out error", (3, 4, 6), 0.1),))
    table = RankComparison(5, "", {RATIO: ratio, HELD_OUT: fits}, {}).table()
    assert [row["k"] for row in table] == [3, 4, 5, 6, 9]
    assert table[0] == {"k": 3, "ratio": 2.0, "held_out_error": 1.0, "held_out_error_spread": 0.1}
    assert table[2] == {"k": 5, "ratio": 4.0, "held_out_error": None, "held_out_error_spread": None}
    assert [row["k"] for row in RankComparison(5, "", {RATIO: ratio}, {}).table()] == list(range(2, 12))
