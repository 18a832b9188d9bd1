"""The certificate of a transform and its factors."""

from __future__ import annotations

import math

import numpy as np
from array_api_compat import array_namespace

from nonneg._arrays import is_float32
from nonneg._typing import Array
from nonneg.certificates.bounds import upper
from nonneg.certificates.certificate import Certificate, Statement, Verdict, verdict_of
from nonneg.certificates.stationarity import THRESHOLD
from nonneg.iteration import History
from nonneg.transforms.covariances import FrameCovariances
from nonneg.transforms.objective import (
    DiagonalityObjective,
    FitObjective,
    VarianceObjective,
    divergence,
    full_objective,
    likelihood,
    variances,
)
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.rotations.group import orthogonality_error, skew_part
from nonneg.transforms.state import transformed_frames

# The probability with which Theorem 4's bound is stated.
LIKELY = 0.95


def certified(
    data: FrameCovariances,
    transform: Array,
    activations: Array | None,
    components: Array | None,
    options: TransformOptions,
    *,
    method: str,
    history: History,
) -> Certificate:
    """Return the certificate of a solution; its numbers are recomputed from the solution alone."""
    batch = transform[None, ...]
    X = transformed_frames(data, batch)
    V = variances(X, data)
    single = is_float32(transform.dtype)
    statements = [orthogonality_statement(float(orthogonality_error(transform)), single=single)]
    objective: VarianceObjective = DiagonalityObjective(data, options.eps0)
    letter, inverse = "L", None
    if activations is not None and components is not None:
        inverse = 1.0 / ((activations @ components)[None, ...] + options.eps0)
    if method == "tl" and inverse is not None:
        objective, letter = FitObjective(data, options.eps0, inverse), "C"
    statements.append(_gradient_statement(objective, (batch, X, V), letter, data.n_frames))
    statements.append(descent_statement(history, single=single))
    L = float(likelihood(V, options.eps0)[0])
    if inverse is not None:
        C = float(full_objective(V, inverse, options.eps0)[0])
        part = float(divergence(V, inverse, options.eps0)[0])
        statements.append(decomposition_statement(C, L, part, single=single))
        if method == "jd":
            statements.append(gap_statement(part))
            statements += gaussian_statements(part, data)
    statements.append(covariance_statement(data, options.eps0))
    return Certificate(tuple(statements))


def orthogonality_statement(error: float, *, single: bool) -> Statement:
    """Say how orthogonal the transform is."""
    threshold = 1e-4 if single else 1e-12
    sentence = f"The transform is orthogonal: no entry of Phi Phi' - I is larger than {upper(error, 2)}."
    return Statement("orthogonality", sentence, error, threshold, verdict_of(error <= threshold))


def _gradient_statement(
    objective: VarianceObjective, point: tuple[Array, ...], letter: str, n_frames: int
) -> Statement:
    gradient = objective.gradient(point)
    xp = array_namespace(gradient)
    skew = skew_part(gradient)
    norm, whole = (float(xp.sqrt(xp.sum(part * part))) for part in (skew, gradient))
    share = 0.0 if whole == 0 else norm / whole
    # A millionth of the squared norm, as for factors.
    # At a saddle point or a maximum the gradient vanishes too: this is no more than the first order.
    still = (
        f"To first order, small rotations of the transform do not change the objective {letter}"
        if share <= THRESHOLD
        else f"A small rotation of the transform would still decrease the objective {letter}"
    )
    sentence = f"{still} (the skew part of its gradient is {share:.2g} of the gradient)."
    quantities = {"norm": norm / (2 * n_frames), "objective": letter}
    return Statement("skew-gradient", sentence, share, THRESHOLD, verdict_of(share <= THRESHOLD), quantities)


