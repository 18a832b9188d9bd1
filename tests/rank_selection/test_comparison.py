"""Several estimates: what they share is recommended, and where they differ it is said."""

from __future__ import annotations

import copy
import json
from functools import partial

import numpy as np
import pytest

import nonneg
from nonneg import compare_ranks
from nonneg.certificates.certificate import Certificate, Statement
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnknownNameError
from nonneg.rank_selection import RankComparison, RankCurve, RankResult, spectrum
from nonneg.rank_selection.comparison import METHODS, _settled, _step_words, automatic_rank, recommend

RATIO, HELD_OUT, RESTARTS = "singular-value-ratio", "cross-validation", "stability"


def estimate(method, rank, *, ratios=(1.2, 1.1), certificate=None):
    candidates = tuple(range(2, 2 + len(ratios)))
    curve = RankCurve("singular-value ratio", candidates, np.array(ratios), np.zeros(len(ratios)))
    return RankResult(
        rank, {}, f"{method} says so.", method, np.ones(3), 3, 2, 3, (curve,), certificate or Certificate()
    )


def estimates(**ranks):
    names = {"ratio": RATIO, "held_out": HELD_OUT, "restarts": RESTARTS}
    return {names[key]: estimate(names[key], rank) for key, rank in ranks.items()}


def test_all_agree():
    rank, reason = recommend(estimates(ratio=4, held_out=4, restarts=4))
    assert rank == 4
    assert reason.startswith("all agree (the singular-value ratio gives 4; cross-validation gives 4")


@pytest.mark.parametrize(
    ("ranks", "expected", "words"),
    [
        (
            {"ratio": 20, "held_out": 21, "restarts": 2},
            21,
            "Cross-validation and the singular-value ratio agree",
        ),
        (
            {"ratio": 5, "held_out": 9, "restarts": 10},
            9,
            "Cross-validation and stability over restarts agree",
        ),
        ({"ratio": 4, "held_out": 12, "restarts": 5}, 12, "cross-validation is followed"),
        ({"ratio": 4, "held_out": 12, "restarts": 8}, 12, "cross-validation is followed"),
        ({"ratio": 4, "restarts": 8}, 4, "there is no cross-validation"),
    ],
)
def test_what_two_share_or_else_cross_validation(ranks, expected, words):
    rank, reason = recommend(estimates(**ranks))
    assert rank == expected
    assert words in reason


def test_restarts_confirm_a_ratio_that_stands_out():
    ratios = (1.05, 1.3, 1.4, 1.05, 1.05)  # no step: 1.4 is not half more than 1.3
    found = estimates(ratio=4, held_out=12, restarts=5) | {RATIO: estimate(RATIO, 4, ratios=ratios)}
    rank, reason = recommend(found)
    assert rank == 4
    assert "The singular-value ratio and stability over restarts agree" in reason


def test_a_step_of_the_spectrum_comes_first():
    sharp = estimates(ratio=4, held_out=12, restarts=12) | {RATIO: estimate(RATIO, 4, ratios=(1.1, 3.0))}
    rank, reason = recommend(sharp)
    assert rank == 4
    assert "is 2.7 times the second largest" in reason
    proved = Certificate((Statement("ratio-condition", "It holds.", 1.0, 2.0, "holds"),))
    known = estimates(ratio=4, held_out=12, restarts=12) | {RATIO: estimate(RATIO, 4, certificate=proved)}
    assert recommend(known)[0] == 4
    assert "condition (92) of Theorem 9 holds" in recommend(known)[1]


def test_the_estimates_on_planted_data(low_rank):
    found = compare_ranks(low_rank, k_max=6, method_params={"n_folds": 4, "n_init": 4}, rng=0)
    assert found.rank == 4
    assert list(found.estimates) == [RATIO, HELD_OUT, RESTARTS]
    assert {estimate.rank for estimate in found.estimates.values()} == {4}
    table = found.table()
    assert [row["k"] for row in table] == [2, 3, 4, 5, 6]
    for name in ("ratio", "held_out_error", "agreement", "cophenetic", "dispersion"):
        assert all(row[name] is not None for row in table)
    assert "held_out_error_spread" in table[0]
    assert "ratio_spread" not in table[0]
    assert table[2]["held_out_error"] < 0.1 * table[1]["held_out_error"]
    assert json.loads(json.dumps(found.as_dict()))["rank"] == 4
    again = copy.deepcopy(found)
    assert isinstance(again, RankComparison)
    assert again.as_dict() == found.as_dict()
    assert repr(found).startswith("RankComparison(rank=4; singular-value-ratio: 4")


def test_the_same_seed_gives_the_same_opinion_whatever_else_is_asked(low_rank):
    options = {"candidates": [3, 4, 5], "method_params": {"n_folds": 3}, "rng": 5}
    both = compare_ranks(low_rank, methods=[HELD_OUT, RATIO], **options).estimates[HELD_OUT]
    alone = compare_ranks(low_rank, methods=[HELD_OUT], **options).estimates[HELD_OUT]
    np.testing.assert_array_equal(both.curve.mean, alone.curve.mean)


