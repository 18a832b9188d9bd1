"""Factorize data: validate, initialize, solve, certify."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arguments import checked_checkpoint, checked_count, checked_nonnegative, checked_verbose, typed
from nonneg._arrays import row_major, to_float64
from nonneg._devices import chosen_device, chosen_products, device_work, likely_iterations
from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg._typing import Array, IntArray, MatrixLike, SampleArray
from nonneg._warnings import warn_user
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.data import DataMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.data.door import Request, wrap
from nonneg.data.fingerprint import fingerprint
from nonneg.data.views import column_weights, scaled_columns, unweighted, with_rank_one_weights
from nonneg.exceptions import InvalidDataError, InvalidParameterError, NonnegWarning, UnsupportedError
from nonneg.initializers.custom import check_factor
from nonneg.initializers.registry import INITS, default_init
from nonneg.iteration import Checkpoint, Progress, Run, StopReason
from nonneg.iteration.progress import phase, reporter
from nonneg.kernels.grams import Laplacian
from nonneg.losses.beta import objective
from nonneg.losses.penalties import Penalties, scaled_penalties
from nonneg.solvers.certificate import certify
from nonneg.solvers.encoding import encode
from nonneg.solvers.registry import LOCAL, SOLVERS, beta_of, choose_solver, loss_name
from nonneg.solvers.restarts import Restart, best_run, run_solver
from nonneg.solvers.result import FactorizationResult, returned
from nonneg.solvers.robust import PER_ROUND, Huber, checked_dense, reweighted_fit

# Changes of the error below this are rounding: no tolerance is advised there.
SMALLEST_TOL = 1e-12
NOT_A_NUMBER = (
    "The loss became NaN: products of entries of X and of weights leave the range of {dtype}. {caller} needs "
    "other units or a higher precision; divide X by its mean, scale weights likewise, or use float64."
)


def factorize(
    X: MatrixLike,
    n_components: int,
    *,
    beta_loss: str | float = "frobenius",
    solver: str = "auto",
    init: str | None = None,
    W: SampleArray | None = None,
    H: Array | None = None,
    n_init: int = 1,
    max_iter: int = 200,
    tol: float = 1e-4,
    rng: Seed = None,
    alpha_W: float = 0.0,
    alpha_H: float | str = "same",
    l1_ratio: float = 0.0,
    penalty_W: Laplacian | None = None,
    penalty_H: Laplacian | None = None,
    sample_weight: Any = None,
    mask: Any = None,
    entry_weight: Any = None,
    uncertainty: Any = None,
    missing: str = "error",
    negative: str = "error",
    robust: str | None = None,
    robust_threshold: float = 4.0,
    signed_components: bool = False,
    frozen_components: Sequence[int] | None = None,
    shuffle: bool = False,
    accelerate: bool = True,
    device: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callable[[Progress], bool | None] | None = None,
    checkpoint: str | Path | None = None,
) -> FactorizationResult:
    """Compute a nonnegative matrix factorization X ~ W H.

    The objective is the beta-divergence of X from W H plus the penalties of :class:`nonneg.NMF`.

    Parameters
    ----------
    X : array, sparse matrix or Dask array of shape (n_samples, n_features)
        Nonnegative data. Never modified.
    n_components : int
        Number of components.
    beta_loss : float or str, default "frobenius"
        Beta-divergence to minimize: "frobenius" (2), "kullback-leibler" (1), "itakura-saito" (0), or beta.
    solver : str, default "auto"
        A name in `nonneg.solvers.SOLVERS`, "cd" (coordinate descent for this loss), or "auto", which chooses
        by loss, shape and container.
    init : str, optional
        A name in `nonneg.initializers.INITS`. None stands for "custom" if `W` or `H` is given, for
        "nndsvd-scaled" if ``n_components <= min(n_samples, n_features)`` and there are no restarts, and for
        "random" otherwise.
    W : array of shape (n_samples, n_components), optional
        Initial W for ``init="custom"``.
    H : array of shape (n_components, n_features), optional
        Initial H for ``init="custom"``.
    n_init : int, default 1
        Number of restarts with independent random initializations. The result with the lowest objective is
        returned.
    max_iter : int, default 200
        Maximum number of iterations, per restart.
    tol : float, default 1e-4
        Tolerance of the stopping rule of the solver (`SOLVERS[name].tol`); 0 runs `max_iter` iterations.
    rng : None, int, Generator, RandomState or SeedSequence
        Random numbers for the initialization and for `shuffle`.
    alpha_W : float, default 0
        Weight of the penalty on W.
    alpha_H : float or "same", default "same"
        Weight of the penalty on H; "same" takes `alpha_W`.
    l1_ratio : float, default 0
        Mixing parameter of the penalties, between 0 (L2) and 1 (L1).
    penalty_W : Laplacian, optional
        Smoothness of W along a graph of the samples, from :func:`nonneg.laplacian`. Frobenius loss only, by
        HALS, for arrays and sparse matrices in host memory, without weights and missing entries. Rows of
        other data, such as those of `transform`, are not in the graph: they are fitted on their own.
    penalty_H : Laplacian, optional
        The same for H and the features; samples may have weights.
    sample_weight : array of shape (n_samples,), optional
        Sample weights; an integer weight is equivalent to repeating the sample.
    mask : bool array or sparse matrix of shape (n_samples, n_features), optional
        True where observed.
    entry_weight : array, sparse matrix or pair, of shape (n_samples, n_features), optional
        A nonnegative weight for every entry, by which its divergence is multiplied; 0 marks a missing one.
        Entries that a sparse matrix does not store have weight 0, or that of a pair ``(matrix, weight)``.
        Products of a weight of the sample and one of the feature cost no more than none.
    uncertainty : array, sparse matrix or pair, of shape (n_samples, n_features), optional
        The standard deviation of every entry, instead of ``entry_weight = 1 / uncertainty ** 2``. The loss is
        then half of what source apportionment calls Q. Infinity marks a missing entry.
    missing : {"error", "mask"}, default "error"
        Whether NaN is an error or a missing entry.
    negative : {"error", "keep"}, default "error"
        Whether negative entries of X are an error, or data such as noise leaves them. The Frobenius loss fits
        nonnegative factors to them as they are: nothing is clipped or shifted.
    robust : {None, "huber", "huber-rows"}, default None
        "huber" replaces the squares of residuals by their size beyond `robust_threshold`, so that outliers
        count less; they are listed in the result. "huber-rows" does the same with whole samples, by the root
        mean square of their residuals; with a small threshold it is the L2,1 norm.
    robust_threshold : float, default 4
        In standard deviations, which are 1 without `uncertainty` or `entry_weight`. The default is that of
        positive matrix factorization (Paatero 1997).
    signed_components : bool, default False
        Whether H may have any sign (semi-NMF), for data of any sign such as embeddings. Frobenius loss only.
    frozen_components : sequence of int, optional
        Rows of `H` that are kept fixed.
    shuffle : bool, default False
        Whether to visit the components in random order in coordinate descent.
    accelerate : bool, default True
        Whether HALS may run most iterations on compressed data or in float32, if X is dense and large enough.
        Loss, stopping rule and certificate are those of X. Iterations count by their cost.
    device : {None, "cpu", "auto", "cuda", "cuda:1", ...}, default None
        Where data in host memory or in a file are processed: on a GPU through PyTorch, with NumPy
        arrays as results. Data that do not fit there are streamed. "auto" uses a GPU if the fit is large.
    n_jobs : int, optional
        Number of threads; all cores by default.
    verbose : int, default 0
        1 shows a progress line.
    callback : callable, optional
        Called with a :class:`nonneg.results.Progress` after each iteration; returning True stops the fit.
    checkpoint : str or Path, optional
        Folder in which the run is saved every few seconds, and from which it is resumed.

    Returns
    -------
    FactorizationResult
        Factors, objective, history and certificate.

    See Also
    --------
    nonneg.NMF : The estimator.
    nonneg.non_negative_factorization : The same with scikit-learn's signature.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import factorize
    >>> X = np.array([[1.0, 1], [2, 1], [3, 1.2], [4, 1], [5, 0.8], [6, 1]])
    >>> result = factorize(X, 2, rng=0)
    >>> result.W.shape, result.H.shape
    ((6, 2), (2, 2))
    """
    typed(factorize, locals())
    beta = beta_of(beta_loss)
    check_numbers(max_iter, tol, alpha_W, alpha_H, l1_ratio)
    huber = Huber.of(robust, robust_threshold, beta)
    n_iter = likely_iterations(max_iter, checked_count("n_init", n_init), beta)
    request = Request(
        sample_weight=sample_weight, mask=mask, entry_weight=entry_weight, uncertainty=uncertainty,
        missing=missing, negative=checked_negative(negative, beta, signed_components=signed_components),
        positive=beta <= 0, sparse_arrays=True, signed=signed_components,
        verbose=checked_verbose(verbose), device=chosen_device(device, X, n_components, n_iter=n_iter),
    )  # fmt: skip
    data = wrap(X, request)
    result = run_of(huber)(
        data, n_components, beta=beta, solver=solver, init=init, W=W, H=H, n_init=n_init,
        max_iter=max_iter, tol=tol, rng=rng,
        penalties=scaled_penalties(data, alpha_W, alpha_H, l1_ratio, penalty_W, penalty_H),
        frozen_components=frozen_components, shuffle=shuffle, accelerate=accelerate, n_jobs=n_jobs,
        signed_components=signed_components, verbose=verbose, callback=callback, checkpoint=checkpoint,
    )  # fmt: skip
    return returned(result, data)


def run_of(huber: Huber | None) -> Callable[..., FactorizationResult]:
    """Return what factorizes validated data: by the robust loss, or by the beta-divergence alone."""
    return run_factorization if huber is None else partial(run_robust, huber=huber)


def run_robust(
    data: DataMatrix, n_components: int, *, huber: Huber, final_encoding: bool = False, **options: Any
) -> FactorizationResult:
    """Factorize validated data by the robust loss."""
    other = "signed_components=True" if options.pop("signed_components", False) else ""
    if other := _smoothness(options["penalties"]) or other:
        raise UnsupportedError(f"{other} does not take robust. Leave one of them out.")
    data, rng, verbose = checked_dense(data), options.pop("rng"), options.pop("verbose", 0)
    n_init, caller = checked_count("n_init", options.pop("n_init")), options.get("caller", "factorize")
    k = checked_rank(n_components, data.shape, caller)
    options["init"] = _checked_init(options["init"], n_init, data.shape, k, options["W"], options["H"])
    same = {name: options[name] for name in ("penalties", "tol", "max_iter", "callback")}
    same["free"] = free_components(options["frozen_components"], k, options["H"])
    # A few iterations of the squared loss only: its minimum may have components of outliers.
    options["max_iter"] = min(PER_ROUND, options["max_iter"])
    results = []
    for seed in [rng] if n_init == 1 else generator(rng).spawn(n_init):
        first = run_factorization(data, k, rng=seed, **options)
        with threads(options["n_jobs"]):
            same["progress"] = reporter(f"{caller}, rounds of reweighting", verbose)
            results.append(reweighted_fit(first, data, huber, final_encoding=final_encoding, **same))
    return min(results, key=lambda result: result.loss)


def run_factorization(
    data: DataMatrix,
    n_components: int,
    *,
    beta: float,
    penalties: Penalties,
    solver: str = "auto",
    init: str | None = None,
    W: SampleArray | None = None,
    H: Array | None = None,
    n_init: int = 1,
    max_iter: int = 200,
    tol: float = 1e-4,
    rng: Seed = None,
    signed_components: bool = False,
    frozen_components: Sequence[int] | None = None,
    shuffle: bool = False,
    accelerate: bool = True,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callable[[Progress], bool | None] | None = None,
    checkpoint: str | Path | None = None,
    final_encoding: bool = False,
    caller: str = "factorize",
) -> FactorizationResult:
    """Factorize validated data, for `factorize` and the estimators, which messages name as `caller`.

    `final_encoding` ends with the minimizing W for the final H, as `NMF.transform` returns it.
    """
    verbose, folder = checked_verbose(verbose), checked_checkpoint(checkpoint)
    any_units = not penalties.any and frozen_components is None  # of H
    data, scale = with_rank_one_weights(data, beta) if any_units else (data, None)
    if scale is not None and H is not None:
        H = check_factor(H, (np.shape(H)[0], data.shape[1]), "H") * to_float64(scale)
    if beta != 2.0:
        data = _by_rows(data)
    k = checked_rank(n_components, data.shape, caller)
    if data.n_missing == math.prod(data.shape):
        raise InvalidDataError("All entries of X are missing. Pass some that were observed.")
    if signed_components or penalties.smooth:
        solver = _checked_hals(data, solver, penalties, beta, frozen_components, signed=signed_components)
        init = "random" if init is None and signed_components else init
    name = choose_solver(solver, data, k, beta)
    _check_signed(data, name, init)
    free = free_components(frozen_components, k, H)
    warn_of_one_sided_l1(penalties, free)
    n_init = checked_count("n_init", n_init)
    init = _checked_init(init, n_init, data.shape, k, W, H)
    run_options: dict[str, Any] = {"beta": beta, "penalties": penalties, "max_iter": max_iter, "tol": tol}
    run_options |= {"free": free, "callback": callback}
    run_options |= {"accelerate": accelerate} if name == "hals" else {}
    if signed_components:
        run_options["signed"] = True

    def begin(number: int, random: np.random.Generator) -> Restart:
        first_W, first_Ht = initial_factors(data, k, init=init, W=W, H=H, rng=random, free=free)
        own: dict[str, Any] = {}
        if folder is not None:
            graphs = [each.edges.tocoo() for each in (penalties.smooth_W, penalties.smooth_H) if each]
            own["checkpoint"] = Checkpoint.of(
                folder if n_init == 1 else folder / f"restart-{number}",
                [name, beta, k, repr(penalties), tol, init, free, accelerate, signed_components],
                [[*graph.coords, graph.data] for graph in graphs],
                str(random.bit_generator.state) if shuffle else None,
                data.container,
                fingerprint(data, first_W),
                first_Ht,  # the initialization belongs to the key: another seed is another run
                from_numpy=partial(_from_checkpoint, data),
            )
        if shuffle and name == "hals":
            own["shuffle"] = random
        return first_W, first_Ht, own

    # Then restarts may be initialized together.
    plain = init == "random" and folder is None and not shuffle and free is None and W is None and H is None
    plain = plain and not data.is_weighted and not signed_components
    with threads(n_jobs), device_work(data), chosen_products():
        if n_init == 1:
            with phase(f"{caller}: computing the initialization", verbose):
                first_W, first_Ht, own = begin(0, generator(rng))
            options = run_options | own | {"progress": reporter(caller, verbose)}
            best = run_solver(name, data, first_W, first_Ht, **options)
            del first_W, first_Ht  # on a GPU, their memory serves the encoding
        else:
            best = best_run(
                data, k, generator(rng).spawn(n_init), solver=name, begin=None if plain else begin,
                verbose=verbose, caller=caller, **run_options,
            )  # fmt: skip
        W, Ht, losses = best.state.W, best.state.Ht, best.history.loss
        value = float(losses[-1]) if losses else None
        # Rows that a graph couples are no problems of their own: they stay as the solver left them.
        if penalties.smooth_W is None and (final_encoding or value is None):
            with phase(f"{caller}: encoding the samples", verbose):
                W, of_rows = encode(data, Ht, beta=beta, penalties=penalties)
            value = None if of_rows is None else of_rows + float(penalties.of_H(Ht))
        if value is None:
            value = objective(data, W, Ht, beta=beta, penalties=penalties)
        if math.isnan(value):
            raise InvalidDataError(NOT_A_NUMBER.format(dtype=data.dtype, caller=caller))
        with phase(f"{caller}: computing the certificate", verbose):
            (statement,) = certify(
                data, W, Ht, beta=beta, penalties=penalties, free=free, signed_H=signed_components
            )
        if statement.verdict is Verdict.FAILS:
            statement = _with_end(statement, best, name, tol)
    return FactorizationResult(
        W=row_major(W),
        H=row_major(Ht.T if scale is None else (Ht / scale[:, None]).T),
        loss=value,
        n_iter=best.n_iter,
        stop_reason=best.stop_reason,
        history=best.history,
        certificate=Certificate((statement,)),
        solver=name,
        loss_name=loss_name(beta),
    )


def check_numbers(max_iter: Any, tol: Any, alpha_W: Any, alpha_H: Any, l1_ratio: Any) -> None:
    """Reject numbers out of range."""
    endless = isinstance(max_iter, float) and max_iter == math.inf
    if not endless and checked_nonnegative("max_iter", max_iter) != int(max_iter):
        raise InvalidParameterError(f"max_iter must be a whole number, got {max_iter!r}.")
    for name, value in {"tol": tol, "alpha_W": alpha_W, "alpha_H": alpha_H, "l1_ratio": l1_ratio}.items():
        if name != "alpha_H" or not (isinstance(value, str) and value == "same"):
            checked_nonnegative(name, value)
    if l1_ratio > 1:
        raise InvalidParameterError(f"l1_ratio must be a number between 0 and 1, got {l1_ratio!r}.")


def warn_of_one_sided_l1(penalties: Penalties, free: IntArray | None) -> None:
    """Warn of an L1 penalty on one factor alone, which scaling makes ineffective."""
    if free is not None and len(free) == 0:
        return
    for factor, other, l1, rest in (
        ("W", "H", penalties.l1_W, penalties.l1_H + penalties.l2_H),
        ("H", "W", penalties.l1_H, penalties.l1_W + penalties.l2_W),
    ):
        if l1 > 0 and rest == 0:
            warn_user(
                f"The L1 penalty is on {factor} only: scaling {factor} down and {other} up makes it "
                f"arbitrarily small without changing W H. Set alpha_{other} > 0 as well.",
                NonnegWarning,
            )


def free_components(frozen: Sequence[int] | None, k: int, H: Any) -> IntArray | None:
    """Return the components that are not frozen; None stands for all of them."""
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
            "frozen_components names rows of H to keep, but H is not given. Pass H with these rows filled in."
        )
    held = {int(i) for i in indices}
    bad = sorted(i for i in held if not 0 <= i < k)
    if bad:
        raise InvalidParameterError(f"frozen_components contains {bad[0]}, but components are 0 to {k - 1}.")
    return np.asarray([i for i in range(k) if i not in held], dtype=np.int64)


def checked_negative(negative: Any, beta: float, *, signed_components: bool) -> str:
    """Return what negative entries are, or say that the loss has no place for them."""
    if (negative == "keep" or signed_components) and beta != 2.0:
        option = "signed_components=True" if signed_components else "negative='keep'"
        raise InvalidParameterError(
            f"{option} is for the Frobenius loss, but beta_loss={loss_name(beta)!r} is not defined "
            "for negative entries. Use beta_loss='frobenius'."
        )
    return negative


def _by_rows(data: DataMatrix) -> DataMatrix:
    """Return a NumPy array by rows: blocks of one by columns would be copied in every iteration."""
    if not isinstance(data, DenseMatrix) or data.container != "dense" or data.array.flags.c_contiguous:
        return data
    array = np.ascontiguousarray(data.array)
    return DenseMatrix(array, data.xp, weights=data.weights, observed=data.observed)


def _smoothness(penalties: Penalties) -> str:
    """Return the name of the smoothness penalty; nothing if there is none."""
    return "penalty_W" if penalties.smooth_W is not None else "penalty_H" if penalties.smooth else ""


def _checked_hals(
    data: DataMatrix, solver: str, penalties: Penalties, beta: float, frozen: Any, *, signed: bool
) -> str:
    """Return the solver of semi-NMF or of smooth factors, or say what these do not take."""
    smooth = penalties.smooth
    refused = {
        f"beta_loss={loss_name(beta)!r}": beta != 2.0,
        f"solver={solver!r}": solver not in ("auto", "hals", "cd"),
        "an L1 penalty on H": penalties.l1_H > 0 and not smooth,
        "frozen components": frozen is not None and not smooth,
        "missing or weighted entries": data.has_missing,
        "signed_components=True": signed and smooth,
        "sample_weight": data.weights is not None and penalties.smooth_W is not None,
        f"{data.container} data": data.container not in LOCAL and smooth,
    }
    option = _smoothness(penalties) or "signed_components=True"
    where = "on an array or a SciPy sparse matrix in host memory" if smooth else "with least squares for H"
    for name, asked in refused.items():
        if asked:
            raise UnsupportedError(
                f"{option} does not take {name}: it minimizes the Frobenius loss over whole data by HALS, "
                f"{where}."
            )
    return "hals"


def _check_signed(data: DataMatrix, solver: str, init: str | None) -> None:
    """Reject solvers and initializations that negative entries would break."""
    if SOLVERS[solver].signed and (init is None or init == "random" or init.startswith(("nndsvd", "custom"))):
        return
    if data.extremes()[0] < 0:
        raise UnsupportedError(
            f"X has negative entries, which solver={solver!r} with init={init!r} does not take. Use solver="
            "'auto', and init=None, 'random' or 'nndsvd-scaled'."
        )


def _from_checkpoint(data: DataMatrix, name: str, array: Any) -> Any:
    """Return an array of a state where the solver expects it."""
    return data.to_sample_array(array) if name.startswith("W") else data.to_device(array)


def _with_end(statement: Statement, run: Run[Any], solver: str, tol: float) -> Statement:
    """Add what ended a run that is not stationary, and which tolerance would have continued it."""
    reason, losses = run.stop_reason, run.history.loss
    if reason is StopReason.MAX_ITER and len(losses) > 1 and losses[-1] >= losses[len(losses) // 2 - 1]:
        # Multiplicative updates have fixed points that are not stationary: more change nothing.
        reason = StopReason.STALLED
    how = f" The run ended because {reason.value}." if losses else ""
    if reason is StopReason.CONVERGED and tol > 0:
        how = _smaller_tolerance(run, solver, tol)
    quantities = {**statement.quantities, "ended_by": reason.name.lower()}
    return replace(statement, sentence=statement.sentence + how, quantities=quantities)


def _smaller_tolerance(run: Run[Any], solver: str, tol: float) -> str:
    """Say which tolerance would have continued a run."""
    smaller = 10.0 ** math.floor(math.log10(tol))
    while smaller > SMALLEST_TOL:
        smaller /= 10
        if not SOLVERS[solver].rule(smaller)(run.history):
            return f" tol={tol:g} ended the run; tol={smaller:.0e} would have continued it."
    return f" tol={tol:g} ended the run, and the loss no longer decreased."


def _checked_init(init: str | None, n_init: int, shape: tuple[int, int], k: int, W: Any, H: Any) -> str:
    """Return the name of the initialization; restarts need one that draws random numbers."""
    restarts = n_init > 1
    if init is None:
        custom = W is not None or H is not None
        init = "custom" if custom else "random" if restarts else default_init(shape, k)
    if restarts and not INITS.find(init).seeded:
        raise InvalidParameterError(
            f"n_init={n_init} with init={init!r}: all restarts would be equal, because this initialization "
            "does not draw random numbers. Use init='random', or n_init=1."
        )
    return init


def checked_rank(n_components: Any, shape: tuple[int, int], caller: str) -> int:
    """Return the number of components, or say what is wrong with it."""
    whole = isinstance(n_components, int | np.integer) and not isinstance(n_components, bool)
    if not whole or n_components < 1:
        raise InvalidParameterError(
            f"The 'n_components' parameter of {caller} must be an int in the range [1, inf). "
            f"Got {n_components!r} instead."
        )
    if n_components > max(shape):
        raise InvalidParameterError(
            f"n_components={n_components} is larger than both sides of X, {shape[0]} x {shape[1]}: "
            f"W = X with H = I would already be exact. "
            f"Use at most {max(shape)}; a useful number lies well below {min(shape)}."
        )
    return int(n_components)


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
    """Return the initial W and H'."""
    init = _checked_init(init, 1, data.shape, k, W, H)
    initializer = INITS.find(init)
    if initializer.takes_factors:
        return initializer(unweighted(data), k, rng=rng, W=W, H=H)
    if W is not None or (H is not None and free is None):
        raise InvalidParameterError(
            f"W or H is given together with init={init!r}. Use init='custom' (or None) to start from them, "
            "or leave them out."
        )
    # In units in which the mean weight of every column is 1; the units of the features do not matter then.
    scale = data.xp.sqrt(column_weights(data)) if data.is_weighted else None
    entries = unweighted(data) if scale is None else scaled_columns(unweighted(data), scale)
    W, Ht = initializer(entries, k, rng=rng)
    if scale is not None:
        Ht = Ht / data.to_device(scale)[:, None]
    if free is not None:
        held = np.setdiff1d(np.arange(k), free)
        fixed = data.to_device(check_factor(H, (k, data.shape[1]), "H").T.copy())
        for component in held:
            Ht[:, int(component)] = fixed[:, int(component)]
    return W, Ht
