"""The conditions of the paper's lemma and theorems, on models where they are known."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import select_anchors
from nonneg.certificates.certificate import Verdict
from nonneg.data import as_data_matrix
from nonneg.datasets import separable_dirichlet
from nonneg.iteration import History
from nonneg.separable.certificate import margin_statement
from nonneg.separable.merit.alternatives import alternatives_statement
from nonneg.separable.merit.certificate import _second_gap, duality_gap_statement
from nonneg.separable.merit.choice import Fit
from nonneg.separable.merit.initialization import _closest_fractions
from nonneg.separable.merit.penalty_weight import (
    CONVERGED_SHARES,
    MANY_SAMPLES,
    NOISE_SHARE,
    VARIANCE_SHARE,
    penalty_weight,
)
from nonneg.separable.merit.recovery_conditions import (
    MOST_ANCHORS,
    ModelFacts,
    conditioning_statement,
    hull_distance,
    lemma_1_statement,
    support_statement,
    theorem_2_statement,
    theorem_3_statement,
    theorem_4_statement,
    warm_start_statement,
)
from nonneg.separable.merit.residuals import squared_residuals
from nonneg.separable.merit.stopping import AnchorsUnchanged, RelativeChange, ResidualBelow

QUIET = ModelFacts(
    n_points=50, k=4, lam=0.0, mu=1e-5, gamma=2.0, sigma_max=3.0, sigma_min=0.5, kappa=1.0, delta=1e-6,
    noise=1e-11, closeness=0.5, omega=0.01, nu=0.2, psi=1e-3, inside=True, largest_residual=0.3,
)  # fmt: skip


def with_(**changes):
    return dataclasses.replace(QUIET, **changes)


def test_distance_from_the_hull_of_the_others():
    triangle = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    assert hull_distance(triangle) == pytest.approx(math.sqrt(2.0))
    assert hull_distance(triangle + 100.0) == pytest.approx(math.sqrt(2.0))
    inside = np.vstack([triangle, [[0.5, 0.5]]])
    assert hull_distance(inside) == pytest.approx(0.0, abs=1e-7)
    assert hull_distance(np.array([[3.0, 4.0]])) == 5.0
    assert hull_distance(np.array([[3.0, 4.0], [3.0, 0.0]])) == 4.0
    assert hull_distance(np.eye(MOST_ANCHORS + 1)) is None


def test_margin():
    found = margin_statement(np.array([0.9, 0.1, 0.8, 0.3]), np.array([2, 0]))
    assert found.holds
    assert found.number == pytest.approx(0.5)
    tied = margin_statement(np.array([0.9, 0.8, 0.8]), np.array([0, 1]))
    assert tied.verdict is Verdict.FAILS
    assert margin_statement(np.ones(2), np.array([0, 1])).number == 1.0


def test_conditioning_and_support():
    assert conditioning_statement(0.3, 2.0).holds
    assert conditioning_statement(1e-12, 2.0).verdict is Verdict.FAILS
    assert conditioning_statement(None, 2.0).verdict is Verdict.NOT_VERIFIABLE
    assert support_statement(1.0, 0).holds
    outside = support_statement(0.75, 3)
    assert outside.verdict is Verdict.NOT_VERIFIABLE
    assert "75% of the weight is on anchors" in outside.sentence


def test_start_condition():
    assert warm_start_statement(0, True, 1, 0.5, 10).verdict is Verdict.NOT_VERIFIABLE
    assert warm_start_statement(3, False, None, None, 10).verdict is Verdict.FAILS
    found = warm_start_statement(3, True, 7, 0.25, 10)
    assert found.holds
    assert found.number == pytest.approx(2 * 0.25 / (13 * 14))


def test_lemma_1():
    assert lemma_1_statement(QUIET).holds
    assert lemma_1_statement(QUIET).threshold == 1.0
    assert not lemma_1_statement(with_(omega=1.0)).holds
    assert not lemma_1_statement(with_(inside=False)).holds


def test_theorem_2():
    eta = 0.3 - 2e-6
    bound = math.sqrt(4.0 + 0.2 * eta * 0.5 / 12.0) - 2.0
    found = theorem_2_statement(QUIET)
    assert found.threshold == pytest.approx(bound)
    assert found.quantities["mixture_error_bound"] == pytest.approx((eta + 4e-6) / 0.5)
    # Its nu is that of the last iterate alone.
    assert found.verdict is Verdict.NOT_VERIFIABLE
    assert "it does not apply" in theorem_2_statement(with_(delta=0.01)).sentence
    assert theorem_2_statement(with_(lam=0.1)).verdict is Verdict.NOT_VERIFIABLE
    assert "about lam = 0" in theorem_2_statement(with_(lam=0.1)).sentence


def test_theorem_3():
    facts = with_(lam=1e-6, mu=1e-9)
    rho = 50 * 1e-12 / 1e-11
    beta = (math.sqrt(4 * rho * (1 - 4 / 50) * 1e-11 + 2 * 1e-6 * 4) + 2e-6) / 0.5
    upper = 2 * rho * 46 / 50 * 1e-11 / 1e-6 + 1e-9 * 50 * math.log(50) + 4 * beta
    found = theorem_3_statement(facts)
    assert found.quantities["beta"] == pytest.approx(beta)
    assert found.number == pytest.approx(1 - beta - upper)
    assert found.holds
    # A sufficient condition that is not met says nothing.
    assert theorem_3_statement(with_(lam=1.0)).verdict is Verdict.NOT_VERIFIABLE
    assert theorem_3_statement(QUIET).number == -math.inf
    assert theorem_3_statement(with_(kappa=None)).verdict is Verdict.NOT_VERIFIABLE


def test_theorem_4():
    facts = with_(lam=5e4, delta=0.1)
    d = math.sqrt(max(0.0, 2 * (0.5 - 0.25) ** 2) + 0.5)
    v = 0.25 * (5e4 / 50 - 5e4 * math.exp(-1e-3 / 1e-5) - (d * d + 2 * d + 5) * 9.0 / 2)
    found = theorem_4_statement(facts)
    assert found.threshold == pytest.approx(math.sqrt(4 + v) - 2)
    assert found.holds
    assert theorem_4_statement(dataclasses.replace(facts, inside=False)).verdict is Verdict.NOT_VERIFIABLE
    assert theorem_4_statement(dataclasses.replace(facts, psi=None)).verdict is Verdict.NOT_VERIFIABLE
    assert theorem_4_statement(QUIET).verdict is Verdict.NOT_VERIFIABLE


def test_statements_of_a_run():
    data = separable_dirichlet(60, 12, 4, rng=0)
    found = select_anchors(
        data.X, 4, method_params={"lam": 0.0, "skip_converged": True}, tol=0.05, max_iter=500
    )
    names = (
        *("duality-gap", "anchor-margin", "alternatives", "uncertain-anchors", "fit", "conditioning"),
        *("support", "warm-start"),
    )
    theorems = ("lemma-1", "theorem-2", "theorem-3", "theorem-4")
    assert found.certificate.names == names + theorems
    # Without noise, Theorem 1: only anchors are used, and Lemma 1 applies.
    for name in ("anchor-margin", "alternatives", "uncertain-anchors", "fit", "conditioning", "support"):
        assert found.certificate[name].holds, name
    # Without noise the objective tends to zero, and no gap is small beside it.
    assert found.certificate["duality-gap"].verdict is Verdict.NOT_VERIFIABLE
    omega = np.linalg.norm(found.coefficients.T @ data.W - data.W, axis=1).max()
    assert found.certificate["lemma-1"].number == pytest.approx(omega, rel=1e-6)
    assert found.certificate["anchor-margin"].number == pytest.approx(found.margin)
    short = select_anchors(data.X, 4, max_iter=2, method_params={"recovery": False})
    assert short.certificate.names == names


@pytest.mark.parametrize("seed", range(2))
def test_theorem_1_and_fact_1_over_the_iterates(seed):
    """Without noise the oracle names anchors alone, by a unique minimum, until a column is optimal."""
    data = separable_dirichlet(60, 12, 4, rng=seed)
    X, anchors = data.X.T, np.array(data.anchors)
    C = np.zeros((60, 60))
    for t in range(30):
        residual = X @ C - X
        slopes = X.T @ residual
        of_anchors = np.sort(slopes[anchors], axis=0)
        unfinished = np.linalg.norm(residual, axis=0) > 1e-9
        assert (of_anchors[1] - of_anchors[0])[unfinished].min() > 1e-12
        vertices = slopes.argmin(axis=0)
        assert np.isin(vertices[unfinished], anchors).all()
        C *= 1 - 2 / (t + 2)
        C[vertices, np.arange(60)] += 2 / (t + 2)
    # A column that is its own anchor has a gradient of zero, where any sample is a minimum: the published
    # iteration leaves the anchors there and only there, and columns that are skipped do not.
    for skip in (False, True):
        parameters = {"lam": 0.0, "steps": "open-loop", "recovery": False, "skip_converged": skip}
        run = select_anchors(data.X, 4, max_iter=30, tol=1e-12 * skip, method_params=parameters)
        used = sp.coo_array(run.coefficients)
        columns = set(used.col[(used.data > 0) & ~np.isin(used.row, anchors)])
        assert set(run.anchors) == set(anchors)
        assert columns <= set(anchors)
        assert bool(columns) is not skip


def test_statements_of_noisy_points_and_a_warm_start():
    data = separable_dirichlet(60, 12, 4, snr=15, rng=0)
    options = {"init": "spa", "max_iter": 20, "method_params": {"steps": "open-loop"}}
    found = select_anchors(data.X, 4, **options).certificate
    assert found["warm-start"].holds
    assert not found["support"].holds
    W = data.X[select_anchors(data.X, 4, **options).anchors]
    assert found["theorem-4"].quantities["sigma_max"] == pytest.approx(np.linalg.norm(W, 2))
    assert found["theorem-3"].quantities["kappa"] == pytest.approx(found["conditioning"].number)


def test_the_bound_is_stated():
    found = duality_gap_statement(10.0, 0.5)
    assert found.holds
    assert found.number == 0.5
    assert found.quantities["lower_bound"] == 9.5
    assert found.quantities["relative_gap"] == 0.05
    assert found.sentence == "The objective, 10, is at most 0.5 (5% of it) above its minimum."


def test_a_gap_that_was_asked_for():
    assert duality_gap_statement(10.0, 0.5, tol=1.0).holds
    assert [duality_gap_statement(10.0, 0.5, tol=tol).threshold for tol in (0.0, 1.0)] == [None, 1.0]
    missed = duality_gap_statement(10.0, 0.5, tol=0.1)
    assert missed.verdict is Verdict.FAILS
    assert missed.threshold == 0.1
    assert missed.sentence.endswith("The tolerance is 0.1.")


def test_a_gap_of_nothing_and_one_that_is_not_known():
    assert duality_gap_statement(0.0, 0.0).holds
    unknown = duality_gap_statement(1.0, math.nan)
    assert unknown.verdict is Verdict.NOT_VERIFIABLE
    assert unknown.number is None


def test_a_sample_as_far_out_as_an_anchor_is_an_alternative():
    W = np.eye(3)  # each is sqrt(3/2) away from the hull of the others
    for largest, verdict in ((0.0, Verdict.HOLDS), (0.5, Verdict.HOLDS), (4.0, Verdict.FAILS)):
        assert alternatives_statement(W, Fit(0.1, largest, 0.01)).verdict is verdict


def test_the_second_gap_is_that_of_the_smallest_slopes(rng):
    error, W = rng.standard_normal((6, 3)), rng.random((3, 4))
    error[2] = 0.0
    lengths = np.linalg.norm(error, axis=1)
    gaps = []
    for row, length in zip(error, lengths, strict=True):
        if length > 0:
            slopes = np.sort(row / length @ W @ W.T)
            gaps.append(slopes[1] - slopes[0])
    assert _second_gap(error, lengths, W) == pytest.approx(min(gaps))
    assert _second_gap(error[:, :1], lengths, W[:1]) == 0.0
    assert _second_gap(np.zeros((2, 3)), np.zeros(2), W) == 0.0


@pytest.mark.parametrize(
    ("gap", "tol", "verdict", "words"),
    [
        (0.5, 0.0, Verdict.HOLDS, "is at most 0.5 (5% of it) above its minimum."),
        (9.0, 0.0, Verdict.NOT_VERIFIABLE, "is at most 9 (90% of it) above its minimum. A gap of more than"),
        (0.5, 0.5, Verdict.HOLDS, "The tolerance is 0.5."),
        (0.6, 0.5, Verdict.FAILS, "The tolerance is 0.5."),
        (-1e-9, 0.0, Verdict.HOLDS, "is at most 0 (-1e-08% of it) above"),
    ],
)  # fmt: skip
def test_the_gap_in_words(gap, tol, verdict, words):
    found = duality_gap_statement(10.0, gap, tol=tol)
    assert words in found.sentence
    assert (found.number, found.threshold) == (gap, tol or None)
    assert found.verdict is verdict
    assert found.quantities == pytest.approx(
        {"objective": 10.0, "lower_bound": 10.0 - gap, "relative_gap": gap / 10.0}
    )
    exact = duality_gap_statement(0.0, 0.0)
    assert "%" not in exact.sentence
    assert duality_gap_statement(1.0, math.nan).verdict is Verdict.NOT_VERIFIABLE


def history_of(**columns):
    size = len(next(iter(columns.values())))
    return History({"n_iter": [0] * size, "seconds": [0.0] * size, **columns})


def test_rules_that_end_a_run():
    assert ResidualBelow(0.5)(history_of(largest_residual=[9.0, 0.5]))
    assert not ResidualBelow(0.5)(history_of(largest_residual=[0.1, 0.6]))
    assert not ResidualBelow(0.5)(History())
    unchanged = AnchorsUnchanged(2)
    assert unchanged(history_of(new_anchors=[0.0, 0.0]))
    assert unchanged(history_of(new_anchors=[3.0, 0.0, 0.0]))
    assert not unchanged(history_of(new_anchors=[0.0, 1.0, 0.0]))
    assert not unchanged(history_of(new_anchors=[0.0]))
    change = RelativeChange(0.25)
    assert change(history_of(loss=[5.0, 4.0]))
    assert not change(history_of(loss=[5.1, 4.0]))
    assert change(history_of(loss=[3.0, 4.0]))
    assert not change(history_of(loss=[4.0]))


@pytest.mark.parametrize("rule", ["paper", "printed", "auto"])
def test_weights_are_those_of_their_rules(rule, rng):
    X = np.vstack([3.0 * np.eye(3), rng.dirichlet(np.ones(3), 20)]) + 0.01 * rng.random((23, 3))
    data = as_data_matrix(X)
    found = penalty_weight(data, 3, rule, mu=0.01)
    squares = squared_residuals(data, found.anchors, np.arange(23))
    norm = math.sqrt(squares.sum())
    expected = {
        "paper": norm / 6, "printed": norm / (3 * (1 - 0.01 * math.log(23))),
        "auto": NOISE_SHARE * squares.mean(),
    }[rule]  # fmt: skip
    assert found.lam == pytest.approx(expected)
    assert found.residual_norm == pytest.approx(norm)
    assert sorted(found.anchors) == [0, 1, 2]
    assert len(penalty_weight(data, 2, rule).anchors) == 2


def test_the_weight_of_a_converged_run_grows_with_the_samples_of_an_anchor(rng):
    X = np.vstack([3.0 * np.eye(3), rng.dirichlet(np.ones(3), 20)]) + 0.01 * rng.random((23, 3))
    data = as_data_matrix(X)
    found = penalty_weight(data, 3, converges=True)
    mean = squared_residuals(data, found.anchors, np.arange(23)).mean()
    share = np.clip(23 / MANY_SAMPLES, *CONVERGED_SHARES)
    variance = np.var(X, axis=0).sum()
    assert found.lam == pytest.approx(max(share * mean, VARIANCE_SHARE * variance) * 23 / 3)


@pytest.mark.parametrize(
    ("values", "gap"),
    [([0.25, 1.5], 0.25), ([0.5, 1.5], None), ([0.1, 2.95], 0.15), ([2.0], None), ([0.0, 1.3, 2.9], 0.1)],
)
def test_differences_from_integers(values, gap):
    found = _closest_fractions(np.array(values))
    assert found == (None if gap is None else pytest.approx(gap))
