"""The paper's three algorithms, with its order of updates and its stopping rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.iteration.progress import Progress
from reproduction.cr1.initializations import Initialization, Samples
from reproduction.cr1.plain_algorithms import relative_error, run_plain

ALGORITHMS = ("mult", "nnlsb", "hals")
# The paper's programs put this in the place of zeros before a multiplicative update.
LEAST = 1e-16
WINDOW, TOLERANCE = 10, 1e-4
"""A run stops when the error ||V - W H|| changes by less than TOLERANCE over WINDOW iterations."""


@dataclass(frozen=True)
class Fit:
    """End of a run and its path there."""

    W: FloatArray  # coefficients
    Ht: FloatArray  # the basis
    errors: list[float]  # the relative error after each iteration
    seconds: list[float]  # time in iterations until the end of each, without the initialization

    @property
    def labels(self) -> IntArray:
        """The component with the largest share of each sample, where the basis has unit length."""
        return np.argmax(self.W * np.linalg.norm(self.Ht, axis=0), axis=1)


def run_from(
    algorithm: str,
    samples: Samples,
    init: Initialization,
    *,
    max_iter: int,
    until: Callable[[Progress], bool | None] | None = None,
) -> Fit:
    """Run an algorithm from an initialization."""
    # mult and hals update the basis first and nnlsb the coefficients, as in the paper's programs; from
    # coefficients that were drawn or perturbed this is not the same. hals begins with the best multiple of
    # its initialization.
    W, Ht = init.W, init.Ht
    options: dict[str, Any] = {"max_iter": max_iter, "callback": until}
    if algorithm == "nnlsb":
        run = run_plain(algorithm, samples.rows, W, Ht, **options)
        W, Ht = run.state.W, run.state.Ht
    else:
        if algorithm == "mult":
            W, Ht = np.maximum(W, LEAST), np.maximum(Ht, LEAST)
        else:
            Ht = Ht * best_multiple(samples, W, Ht)
        run = run_plain(algorithm, samples.columns, Ht, W, **options)
        W, Ht = run.state.Ht, run.state.W
    squared_norm = samples.rows.squared_norm()
    errors = [relative_error(loss, squared_norm) for loss in run.history.loss]
    return Fit(W, Ht, errors, list(run.history.seconds))


def best_multiple(samples: Samples, W: FloatArray, Ht: FloatArray) -> float:
    """Return the number a for which a W H is nearest to the data."""
    size = float(np.sum((W.T @ W) * (Ht.T @ Ht)))
    return float(np.sum(np.asarray(samples.X @ Ht) * W)) / size if size > 0 else 1.0


def has_converged(progress: Progress) -> bool:
    """Tell whether the error changed by less than `TOLERANCE` over the last `WINDOW` iterations."""
    losses = progress.history.loss
    if len(losses) < WINDOW:
        return False
    before, now = (float(np.sqrt(2.0 * max(losses[i], 0.0))) for i in (-WINDOW, -1))
    return abs(before - now) < TOLERANCE
