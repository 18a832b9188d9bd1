"""From validated data to factors: noise, weight, initialization, iterations, certificate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from nonneg._arguments import checked_checkpoint, checked_verbose
from nonneg._threads import threads
from nonneg._typing import Array, FloatArray, SampleArray
from nonneg.certificates.certificate import Certificate
from nonneg.certificates.svd_lower_bound import squared_residual
from nonneg.data import DataMatrix
from nonneg.data.fingerprint import fingerprint
from nonneg.exceptions import InvalidDataError, InvalidParameterError, UnknownNameError
from nonneg.initializers.custom import check_factor
from nonneg.iteration import Checkpoint, Progress, Run
from nonneg.iteration.history import History
from nonneg.iteration.progress import reporter
from nonneg.iteration.stopping import StopReason
from nonneg.minvol.certificate import noise_fit, scatter, scattering, stationarity
from nonneg.minvol.descent import State, minimize_volume
from nonneg.minvol.initialization import INITS, initial_components
from nonneg.minvol.noise import NoiseLevel, noise_level
from nonneg.minvol.problem import Problem, simplex_weights
from nonneg.separable.select import LARGEST, SMALLEST


@dataclass(frozen=True)
class MinVolResult:
    """The factors, and how they were found."""

    W: SampleArray
    H: Array
    error: float  # the Frobenius norm of X - W H
    lam: float
    noise: NoiseLevel
    purity: FloatArray
    n_iter: int
    stop_reason: StopReason
    history: History
    certificate: Certificate


def minimum_volume(
    data: DataMatrix,
    k: int,
    *,
    constraint: str = "sum-to-one",
    lam: float | None = None,
    noise: float | None = None,
    init: Any = "auto",
    max_iter: int = 200,
    tol: float = 1e-3,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callable[[Progress], bool | None] | None = None,
    checkpoint: Any = None,
    caller: str = "MinVolNMF",
) -> MinVolResult:
    """Factorize validated data; messages name the caller."""
    if k > data.shape[0]:
        raise InvalidParameterError(
            f"n_components={k} is larger than the number of samples, {data.shape[0]}: a simplex with fewer "
            f"vertices contains them all."
        )
    sizes = {"The largest entry of X": max(map(abs, data.extremes())), "noise": noise, "The root of lam": lam}
    for name, value in sizes.items():
        size = math.sqrt(value or 0.0) if value is lam else float(value or 0.0)
        if size and not SMALLEST < size < LARGEST:
            raise InvalidDataError(
                f"{name} is {size:.3g}: products of its squares overflow or vanish. Divide X and noise by "
                "the largest entry of X, and lam by its square; the components are divided by it, too."
            )
    verbose, folder = checked_verbose(verbose), checked_checkpoint(checkpoint)
    fixed = None
    if isinstance(init, str):
        UnknownNameError.check("init", init, INITS)
    else:
        fixed = check_factor(init, (k, data.shape[1]), "init", zeros=True)
    with threads(n_jobs):
        level = noise_level(data, k, noise)
        weight = level.weight(data.shape[0]) if lam is None else float(lam)
        problem = Problem(data, lam=weight, delta=level.sigma**2, nonnegative=True, constraint=constraint)
        H = initial_components(init, data, k, level, constraint) if fixed is None else fixed
        saved = Checkpoint.of(
            folder,
            [caller, weight, level.sigma, constraint, tol],
            data.container,
            partial(fingerprint, data),
            H,
            from_numpy=lambda name, array: data.to_sample_array(array) if name == "W" else array,
        )
        run = minimize_volume(
            problem,
            H.T,
            max_iter=max_iter,
            tol=tol,
            callback=callback,
            progress=reporter(caller, verbose),
            checkpoint=saved,
        )
        if math.isnan(run.state.loss):
            raise InvalidDataError(
                f"The loss became NaN: products of entries of X leave the range of {data.dtype}. {caller} "
                "needs other units or a higher precision; divide X by its mean, or use float64."
            )
        return _result(problem, run, level)


def _result(problem: Problem, run: Run[State], level: NoiseLevel) -> MinVolResult:
    data, state = problem.data, run.state
    Ht = data.to_device(state.Ht)
    # The weights as `transform` computes them, of the components in the precision of the data.
    W = simplex_weights(data, Ht.T, problem.constraint)
    error = math.sqrt(squared_residual(data, W, Ht))
    k = state.Ht.shape[1]
    shares, n_without = scatter(data, W)
    residual = problem.imbalance(state.Ht, state)
    stalled = run.stop_reason is StopReason.STALLED
    statements = (
        stationarity(residual, stalled), noise_fit(data, error, k, level), scattering(shares, n_without),
    )  # fmt: skip
    return MinVolResult(
        W=W,
        H=Ht.T,
        error=error,
        lam=problem.lam,
        noise=level,
        purity=shares,
        n_iter=run.n_iter,
        stop_reason=run.stop_reason,
        history=run.history,
        certificate=Certificate(statements),
    )
