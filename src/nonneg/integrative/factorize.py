"""Integrative NMF of several data sets: initialize, alternate, certify."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from nonneg._arguments import checked_checkpoint, checked_verbose
from nonneg._arrays import to_float64
from nonneg._threads import single_threaded_blas, threads
from nonneg._typing import Array, SampleArray
from nonneg.certificates.certificate import Certificate
from nonneg.certificates.stationarity import normalized, stationarity_statement
from nonneg.data import LocalMatrix
from nonneg.data.fingerprint import fingerprint
from nonneg.data.spectral import apply_gram
from nonneg.initializers.nndsvd import SignedParts, signed_squares
from nonneg.integrative.problem import (
    Components,
    DataSet,
    encode,
    objective,
    residual_energies,
    update_components,
)
from nonneg.iteration import Checkpoint, History, Progress, RelativeMeasure, StopReason, iterate
from nonneg.iteration.progress import reporter

# Power iterations for the singular vectors of the initialization, and vectors beyond k: the subspace decides
# where the descent begins, not where it ends.
_POWER, _OVERSAMPLING = 6, 8


@dataclass(frozen=True)
class IntegrativeResult:
    """Result of an integrative factorization."""

    W: list[SampleArray]  # one per data set
    components: Components
    loss: float
    n_iter: int
    stop_reason: StopReason
    history: History
    certificate: Certificate


def integrate(
    data: Sequence[DataSet],
    k: int,
    *,
    lam: float,
    max_iter: int = 200,
    tol: float = 1e-4,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callable[[Progress], bool | None] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    caller: str = "integrate",
) -> IntegrativeResult:
    """Minimize the objective of `problem.py` by exact updates of one block at a time."""
    # Welch et al. (2019), Cell 177(7), Algorithm 1, with all subproblems solved by block pivoting.
    verbose, folder = checked_verbose(verbose), checked_checkpoint(checkpoint)
    squared_norm = sum(one.squared_norm for one in data)
    with threads(n_jobs), single_threaded_blas():
        first = initial_components(data, k)
        saved = Checkpoint.of(
            folder,
            ["integrative", k, lam, tol],
            lambda: [fingerprint(one.matrix) for one in data],
            first.Ht,
            from_numpy=lambda name, array: data[0].matrix.to_device(array),
        )
        run = iterate(
            _Step(data, lam, squared_norm),
            first,
            max_iter=max_iter,
            stop=RelativeMeasure("violation", tol),
            callback=callback,
            progress=reporter(caller, verbose),
            checkpoint=saved,
        )
        components = run.state
        W, sums = [], []
        for at, one in enumerate(data):
            rows, own, _ = encode(one, components.Ht, components.Vt[at, ...], lam)
            W.append(rows)
            sums.append(own)
        of_W, of_H, of_V = (
            normalized(energy, squared_norm) for energy in residual_energies(data, W, components, sums, lam)
        )
    statement = stationarity_statement(of_W, max(of_H, of_V), loss="integrative")
    statement = replace(statement, quantities={**statement.quantities, "residual_V": of_V, "lam": lam})
    return IntegrativeResult(
        W, components, objective(components, sums, lam, squared_norm), run.n_iter, run.stop_reason,
        run.history, Certificate((statement,)),
    )  # fmt: skip


class _Step:
    """One iteration: the weights of all data sets, then all components."""

    def __init__(self, data: Sequence[DataSet], lam: float, squared_norm: float) -> None:
        self.data, self.lam, self.squared_norm = data, lam, squared_norm
        # The last weights only guess the supports of the next ones, which are exact minimizers: a resumed run
        # goes on without them.
        self._last: list[SampleArray | None] = [None] * len(data)

    def __call__(self, components: Components) -> tuple[Components, dict[str, float]]:
        sums, violation = [], 0.0
        for at, one in enumerate(self.data):
            self._last[at], own, residual = encode(
                one, components.Ht, components.Vt[at, ...], self.lam, self._last[at]
            )
            sums.append(own)
            violation += residual
        new, residual = update_components(components, sums, self.lam)
        loss = objective(new, sums, self.lam, self.squared_norm)
        return new, {"loss": loss, "violation": violation + residual}


def initial_components(data: Sequence[DataSet], k: int) -> Components:
    """Return shared components, and specific ones that are zero."""
    first, p = data[0].matrix, data[0].matrix.shape[1]
    n_rows = sum(one.matrix.shape[0] for one in data)
    if k > min(n_rows, p):
        size = math.sqrt(math.sqrt(sum(one.squared_norm for one in data) / (n_rows * p)) / k)
        Ht = size * np.abs(np.random.default_rng(0).standard_normal((p, k)))
    else:
        Ht = _nndsvd(data, k)
    return Components(first.to_device(Ht), first.to_device(np.zeros((len(data), p, k))))


def _nndsvd(data: Sequence[DataSet], k: int) -> Any:
    """NNDSVD of all scaled data sets below one another, by products with each of them."""
    scales = [to_float64(one.scale) for one in data]

    def product(V: Any) -> Any:
        parts = (apply_gram(one.matrix, V / s) / s for one, s in zip(data, scales, strict=True))
        return sum(parts, start=np.zeros_like(V))

    p = data[0].matrix.shape[1]
    # A fixed start: the subspace hardly depends on it, and the same data give the same components.
    Q = np.random.default_rng(0).standard_normal((p, min(p, k + _OVERSAMPLING)))
    for _ in range(_POWER):
        Q, _ = np.linalg.qr(product(Q))
    values, vectors = np.linalg.eigh(Q.T @ product(Q))
    V = Q @ vectors[:, np.argsort(-values, kind="stable")[:k]]
    squares = np.zeros((2, k))
    for one, s in zip(data, scales, strict=True):
        sums = one.matrix.reduce_rows(_signed_squares, V=one.matrix.to_device(V / s))
        squares += np.stack([to_float64(total) for total in sums])
    return SignedParts(V, np.sqrt(squares)).Ht()


def _signed_squares(block: LocalMatrix, *, V: Array) -> tuple[Array, ...]:
    return signed_squares(block, block.times(V))
