"""From the end of a run to what is said about it."""

from __future__ import annotations

import numpy as np

from nonneg._typing import FloatArray
from nonneg.certificates.certificate import Certificate, Statement
from nonneg.metrics.mixing import mixing
from nonneg.purification.balance import weight_constants
from nonneg.purification.certificate import (
    balancing_statement,
    conditioning_statement,
    decode_statement,
    halves_statement,
    truth_statements,
    warm_start_statement,
    weights_statement,
)
from nonneg.purification.decode import Decoder
from nonneg.purification.moments import Moments
from nonneg.purification.update import regression_target
from nonneg.purification.warm_start import StartQuality


def certified(
    features: FloatArray,
    decoder: Decoder,
    some: FloatArray,
    halves: tuple[Moments, Moments] | None,
    start: StartQuality,
    *,
    scales: FloatArray | None,
    truth: FloatArray | None,
    beta: float,
) -> Certificate:
    """Return the certificate of a run."""
    n, m = features.shape
    statements = [warm_start_statement(start.level, start.sentence, silent=len(start.silent))]
    values = some @ decoder.inverse.T
    weights = np.where(values > decoder.threshold, values, 0.0)
    total = float(np.sum(values**2))
    dropped = float(np.sum((values - weights) ** 2)) / total if total > 0 else 0.0
    statements.append(decode_statement(dropped, len(some)))
    statements.append(_on_halves(features, halves))
    norm = float(np.abs(decoder.inverse).sum(axis=1).max())
    statements.append(conditioning_statement(norm, n, m))
    constants = weight_constants(weights)
    statements.append(weights_statement(constants.C1, constants.c2, constants.C2, constants.density(n)))
    if scales is not None:
        off = start.off_diagonal[~np.eye(n, dtype=bool)]
        smallest = float(off.min(initial=0.0))
        statements.append(balancing_statement(smallest, start.level, float(scales.max() / scales.min())))
    if truth is not None:
        found = mixing(truth, features)
        statements += truth_statements(
            found.e_norm, found.n_norm, found.potential(beta), beta, found.normalized_error
        )
    return Certificate(tuple(statements))


def _on_halves(features: FloatArray, halves: tuple[Moments, Moments] | None) -> Statement:
    if halves is None or min(half.total for half in halves) <= 0:
        return halves_statement(float("nan"), float("nan"), float("nan"))
    first, second = (regression_target(features, half) for half in halves)
    if not all(np.isfinite(half).all() and np.abs(half).sum(axis=1).all() for half in (first, second)):
        return halves_statement(float("nan"), float("nan"), float("nan"))
    found = mixing(first, second)
    sizes = np.abs(first).sum(axis=1)
    outside = float((np.abs(found.outside).sum(axis=0) / sizes).max())
    return halves_statement(found.e_norm, float(np.abs(found.diagonal - 1.0).max()), outside)
