"""The rank read off the singular values: where one is largest in proportion to the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError
from nonneg.rank_selection.candidates import RankProblem
from nonneg.rank_selection.ratio_certificate import ratio_statements
from nonneg.rank_selection.result import RankCurve, RankResult, scores_of

NAME = "singular-value-ratio"
# More often right than 0, the published rule: benchmarks/rank_rules.py, docs/guide/rank.md.
TOLERANCE = 0.5
# A largest ratio below this multiple of the median logarithm is not a step: noise alone seldom exceeds it
# (benchmarks/rank_rules.py).
CLEAR = 4.0


def stands_out(ratios: FloatArray) -> bool:
    """Say whether the largest ratio is a step of the spectrum rather than one of many like it."""
    steps = np.log(ratios)
    return bool(steps.max() > 0 and steps.max() >= CLEAR * float(np.median(steps)))


def singular_value_ratio(problem: RankProblem, *, tolerance: float = TOLERANCE, **_: Any) -> RankResult:
    """Return the last candidate k with a large ratio of the k-th singular value to the next."""
    # Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, equation (45).
    found = problem.trivial_answer(NAME)
    if found is not None:
        return found
    values, candidates = problem.singular_values, problem.within()
    # Beyond the numerical rank the next value is rounding, whose size is not its own.
    ratios = np.array([values[k - 1] / max(values[k], problem.noise) for k in candidates])
    curve = RankCurve("singular-value ratio", tuple(candidates), ratios, np.zeros(len(ratios)))
    if not (isinstance(tolerance, int | float) and 0.0 <= tolerance < 1.0):
        raise InvalidParameterError(f"Expected a tolerance of at least 0 and below 1, got {tolerance!r}.")
    top = int(np.argmax(ratios))
    steps = np.log(ratios)
    # Components of unequal strength make steps before the last one, which is where the noise begins.
    clear = tolerance > 0 and stands_out(ratios)
    at = int(np.flatnonzero(steps >= (1.0 - tolerance) * steps[top])[-1]) if clear else top
    rank = candidates[at]
    of = f"of the samples scaled to {problem.normalize} norm one " if problem.normalize else ""
    among = (
        f"from k_min={problem.k_min} to {problem.limit_words()}"
        if problem.candidates is None
        else f"among the {len(candidates)} candidates"
    )
    which = "the largest"
    if at != top:
        which = (
            f"the last with at least {100 * (1 - tolerance):.0f}% of the logarithm of the largest, "
            f"{ratios[top]:.4g} at {candidates[top]},"
        )
    least = "at least " if values[rank] < problem.noise else ""
    reason = (
        f"the ratio of singular values {rank} and {rank + 1} {of}is {least}{ratios[at]:.4g}, {which} {among}."
    )
    return problem.answer(
        rank,
        reason,
        NAME,
        scores=scores_of(curve),
        curves=(curve,),
        certificate=ratio_statements(problem, rank),
    )
