"""Every statement about recovery, word by word and number by number, for quantities that all differ."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from nonneg.certificates.certificate import Verdict
from nonneg.separable.merit.recovery_conditions import (
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

FACTS = ModelFacts(
    n_points=30, k=3, lam=0.7, mu=0.011, gamma=2.3, sigma_max=3.1, sigma_min=0.4, kappa=1.3, delta=0.02,
    noise=0.005, closeness=0.6, omega=0.9, nu=0.21, psi=0.05, inside=True, largest_residual=0.31,
)  # fmt: skip
UNMET = "; it does not apply, and says nothing about the anchors."
MODEL = "with W, H and V estimated from the anchors found"


def with_(**changes):
    return dataclasses.replace(FACTS, **changes)


def parts(statement):
    return statement.name, statement.sentence, statement.number, statement.threshold, statement.verdict


def distance_from_triangle(x, corners):
    """The distance of a point outside of a triangle: that from one of its edges."""
    weights = np.linalg.solve(np.vstack([corners.T, np.ones(3)]), [*x, 1.0])
    if weights.min() >= 0:
        return 0.0
    found = []
    for i in range(3):
        first, along = corners[i - 1], corners[i] - corners[i - 1]
        share = np.clip((x - first) @ along / (along @ along), 0.0, 1.0)
        found.append(np.linalg.norm(x - first - share * along))
    return min(found)


@pytest.mark.parametrize("seed", range(4))
def test_distance_from_the_hull(seed):
    W = np.random.default_rng(seed).random((4, 2)) * [1, 5] + 3
    expected = min(distance_from_triangle(W[i], np.delete(W, i, axis=0)) for i in range(4))
    assert hull_distance(W) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_distances_of_two_and_of_equal_points():
    assert hull_distance([[0.0, 3.0], [4.0, 0.0]]) == pytest.approx(5.0)
    assert hull_distance(np.ones((3, 2))) == 0.0
    assert hull_distance([[0.0, -2.0]]) == 2.0


@pytest.mark.parametrize(
    ("kappa", "verdict"), [(0.5, Verdict.HOLDS), (1e-10, Verdict.FAILS), (3e-10, Verdict.HOLDS)]
)
def test_conditioning(kappa, verdict):
    sentence = (
        f"Every anchor is at least {kappa:.4g} away from the convex hull of the others (kappa(W)); the "
        "largest norm of an anchor is 2."
    )
    found = conditioning_statement(kappa, 2.0)
    assert parts(found) == ("conditioning", sentence, kappa, 2e-10, verdict)
    assert found.quantities == {"longest_anchor": 2.0}


def test_support():
    alone = support_statement(1.0, 0)
    assert parts(alone) == (
        "support",
        "All samples are mixtures of the anchors alone.",
        1.0,
        1.0,
        Verdict.HOLDS,
    )
    sentence = "87.5% of the weight is on anchors; 1 other samples also have weight, as they do under noise."
    shared = support_statement(0.875, 1)
    assert parts(shared) == ("support", sentence, 0.875, 1.0, Verdict.NOT_VERIFIABLE)
    assert (alone.quantities, shared.quantities) == ({"points_outside": 0}, {"points_outside": 1})


def test_warm_start():
    found = warm_start_statement(1, True, 7, 0.3, 4)
    spread = 2 * 0.3 / (5 * 6)
    assert found.number == pytest.approx(spread)
    assert (found.threshold, found.verdict) == (0.0, Verdict.HOLDS)
    assert "in row 7 (among" in found.sentence
    assert f"by at least {spread:.3g} up to iteration 5." in found.sentence
    assert found.quantities == {"t_init": 1, "row": 7, "xi": 0.3}
    for unmet in (warm_start_statement(3, False, 7, 0.3, 4), warm_start_statement(3, True, None, None, 4)):
        assert (unmet.number, unmet.threshold, unmet.verdict) == (None, None, Verdict.FAILS)
        assert unmet.quantities == {"t_init": 3}
    assert warm_start_statement(0, True, 7, 0.3, 4).verdict is Verdict.NOT_VERIFIABLE


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("omega", [1.1, 2 / math.sqrt(3), 1.2])
def test_lemma_1(inside, omega):
    limit, holds = 2 / math.sqrt(3), inside and omega < 1.15
    support = "is contained in" if inside else "extends beyond"
    below = "below" if omega < 1.15 else "not below"
    sentence = (
        f"Lemma 1, {MODEL}: the support of C {support} the anchors, and omega = {omega:.4g} is {below} "
        f"2/sqrt(K) = {limit:.4g}"
    )
    found = lemma_1_statement(with_(inside=inside, omega=omega))
    verdict = Verdict.HOLDS if holds else Verdict.NOT_VERIFIABLE
    assert parts(found) == ("lemma-1", sentence + ("." if holds else UNMET), omega, limit, verdict)
    assert found.quantities == {"omega": omega, "support_inside": inside, "k": 3}


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        ({}, "; it is about lam = 0, and lam is 0.7."),
        ({"lam": 0.0}, f" with the nu of the last iterate, which is violated{UNMET}"),
        (
            {"lam": 0.0, "delta": 1e-5},
            " with the nu of the last iterate; the nu of all iterates is not known.",
        ),
    ],
)
def test_theorem_2(changes, end):
    facts = with_(**changes)
    eta = 0.31 - 2 * facts.delta
    limit = math.sqrt(2.3**2 + 0.21 * eta * (1 - 0.6) / (4 * 3.1)) - 2.3
    found = theorem_2_statement(facts)
    assert (
        found.sentence
        == f"Theorem 2, {MODEL}: delta = {facts.delta:.4g} against a bound (17) of {limit:.4g}{end}"
    )
    assert found.threshold == pytest.approx(limit, rel=1e-9)
    assert (found.name, found.number, found.verdict) == ("theorem-2", facts.delta, Verdict.NOT_VERIFIABLE)
    assert found.quantities == pytest.approx(
        {
            "delta": facts.delta, "nu": 0.21, "eta": eta, "gamma": 2.3, "sigma_max": 3.1, "sigma_min": 0.4,
            "closeness": 0.6, "mixture_error_bound": (eta + 4 * facts.delta) / 0.4,
        }
    )  # fmt: skip


def test_theorem_2_at_its_limits():
    exact = theorem_2_statement(with_(lam=0.0, largest_residual=0.0, delta=0.0))
    assert exact.threshold == 0.0
    assert "not known" in exact.sentence
    flat = theorem_2_statement(with_(sigma_max=0.0, sigma_min=0.0))
    assert (flat.threshold, flat.quantities["mixture_error_bound"]) == (0.0, math.inf)
    assert theorem_2_statement(with_(largest_residual=0.03)).quantities["eta"] == 0.0


@pytest.mark.parametrize("changes", [{}, {"noise": 1e-12, "delta": 1e-6, "lam": 1e-6, "mu": 1e-5}])
def test_theorem_3(changes):
    facts = with_(**changes)
    rho = 30 * facts.delta**2 / facts.noise
    fit = math.sqrt(4 * rho * (1 - 3 / 30) * facts.noise + 2 * facts.lam * 3) + 2 * facts.delta
    beta = fit / (1.3 * (1 - 0.6))
    upper = 2 * rho * 27 / 30 * facts.noise / facts.lam + facts.mu * 30 * math.log(30) + beta * 3
    margin = 1 - beta - upper
    found = theorem_3_statement(facts)
    assert found.number == pytest.approx(margin, rel=1e-9)
    assert (found.name, found.threshold) == ("theorem-3", 0.0)
    assert found.verdict is (Verdict.HOLDS if changes else Verdict.NOT_VERIFIABLE)
    assert found.sentence == (
        f"Theorem 3, {MODEL}: at the optimum the row maxima of anchors are above {1 - beta:.4g}, those of "
        f"other samples at most {upper:.4g}{'.' if changes else UNMET}"
    )
    assert found.quantities == pytest.approx(
        {
            "beta": beta, "rho": rho, "kappa": 1.3, "closeness": 0.6, "delta": facts.delta,
            "squared_noise": facts.noise, "lam": facts.lam, "mu": facts.mu,
        }
    )  # fmt: skip


def test_theorem_3_at_its_limits():
    quiet = {"noise": 0.0, "delta": 0.0, "mu": 1e-9}
    assert theorem_3_statement(with_(**quiet)).quantities["rho"] == 1.0
    assert theorem_3_statement(with_(**quiet, closeness=1.0)).quantities["beta"] == math.inf
    # The bound on the others divides by the penalty.
    exact = theorem_3_statement(with_(**quiet, closeness=1.0, lam=0.0))
    assert (exact.quantities["beta"], exact.number) == (0.0, -math.inf)


@pytest.mark.parametrize("closeness", [0.6, 0.9])
@pytest.mark.parametrize("psi", [0.05, None])
@pytest.mark.parametrize("lam", [0.7, 5e4])
@pytest.mark.parametrize("inside", [True, False])
def test_theorem_4(closeness, psi, lam, inside):
    facts = with_(closeness=closeness, psi=psi, lam=lam, inside=inside, delta=0.1)
    spread = 1.0 if psi is None else math.exp(-0.05 / 0.011)
    d = math.sqrt(2 * max((closeness - 0.5) ** 2, (0.5 - 1 / 3) ** 2) + 0.5)
    v = (lam / 30 - lam * spread - (d**2 + 2 * d + 5) * 3.1**2 / 2) / 4
    limit = math.sqrt(2.3**2 + v) - 2.3 if 2.3**2 + v >= 0 else -2.3
    holds = inside and psi is not None and limit >= 0.1
    assert holds == (lam > 1 and inside and psi is not None)
    found = theorem_4_statement(facts)
    assert found.threshold == pytest.approx(limit, rel=1e-9)
    assert (found.name, found.number) == ("theorem-4", 0.1)
    assert found.verdict is (Verdict.HOLDS if holds else Verdict.NOT_VERIFIABLE)
    assert found.sentence == (
        f"Theorem 4, {MODEL}: delta = 0.1 against a bound (22) of {limit:.4g}; the support "
        f"{'is contained in' if inside else 'extends beyond'} the anchors{'.' if holds else UNMET}"
    )
    quantities = dict(found.quantities)
    assert (quantities.pop("v"), quantities.pop("d_prime")) == pytest.approx((v, d), rel=1e-9)
    assert quantities == {
        "delta": 0.1, "gamma": 2.3, "sigma_max": 3.1, "psi": psi, "lam": lam, "mu": 0.011,
        "support_inside": inside,
    }  # fmt: skip
