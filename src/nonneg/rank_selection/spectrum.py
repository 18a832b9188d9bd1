"""Singular-value ratio of the rank, and what it implies about cones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq

from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.cones.geometry.bounds import mean_squared_sine
from nonneg.cones.geometry.spectrum import RatioCondition, ratio_condition
from nonneg.rank_selection.candidates import RankProblem
from nonneg.rank_selection.result import RankCurve, RankResult, scores_of

NAME = "singular-value-ratio"
# Sums of squares may turn a right angle into a slightly larger one.
ROUNDING = 1e-9
CONDITION, SPECTRUM, GUARANTEE = "ratio-condition", "cone-spectrum", "ratio-guarantee"


def singular_value_ratio(problem: RankProblem, **_: Any) -> RankResult:
    """Return the candidate k with the largest ratio of the k-th singular value to the next."""
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, equation (45).
    trivial = problem.trivial_answer(NAME)
    if trivial is not None:
        return trivial
    candidates, ratios = problem.within(), problem.ratios()
    curve = RankCurve("singular-value ratio", tuple(candidates), ratios, np.zeros(len(ratios)))
    rank = problem.largest_ratio()
    ordered = np.sort(ratios)
    of = f"of the samples scaled to {problem.normalize} norm one " if problem.normalize else ""
    among = (
        f"from k_min={problem.k_min} to {problem.limit_words()}"
        if problem.candidates is None
        else f"among the {len(candidates)} candidates"
    )
    least = "at least " if problem.singular_values[rank] < problem.noise else ""
    second = f"; the second largest is {ordered[-2]:.4g}" if len(ordered) > 1 else ""
    reason = (
        f"the ratio of singular values {rank} and {rank + 1} {of}is {least}{ordered[-1]:.4g}, the largest "
        f"{among}{second}."
    )
    return problem.answer(
        rank,
        reason,
        NAME,
        scores=scores_of(curve),
        curves=(curve,),
        certificate=ratio_statements(problem, rank),
    )


def ratio_statements(problem: RankProblem, rank: int) -> Certificate:
    """Compare the singular values with Lemma 14's spectrum and Theorem 9's condition (92)."""
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, Theorem 9 and Lemma 14.
    data = problem.data
    n_samples, n_features = data.counted_rows(), data.shape[1]
    if rank < 2 or rank >= min(len(problem.singular_values), n_features):
        sentence = "Theorem 9 covers two cones or more, and more features than cones."
        return Certificate(
            tuple(
                Statement(name, sentence, None, None, Verdict.NOT_VERIFIABLE)
                for name in (CONDITION, SPECTRUM, GUARANTEE)
            )
        )
    ratio = ratio_condition(
        problem.singular_values, rank, n_samples, n_features, squared_norm=data.squared_norm()
    )
    quantities = {"n_cones": rank, "n_samples": n_samples, "n_features": n_features}
    return Certificate(
        (
            _condition(ratio, problem, quantities),
            _cones(ratio, quantities),
            _guarantee(ratio, problem, quantities),
        )
    )


def _condition(ratio: RatioCondition, problem: RankProblem, quantities: dict[str, Any]) -> Statement:
    k = quantities["n_cones"]
    verb = "within what" if ratio.holds else "more than"
    hint = (
        ""
        if ratio.holds or problem.normalize
        else " The theorem assumes samples of equal length: normalize='l2' removes the lengths."
    )
    sentence = (
        f"{k} equal cones have squared singular values on three levels. Divided by the number of samples, "
        f"the observed ones differ from three levels, the means of theirs, by {ratio.deviation:.3g}, {verb} "
        f"condition (92) allows ({ratio.largest_epsilon:.3g}).{hint}"
    )
    levels = {
        "first_level": ratio.spectrum.first,
        "cone_level": ratio.spectrum.floor + ratio.spectrum.gap,
        "floor_level": ratio.spectrum.floor,
    }
    verdict = Verdict.HOLDS if ratio.holds else Verdict.FAILS
    return Statement(
        CONDITION, sentence, ratio.deviation, ratio.largest_epsilon, verdict, {**quantities, **levels}
    )


def _cones(ratio: RatioCondition, quantities: dict[str, Any]) -> Statement:
    angles = implied_angles(ratio)
    if angles is None:
        sentence = (
            f"No {quantities['n_cones']} circular cones of equal size, at equal angles of at most 90 "
            "degrees, have such a spectrum (Lemma 14)."
        )
        return Statement(SPECTRUM, sentence, None, None, Verdict.FAILS, quantities)
    size, between = angles
    sentence = (
        f"For {quantities['n_cones']} circular cones of equal size at equal angles (Lemma 14), this spectrum "
        f"implies a size angle of {size:.3g} and {between:.3g} radians between the axes. Singular values do "
        "not tell whether the samples lie in cones."
    )
    more = {"size_angle": size, "between_angle": between, "apart": bool(between > 4 * size)}
    return Statement(SPECTRUM, sentence, between, 4 * size, Verdict.NOT_VERIFIABLE, {**quantities, **more})


def _guarantee(ratio: RatioCondition, problem: RankProblem, quantities: dict[str, Any]) -> Statement:
    n_samples, n_features = quantities["n_samples"], quantities["n_features"]
    # In units of the mean squared length, on which the theorem's constant depends.
    scale = _mean_square(ratio)
    supply = n_samples / n_features * (ratio.largest_epsilon / scale) ** 2 if scale > 0 else 0.0
    n_tested = problem.last - problem.k_min + 1
    sentence = (
        f"Theorem 9 finds the number of cones with probability at least 1 - {2 * n_tested} exp(-t^2 F) once "
        f"N eps^2 / F >= c t^2; here N eps^2 / F is {supply:.3g} with the largest eps that (92) allows, "
        "squared lengths having mean 1. The constant c is not known."
    )
    return Statement(GUARANTEE, sentence, supply, None, Verdict.NOT_VERIFIABLE, quantities)


def _mean_square(ratio: RatioCondition) -> float:
    levels = ratio.spectrum
    others = (levels.n_cones - 1) * (levels.floor + levels.gap)
    return levels.first + others + (levels.n_features - levels.n_cones) * levels.floor


def implied_angles(ratio: RatioCondition) -> tuple[float, float] | None:
    """Return the cones that have the fitted spectrum."""
    levels = ratio.spectrum
    length = _mean_square(ratio)
    if not (length > 0 and levels.floor > 0):
        return None
    # (87): the floor is f(alpha) times the mean squared length over n_features - 1.
    share = levels.floor * (levels.n_features - 1) / length
    if not 0.0 < share < float(mean_squared_sine(math.pi / 2)):
        return None
    size = float(brentq(lambda angle: float(mean_squared_sine(angle)) - share, 0.0, math.pi / 2, xtol=1e-300))
    weight = (length * (1.0 - share) - levels.floor) / levels.n_cones
    cosine = 1.0 - levels.gap / weight if weight > 0 else 2.0
    # Axes of nonnegative samples are at most at right angles, up to rounding.
    if not -ROUNDING <= cosine < 1.0:
        return None
    return size, math.acos(max(cosine, 0.0))
