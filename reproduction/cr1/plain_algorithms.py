"""The three algorithms that the paper compares with, in their published form, without what speeds ours up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nonneg._typing import Array, FloatArray
from nonneg.data import DataMatrix
from nonneg.exceptions import UnknownNameError
from nonneg.iteration import Run, iterate
from nonneg.iteration.progress import Progress
from nonneg.losses.penalties import Penalties
from nonneg.solvers.registry import SOLVERS

TINY = float(np.finfo(np.float64).tiny)
SOLVER_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "nnlsb": ("anls", {"momentum": 0.0}),
    "hals": ("hals", {"passes": (1, 1), "momentum": 0.0}),
}
"""The paper's name -> the solver and the options that take off what we add to it."""
PLAIN = ("mult", *SOLVER_OPTIONS)
"""The three names."""


@dataclass(frozen=True)
class Factors:
    """The state of the multiplicative updates."""

    W: Array  # the factors; X is about W H
    Ht: Array


def uniform_init(shape: tuple[int, int], k: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw factors with entries uniform on (0, 1), as the paper's programs do."""
    Ht = rng.random((shape[1], k))
    return rng.random((shape[0], k)), Ht


def run_plain(
    name: str,
    data: DataMatrix,
    W: Array,
    Ht: Array,
    *,
    max_iter: int,
    callback: Callable[[Progress], bool | None] | None = None,
) -> Run[Any]:
    """Run one of the three algorithms from an initialization, with no stopping rule."""
    if name not in PLAIN:
        raise UnknownNameError.of("algorithm", name, PLAIN)
    if name == "mult":
        return iterate(
            partial(_multiplied, data, data.squared_norm()),
            Factors(data.to_sample_array(W), data.to_device(Ht)),
            max_iter=max_iter,
            callback=callback,
        )
    solver, options = SOLVER_OPTIONS[name]
    return SOLVERS[solver].run(
        data,
        data.to_sample_array(W),
        data.to_device(Ht),
        penalties=Penalties(),
        beta=2.0,
        max_iter=max_iter,
        tol=0.0,
        callback=callback,
        **options,
    )


def _multiplied(data: DataMatrix, squared_norm: float, factors: Factors) -> tuple[Factors, dict[str, Any]]:
    """Do one iteration of Lee & Seung's updates: two products with the data, and no more."""
    # Our own solver "mu" takes the loss from the entries of the data in every iteration, which costs half as
    # much again and is on its clock.
    gram = factors.Ht.T @ factors.Ht
    W = factors.W * (data.times(factors.Ht) / np.maximum(factors.W @ gram, TINY))
    gram, cross = data.weighted_gram(W), data.transposed_times(W)
    Ht = factors.Ht * (cross / np.maximum(factors.Ht @ gram, TINY))

    def loss() -> float:
        return max(
            0.0, 0.5 * squared_norm - float(np.vdot(cross, Ht)) + 0.5 * float(np.vdot(gram, Ht.T @ Ht))
        )

    return Factors(W, Ht), {"loss": loss}


def relative_error(loss: float, squared_norm: float) -> float:
    """Turn half the squared error into the relative error."""
    return math.sqrt(2.0 * max(loss, 0.0) / squared_norm)
