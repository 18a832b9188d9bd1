"""The rank read off the singular values: where one is largest in proportion to the next."""

from __future__ import annotations

import numpy as np

from nonneg.rank_selection.candidates import Question
from nonneg.rank_selection.ratio_certificate import ratio_statements
from nonneg.rank_selection.result import RankCurve, RankResult, scores_of

NAME = "singular-value-ratio"


def singular_value_ratio(question: Question) -> RankResult:
    """Return the candidate k with the largest ratio of the k-th singular value to the next.

    Parameters
    ----------
    question : Question
        The singular values and the candidates.

    Returns
    -------
    RankResult
        Its certificate holds Theorem 9's condition against the spectrum.

    References
    ----------
    .. [1] Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731, equation (45).
    """
    found = question.way_out(NAME)
    if found is not None:
        return found
    values, candidates = question.singular_values, question.within()
    # Beyond the numerical rank the next value is rounding, whose size is not its own.
    ratios = np.array([values[k - 1] / max(values[k], question.noise) for k in candidates])
    curve = RankCurve("singular-value ratio", tuple(candidates), ratios, np.zeros(len(ratios)))
    rank = candidates[int(np.argmax(ratios))]
    of = "of the points scaled to unit length " if question.normalized else ""
    among = (
        f"from k_min={question.k_min} to {question.limit_words()}"
        if question.candidates is None
        else f"among the {len(candidates)} candidates"
    )
    reason = (
        f"the ratio of singular values {rank} and {rank + 1} {of}is {ratios.max():.4g}, the largest {among}."
    )
    return question.answer(
        rank,
        reason,
        NAME,
        scores=scores_of(curve),
        curves=(curve,),
        certificate=ratio_statements(question, rank),
    )
