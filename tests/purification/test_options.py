"""Options of a purification and one iteration of it: defaults, ranges, step sizes, decay and memory."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError, UnsupportedError
from nonneg.iteration import History
from nonneg.iteration.loop import Stalled
from nonneg.purification import iteration as module
from nonneg.purification.decode import Decoder
from nonneg.purification.iteration import (
    FeaturesConverged,
    Iteration,
    effective_threshold,
    final_decoder,
    initial_state,
    noise_level,
    updated_features,
)
from nonneg.purification.moments import moments_of
from nonneg.purification.online import OnlineState, begin_online, online_method, take_in
from nonneg.purification.options import checked_tolerance, completed_options
from nonneg.purification.plausibility import explained_share, leading_basis, share_outside
from nonneg.purification.pseudo_inverse import chosen_method, program_price, pseudo_inverse
from nonneg.purification.samples import FullBatch


def test_defaults_follow_the_update():
    plain, paper = completed_options(3), completed_options(3, update="covariance")
    assert (plain.update, plain.decode, plain.step_size, plain.threshold_decay) == (
        "regression",
        "unshifted",
        1.0,
        0.8,
    )
    assert (paper.decode, paper.step_size, paper.threshold_decay) == ("shifted", 0.5, 1.0)
    assert plain.adaptive
    assert plain.threshold is plain.scale is None
    assert completed_options(3, update="covariance", decode="unshifted").threshold_decay == 0.8
    given = completed_options(3, step_size=0.25, threshold=0.1, threshold_decay=1.0)
    assert (given.step_size, given.adaptive, given.threshold, given.threshold_decay) == (
        0.25,
        False,
        0.1,
        1.0,
    )
    each = completed_options(3, update="covariance", scale=[1, 2, 3], threshold=[-1, 0, 1])
    np.testing.assert_array_equal(each.scale, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(each.threshold, [-1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"update": "none"}, UnknownNameError, "update"),
        ({"decode": 3}, UnknownNameError, "decode"),
        (
            {"step_size": 0.0},
            InvalidParameterError,
            r"step_size must be 'auto' or a number in \(0, 1\], got 0",
        ),
        ({"step_size": 1.1}, InvalidParameterError, "step_size must be"),
        ({"step_size": "fast"}, InvalidParameterError, "step_size must be"),
        ({"threshold_decay": 0}, InvalidParameterError, "threshold_decay must be"),
        ({"threshold_decay": 1.01}, InvalidParameterError, "threshold_decay must be"),
        (
            {"scale": 0.0, "update": "covariance"},
            InvalidParameterError,
            "scale must be 'auto' or a finite number above 0",
        ),
        (
            {"scale": [1, 0, 1], "update": "covariance"},
            InvalidParameterError,
            "scale must have finite entries above 0",
        ),
        ({"scale": [1, 1], "update": "covariance"}, ShapeError, r"each of the 3 features, got shape \(2,\)"),
        ({"scale": 2.0}, UnsupportedError, "update='regression' finds its own scale"),
        ({"threshold": math.inf}, InvalidParameterError, "threshold must be 'auto' or a finite number"),
        ({"threshold": [0, math.nan, 0]}, InvalidParameterError, "threshold must have finite entries"),
        (
            {"threshold": "low"},
            InvalidParameterError,
            "threshold must be 'auto', a number, or one number for each of 3",
        ),
    ],
)
def test_options_that_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        completed_options(3, **options)


def test_tolerances_fit_the_precision():
    assert checked_tolerance(None, np.dtype(np.float64)) == 1e-10
    assert checked_tolerance(None, np.dtype(np.float32)) == 1e-5
    assert checked_tolerance(0, np.dtype(np.float64)) == 0.0
    for wrong in (-1e-9, "small", math.nan):
        with pytest.raises(InvalidParameterError, match="tol must be None or a number not below 0"):
            checked_tolerance(wrong, np.dtype(np.float64))


def test_two_small_changes_end_a_run():
    def history(*changes):
        found = History()
        for at, change in enumerate(changes):
            found.record(at, 0.0, {"change": change})
        return found

    rule = FeaturesConverged(1e-3)
    assert rule(history(1.0, 1e-3, 1e-3))
    assert not rule(history(1.0, 1e-3))
    assert not rule(history(1e-3, 2e-3))
    assert not rule(history(1e-3))
    assert not FeaturesConverged(0.0)(history(0.0, 0.0))


def test_linear_programs_must_be_cheap():
    n, m = 10, 50
    price = program_price(n, m)
    assert price == 80 * 10 * (2 * 10 * 50 + 300)
    enough = price / (0.4 * n * m)
    assert chosen_method("auto", n, m, enough, "covariance") == "min-infinity"
    assert chosen_method("auto", n, m, enough - 1, "covariance") == "moore-penrose"
    assert chosen_method("auto", n, m, 1e9, "regression") == "moore-penrose"
    assert chosen_method("min-infinity-highs", n, m, 1, "regression") == "min-infinity-highs"
    with pytest.raises(UnknownNameError):
        chosen_method("best", n, m, 1, "regression")
    assert [online_method(name) for name in ("auto", "min-infinity")] == ["moore-penrose", "min-infinity"]


@pytest.fixture
def problem(rng):
    H = np.eye(3, 8) + 0.2 * rng.random((3, 8))
    W = np.where(rng.random((400, 3)) < 0.3, rng.uniform(0.7, 1.3, (400, 3)), 0.0)
    options = completed_options(3)
    init = H + 0.05 * rng.standard_normal((3, 8))
    state = initial_state(W @ H, init, pseudo_inverse(init), options)
    return W @ H, options, state


@pytest.mark.parametrize("step_size", [1.0, 0.5])
def test_features_move_by_the_step_size(problem, step_size):
    X, options, state = problem
    inverse = pseudo_inverse(state.H).inverse
    decoder = Decoder(inverse, effective_threshold(state, "unshifted"), "unshifted")
    moments = moments_of(as_data_matrix(X), decoder, state.reference)
    whole, change = updated_features(state.H, moments, inverse, options, 1.0)
    part, smaller = updated_features(state.H, moments, inverse, options, step_size)
    np.testing.assert_allclose(part - state.H, step_size * (whole - state.H), atol=1e-12)
    expected = (np.abs(whole - state.H).sum(axis=1) / np.abs(state.H).sum(axis=1)).max()
    assert change == pytest.approx(expected)
    assert smaller == pytest.approx(step_size * change)


@pytest.mark.parametrize(
    ("before", "change", "expected"),
    [(math.inf, 0.5, 1.0), (0.2, 0.31, 0.5), (0.2, 0.29, 1.0), (1e-4, 0.009, 1.0), (1e-4, 0.011, 0.5)],
)
def test_the_step_size_is_halved_when_the_change_grows(problem, monkeypatch, before, change, expected):
    X, options, state = problem
    monkeypatch.setattr(module, "updated_features", lambda H, *rest: (H, change))
    step = Iteration(FullBatch(as_data_matrix(X)), options, "moore-penrose", converged=1e-6)
    new, measures = step(replace(state, change=before))
    assert new.step_size == expected
    assert (new.change, new.iteration) == (change, 1)
    assert measures["step_size"] == state.step_size
    assert measures["change"] == change
    assert measures["threshold"] == effective_threshold(state, "unshifted").max()
    assert measures["noise"] == new.noise.max()
    np.testing.assert_allclose(new.threshold, 0.8 * state.threshold)
    fixed = Iteration(FullBatch(as_data_matrix(X)), replace(options, adaptive=False), "moore-penrose")
    assert fixed(replace(state, change=before))[0].step_size == 1.0
    least = Iteration(FullBatch(as_data_matrix(X)), options, "moore-penrose")
    assert least(replace(state, change=0.2, step_size=1 / 64))[0].step_size == 1 / 64


@pytest.mark.parametrize(
    ("change", "decay", "expected"), [(1e-6, 0.8, 0.0), (2e-6, 0.8, 0.8), (1e-6, 1.0, 1.0)]
)
def test_the_threshold_vanishes_once_the_features_are_found(problem, monkeypatch, change, decay, expected):
    X, options, state = problem
    monkeypatch.setattr(module, "updated_features", lambda H, *rest: (H, change))
    given = replace(options, threshold_decay=decay)
    new, _ = Iteration(FullBatch(as_data_matrix(X)), given, "moore-penrose", converged=1e-6)(state)
    np.testing.assert_allclose(new.threshold, expected * state.threshold)


def test_features_that_vanish_stall(problem):
    X, options, state = problem
    inverse = pseudo_inverse(state.H).inverse
    moments = moments_of(as_data_matrix(X), Decoder(inverse, state.threshold, "unshifted"), state.reference)
    lost = replace(moments, cross=np.full_like(moments.cross, np.nan))
    with pytest.raises(Stalled):
        updated_features(state.H, lost, inverse, options, 1.0)


def test_the_final_threshold_is_the_noise(problem):
    _, options, state = problem
    found = final_decoder(state, options, "moore-penrose")
    np.testing.assert_allclose(found.threshold, noise_level(state))
    np.testing.assert_allclose(found.inverse, np.linalg.pinv(state.H.T), atol=1e-10)
    shifted = final_decoder(state, replace(options, decode="shifted"), "moore-penrose")
    np.testing.assert_array_equal(shifted.threshold, state.threshold)


def test_features_change_when_enough_samples_are_pending(problem):
    X, options, state = problem
    first, second = as_data_matrix(X[:150]), as_data_matrix(X[150:300])
    online = begin_online(first, state.H, options, "moore-penrose")
    assert online.past is online.pending is None
    more = {"batch_size": 300, "forget_factor": 0.5}
    waiting = take_in(online, first, options, "moore-penrose", **more)
    assert waiting.pending.total == 150
    np.testing.assert_array_equal(waiting.state.H, online.state.H)
    assert waiting.state.iteration == 0
    moved = take_in(waiting, second, options, "moore-penrose", **more)
    assert moved.pending is None
    assert moved.state.iteration == 1
    assert moved.past.total == 300
    assert not np.array_equal(moved.state.H, online.state.H)
    np.testing.assert_allclose(moved.state.threshold, 0.8 * online.state.threshold)
    again = take_in(moved, as_data_matrix(X[:300]), options, "moore-penrose", **more)
    assert again.past.total == pytest.approx(0.5 * 300 + 300)
    silent = take_in(
        OnlineState(moved.state), as_data_matrix(np.full((300, 8), np.nan)), options, "moore-penrose", **more
    )
    np.testing.assert_array_equal(silent.state.H, moved.state.H)


@pytest.mark.parametrize("shape", [(40, 8), (6, 8)])
def test_shares_in_and_outside_the_directions_of_the_samples(shape, rng):
    samples, H = rng.random(shape), rng.random((3, 8))
    V = np.linalg.svd(samples)[2][:3]
    inside = np.sum((H @ V.T) ** 2, axis=1) / np.sum(H**2, axis=1)
    assert share_outside(leading_basis(samples, len(H)), H) == pytest.approx(np.mean(1 - inside))
    projected = samples @ np.linalg.pinv(H) @ H
    assert explained_share(samples, H) == pytest.approx(np.sum(projected**2) / np.sum(samples**2))
    assert explained_share(0 * samples, H) == 1.0
