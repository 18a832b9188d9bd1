"""Factorize data: check, start, solve, certify."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arguments import checked_checkpoint, checked_verbose
from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg._typing import Array, IntArray, SampleArray
from nonneg.certificates.certificate import Certificate
from nonneg.data import DataMatrix
from nonneg.data.checks import checked_data
from nonneg.data.fingerprint import fingerprint
from nonneg.exceptions import InvalidDataError, InvalidParameterError
from nonneg.initializers.given import check_factor
from nonneg.initializers.registry import INITS, default_init
from nonneg.iteration import Checkpoint, Progress
from nonneg.iteration.progress import reporter
from nonneg.losses.penalties import Penalties
from nonneg.solvers.certificate import certify
from nonneg.solvers.encoding import encode
from nonneg.solvers.registry import SOLVERS, beta_of, choose_solver, loss_name
from nonneg.solvers.result import FactorizationResult

LARGEST = float(np.finfo(np.float64).max)


def factorize(
    X: Any,
    n_components: int,
    *,
    loss: str | float = "frobenius",
    solver: str = "auto",
    init: str | None = None,
    W: Any = None,
    H: Any = None,
    max_iter: int = 200,
    tol: float = 1e-4,
    rng: Seed = None,
    alpha_W: float = 0.0,
    alpha_H: float | str = "same",
    l1_ratio: float = 0.0,
    sample_weight: Any = None,
    mask: Any = None,
    missing: str = "error",
    frozen_components: Sequence[int] | None = None,
    shuffle: bool = False,
    polish: bool = False,
    polish_max_iter: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callable[[Progress], bool | None] | None = None,
    checkpoint: str | Path | None = None,
    who: str = "factorize",
) -> FactorizationResult:
    """Minimise the loss between X and W H over nonnegative W and H.

    Parameters
    ----------
    X : array, sparse matrix or dask array of shape (n_samples, n_features)
        Nonnegative data; never changed.
    n_components : int
        The number of components k.
    loss : str or float
        "frobenius", "kullback-leibler", "itakura-saito", or beta itself.
    solver : str
        A name in `nonneg.solvers.SOLVERS`, "cd" (coordinate descent of the loss) or "auto".
    init : str, optional
        The start, a name in `nonneg.initializers.INITS`, such as "cone" (leading directions of clusters).
        By default the given factors, else nndsvda where k is at most the smaller side of X, else random.
    W, H : array, optional
        Given factors to start from, (n_samples, k) and (k, n_features).
    max_iter : int
        At most so many iterations.
    tol : float
        When to stop; its meaning is the solver's (`SOLVERS[name].tol`). 0 runs to `max_iter`.
    rng : None, int, Generator, RandomState or SeedSequence
        For starts that draw.
    alpha_W, alpha_H, l1_ratio : float
        Penalties with scikit-learn's meaning.
    sample_weight : array of shape (n_samples,), optional
        Row weights; an integer weight counts like so many equal rows.
    mask : bool array or sparse matrix of the shape of X, optional
        True where observed.
    missing : {"error", "mask"}
        "mask" treats NaN as missing.
    frozen_components : sequence of int, optional
        Rows of H that stay as given in `H`.
    shuffle : bool
        Permute the order of the components for coordinate descent.
    polish : bool
        End with the exact best W for the final H, as `NMF.transform` gives it.
    polish_max_iter : int, optional
        At most so many steps of a row in that, for losses other than Frobenius.
    n_jobs : int, optional
        Threads of the kernels; all cores by default.
    verbose : int
        1 shows a line with loss, rate and time left.
    callback : callable, optional
        Takes a `Progress` after each iteration; True stops.
    checkpoint : str or Path, optional
        A folder in which the run is saved every few seconds, and from which it is taken up again.
    who : str
        Named in messages.

    Returns
    -------
    FactorizationResult
        Factors, loss, history and certificate.
    """
    beta = beta_of(loss)
    _check_numbers(max_iter, tol, alpha_W, alpha_H, l1_ratio)
    verbose, folder = checked_verbose(verbose), checked_checkpoint(checkpoint)
    data = checked_data(
        X, sample_weight=sample_weight, mask=mask, missing=missing, positive=beta <= 0, who=who
    )
    k = checked_rank(n_components, data.shape, who)
    shape = (round(data.counted_rows()), data.shape[1])
    name = choose_solver(
        solver, container=data.container, shape=shape, k=k, beta=beta, missing=data.has_missing
    )
    penalties = scaled_penalties(data, alpha_W, alpha_H, l1_ratio)
    free = _free_components(frozen_components, k, H)
    random = generator(rng)
    with threads(n_jobs):
        left, right = initial_factors(data, k, init=init, W=W, H=H, rng=random, free=free)
        saved = None
        if folder is not None:
            facts = [name, beta, k, repr(penalties), tol, init, list(free) if free is not None else None]
            facts.append(str(random.bit_generator.state) if shuffle else None)
            saved = Checkpoint.of(
                folder,
                *facts,
                data.container,
                fingerprint(data, left),
                right,  # the initialization belongs to the key: another seed is another run
                from_numpy=lambda name, array: (
                    data.to_sample_array(array) if name.startswith("W") else data.to_device(array)
                ),
            )
        run = SOLVERS[name].run(
            data,
            left,
            right,
            penalties=penalties,
            beta=beta,
            max_iter=max_iter,
            tol=tol,
            free=free,
            callback=callback,
            progress=reporter(who, verbose),
            checkpoint=saved,
            **({"shuffle": random} if shuffle and SOLVERS[name].betas == (2.0, 2.0) else {}),
        )
        left, right = run.state.W, run.state.Ht
        value: float | None = float(run.history.loss[-1]) if len(run.history) else None
        if polish or value is None:
            left, rows_loss = encode(data, right, beta=beta, penalties=penalties, max_iter=polish_max_iter)
            value = _objective(data, left, right, beta, penalties, rows_loss)
        if math.isnan(value):
            raise InvalidDataError(
                f"The loss became NaN: products of entries of X leave the range of {data.dtype}. {who} needs "
                "another unit or precision; divide X by its mean, or use float64."
            )
        statements = certify(data, left, right, beta=beta, penalties=penalties, free=free)
    return FactorizationResult(
        W=left,
        H=right.T,
        loss=value,
        n_iter=run.n_iter,
        stop_reason=run.stop_reason,
        history=run.history,
        certificate=Certificate(tuple(statements)),
        solver=name,
        loss_name=loss_name(beta),
    )


def _objective(
    data: DataMatrix, W: SampleArray, Ht: Array, beta: float, penalties: Penalties, rows_loss: float | None
) -> float:
    if rows_loss is not None:
        return rows_loss + penalties.right(Ht)
    from nonneg.losses.beta import objective

    return objective(data, W, Ht, beta=beta, penalties=penalties)


def checked_rank(n_components: Any, shape: tuple[int, int], who: str) -> int:
    """Return the number of components, or say what is wrong with it."""
    whole = isinstance(n_components, int | np.integer) and not isinstance(n_components, bool)
    if not whole or n_components < 1:
        raise InvalidParameterError(
            f"The 'n_components' parameter of {who} must be an int in the range [1, inf). "
            f"Got {n_components!r} instead."
        )
    if n_components > max(shape):
        raise InvalidParameterError(
            f"n_components={n_components} is larger than both sides of X, {shape[0]} x {shape[1]}: "
            f"W = X with H = I would be exact already. "
            f"Use at most {max(shape)}; a useful number lies well below {min(shape)}."
        )
    return int(n_components)


def scaled_penalties(data: DataMatrix, alpha_W: float, alpha_H: float | str, l1_ratio: float) -> Penalties:
    """Scale scikit-learn's penalty parameters to the data."""
    right = float(alpha_W if isinstance(alpha_H, str) else alpha_H) * data.total_weight()
    left = float(alpha_W) * data.shape[1]
    return Penalties(left * l1_ratio, left * (1 - l1_ratio), right * l1_ratio, right * (1 - l1_ratio))


