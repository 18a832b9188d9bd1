"""The front door: one question, several methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from nonneg._arguments import checked_verbose, is_count
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg.data import DataMatrix
from nonneg.data.checks import checked_data
from nonneg.exceptions import InvalidParameterError, NonnegWarning, UnknownNameError
from nonneg.iteration.interruption import ended_by_interrupt
from nonneg.rank_selection import cross_validation, spectrum, stability
from nonneg.rank_selection.candidates import Question, pose
from nonneg.rank_selection.result import RankResult

MAX_SAMPLES = 10_000


@ended_by_interrupt()
def estimate_rank(
    X: Any,
    *,
    method: str = "singular-value-ratio",
    k_min: int = 2,
    k_max: int | None = None,
    rng: Seed = None,
    normalize: bool = False,
    tolerance: float = spectrum.TOLERANCE,
    candidates: Sequence[int] | None = None,
    n_repeats: int | None = None,
    holdout: str = "auto",
    max_samples: int | None = MAX_SAMPLES,
    mask: Any = None,
    missing: str = "error",
    n_jobs: int | None = None,
    verbose: int = 0,
) -> RankResult:
    """Estimate the number of components.

    Parameters
    ----------
    X : array-like, sparse matrix, dask array or DataMatrix of shape (n_samples, n_features)
        The data; never changed. Negative entries are allowed for the singular-value ratio alone.
    method : {"singular-value-ratio", "cross-validation", "stability"}
        "singular-value-ratio" returns the last rank k with a large ratio of the k-th singular value to the
        next. "cross-validation" returns the smallest rank that predicts held-out entries as well as the best
        one. "stability" returns the largest rank for which restarts from random factors agree as well as for
        the best one.
    k_min : int
        The smallest candidate. The ratio of the first two singular values of nonnegative data is nearly
        always the largest one and says that the mean is not zero, so that 1 is not a candidate by default.
    k_max : int, optional
        The largest candidate. By default half of the smaller side of X, at most 64: the last singular
        values of real data fall off steeply, where the ratio measures rounding and constant columns, not
        components (digits would give 58 of 64). In any case it is capped at the smaller side minus one,
        where the ratio ends, and at the numerical rank.
    rng : None, int, Generator, RandomState or SeedSequence
        Draws folds, starts and samples of points. The singular-value ratio does not depend on it: None
        starts the Lanczos method from vectors that depend on the shape alone.
    normalize : bool
        Whether points are scaled to unit length first (as a view, without a copy), so that long ones do not
        count more.
    tolerance : float
        For the singular-value ratio, from 0 to below 1: the last rank is returned whose ratio has at least
        1 - tolerance of the largest ratio's logarithm. Components of unequal strength make steps of the
        spectrum before the one at which noise begins. With 0, and where the largest ratio has less than four
        times the median logarithm, it is the rank of the largest ratio, the published rule (45).
    candidates : sequence of int, optional
        The ranks to choose from. By default all from `k_min` to `k_max` for the ratio; the other methods,
        which fit every candidate, take each up to 8, then steps of a quarter, and cross-validation then
        looks at more of them around the best.
    n_repeats : int, optional
        Folds of the cross-validation (5 by default) or restarts a candidate (10 by default).
    holdout : {"auto", "entries", "blocks"}
        What a fold of the cross-validation holds out: a tenth of the single entries, at most 200000, hidden
        from the solver for missing entries, or the block where a part of the rows meets a part of the
        columns, which costs no more than complete data do. "auto" takes entries where X has at most
        200000 of them, or some are missing, else blocks.
    max_samples : int or None
        Cross-validation and stability take at most so many points, drawn at random; None takes all.
    mask : bool array or sparse matrix of the shape of X, optional
        True where observed. Missing entries are zeros to the singular values, which a warning says.
    missing : {"error", "mask"}
        What NaN means: an error, or an entry that was not observed.
    n_jobs : int, optional
        Threads; all cores by default. Folds and restarts run side by side, and no result depends on it.
    verbose : int
        1 shows how many fits are done.

    Returns
    -------
    RankResult
        The rank, the curve over the candidates, the reason and the certificate.

    See Also
    --------
    nonneg.compare_ranks : All three opinions, and what to make of them.

    Notes
    -----
    Where no candidate is left, the numerical rank is returned if it is below k_min, and 1 for a matrix of
    zeros or with a side of at most 2; the reason says so. Computing k_max + 1 singular values costs the Gram
    matrix of the shorter side, or a few passes over the data. Cross-validation fits every candidate once a
    fold, each started from the one before; stability fits every candidate once a restart.

    References
    ----------
    .. [1] Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731,
       equation (45), Remark 2, Theorem 9.
    .. [2] Owen & Perry (2009), Annals of Applied Statistics 3(2), 564-594 (blocks held out).
    .. [3] Brunet, Tamayo, Golub & Mesirov (2004), PNAS 101(12), 4164-4169 (cophenetic correlation).

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import estimate_rank
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(60, 4)) @ rng.gamma(1.0, size=(4, 40))
    >>> estimate_rank(X + 0.01 * rng.random(X.shape)).rank
    4
    """
    if not isinstance(method, str) or method not in METHODS:
        raise UnknownNameError.of("method", method, METHODS)
    if max_samples is not None and not is_count(max_samples, 10):
        raise InvalidParameterError(f"Expected max_samples to be None or at least 10, got {max_samples!r}.")
    verbose = checked_verbose(verbose)
    data = checked_data(X, mask=mask, missing=missing, signed=method == spectrum.NAME, who="estimate_rank")
    if method == spectrum.NAME and data.has_missing:
        warnings.warn(
            "X has missing entries, which are zeros to the singular values: few of them can add steps to the "
            "spectrum. Compare with method='cross-validation', which leaves them out.",
            NonnegWarning,
            stacklevel=2,
        )
    with threads(n_jobs):
        question = asked(data, k_min, k_max, candidates, normalize=normalize, method=method, rng=rng)
        options: dict[str, Any] = {
            "n_repeats": n_repeats,
            "holdout": holdout,
            "max_samples": max_samples,
            "verbose": verbose,
        }
        options["tolerance"] = tolerance
        return METHODS[method](question, rng=rng, **options)


def asked(
    data: DataMatrix,
    k_min: int,
    k_max: int | None,
    candidates: Sequence[int] | None,
    *,
    normalize: bool,
    method: str,
    rng: Seed,
) -> Question:
    """Pose the question."""
    seed = rng if method == spectrum.NAME else None
    return pose(data, k_min, k_max, candidates, normalize=normalize, rng=seed)


def _ratio(question: Question, *, tolerance: float, **options: Any) -> RankResult:
    return spectrum.singular_value_ratio(question, tolerance=tolerance)


def _held_out(question: Question, *, tolerance: float, **options: Any) -> RankResult:
    return cross_validation.cross_validation(question, **options)


def _restarts(question: Question, *, tolerance: float, holdout: str, **options: Any) -> RankResult:
    return stability.stability(question, **options)


METHODS: dict[str, Callable[..., RankResult]] = {
    spectrum.NAME: _ratio,
    cross_validation.NAME: _held_out,
    stability.NAME: _restarts,
}
