"""Whether the anchors of a self-dictionary problem are the right ones: the conditions of the paper.

The theorems are about a true model X = W H + V. Here they are evaluated with the anchors found as W, their
best mixtures as H and the residuals as V; every sentence says so. They are sufficient conditions: where one
is not met, the theorem says nothing about the anchors, and the verdict is "not verifiable".

References: Nguyen, Fu & Wu, "Memory-efficient convex optimization for self-dictionary separable NMF":
Definitions 1 and 2, Lemma 1, Theorems 2 to 4, Proposition 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg.certificates.certificate import Statement, Verdict
from nonneg.leastsquares.simplex import simplex_least_squares

# Distances from the hull need one least-squares problem per anchor: seconds up to this number.
MOST_ANCHORS = 256
ESTIMATED = "with W, H and V estimated from the anchors found"


@dataclass(frozen=True)
class ModelFacts:
    """Quantities of the model X = W H + V that belongs to the anchors, in the paper's letters."""

    n_points: int  # N and K
    k: int
    lam: float  # weight and smoothing of the row sparsity
    mu: float
    gamma: float  # the largest norm of an anchor
    sigma_max: float  # the extreme singular values of W
    sigma_min: float
    kappa: float | None  # the smallest distance of an anchor from the hull of the others
    delta: float  # the largest norm of a noise vector
    noise: float  # the squared Frobenius norm of V
    closeness: float  # d(H): the largest weight of an anchor in another point
    omega: float  # the largest ||H c - h|| over the columns c of C
    nu: float  # the smallest gap in (16), at the coefficients returned
    # The smallest difference of two unequal entries in a row of an anchor; None if all rows are constant.
    psi: float | None
    inside: bool  # whether all entries of C lie in rows of anchors
    largest_residual: float  # the largest ||x - X c||


def hull_distance(anchors: Any) -> float | None:
    """Return the smallest distance of a point from the hull of the others, (19) of the paper, or less."""
    W = np.asarray(anchors, dtype=np.float64)
    k = len(W)
    if k == 1:
        return float(np.linalg.norm(W[0]))
    if k > MOST_ANCHORS:
        return None
    shifted = W - W.mean(axis=0)
    gram = shifted @ shifted.T
    nearest = math.inf
    for i in range(k):
        others = np.delete(np.arange(k), i)
        weights = simplex_least_squares(gram[np.ix_(others, others)], gram[None, i, others])
        away = shifted[i] - weights[0] @ shifted[others]
        # Weights from a Gram matrix have half the digits, and any weights overestimate the distance. The
        # hyperplane across the difference separates the point from the others by no more than the distance.
        length = float(np.linalg.norm(away))
        apart = float(np.min((shifted[i] - shifted[others]) @ away)) / length if length > 0 else 0.0
        nearest = min(nearest, max(apart, 0.0))
    return nearest


def conditioning_statement(kappa: float | None, longest: float) -> Statement:
    """State how far every anchor is from the convex hull of the others."""
    if kappa is None:
        sentence = (
            f"Distances of anchors from the hull of the others are computed for up to {MOST_ANCHORS} anchors."
        )
        return Statement("conditioning", sentence, None, None, Verdict.NOT_VERIFIABLE)
    threshold = 1e-10 * longest  # rounding in the Gram matrix
    sentence = (
        f"Every anchor is at least {kappa:.4g} away from the convex hull of the others (kappa(W)); the "
        f"largest norm of an anchor is {longest:.4g}."
    )
    verdict = Verdict.HOLDS if kappa > threshold else Verdict.FAILS
    return Statement("conditioning", sentence, kappa, threshold, verdict, {"longest_anchor": longest})


def support_statement(share: float, n_outside: int) -> Statement:
    """State whether all samples are mixtures of the anchors alone."""
    sentence = (
        "All samples are mixtures of the anchors alone."
        if n_outside == 0
        else f"{100 * share:.4g}% of the weight is on anchors; {n_outside} other samples also have weight, "
        "as they do under noise."
    )
    verdict = Verdict.HOLDS if n_outside == 0 else Verdict.NOT_VERIFIABLE
    return Statement("support", sentence, share, 1.0, verdict, {"points_outside": n_outside})


def warm_start_statement(
    t_init: int, holds: bool, row: int | None, xi: float | None, n_steps: int
) -> Statement:
    """State whether the warm start satisfies (23) of Proposition 1."""
    if t_init == 0:
        sentence = "The run started from zero; Proposition 1 is about warm starts."
        return Statement("warm-start", sentence, None, None, Verdict.NOT_VERIFIABLE)
    last = t_init + n_steps
    if not holds or xi is None:
        sentence = (
            "All differences within the rows of the anchors are integers after scaling: the warm start "
            "does not satisfy (23) of Proposition 1."
        )
        return Statement("warm-start", sentence, None, None, Verdict.FAILS, {"t_init": t_init})
    spread = 2.0 * xi / (last * (last + 1.0))
    sentence = (
        f"The warm start satisfies (23) of Proposition 1 in row {row} (among the anchors found): unequal "
        f"entries in the rows of the anchors differ by at least {spread:.3g} up to iteration {last}."
    )
    quantities = {"t_init": t_init, "row": row, "xi": xi}
    return Statement("warm-start", sentence, spread, 0.0, Verdict.HOLDS, quantities)