def initial_factors(
    data: DataMatrix,
    k: int,
    *,
    init: str | None,
    W: Any,
    H: Any,
    rng: np.random.Generator,
    free: IntArray | None = None,
) -> tuple[SampleArray, Array]:
    """Return the factors to start from."""
    given = W is not None or H is not None
    if init is None:
        init = "custom" if given else default_init(data.shape, k)
    start = INITS.find(init)
    if start.takes_factors:
        return start(data, k, rng=rng, W=W, H=H)
    if W is not None or (H is not None and free is None):
        raise InvalidParameterError(
            f"W or H is given together with init={init!r}. Use init='custom' (or None) to start from them, "
            "or leave them out."
        )
    left, right = start(data, k, rng=rng)
    if free is not None:
        held = np.setdiff1d(np.arange(k), free)
        fixed = data.to_device(check_factor(H, (k, data.shape[1]), "H").T.copy())
        for component in held:
            right[:, int(component)] = fixed[:, int(component)]
    return left, right


def _free_components(frozen: Sequence[int] | None, k: int, H: Any) -> IntArray | None:
    if frozen is None:
        return None
    indices = np.asarray(frozen)
    if indices.size == 0:
        return None
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise InvalidParameterError(
            f"frozen_components must be a sequence of indices of rows of H, got {frozen!r}."
        )
    if H is None:
        raise InvalidParameterError(
            "frozen_components names rows of H that stay, and H is not given. "
            "Pass H with these rows filled in."
        )
    wanted = {int(i) for i in indices}
    bad = sorted(i for i in wanted if not 0 <= i < k)
    if bad:
        raise InvalidParameterError(f"frozen_components contains {bad[0]}, but components are 0 to {k - 1}.")
    return np.asarray([i for i in range(k) if i not in wanted], dtype=np.int64)


def _check_numbers(max_iter: Any, tol: Any, alpha_W: Any, alpha_H: Any, l1_ratio: Any) -> None:
    def number(name: str, value: Any, low: float, high: float) -> None:
        good = isinstance(value, int | float | np.integer | np.floating) and low <= value <= high
        if not good:
            limit = f"at least {low:g}" if high >= LARGEST else f"between {low:g} and {high:g}"
            raise InvalidParameterError(f"{name} must be a number {limit}, got {value!r}.")

    number("max_iter", max_iter, 0, float("inf"))
    if max_iter < LARGEST and max_iter != int(max_iter):
        raise InvalidParameterError(f"max_iter must be a whole number, got {max_iter!r}.")
    number("tol", tol, 0, float("inf"))
    number("alpha_W", alpha_W, 0, LARGEST)
    number("l1_ratio", l1_ratio, 0, 1)
    if alpha_H != "same":
        number("alpha_H", alpha_H, 0, LARGEST)
