"""Matching of extracted signatures with known ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._random import Seed, generator
from nonneg.applications.signatures.catalog import read_signatures

THRESHOLD = 0.85
"""From this cosine on, MutationalPatterns (Blokzijl et al. 2018) takes two signatures for the same one."""
# Shuffled copies of a signature: with 200 the 99% quantile is the second largest.
_N_SHUFFLED, _QUANTILE = 200, 0.99


@dataclass(frozen=True)
class SignatureMatch:
    """The most similar known signature of a found one.

    Attributes
    ----------
    signature : int
        Which of the found signatures.
    name : str or None
        The known signature it matches; None where none is similar enough.
    nearest : str
        The most similar one, match or not.
    cosine : float
        Their cosine similarity.
    second, second_cosine : str, float
        The second most similar one. If it is nearly as similar, the match is ambiguous.
    chance : float
        The 99th percentile of the largest cosine with the reference if the channels are shuffled. A cosine
        below it is not evidence of a match, however high it is.
    """

    signature: int
    name: str | None
    nearest: str
    cosine: float
    second: str
    second_cosine: float
    chance: float


def match_signatures(
    signatures: Any, reference: Any, *, threshold: float = THRESHOLD, rng: Seed = 0
) -> list[SignatureMatch]:
    """Match signatures with a table of known ones by cosine similarity.

    Parameters
    ----------
    signatures : array of shape (n_signatures, 96)
        One per row, in COSMIC's order, such as `signatures_`.
    reference : data frame or array
        Known signatures: a table with COSMIC's names of the 96 channels in rows or columns, or an array in
        COSMIC's order. None comes with nonneg; COSMIC has them at cancer.sanger.ac.uk/signatures.
    threshold : float, default 0.85
        Smallest cosine of a match. It also has to exceed what shuffled channels reach.
    rng : None, int, Generator or RandomState, default 0
        Random numbers for the shuffling.

    Returns
    -------
    list of SignatureMatch
        One per signature. Two signatures may match the same known one.
    """
    known, names = read_signatures(reference)
    unit = known / np.linalg.norm(known, axis=1, keepdims=True)
    random, matches = generator(rng), []
    for at, row in enumerate(np.asarray(signatures)):
        row = row / max(float(np.linalg.norm(row)), np.finfo(float).tiny)
        cosines = unit @ row
        order = np.argsort(-cosines, kind="stable")
        shuffled = np.array([row[random.permutation(len(row))] for _ in range(_N_SHUFFLED)])
        chance = float(np.quantile((shuffled @ unit.T).max(axis=1), _QUANTILE))
        best, second = order[0], order[min(1, len(order) - 1)]
        name = names[best] if cosines[best] >= threshold and cosines[best] > chance else None
        nearest, other = ((names[place], float(cosines[place])) for place in (best, second))
        matches.append(SignatureMatch(at, name, *nearest, *other, chance))
    return matches
