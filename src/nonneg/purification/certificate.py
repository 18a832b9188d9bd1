"""The certificate of a purification: statements on init, decoding, mixing and weights."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nonneg._typing import FloatArray
from nonneg.certificates.bounds import lower, upper
from nonneg.certificates.certificate import Certificate, Statement, Verdict, verdict_of
from nonneg.metrics.mixing import mixing
from nonneg.purification.decode import Decoder
from nonneg.purification.initialization import PROVED, InitQuality
from nonneg.purification.moments import Moments, regression_target

# Two halves of the data may differ by the mixing that the theorems allow of an init.
ALLOWED_MIXING = PROVED
# C2 / c2 in Theorems 6 and 7.
ALLOWED_IMBALANCE = 2.0
# The largest share of the squared values that decoding may remove: a convention, as in significance tests.
CONSISTENT = 0.05
# Standard errors beyond which correlations are not chance, as in significance tests.
CHANCE = 2.0
# Weights whose deviation is below this share of the largest are constant up to rounding.
CONSTANT = 1e-12


class WeightConstants(NamedTuple):
    """The constants C1, c2 and C2 of assumption (A2), for weights scaled to [0, 1]."""

    C1: float  # n times the largest mean of a weight
    c2: float  # n times the smallest mean square
    C2: float  # n times the largest mean square
    scale: float  # the largest weight, by which all were divided

    @property
    def imbalance(self) -> float:
        """The quotient C2 / c2, at most 2 in Theorems 6 and 7."""
        return self.C2 / self.c2 if self.c2 > 0 else float("inf")

    def density(self, n: int) -> float:
        """Return C1^3 / (c2^2 n), which the theorems bound by a constant that they do not give."""
        return self.C1**3 / (self.c2**2 * n) if self.c2 > 0 else float("inf")


def weight_constants(weights: FloatArray) -> WeightConstants:
    """Estimate C1, c2 and C2 from decoded weights."""
    n = weights.shape[1]
    scale = float(weights.max(initial=0.0)) or 1.0
    units = weights / scale
    squares = (units**2).mean(axis=0)
    return WeightConstants(
        n * float(units.mean(axis=0).max()), n * float(squares.min()), n * float(squares.max()), scale
    )


def purification_certificate(
    H: FloatArray,
    decoder: Decoder,
    samples: FloatArray,
    halves: tuple[Moments, Moments] | None,
    init: InitQuality,
    balancing: FloatArray | None,
    noise: float,
    init_H: FloatArray,
) -> Certificate:
    """Return the certificate of a run."""
    n = len(H)
    values = samples @ decoder.inverse.T
    weights = np.where(values > decoder.threshold, values, 0.0)
    total = float(np.sum(values**2))
    removed = float(np.sum((values - weights) ** 2)) / total if total > 0 else 0.0
    decoding = (
        f"Decoding removed {removed:.2g} of the squared values A^+ y of {len(samples)} samples (negative "
        "ones and those below the threshold): 0 if they are nonnegative weights without noise."
    )
    weakest = f"Weights below {lower(noise, 2)} of a typical large one cannot be distinguished from noise."
    silent, counts = len(init.silent), {"n_samples": len(samples)}
    warm = Verdict.FAILS if silent else verdict_of(init.level <= ALLOWED_MIXING)
    statements = [
        Statement("warm-start", init.sentence, init.level, ALLOWED_MIXING, warm, {"silent_features": silent}),
        Statement(
            "decode-consistency", decoding, removed, CONSISTENT, verdict_of(removed <= CONSISTENT), counts
        ),
        _mixing_of_halves(H, halves),
        weights_statement(weight_constants(weights), n),
        correlation_statement(weights),
        Statement("noise-level", weakest, noise, 1.0, verdict_of(noise <= 1.0)),
        explained_statement(samples, H, init_H),
    ]
    if balancing is not None:
        smallest = float(init.off_diagonal[~np.eye(n, dtype=bool)].min(initial=0.0))
        ratio = float(balancing.max() / balancing.min())
        statements.append(balancing_statement(smallest, init.level, ratio))
    return Certificate(tuple(statements))


def _mixing_of_halves(H: FloatArray, halves: tuple[Moments, Moments] | None) -> Statement:
    """State how much two halves of the data disagree about the features."""
    name, targets = "mixing-on-halves", [H]
    if halves is not None and min(half.total for half in halves) > 0:
        targets = [regression_target(H, half) for half in halves]
    if len(targets) < 2 or not all(
        np.isfinite(target).all() and target.any(axis=1).all() for target in targets
    ):
        sentence = "The samples of the last iteration came in one batch, which was not split into halves."
        return Statement(name, sentence, None, ALLOWED_MIXING, Verdict.NOT_VERIFIABLE)
    mixed = mixing(*targets)
    diagonal = float(np.abs(mixed.diagonal - 1.0).max())
    outside = float((np.abs(mixed.outside).sum(axis=0) / np.abs(targets[0]).sum(axis=1)).max())
    sentence = (
        f"Features updated on each half of the samples are mixed by Sigma + E with ||E||_1 = "
        f"{mixed.e_norm:.2g} and Sigma within {upper(diagonal, 2)} of the identity; {outside:.2g} of a "
        "feature lies outside the span of the others."
    )
    quantities = {"diagonal_off_one": diagonal, "outside": outside}
    verdict = verdict_of(mixed.e_norm <= ALLOWED_MIXING)
    return Statement(name, sentence, mixed.e_norm, ALLOWED_MIXING, verdict, quantities)


def weights_statement(constants: WeightConstants, n: int) -> Statement:
    """State whether the weights are as balanced as the theorems ask."""
    C1, c2, C2, _ = constants
    imbalance, density = constants.imbalance, constants.density(n)
    sentence = (
        f"Decoded weights have C1 = {C1:.3g}, c2 = {c2:.3g}, C2 = {C2:.3g}: C2 / c2 = {imbalance:.3g} "
        f"(at most 2 in Theorems 6 and 7), C1^3 / (c2^2 n) = {density:.3g} (at most an unknown constant)."
    )
    quantities = {"C1": C1, "c2": c2, "C2": C2, "density": density}
    verdict = verdict_of(imbalance <= ALLOWED_IMBALANCE)
    return Statement("weight-moments", sentence, imbalance, ALLOWED_IMBALANCE, verdict, quantities)


def correlation_statement(weights: FloatArray) -> Statement:
    """State whether decoded weights look independent."""
    name, n_samples = "weight-correlation", len(weights)
    # The deviation of equal weights is rounding.
    seen = weights.std(axis=0) > CONSTANT * np.abs(weights).max(axis=0, initial=0.0)
    if n_samples < 3 or seen.sum() < 2:
        sentence = "Fewer than two features have weights that vary: there is nothing to correlate."
        if n_samples < 3:
            sentence = "Fewer than three samples do not show whether weights are correlated."
        counts = {"n_samples": n_samples, "n_varying": int(seen.sum())}
        return Statement(name, sentence, None, None, Verdict.NOT_VERIFIABLE, counts)
    R = np.atleast_2d(np.corrcoef(weights[:, seen].T))
    squares = R[np.triu_indices(len(R), 1)] ** 2
    # Squared correlations of independent weights have the mean 1 / (N - 1) and about the deviation of a
    # squared normal variable, sqrt(2) times that.
    size = math.sqrt(float(squares.mean()))
    chance = math.sqrt((1.0 + CHANCE * math.sqrt(2.0 / len(squares))) / (n_samples - 1))
    sentence = (
        f"Correlations of the decoded weights have a root mean square of {size:.2g}; independent weights, as "
        f"the theorems assume, would have at most {upper(chance, 2)} by chance."
    )
    quantities = {"largest": float(np.sqrt(squares.max())), "n_samples": n_samples}
    return Statement(name, sentence, size, chance, verdict_of(size <= chance), quantities)


def explained_statement(samples: FloatArray, H: FloatArray, init_H: FloatArray) -> Statement:
    """State how much of the samples the features explain, beside the initial ones and the best possible."""
    total = float((samples**2).sum())
    if total <= 0:
        return Statement("explained", "All samples are zero.", None, None, Verdict.NOT_VERIFIABLE)
    after, before = (float(((samples @ np.linalg.qr(F.T)[0]) ** 2).sum()) / total for F in (H, init_H))
    sizes = np.linalg.svd(samples, compute_uv=False)[: len(H)]
    best = float((sizes**2).sum()) / total
    sentence = (
        f"The features span {100 * after:.4g}% of the squared entries of {len(samples)} samples, the initial "
        f"ones {100 * before:.4g}%; no {len(H)} features span more than {upper(100 * best)}%."
    )
    # Up to rounding of sums of squares.
    verdict = verdict_of(after >= before * (1.0 - 1e-9))
    return Statement("explained", sentence, after, before, verdict, {"best": best})


def balancing_statement(smallest: float, level: float, ratio: float) -> Statement:
    """State whether the extra conditions of balancing hold for the initialization."""
    # E(0) >= 0 is estimated from samples: entries above a tenth of the level are taken for estimation error.
    threshold = -0.1 * max(level, 0.1)
    sentence = (
        f"Features were scaled by a diagonal D whose entries differ by a factor of up to {upper(ratio, 3)}. "
        f"The guarantee requires E(0) >= 0 (smallest entry found: {smallest:.2g}) and Sigma <= 1 + l, which "
        f"cannot be checked without the true features."
    )
    verdict = verdict_of(smallest >= threshold)
    return Statement("balancing", sentence, smallest, threshold, verdict, {"level": level, "ratio": ratio})