def lemma_1_statement(facts: ModelFacts) -> Statement:
    """State whether Lemma 1 applies: then the row maxima identify the anchors."""
    limit = 2.0 / math.sqrt(facts.k)
    holds = facts.inside and facts.omega < limit
    support = "is contained in" if facts.inside else "extends beyond"
    sentence = (
        f"Lemma 1, {ESTIMATED}: the support of C {support} the anchors, and omega = {facts.omega:.4g} is "
        f"{'below' if facts.omega < limit else 'not below'} 2/sqrt(K) = {limit:.4g}{_scope(holds)}."
    )
    quantities = {"omega": facts.omega, "support_inside": facts.inside, "k": facts.k}
    return Statement("lemma-1", sentence, facts.omega, limit, _verdict(holds), quantities)


def theorem_2_statement(facts: ModelFacts) -> Statement:
    """State whether the noise bound (17) of Theorem 2 can hold; it is about lam = 0."""
    eta = max(facts.largest_residual - 2.0 * facts.delta, 0.0)
    room = facts.nu * eta * (1.0 - facts.closeness) / (4.0 * facts.sigma_max) if facts.sigma_max > 0 else 0.0
    limit = math.sqrt(facts.gamma**2 + room) - facts.gamma
    error = (eta + 4.0 * facts.delta) / facts.sigma_min if facts.sigma_min > 0 else math.inf
    quantities = {
        "delta": facts.delta, "nu": facts.nu, "eta": eta, "gamma": facts.gamma,
        "sigma_max": facts.sigma_max, "sigma_min": facts.sigma_min, "closeness": facts.closeness,
        "mixture_error_bound": error,
    }  # fmt: skip
    begin = f"Theorem 2, {ESTIMATED}: delta = {facts.delta:.4g} against a bound (17) of {limit:.4g}"
    if facts.lam != 0:
        sentence = f"{begin}; it is about lam = 0, and lam is {facts.lam:.4g}."
        return Statement("theorem-2", sentence, facts.delta, limit, Verdict.NOT_VERIFIABLE, quantities)
    if facts.delta > limit:
        sentence = f"{begin} with the nu of the last iterate, which is violated{_scope(False)}."
        return Statement("theorem-2", sentence, facts.delta, limit, Verdict.NOT_VERIFIABLE, quantities)
    sentence = f"{begin} with the nu of the last iterate; the nu of all iterates is not known."
    return Statement("theorem-2", sentence, facts.delta, limit, Verdict.NOT_VERIFIABLE, quantities)


def theorem_3_statement(facts: ModelFacts) -> Statement:
    """State whether (20a) and (20b) of Theorem 3 separate the anchors from the others at the optimum."""
    if facts.kappa is None:
        sentence = "Theorem 3 needs kappa(W), which was not computed."
        return Statement("theorem-3", sentence, None, None, Verdict.NOT_VERIFIABLE)
    n, k = facts.n_points, facts.k
    rho = n * facts.delta**2 / facts.noise if facts.noise > 0 else 1.0
    reach = facts.kappa * (1.0 - facts.closeness)
    fit = math.sqrt(4.0 * rho * (1.0 - k / n) * facts.noise + 2.0 * facts.lam * k) + 2.0 * facts.delta
    beta = fit / reach if reach > 0 else (math.inf if fit > 0 else 0.0)
    noise = 2.0 * rho * (n - k) / n * facts.noise
    upper = (noise / facts.lam if facts.lam > 0 else math.inf) + facts.mu * n * math.log(n) + beta * k
    margin = (1.0 - beta) - upper
    sentence = (
        f"Theorem 3, {ESTIMATED}: at the optimum the row maxima of anchors are above {1.0 - beta:.4g}, those "
        f"of other samples at most {upper:.4g}{_scope(margin > 0)}."
    )
    quantities = {
        "beta": beta, "rho": rho, "kappa": facts.kappa, "closeness": facts.closeness, "delta": facts.delta,
        "squared_noise": facts.noise, "lam": facts.lam, "mu": facts.mu,
    }  # fmt: skip
    return Statement("theorem-3", sentence, margin, 0.0, _verdict(margin > 0), quantities)


def theorem_4_statement(facts: ModelFacts) -> Statement:
    """State whether the noise bound (22) of Theorem 4 holds at the coefficients returned."""
    k = facts.k
    spread = math.exp(-facts.psi / facts.mu) if facts.psi is not None else 1.0
    d = math.sqrt(max(2.0 * (facts.closeness - 0.5) ** 2, 2.0 * (0.5 - 1.0 / k) ** 2) + 0.5)
    v = 0.25 * (
        facts.lam / facts.n_points - facts.lam * spread - (d * d + 2.0 * d + 5.0) * facts.sigma_max**2 / 2.0
    )
    inside = facts.gamma**2 + v
    limit = math.sqrt(inside) - facts.gamma if inside >= 0 else -facts.gamma
    holds = facts.inside and facts.psi is not None and inside >= 0 and facts.delta <= limit
    sentence = (
        f"Theorem 4, {ESTIMATED}: delta = {facts.delta:.4g} against a bound (22) of {limit:.4g}; the support "
        f"{'is contained in' if facts.inside else 'extends beyond'} the anchors{_scope(holds)}."
    )
    quantities = {
        "delta": facts.delta, "gamma": facts.gamma, "v": v, "d_prime": d, "sigma_max": facts.sigma_max,
        "psi": facts.psi, "lam": facts.lam, "mu": facts.mu, "support_inside": facts.inside,
    }  # fmt: skip
    return Statement("theorem-4", sentence, facts.delta, limit, _verdict(holds), quantities)


def _verdict(holds: bool) -> Verdict:
    return Verdict.HOLDS if holds else Verdict.NOT_VERIFIABLE


def _scope(holds: bool) -> str:
    return "" if holds else "; it does not apply, and says nothing about the anchors"
