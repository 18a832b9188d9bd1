"""Statements about features found by purification: start, decoding, mixing, conditioning, weights."""

from __future__ import annotations

import math

from nonneg.certificates.certificate import Statement, Verdict

# What the theorems allow of mixing in the start is what halves of the data may differ by.
ALLOWED_MIXING = 0.1
ALLOWED_IMBALANCE = 2.0
CONSISTENT = 0.05


def _verdict(number: float, threshold: float) -> Verdict:
    if math.isnan(number):
        return Verdict.NOT_VERIFIABLE
    return Verdict.HOLDS if number <= threshold else Verdict.FAILS


def warm_start_statement(level: float, sentence: str, *, silent: int) -> Statement:
    """Say how good the start was."""
    verdict = Verdict.FAILS if silent else _verdict(level, ALLOWED_MIXING)
    return Statement("warm-start", sentence, level, ALLOWED_MIXING, verdict, {"silent_features": silent})


def decode_statement(dropped: float, n_samples: int) -> Statement:
    """Say how far the values A^+ y are from being weights."""
    sentence = (
        f"The decoding removed {dropped:.2g} of the squared values A^+ y of {n_samples} samples (negative "
        "ones and "
        "those below the threshold): 0 if they are nonnegative weights without noise."
    )
    verdict = _verdict(dropped, CONSISTENT)
    return Statement("decode-consistency", sentence, dropped, CONSISTENT, verdict, {"n_samples": n_samples})


def halves_statement(e_norm: float, diagonal: float, n_norm: float) -> Statement:
    """Say how much two halves of the data disagree about the features."""
    if math.isnan(e_norm):
        sentence = "The samples of the last iteration came in one batch, which was not held in halves."
        return Statement("mixing-on-halves", sentence, None, ALLOWED_MIXING, Verdict.NOT_VERIFIABLE)
    sentence = (
        f"Features updated on each half of the samples are mixed by Sigma + E with ||E||_1 = {e_norm:.2g} "
        "and Sigma "
        f"within {diagonal:.2g} of the identity; {n_norm:.2g} of a feature lies outside the span of the "
        "others."
    )
    quantities = {"diagonal_off_one": diagonal, "outside": n_norm}
    verdict = _verdict(e_norm, ALLOWED_MIXING)
    return Statement("mixing-on-halves", sentence, e_norm, ALLOWED_MIXING, verdict, quantities)


def conditioning_statement(infinity_norm: float, n: int, m: int) -> Statement:
    """Say by how much the pseudo-inverse can amplify noise."""
    allowed = 1.0 / max(m, n * infinity_norm)
    sentence = (
        f"||A^+||_inf = {infinity_norm:.4g}: adversarial noise of at most c G times {allowed:.2g} in each "
        "entry, unbiased "
        "noise of sqrt(n) times that, keeps the error below c by Theorems 1 and 2, whose constant G is not "
        "known."
    )
    quantities = {"noise_unit": allowed}
    return Statement("conditioning", sentence, infinity_norm, None, Verdict.NOT_VERIFIABLE, quantities)


def weights_statement(C1: float, c2: float, C2: float, density: float) -> Statement:
    """Say whether the weights are as balanced as the theorems ask."""
    imbalance = C2 / c2 if c2 > 0 else math.inf
    sentence = (
        f"Decoded weights have C1 = {C1:.3g}, c2 = {c2:.3g}, C2 = {C2:.3g}: C2 / c2 = {imbalance:.3g} "
        "(Theorems 6 and 7 "
        f"ask for 2), C1^3 / (c2^2 n) = {density:.3g} (they ask for an unknown constant)."
    )
    quantities = {"C1": C1, "c2": c2, "C2": C2, "density": density}
    verdict = _verdict(imbalance, ALLOWED_IMBALANCE)
    return Statement("weight-moments", sentence, imbalance, ALLOWED_IMBALANCE, verdict, quantities)


def balancing_statement(smallest: float, level: float, ratio: float) -> Statement:
    """Say whether the extra conditions of balancing hold for the start."""
    threshold = -0.1 * max(level, 0.1)
    sentence = (
        f"Features were scaled by a diagonal D with entries up to {ratio:.3g} times each other. Its "
        "guarantee asks for E(0) "
        f">= 0 (smallest entry found: {smallest:.2g}) and for Sigma <= 1 + l, which only the truth can tell."
    )
    verdict = Verdict.HOLDS if smallest >= threshold else Verdict.FAILS
    return Statement("balancing", sentence, smallest, threshold, verdict, {"level": level, "ratio": ratio})


def truth_statements(
    e_norm: float, n_norm: float, potential: float, beta: float, error: float
) -> list[Statement]:
    """Say how far the features are from known true ones."""
    mixing = (
        f"Against the true features ||E||_1 = {e_norm:.3g}; the potential ||E+||_s + {beta:g} ||E-||_s is "
        f"{potential:.3g}."
    )
    outside = (
        f"||N||_1 = {n_norm:.3g} lies outside the span of the true features; normalised, the error is "
        f"{error:.3g}."
    )
    return [
        Statement("true-mixing", mixing, e_norm, None, Verdict.HOLDS, {"potential": potential, "beta": beta}),
        Statement("true-outside", outside, n_norm, None, Verdict.HOLDS, {"normalized_error": error}),
    ]
