"""How well sources were separated: distortion, interference and artefacts, in decibels."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidDataError, NonFiniteDataError, ShapeError


class SeparationScores(NamedTuple):
    """Scores of separated sources, one entry a true source.

    Parameters
    ----------
    sdr : array of shape (n_sources,)
        Signal to distortion: to all that is not the source.
    sir : array of shape (n_sources,)
        Source to interference: to the other sources.
    sar : array of shape (n_sources,)
        Sources to artefacts: to what none of the sources explains.
    permutation : array of int of shape (n_sources,)
        Entry i is the found source that belongs to true source i.
    """

    sdr: FloatArray
    sir: FloatArray
    sar: FloatArray
    permutation: np.ndarray[Any, np.dtype[np.intp]]


def separation_scores(true: Any, found: Any) -> SeparationScores:
    """Return SDR, SIR and SAR by BSS Eval, with the best permutation.

    Parameters
    ----------
    true : array-like of shape (n_sources, n_samples)
        The sources; none silent.
    found : array-like of shape (n_sources, n_samples)
        What was separated, in any order; none silent.

    Returns
    -------
    SeparationScores
        In decibels; the permutation has the largest mean SIR.

    Notes
    -----
    By `mir_eval`, which allows a filter of 512 samples between a source and what was found: a wrong phase or
    level of a partial costs nothing. `scale_invariant_sdr` allows a factor only.
    """
    first, second = _checked(true, found)
    for name, sources in (("true", first), ("found", second)):
        silent = np.flatnonzero(~sources.any(axis=1))
        if silent.size:
            raise InvalidDataError(
                f"Source {int(silent[0])} of the {name} ones is silent, and a ratio to it is not defined. "
                "Leave it out on both sides, or use scale_invariant_sdr."
            )
    module = import_optional("mir_eval.separation", extra="audio", purpose="Scores of separated sources")
    with warnings.catch_warnings():
        # mir_eval announces that this module will move to another package one day.
        warnings.simplefilter("ignore", FutureWarning)
        sdr, sir, sar, permutation = module.bss_eval_sources(first, second, compute_permutation=True)
    return SeparationScores(sdr, sir, sar, np.asarray(permutation, dtype=np.intp))


def scale_invariant_sdr(true: Any, found: Any) -> tuple[FloatArray, np.ndarray[Any, np.dtype[np.intp]]]:
    """Return the signal-to-distortion ratio after the best factor, with the best permutation.

    Parameters
    ----------
    true : array-like of shape (n_sources, n_samples)
        The sources.
    found : array-like of shape (n_sources, n_samples)
        What was separated, in any order.

    Returns
    -------
    sdr : array of shape (n_sources,)
        In decibels: the squared norm of the projection of the found source on the true one, to that of the
        rest. Infinite where they are equal, minus infinite where they have nothing in common.
    permutation : array of int of shape (n_sources,)
        Entry i is the found source that belongs to true source i: the pairs with the largest sum of squared
        cosines.
    """
    first, second = _checked(true, found)
    inner = first @ second.T
    norms = np.square(first).sum(axis=1)[:, None] * np.square(second).sum(axis=1)[None, :]
    shares = np.square(inner) / np.where(norms > 0, norms, 1.0)
    _, permutation = linear_sum_assignment(shares, maximize=True)
    matched = second[permutation]
    squares = np.square(first).sum(axis=1)
    factor = (first * matched).sum(axis=1) / np.where(squares > 0, squares, 1.0)
    target = factor[:, None] * first
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.square(target).sum(axis=1) / np.square(matched - target).sum(axis=1)
        sdr = 10 * np.log10(np.nan_to_num(ratio, nan=0.0, posinf=np.inf))
    return sdr, permutation.astype(np.intp)


def _checked(true: Any, found: Any) -> tuple[FloatArray, FloatArray]:
    first, second = np.asarray(true, dtype=np.float64), np.asarray(found, dtype=np.float64)
    if first.ndim != 2 or first.shape != second.shape or 0 in first.shape:
        raise ShapeError(
            f"Expected two arrays of the same shape (n_sources, n_samples), got {first.shape} and "
            f"{second.shape}."
        )
    for name, sources in (("true", first), ("found", second)):
        if not np.isfinite(sources).all():
            raise NonFiniteDataError(f"Expected finite samples, the {name} sources hold NaN or infinity.")
    return first, second
