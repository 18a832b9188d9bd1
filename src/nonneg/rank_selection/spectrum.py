"""Singular-value ratio of the rank, and the condition of its theorem."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.certificates.certificate import Certificate, Statement, Verdict, verdict_of
from nonneg.rank_selection.candidates import RankProblem
from nonneg.rank_selection.result import RankCurve, RankResult, scores_of

NAME, CONDITION = "singular-value-ratio", "ratio-condition"


def singular_value_ratio(problem: RankProblem, **_: Any) -> RankResult:
    """Return the candidate k with the largest ratio of the k-th singular value to the next."""
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, equation (45).
    if (trivial := problem.trivial_answer(NAME)) is not None:
        return trivial
    candidates, ratios = problem.within(), problem.ratios()
    curve = RankCurve("singular-value ratio", tuple(candidates), ratios, np.zeros(len(ratios)))
    rank = problem.largest_ratio()
    ordered = np.sort(ratios)
    of = f"of the samples scaled to {problem.normalize} norm one " if problem.normalize else ""
    among = f"from {problem.k_min} to {problem.last}"
    if problem.candidates is not None:
        among = f"among the {len(candidates)} candidates"
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
    """Hold condition (92) of Theorem 9 against the singular values."""
    # Theorem 9 speaks of many more points than features. The eigenvalues of n points of length F that are
    # equal in expectation reach (1 + sqrt(F / n))^2 times their mean, and epsilon is below the floor, so that
    # the condition cannot hold before n = 6 F or so; the ratio itself is right much earlier. It also assumes
    # equal lambdas: samples of unit length where lengths differ (Remark 2).
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, Theorem 9, equations (87) to (92).
    data = problem.data
    n_samples, n_features = data.counted_rows(), data.shape[1]
    if rank < 2 or rank >= min(len(problem.singular_values), n_features):
        sentence = "Theorem 9 covers two cones or more, and more features than cones."
        return Certificate((Statement(CONDITION, sentence, None, None, Verdict.NOT_VERIFIABLE),))
    values = np.asarray(problem.singular_values, dtype=np.float64) ** 2 / n_samples
    # The three levels of the eigenvalues of E[v v'] for cones that are alike: the first one, those of the
    # other axes, and the floor, a of (87), which the rest of the squared norm fills.
    level = float(values[1:rank].mean())
    floor = max(data.squared_norm() / n_samples - float(values[:rank].sum()), 0.0) / (n_features - rank)
    gap = max(level - floor, 0.0)
    deviation = float(max(np.abs(values[1:rank] - level).max(), np.abs(values[rank:] - floor).max()))
    # By how much eigenvalues may be off for (92): (a + e) / (a - e) < (a + gap - e) / (a + e).
    allowed = floor * gap / (4.0 * floor + gap) if floor > 0 and gap > 0 else 0.0
    holds = deviation < allowed
    hint = ""
    if not (holds or problem.normalize):
        hint = " The theorem assumes samples of equal length: normalize='l2' removes the lengths."
    sentence = (
        f"{rank} equal cones have squared singular values on three levels. Divided by the number of samples, "
        f"the observed ones differ from three levels, the means of theirs, by {deviation:.3g}, "
        f"{'within what' if holds else 'more than'} condition (92) allows ({allowed:.3g}).{hint}"
    )
    quantities = {
        "n_cones": rank, "n_samples": n_samples, "n_features": n_features, "first_level": float(values[0]),
        "cone_level": floor + gap, "floor_level": floor,
    }  # fmt: skip
    return Certificate((Statement(CONDITION, sentence, deviation, allowed, verdict_of(holds), quantities),))
