"""Is purification the right method for these data? NMF runs as well, and is what `fit` falls back to.

Noise bends the features of NMF, which may not subtract, out of the space that the true features span.
Purification averages it away, but takes dependence between weights for mixing. Both can be seen without the
truth: the space is that of the leading singular vectors of the samples, and weights are decoded.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import FloatArray
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.data import DataMatrix
from nonneg.exceptions import NonnegWarning
from nonneg.purification.initialization import (
    has_nonnegative_mean,
    in_unit_weights,
    positive_part,
    studied_init,
)
from nonneg.purification.pseudo_inverse import dependent_feature
from nonneg.purification.purify import purify
from nonneg.purification.result import PurificationResult
from nonneg.purification.samples import spread_rows
from nonneg.solvers import factorize

NAME = "plausible-beside-nmf"
# How much more of NMF's features lies outside of the space, less the root mean square correlation of the
# weights, must not be below this. Chosen on the choosing draws of
# docs/reproduced/studies/purification-plausibility, where it found the better method most often.
LEAST_ADVANTAGE = -0.02
# Features that explain less than this share of what the others explain have left the data.
EXPLAINED = 0.9
# Eigenvalues that differ by less than this share, or are as small beside the largest, are rounding.
SAME = 1e-12


def with_fallback(
    data: DataMatrix, init: FloatArray, result: PurificationResult, options: Mapping[str, Any]
) -> PurificationResult:
    """Return the result, or that of NMF's features or of the initialization where they are more plausible."""
    samples, n = spread_rows(data), len(init)
    found, nmf_H = to_float64(result.H), None
    if has_nonnegative_mean(samples):
        H = to_float64(factorize(positive_part(data), n, init=studied_init(data, n), rng=0).H)
        if np.abs(H).sum(axis=1).all() and dependent_feature(H) is None:
            nmf_H = in_unit_weights(samples, H)
    if nmf_H is None:
        other, whose = init, "the initialization"
        told = (
            "The mean sample has negative entries or is not above its standard error, or NMF found fewer "
            "features: there is nothing to compare."
        )
        statement = Statement(NAME, told, None, LEAST_ADVANTAGE, Verdict.NOT_VERIFIABLE)
    else:
        other, whose = nmf_H, "NMF"
        statement = _compared(samples, found, nmf_H, result)
    before, after = explained_share(samples, other), explained_share(samples, found)
    # Features whose weights are all decoded to zero explain nothing, whatever they span.
    weights = result.certificate["weight-correlation"]
    dead = nmf_H is not None and n > 1 and weights.number is None and weights.quantities["n_samples"] > 2
    lost = after < EXPLAINED * before or dead
    if not lost and statement.verdict is not Verdict.FAILS:
        return replace(result, certificate=Certificate((*result.certificate, statement)))
    if lost:
        reason = f"The features explain {after:.2g} of the squared entries, those of {whose} {before:.2g}."
        if dead:
            reason = "Fewer than two of the features that purification found have weights that vary."
        number, limit = (None, None) if dead else (after, EXPLAINED * before)
        statement = Statement(NAME, reason, number, limit, Verdict.FAILS, statement.quantities)
    warnings.warn(
        f"Purification is not plausible for these data, and the features are those of {whose}. "
        f"{statement.sentence} fallback=None keeps what purification found.",
        NonnegWarning,
        stacklevel=5,
    )
    kept = purify(data, other, check_init="report", **{**options, "max_iter": 0})
    statement = replace(statement, sentence=f"{statement.sentence} The features are those of {whose}.")
    return replace(
        kept,
        certificate=Certificate((*kept.certificate, statement)),
        history=result.history,
        n_iter=result.n_iter,
        stop_reason=result.stop_reason,
        fallback="nmf" if nmf_H is not None else "init",
    )


def _compared(samples: FloatArray, H: FloatArray, nmf_H: FloatArray, result: PurificationResult) -> Statement:
    """State whether purification has more to gain from the noise than to lose by dependent weights."""
    basis = leading_basis(samples, len(H))
    weights = result.certificate["weight-correlation"]
    if basis is None or (weights.number is None and len(H) > 1):
        sentence = (
            "The data do not determine as many leading directions as there are features, or there are too "
            "few samples to correlate their weights: purification and NMF were not compared."
        )
        return Statement(NAME, sentence, None, LEAST_ADVANTAGE, Verdict.NOT_VERIFIABLE)
    outside, nmf_outside = (share_outside(basis, given) for given in (H, nmf_H))
    correlation = weights.number or 0.0
    advantage = nmf_outside - outside - correlation
    sentence = (
        f"Outside the leading directions of the data lie {nmf_outside:.2g} of the features of NMF and "
        f"{outside:.2g} of those of purification, which averages out noise"
    )
    sentence += (
        "; a single feature has no others to be mixed with."
        if len(H) == 1
        else f"; correlations of the weights, which it mistakes for mixing, are {correlation:.2g}."
    )
    quantities = {"outside": outside, "nmf_outside": nmf_outside, "correlation": correlation}
    verdict = Verdict.HOLDS if advantage >= LEAST_ADVANTAGE else Verdict.FAILS
    return Statement(NAME, sentence, advantage, LEAST_ADVANTAGE, verdict, quantities)


def leading_basis(samples: FloatArray, n: int) -> FloatArray | None:
    """Return the n leading directions of samples; None where rounding decides which ones they are."""
    n_rows, m = samples.shape
    gram = samples.T @ samples if n_rows >= m else samples @ samples.T
    values, vectors = np.linalg.eigh(gram)
    if n > len(values) or values[-n] <= SAME * values[-1]:
        return None
    if n < len(values) and values[-n - 1] >= (1.0 - SAME) * values[-n]:
        return None
    basis: FloatArray = vectors[:, -n:]
    return basis if n_rows >= m else np.linalg.qr(samples.T @ basis)[0]


def share_outside(basis: FloatArray, H: FloatArray) -> float:
    """Return the mean share of the squared norm of features outside the span of orthonormal columns."""
    units = H / np.linalg.norm(H, axis=1, keepdims=True)
    inside = ((units @ basis) ** 2).sum(axis=1)
    return float(np.clip(1.0 - inside, 0.0, 1.0).mean())


def explained_share(samples: FloatArray, H: FloatArray) -> float:
    """Return the share of the squared entries of the samples in the span of features."""
    total = float((samples**2).sum())
    basis = np.linalg.qr(H.T)[0]
    return float(((samples @ basis) ** 2).sum()) / total if total > 0 else 1.0
