"""Small parts of solvers: what counts as small, which run is lower, errors, numbers, a step of descent."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidParameterError, NonnegWarning
from nonneg.iteration import History, Run, StopReason
from nonneg.losses.beta import objective
from nonneg.losses.penalties import Penalties
from nonneg.solvers import second_fit
from nonneg.solvers.numbers import check_numbers, free_components, warn_of_one_sided_l1
from nonneg.solvers.reconstruction import mean_deviance, reconstruction_error
from nonneg.solvers.row_descent import SCHEDULE, DescentState, RowDescent

WEIGHTS = np.linspace(0.5, 2.0, 8)


@pytest.mark.parametrize("weights", [None, 3.0 * np.ones(40)])
def test_small_data_are_counted_by_their_products(weights, monkeypatch):
    X = np.ones((40, 10))
    X[:, 3:] = 0.0  # 120 entries that count
    n_rows = 40 if weights is None else 120
    work = 4 * 4 * (n_rows + 10) + 4 * 120 * n_rows / 40
    data = as_data_matrix(X, weights=weights)
    monkeypatch.setattr(second_fit, "SMALL", work)
    assert second_fit.is_small(data, 4)
    monkeypatch.setattr(second_fit, "SMALL", work - 1)
    assert not second_fit.is_small(data, 4)
    monkeypatch.setattr(second_fit, "SMALL", 4 * 4 * (n_rows + 10) - 1)
    assert not second_fit.is_small(data, 4)


def run_of(loss, reason=StopReason.CONVERGED):
    history = History()
    history.record(1, 0.1, {"loss": loss})
    return Run(DescentState(None, None, loss=loss), 1, reason, history, reason.value)


@pytest.mark.parametrize(("loss", "taken"), [(9.98, True), (9.995, False), (10.0, False), (11.0, False)])
def test_the_second_fit_must_end_lower_by_more_than_rounding(loss, taken):
    first, second = run_of(10.0), run_of(loss)
    assert second_fit.lower_of(first, lambda: second) is (second if taken else first)
    for reason in (StopReason.CALLBACK, StopReason.INTERRUPTED):
        stopped = run_of(10.0, reason)
        assert second_fit.lower_of(stopped, lambda: pytest.fail("it was stopped")) is stopped


def test_numbers_of_restarts():
    assert [second_fit.n_restarts(n) for n in ("auto", 1, 3, np.int64(2))] == [1, 1, 3, 2]


@pytest.mark.parametrize("beta", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_errors_are_roots_of_twice_the_loss(beta, weights, rng):
    X, W, Ht = rng.random((8, 5)) + 0.1, rng.random((8, 2)) + 0.1, rng.random((5, 2)) + 0.1
    data, penalties = as_data_matrix(X, weights=weights), Penalties(0.1, 0.2, 0.3, 0.4)
    plain = objective(data, W, Ht, beta=beta)
    counted = 8 if weights is None else WEIGHTS.sum()
    assert mean_deviance(data, W, Ht, beta) == pytest.approx(2 * plain / (counted * 5))
    for used in (Penalties(), penalties):
        value = objective(data, W, Ht, beta=beta, penalties=used)
        found = reconstruction_error(data, W, Ht, beta=beta, penalties=used, value=value)
        assert found == pytest.approx(math.sqrt(2 * plain))


def test_no_entries_have_no_deviance(rng):
    data = as_data_matrix(rng.random((3, 2)), mask=np.zeros((3, 2), dtype=bool))
    assert mean_deviance(data, np.ones((3, 1)), np.ones((2, 1)), 2.0) == 0.0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"max_iter": -1}, "max_iter must be a number at least 0, got -1"),
        ({"max_iter": 2.5}, r"max_iter must be a whole number, got 2\.5"),
        ({"max_iter": "9"}, "max_iter must be a number"),
        ({"tol": -1e-9}, "tol must be a number at least 0"),
        ({"alpha_W": -0.1}, "alpha_W must be a number at least 0"),
        ({"alpha_W": math.inf}, "alpha_W must be a number at least 0"),
        ({"alpha_H": math.inf}, "alpha_H must be a number at least 0"),
        ({"alpha_H": "both"}, "alpha_H must be a number at least 0"),
        ({"l1_ratio": 1.1}, r"l1_ratio must be a number between 0 and 1, got 1\.1"),
        ({"l1_ratio": -0.1}, "l1_ratio must be a number between 0 and 1"),
    ],
)
def test_numbers_out_of_range_are_named(changed, words):
    good = {"max_iter": 10, "tol": 0.0, "alpha_W": 0.0, "alpha_H": "same", "l1_ratio": 1.0}
    check_numbers(**good)
    check_numbers(**good | {"max_iter": math.inf, "tol": math.inf, "alpha_H": 0.0, "l1_ratio": 0.0})
    check_numbers(**good | {"max_iter": 0, "alpha_W": 1e300})
    with pytest.raises(InvalidParameterError, match=words):
        check_numbers(**good | changed)


@pytest.mark.parametrize(
    ("penalties", "factor"),
    [
        (Penalties(l1_W=1.0), "W"),
        (Penalties(l1_H=1.0), "H"),
        (Penalties(l1_W=1.0, l1_H=1.0), None),
        (Penalties(l1_W=1.0, l2_H=1.0), None),
        (Penalties(l1_H=1.0, l2_W=1.0), None),
        (Penalties(l2_W=1.0), None),
        (Penalties(), None),
    ],
)
def test_an_l1_penalty_on_one_factor_is_warned_of(penalties, factor, recwarn):
    warn_of_one_sided_l1(penalties, np.array([], dtype=int))
    assert not recwarn
    warn_of_one_sided_l1(penalties, None)
    said = [str(each.message) for each in recwarn if each.category is NonnegWarning]
    assert [text.partition(" only")[0] for text in said] == (
        [] if factor is None else [f"The L1 penalty is on {factor}"]
    )


def test_components_that_are_not_frozen():
    H = np.ones((4, 2))
    assert free_components(None, 4, H) is None
    assert free_components([], 4, H) is None
    assert free_components([1, 3, 1], 4, H).tolist() == [0, 2]
    assert free_components([0, 1, 2, 3], 4, H).tolist() == []
    for wrong in ([4], [-1], [0, 9]):
        with pytest.raises(InvalidParameterError, match="but components are 0 to 3"):
            free_components(wrong, 4, H)
    for wrong in ([0.5], [[0]], ["a"]):
        with pytest.raises(InvalidParameterError, match="sequence of indices of rows of H"):
            free_components(wrong, 4, H)
    with pytest.raises(InvalidParameterError, match="but H is not given"):
        free_components([0], 4, None)


class Updates:
    """Updates that halve the factors, with losses that are given in turn."""

    def __init__(self, *losses):
        self.losses, self.seen = list(losses), []

    def update_W(self, W, Ht):
        self.seen.append(Ht.copy())
        return W / 2

    def update_H(self, W, Ht):
        return Ht / 2, self.losses.pop(0)


def descent(updates, **options):
    return RowDescent(updates.update_W, updates.update_H, **options)


def begun(**fields):
    W, Ht = np.full((2, 1), 8.0), np.full((3, 1), 4.0)
    return replace(DescentState(W, Ht, loss=10.0, W_plain=W, Ht_plain=Ht, Ht_next=Ht + 1), **fields)


def test_an_accepted_step_is_extrapolated():
    updates = Updates(9.0)
    state, measures = descent(updates).step(begun(momentum=0.3, ceiling=0.9))
    assert measures == {"loss": 9.0}
    np.testing.assert_array_equal(updates.seen[0], 5.0)  # the extrapolated H
    np.testing.assert_allclose(state.W, 4.0 + 0.3 * (4.0 - 8.0))
    np.testing.assert_allclose(state.W_plain, 4.0)
    np.testing.assert_allclose(state.Ht, 2.5)
    np.testing.assert_allclose(state.Ht_next, 2.5 + 0.3 * (2.5 - 4.0))
    wanted = SCHEDULE.accepted(0.3, 0.9)
    assert (state.momentum, state.ceiling) == (wanted.momentum, wanted.ceiling)


def test_a_rejected_step_is_repeated_without_momentum():
    updates = Updates(11.0, 9.5)
    state, measures = descent(updates).step(begun(momentum=0.3, ceiling=0.9))
    assert measures == {"loss": 9.5}
    np.testing.assert_array_equal(updates.seen[1], 4.0)
    np.testing.assert_allclose(state.W, 4.0)
    assert state.Ht_next is None
    wanted = SCHEDULE.rejected(0.3)
    assert (state.momentum, state.ceiling) == (wanted.momentum, wanted.ceiling)


@pytest.mark.parametrize("loss", [10.0, 10.5, math.nan])
def test_the_better_pair_is_kept(loss):
    before = begun()
    state, measures = descent(Updates(loss), extrapolate=False).step(before)
    if loss == 10.0:
        np.testing.assert_allclose(state.W, 4.0)
    else:
        assert state.W is before.W
        assert measures == {"loss": 10.0}
    assert state.momentum == 0.0
