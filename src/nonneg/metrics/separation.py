"""Scores of source separation: distortion, interference and artifacts, in decibels."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from nonneg._optional import import_optional
from nonneg._typing import FloatArray
from nonneg.exceptions import (
    InvalidDataError,
    NonFiniteDataError,
    NonnegWarning,
    ShapeError,
    UnknownNameError,
)
from nonneg.metrics.arguments import table

DISTORTIONS = ("filter", "gain")
# Decibels by which rounding may raise an SDR above the others.
_SLACK = 0.1


class SeparationScores(NamedTuple):
    """Scores of separated sources, one entry per true source.

    Parameters
    ----------
    sdr : array of shape (n_sources,)
        Source-to-distortion ratio.
    sir : array of shape (n_sources,)
        Source-to-interference ratio: against the other sources.
    sar : array of shape (n_sources,)
        Sources-to-artifacts ratio: against what no source explains.
    permutation : array of int of shape (n_sources,)
        Entry i is the estimated source that matches true source i.
    """

    sdr: FloatArray
    sir: FloatArray
    sar: FloatArray
    permutation: np.ndarray[Any, np.dtype[np.intp]]


def separation_scores(true: Any, estimated: Any, *, distortion: str = "filter") -> SeparationScores:
    """Return SDR, SIR and SAR as BSS Eval defines them, with the best permutation.

    Parameters
    ----------
    true : array-like of shape (n_sources, n_samples)
        The sources; none silent.
    estimated : array-like of shape (n_sources, n_samples)
        The estimates, in any order; none silent.
    distortion : {"filter", "gain"}, default "filter"
        The distortion that is allowed between a source and its estimate: a filter of 512 samples (by
        `mir_eval`, standard in papers), or a gain only (no dependency, and stricter).

    Returns
    -------
    SeparationScores
        In decibels; the permutation has the largest mean SIR. SDR is at most SIR and SAR.

    Warns
    -----
    NonnegWarning
        If `mir_eval` returns an SDR above SIR or SAR: sources with few partials do not have 512 independent
        delays, and its projections are inexact. ``distortion="gain"`` does not have this problem.

    Notes
    -----
    With a gain only, an estimate is split into its projection on the true source, the rest of its projection
    on the span of all true sources (interference), and the remainder (artifacts).

    References
    ----------
    .. [1] Vincent, Gribonval & Fevotte (2006), Performance measurement in blind audio source separation.
    """
    UnknownNameError.check("distortion", distortion, DISTORTIONS)
    shape = "(n_sources, n_samples)"
    first, second = table(true, "true", shape), table(estimated, "estimated", shape)
    if first.shape != second.shape or 0 in first.shape:
        raise ShapeError(
            f"Expected two arrays of the same shape {shape}, got {first.shape} and {second.shape}."
        )
    for name, sources in (("true", first), ("estimated", second)):
        if not np.isfinite(sources).all():
            raise NonFiniteDataError(f"Expected finite samples, the {name} sources contain NaN or infinity.")
        silent = np.flatnonzero(~sources.any(axis=1))
        if silent.size:
            raise InvalidDataError(
                f"Source {int(silent[0])} in `{name}` is silent, so its ratios are not defined. Leave it "
                f"out of both."
            )
    return _filtered(first, second) if distortion == "filter" else _scaled(first, second)


def _filtered(true: FloatArray, estimated: FloatArray) -> SeparationScores:
    module = import_optional("mir_eval.separation", extra="audio", purpose="Scores of separated sources")
    with warnings.catch_warnings():
        # mir_eval announces that this module will move to another package.
        warnings.simplefilter("ignore", FutureWarning)
        sdr, sir, sar, permutation = module.bss_eval_sources(true, estimated, compute_permutation=True)
    if np.any(sdr > np.minimum(sir, sar) + _SLACK):
        warnings.warn(
            "mir_eval's SDR is above SIR or SAR, which is impossible: the sources have too few partials "
            "for filters of 512 samples, and SIR and SAR are unreliable. Use distortion='gain'.",
            NonnegWarning,
            stacklevel=3,
        )
    return SeparationScores(sdr, sir, sar, np.asarray(permutation, dtype=np.intp))


def _scaled(true: FloatArray, estimated: FloatArray) -> SeparationScores:
    # Coordinates in the span of the sources, and what of each estimated source lies outside it.
    basis, _ = np.linalg.qr(true.T)
    inside, outlines = estimated @ basis, true @ basis
    artifacts = np.square(estimated - inside @ basis.T).sum(axis=1)
    factors = (outlines @ inside.T) / np.square(outlines).sum(axis=1)[:, None]
    targets = factors[:, :, None] * outlines[:, None, :]
    target = np.square(targets).sum(axis=2)
    interference = np.square(inside[None] - targets).sum(axis=2)
    sir = _decibels(target, interference)
    # Infinite ratios would hide all others from the assignment.
    _, permutation = linear_sum_assignment(np.clip(sir, -1e3, 1e3), maximize=True)
    pairs = np.arange(len(true)), permutation
    target, interference, artifacts = target[pairs], interference[pairs], artifacts[permutation]
    return SeparationScores(
        _decibels(target, interference + artifacts),
        sir[pairs],
        _decibels(target + interference, artifacts),
        permutation.astype(np.intp),
    )


def _decibels(power: FloatArray, other: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return 10 * np.log10(np.where(power > 0, power / other, 0.0))