def test_a_method_that_cannot_be_used_is_left_out(rng):
    found = compare_ranks(rng.random((6, 5)), method_params={"n_folds": 3, "n_init": 3}, rng=0)
    assert list(found.left_out) == [HELD_OUT]
    assert "X has 30 observed entries" in found.left_out[HELD_OUT]
    with pytest.raises(InvalidDataError, match="30 observed entries"):
        compare_ranks(rng.random((6, 5)), methods=[HELD_OUT])


def test_a_matrix_of_zeros_has_rank_one():
    found = compare_ranks(np.zeros((20, 15)))
    assert found.rank == 1
    assert "X is zero" in found.reason
    assert found.table() == []


def test_one_opinion_is_given_as_it_is(low_rank):
    found = compare_ranks(low_rank, methods=[RATIO])
    assert found.reason.startswith("the singular-value ratio alone was used: the ratio of singular values")


def test_wrong_methods_are_refused(low_rank):
    with pytest.raises(UnknownNameError, match="Did you mean 'stability'"):
        compare_ranks(low_rank, methods=["stabilty"])
    with pytest.raises(InvalidParameterError, match="methods must name at least one of"):
        compare_ranks(low_rank, methods=[])


def test_public_names():
    assert nonneg.compare_ranks is compare_ranks


def test_missing_entries_make_no_step():
    drawn = np.random.default_rng(0)
    X = drawn.gamma(1.0, size=(40, 3)) @ drawn.gamma(1.0, size=(3, 12))
    assert compare_ranks(X, methods=[RATIO, HELD_OUT], rng=0).rank == 3
    X[3, 4] = np.nan
    found = compare_ranks(X, methods=[RATIO, HELD_OUT], missing="mask", rng=0)
    assert found.estimates[RATIO].rank == 4
    assert found.rank == found.estimates[HELD_OUT].rank == 3
    assert "entries are missing" in found.reason


@pytest.mark.parametrize(
    "find",
    [
        compare_ranks,
        partial(nonneg.estimate_rank, method=HELD_OUT),
        partial(nonneg.estimate_rank, method=RESTARTS),
    ],
    ids=["comparison", HELD_OUT, RESTARTS],
)
def test_control_c_in_one_of_many_fits_ends_all(find, monkeypatch):
    def interrupted(measures):
        raise KeyboardInterrupt

    monkeypatch.setattr("nonneg.iteration.loop._evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        find(np.random.default_rng(0).random((20, 12)), candidates=[2, 3], rng=0)


def test_methods_that_negative_entries_rule_out_are_all_named():
    X = np.random.default_rng(0).standard_normal((12, 6))
    found = automatic_rank(as_data_matrix(X))
    assert set(found.estimates) == {spectrum.NAME}
    assert set(found.left_out) == set(METHODS) - {spectrum.NAME}
    assert all("negative entries" in why for why in found.left_out.values())


@pytest.mark.parametrize(
    ("second", "step"), [(2.0, ""), (1.99, "the ratio at 4, 3, is 1.5 times the second largest")]
)
def test_a_step_is_more_than_half_above_the_second(second, step):
    assert _step_words(estimate(RATIO, 4, ratios=(1.1, second, 3.0))) == step
    assert _step_words(estimate(RATIO, 2, ratios=(3.0,))) == ""


@pytest.mark.parametrize(
    ("ranks", "ratios", "incomplete", "settled"),
    [
        ({}, None, False, True), ({"ratio": 2}, (1.2, 1.1), False, False),
        ({"ratio": 3}, (1.1, 3.0), False, True), ({"ratio": 3}, (1.1, 3.0), True, False),
        ({"ratio": 3, "held_out": 4}, (1.05, 1.3, 1.4, 1.05, 1.05), False, True),
        ({"ratio": 3, "held_out": 9}, (1.05, 1.3, 1.4, 1.05, 1.05), False, False),
        ({"ratio": 3, "held_out": 9}, (1.05, 1.3, 1.4, 1.05, 1.05), True, True),
        ({"ratio": 3, "held_out": 9}, (1.2, 1.3, 1.25), False, True),
    ],
)  # fmt: skip
def test_the_methods_that_are_left_cannot_change_the_answer(ranks, ratios, incomplete, settled):
    found = estimates(**ranks)
    if RATIO in found:
        found[RATIO] = estimate(RATIO, ranks["ratio"], ratios=ratios)
    assert _settled(found, incomplete=incomplete) is settled


def test_missing_entries_follow_cross_validation_where_there_is_one():
    sharp = estimates(ratio=4, restarts=9) | {RATIO: estimate(RATIO, 4, ratios=(1.1, 3.0))}
    assert recommend(sharp, incomplete=True)[0] == 4
    assert recommend(sharp | estimates(held_out=7), incomplete=True)[0] == 7
    assert recommend(sharp | estimates(held_out=7))[0] == 4


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
