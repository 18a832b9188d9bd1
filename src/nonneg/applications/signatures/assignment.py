"""Assignment of known signatures to tumors: which are active, and how many mutations each explains.

A subset of the signatures is scored by the likelihood of the counts minus, for every signature in it, half
the logarithm of the number of mutations (Schwarz's criterion, BIC) and the logarithm of the odds against the
signature in the other tumors of the cohort. A tumor on its own has even odds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._arguments import is_count, is_number
from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.applications.signatures.catalog import read_aligned
from nonneg.exceptions import InvalidDataError, InvalidParameterError

# Part of every signature that is uniform: a mutation that no active signature explains is improbable, not
# impossible.
_UNIFORM = 1e-6
# Rounds of the cohort's prevalences, and Newton steps for a candidate and for the answer.
_MAX_ROUNDS, _CANDIDATE_STEPS, _FINAL_STEPS = 10, 6, 50


@dataclass(frozen=True)
class SignatureAssignment:
    """Known signatures that are active in each tumor.

    Attributes
    ----------
    exposures : array of shape (n_samples, n_signatures)
        Number of mutations that each signature explains; zero where it is not active.
    low, high : array of shape (n_samples, n_signatures)
        Bootstrap intervals of the exposures of the active signatures.
    evidence : array of shape (n_samples, n_signatures)
        By how much the score drops if an active signature is left out, in units of log-likelihood; infinite
        for the only one.
    prevalence : array of shape (n_signatures,)
        Share of the tumors in which each signature is active.
    names, sample_names : list of str
        Names of the signatures and of the tumors.
    """

    exposures: FloatArray
    low: FloatArray
    high: FloatArray
    evidence: FloatArray
    prevalence: FloatArray
    names: list[str]
    sample_names: list[str]


def assign_signatures(
    X: Any,
    reference: Any,
    *,
    cohort: bool = True,
    level: float = 0.95,
    n_bootstrap: int = 100,
    rng: Seed = 0,
) -> SignatureAssignment:
    """Find the known signatures that are active in each tumor, and their exposures.

    Parameters
    ----------
    X : data frame or array of counts
        Mutation types x tumors, or transposed. Channels of data frames are matched by name with those of the
        reference, so that other contexts than SBS-96 (DBS-78, ID-83, CN-48, SV-32) work, too; arrays have the
        96 channels of COSMIC's order. Never modified.
    reference : data frame or array
        Known signatures, such as COSMIC's table, which does not come with nonneg.
    cohort : bool, default True
        Whether a signature that is frequent in the other tumors needs less evidence. With False, each tumor
        is judged on its own.
    level : float, default 0.95
        Nominal coverage of the intervals.
    n_bootstrap : int, default 100
        Number of catalogs drawn for each tumor, from Poisson distributions with its counts as means.
    rng : None, int, Generator or RandomState, default 0
        Random numbers for the draws.

    Returns
    -------
    SignatureAssignment
        Exposures with intervals, and the evidence for every active signature.

    Notes
    -----
    The active signatures maximize the Poisson log-likelihood minus log(n) / 2 for each of them, n being the
    number of mutations, minus its log odds of being inactive in the other tumors. These are estimated from
    their present assignments, with one tumor with and one without the signature added (Laplace's rule), until
    nothing changes. The search adds the signature with the largest gain along a line, removes one, or
    exchanges one for it, until none of these helps. Intervals hold the active signatures fixed.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg.applications.signatures import assign_signatures
    >>> rng = np.random.default_rng(0)
    >>> reference = rng.dirichlet(np.full(96, 0.1), size=5)
    >>> X = rng.poisson([[300, 0, 100, 0, 0]] @ reference)
    >>> np.flatnonzero(assign_signatures(X, reference).exposures[0]).tolist()
    [0, 2]
    """
    counts, H, sample_names, names = read_aligned(X, reference)
    if not counts.sum():
        raise InvalidDataError("There are no mutations in X: all counts are zero.")
    H = (1 - _UNIFORM) * H + _UNIFORM / H.shape[1]
    mutated = np.flatnonzero(counts.sum(axis=1))  # a tumor without mutations has no active signature
    active, W, evidence = (np.zeros((len(counts), len(H)), dtype=dtype) for dtype in (bool, float, float))
    active[mutated], W[mutated], evidence[mutated] = _assign(counts[mutated], H, cohort)

    def exposures(drawn: FloatArray, _: int) -> FloatArray:
        return _maximize(drawn, H, _even(drawn, active), active, _CANDIDATE_STEPS)[0]

    low, high = bootstrap_intervals(counts, exposures, level, n_bootstrap, generator(rng))
    return SignatureAssignment(W, low, high, evidence, active.mean(axis=0), names, sample_names)


def bootstrap_intervals(
    counts: FloatArray,
    exposures: Callable[[FloatArray, int], FloatArray],
    level: float,
    n_bootstrap: int,
    random: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return quantiles of the exposures of catalogs drawn with the counts as means of Poisson variables."""
    if not (is_number(level) and 0.0 < level < 1.0 and is_count(n_bootstrap, 2)):
        raise InvalidParameterError(
            f"level must be between 0 and 1, and n_bootstrap at least 2, got {level!r} and {n_bootstrap!r}."
        )
    draws = [exposures(random.poisson(counts).astype(float), number) for number in range(n_bootstrap)]
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def _assign(counts: FloatArray, H: FloatArray, cohort: bool) -> tuple[Any, FloatArray, FloatArray]:
    """Return the active signatures of each tumor, their exposures and the evidence for them."""
    n_samples = len(counts)
    schwarz = np.repeat(0.5 * np.log(counts.sum(axis=1))[:, None], len(H), axis=1)
    active = np.zeros(schwarz.shape, dtype=bool)
    active[np.arange(n_samples), np.argmax(counts @ np.log(H).T, axis=1)] = True
    penalties = schwarz
    for _ in range(_MAX_ROUNDS if cohort and n_samples > 1 else 1):
        active = _search(counts, H, penalties, previous := active)
        # Odds against a signature in the other tumors; a frequent one is never rewarded beyond its evidence.
        others = active.sum(axis=0) - active
        odds = (n_samples - 1 - others + 1) / (others + 1)
        last, penalties = penalties, np.maximum(schwarz + np.log(odds), 0.0)
        if cohort and np.array_equal(active, previous):
            break
    W, value = _maximize(counts, H, _even(counts, active), active, _FINAL_STEPS)
    rows, columns = np.nonzero(active & (active.sum(axis=1, keepdims=True) > 1))
    without = active[rows]
    without[np.arange(len(rows)), columns] = False
    _, values = _maximize(counts[rows], H, _even(counts[rows], without), without, _FINAL_STEPS)
    evidence = np.where(active, np.inf, 0.0)
    evidence[rows, columns] = value[rows] - values - last[rows, columns]
    return active, W, evidence


def _even(counts: FloatArray, active: Any) -> FloatArray:
    """Return exposures that are the same for all active signatures and sum to the number of mutations."""
    n_active = np.maximum(active.sum(axis=1, keepdims=True), 1)
    return active * (counts.sum(axis=1, keepdims=True) / n_active)


def _search(counts: FloatArray, H: FloatArray, penalties: FloatArray, active: Any) -> Any:
    """Add, remove or exchange one signature of each tumor at a time, as long as the score grows."""
    active = active.copy()
    W, value = _maximize(counts, H, _even(counts, active), active, _FINAL_STEPS)
    score = value - (penalties * active).sum(axis=1)
    rows = np.arange(len(counts))
    while len(rows):
        gains = np.where(active[rows], -np.inf, _line_gains(counts[rows], H, W[rows]) - penalties[rows])
        subsets = [_neighbors(active[row], new) for row, new in zip(rows, gains.argmax(axis=1), strict=True)]
        owners = np.repeat(rows, [len(subset) for subset in subsets])
        candidates = np.concatenate(subsets)
        start = np.where(candidates, W[owners], 0.0) + 0.02 * _even(counts[owners], candidates)
        fits, values = _maximize(counts[owners], H, start, candidates, _CANDIDATE_STEPS)
        scores = values - (penalties[owners] * candidates).sum(axis=1)
        order = np.lexsort((-scores, owners))
        best = order[np.unique(owners[order], return_index=True)[1]]
        best = best[scores[best] > score[owners[best]] + 1e-6]  # beyond rounding and unfinished steps
        rows = owners[best]
        active[rows], W[rows], score[rows] = candidates[best], fits[best], scores[best]
    return active


def _neighbors(active: Any, new: int) -> Any:
    """Return the subsets with a new signature, with one less, or with the new one in exchange for another."""
    without = active & ~np.eye(len(active), dtype=bool)[active]
    added = np.arange(len(active)) == new
    return np.concatenate([[active | added], without[without.any(axis=1)], without | added])


def _line_gains(counts: FloatArray, H: FloatArray, W: FloatArray) -> FloatArray:
    """Return the gain in likelihood of each signature as mutations of all others move to it."""
    tiny = np.finfo(float).tiny
    v = (W @ H)[:, None]
    direction = counts.sum(axis=1)[:, None, None] * H - v
    share = np.full((*v.shape[:1], len(H), 1), 1e-3)
    for _ in range(8):
        ratio = direction / (v + share * direction)
        slope = (counts[:, None] * ratio).sum(axis=2, keepdims=True)
        curvature = (counts[:, None] * ratio**2).sum(axis=2, keepdims=True)
        share = np.clip(share + slope / np.maximum(curvature, tiny), 0.0, 0.999)
    return (counts[:, None] * np.log1p(share * direction / v)).sum(axis=2)


def _maximize(
    counts: FloatArray, H: FloatArray, W: FloatArray, active: Any, max_iter: int
) -> tuple[FloatArray, FloatArray]:
    """Return the exposures of maximum likelihood over the active signatures, and the log-likelihoods.

    Each iteration takes the best of an EM step, which never decreases the likelihood, and projected Newton
    steps of three lengths.
    """
    size = max(int(active.sum(axis=1).max(initial=0)), 1)
    places = np.argsort(~active, axis=1, kind="stable")[:, :size]  # the active ones first
    used = np.take_along_axis(active, places, axis=1)
    signatures = H[places] * used[..., None]
    w = np.take_along_axis(W, places, axis=1) * used
    total = counts.sum(axis=1, keepdims=True)
    tiny = np.finfo(float).tiny ** 0.25

    def model(w: FloatArray) -> FloatArray:
        return np.maximum((w[:, None, :] @ signatures)[:, 0], tiny)

    def likelihood(w: FloatArray) -> FloatArray:
        v = model(w)
        return (counts * np.log(v) - v).sum(axis=1, keepdims=True)

    at = np.arange(size)
    for _ in range(max_iter):
        v = model(w)
        gradient = (signatures @ (counts / v)[..., None])[..., 0] - used
        free = used & ((w > 1e-9 * total) | (gradient > 0))
        hessian = (signatures * (counts / v**2)[:, None]) @ signatures.transpose(0, 2, 1)
        diagonal = hessian[:, at, at]
        hessian = np.where(free[:, :, None] & free[:, None, :], hessian, 0.0)
        hessian[:, at, at] += np.where(free, 1e-9 * diagonal + tiny, 1.0)
        step = np.linalg.solve(hessian, np.where(free, gradient, 0.0)[..., None])[..., 0]
        best = np.maximum(w + w * gradient, 0.0)
        value = likelihood(best)
        for length in (1.0, 0.5, 0.1):
            new = np.maximum(w + length * step, 0.0)
            there = likelihood(new)
            best, value = np.where(there > value, new, best), np.maximum(there, value)
        moved = np.abs(best - w).max(initial=0.0) > 1e-9 * total.max(initial=0.0)
        w = best
        if not moved:
            break
    exposures = np.zeros_like(W)
    np.put_along_axis(exposures, places, w, axis=1)
    return exposures, likelihood(w)[:, 0]