def descent_statement(history: History, *, single: bool) -> Statement:
    """Say whether what was minimized ever rose."""
    losses = np.asarray(history.loss, dtype=np.float64)
    threshold = 1e-4 if single else 1e-10
    if len(losses) < 2:
        sentence = "Fewer than two iterations were made, so nothing is known about the descent."
        return Statement("descent", sentence, None, threshold, Verdict.NOT_VERIFIABLE)
    scale = max(float(np.abs(losses).max()), 1e-300)
    rise = max(0.0, float(np.diff(losses).max())) / scale
    verdict = verdict_of(rise <= threshold)
    sentence = f"The objective rose from one iteration to the next by at most {upper(rise, 2)} of its size."
    return Statement("descent", sentence, rise, threshold, verdict, {"iterations": len(losses)})


def decomposition_statement(C: float, L: float, part: float, *, single: bool) -> Statement:
    """Say whether C = L + I."""
    threshold = 1e-3 if single else 1e-10
    error = abs(C - L - part) / max(abs(C), abs(L), abs(part), 1e-300)
    verdict = verdict_of(error <= threshold)
    sentence = f"C = L + I: {C:.8g} = {L:.8g} + {part:.8g} up to {upper(error, 2)}."
    return Statement("decomposition", sentence, error, threshold, verdict, {"C": C, "L": L, "I": part})


def gap_statement(part: float) -> Statement:
    """Say how far JD+NMF can be from TL-NMF."""
    sentence = (
        f"If this transform minimizes L globally, which cannot be verified, then C here is at most "
        f"{upper(part, 6)} (the value of I) above the least C of any transform and factors: "
        "C(JD) - C(TL) <= I(JD) - I(TL) <= I(JD)."
    )
    return Statement("distance-from-joint-fit", sentence, part, None, Verdict.NOT_VERIFIABLE)


def gaussian_statements(part: float, data: FrameCovariances) -> list[Statement]:
    """Compare I of a two-stage solution with Theorem 4's bound, where that says anything."""
    S, n, m = data.n_realizations, data.n_frames, data.frame_length
    if S is None:
        return []
    t = math.sqrt(2.0 * math.log(2.0 / (1.0 - LIKELY ** (1.0 / n))))
    bound, probability = gaussian_bound(S, n, m, t)
    if not math.isfinite(bound):
        return []
    sentence = (
        f"I = {part:.6g} is {'at most' if part <= bound else 'above'} {upper(bound, 6)}, which it stays "
        f"below with probability {probability:.2g} if the frames follow the Gaussian composite model with no "
        "more components than were fitted, and the solution is a global one."
    )
    quantities = {"probability": probability, "realizations": S}
    return [Statement("gaussian-bound", sentence, part, bound, verdict_of(part <= bound), quantities)]


def gaussian_bound(n_realizations: int, n_frames: int, frame_length: int, t: float) -> tuple[float, float]:
    """Return Theorem 4's bound on the largest Q_S for Gaussian frames, and how probable it is."""
    d = (math.sqrt(frame_length) + t) / math.sqrt(n_realizations)
    deviation = 3.0 * max(d, d**2)
    # Lemma 6: the bound for a relative deviation of the empirical power below 1.
    bound = n_frames * frame_length * deviation**2 / (1.0 - deviation) if deviation < 1.0 else math.inf
    return bound, max(0.0, 1.0 - 2.0 * math.exp(-(t**2) / 2.0)) ** n_frames


def covariance_statement(data: FrameCovariances, eps0: float) -> Statement:
    """Say what was lost by factoring the covariances to their rank."""
    single = is_float32(data.virtual.dtype)
    threshold = 1e-4 if single else 1e-12
    lost = float(data.discarded.sum())
    bound = lost / eps0 if eps0 > 0 else (0.0 if lost == 0 else math.inf)
    verdict = verdict_of(data.error <= threshold)
    sentence = (
        f"{data.rank} virtual realizations per frame stand for the data, with variances equal up to "
        f"{upper(data.error, 2)}; eigenvalues left out change L by at most {upper(bound, 2)} for any "
        "transform."
    )
    quantities = {"rank": data.rank, "discarded": lost, "bound_on_L": bound}
    return Statement("factored-covariances", sentence, data.error, threshold, verdict, quantities)
