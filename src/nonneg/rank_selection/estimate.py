"""Estimates of the rank by name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nonneg._arguments import checked_checkpoint, checked_verbose, is_count, typed
from nonneg._interruption import ended_by_interrupt
from nonneg._random import Seed
from nonneg._registry import Entry, Registry
from nonneg._threads import threads
from nonneg._typing import MatrixLike
from nonneg.data.door import Request, wrap
from nonneg.exceptions import InvalidParameterError, NonnegWarning
from nonneg.rank_selection import cross_validation, spectrum
from nonneg.rank_selection.candidates import rank_problem
from nonneg.rank_selection.result import RankResult

# Fits of 5 folds for some 15 candidates then take seconds to a minute, which
# ``n_components="auto"`` can bear; the digits have the same recommendation from 600 samples as from all.
MAX_SAMPLES = 1_000

# Each runs as (problem, rng, max_samples, verbose, checkpoint, **method_params).
METHODS: Registry[Entry] = Registry(
    "method",
    {
        spectrum.NAME: Entry(
            spectrum.singular_value_ratio,
            "the largest ratio of a singular value to the next",
        ),
        cross_validation.NAME: Entry(
            cross_validation.cross_validation,
            "the smallest rank that predicts held-out entries as well as the best",
            options=frozenset({"n_folds"}),
        ),
    },
)


@ended_by_interrupt()
def estimate_rank(
    X: MatrixLike,
    *,
    method: str = "singular-value-ratio",
    k_min: int = 2,
    k_max: int | None = None,
    candidates: Sequence[int] | None = None,
    normalize: str | None = None,
    max_samples: int | None = MAX_SAMPLES,
    mask: Any = None,
    missing: str = "error",
    rng: Seed = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    checkpoint: str | Path | None = None,
    method_params: Mapping[str, Any] | None = None,
) -> RankResult:
    """Estimate the number of components.

    Parameters
    ----------
    X : array-like, sparse matrix, Dask array or DataMatrix of shape (n_samples, n_features)
        The data; never changed. Negative entries are allowed for the singular-value ratio only.
    method : {"singular-value-ratio", "cross-validation"}, default "singular-value-ratio"
        "singular-value-ratio" returns the rank k with the largest ratio of the k-th singular value to the
        next. "cross-validation" returns the smallest rank that predicts held-out entries as well as the best
        one.
    k_min : int, default 2
        The smallest candidate. The ratio of the first two singular values of nonnegative data is nearly
        always the largest one and says that the mean is not zero, so 1 is not a candidate by default;
        cross-validation measures its error all the same, to compare with.
    k_max : int, optional
        The largest candidate. Default: half of the smaller dimension of X, at most 64, because the last
        singular values of real data measure rounding and constant columns. In any case it is capped at the
        smaller dimension minus one, where the ratio ends, and at the numerical rank.
    candidates : sequence of int, optional
        The ranks to choose from. Default: all from `k_min` to `k_max` for the ratio; cross-validation,
        which fits every candidate, takes all up to 8, then steps of a quarter, and refines the grid around
        the best.
    normalize : None, "l1" or "l2"
        Scale the samples to norm one first (as a view, without a copy), so that samples with large norms do
        not count more.
    max_samples : int or None
        The maximum number of samples that cross-validation uses, drawn at random; None uses all.
    mask : bool array or sparse matrix of the shape of X, optional
        True where observed. The singular values treat missing entries as zeros, with a warning.
    missing : {"error", "mask"}, default "error"
        What NaN means: an error, or an entry that was not observed.
    rng : None, int, Generator, RandomState or SeedSequence
        Draws folds and samples. The singular-value ratio does not depend on it: None
        starts the Lanczos method from vectors that depend on the shape only.
    n_jobs : int, optional
        Number of threads; all cores by default. Folds run in parallel, and no result depends on it.
    verbose : int, default 0
        1 shows how many fits are done.
    checkpoint : str or Path, optional
        Folder in which cross-validation is saved after every candidate. The same call resumes it there.
    method_params : dict, optional
        Parameters of the method: `n_folds` (5) of "cross-validation".

    Returns
    -------
    RankResult
        The rank, the curve over the candidates, the reason and the certificate.

    See Also
    --------
    nonneg.compare_ranks : Both estimates, and a recommendation.
    nonneg.ConsensusNMF : Components that restarts agree on, for several ranks.

    Notes
    -----
    Where no candidate is left, the numerical rank is returned if it is below k_min, and 1 for a matrix of
    zeros or with a dimension of at most 2. Cross-validation fits every candidate once per fold: a fold holds
    out the block where a part of the rows meets a part of the columns, or, where entries are missing, a tenth
    of the observed entries. These fits are many and short: there are no `tol`, `max_iter` and `callback`, and
    no `sample_weight`, which held-out errors do not support.

    References
    ----------
    .. [1] Liu & Tan (2017), IEEE Trans. Signal Processing 65(18), 4717-4731,
       equation (45), Remark 2, Theorem 9.
    .. [2] Wold (1978), Technometrics 20(4), 397-405 (single entries held out).
    .. [3] Owen & Perry (2009), Annals of Applied Statistics 3(2), 564-594 (bi-cross-validation).

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import estimate_rank
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(60, 4)) @ rng.gamma(1.0, size=(4, 40))
    >>> estimate_rank(X + 0.01 * rng.random(X.shape)).rank
    4
    """
    typed(estimate_rank, locals())
    entry = METHODS.find(method)
    params = dict(method_params or {})
    METHODS.check_options(method, params)
    max_samples, verbose = checked_max_samples(max_samples), checked_verbose(verbose)
    folder = checked_checkpoint(checkpoint)
    ratio = method == spectrum.NAME
    data = wrap(X, Request(mask=mask, missing=missing, signed=ratio, who="estimate_rank"))
    if ratio and data.has_missing:
        warnings.warn(
            "X has missing entries, which the singular values treat as zeros: even a few can add steps to "
            "the spectrum. Compare with method='cross-validation', which leaves them out.",
            NonnegWarning,
            stacklevel=3,  # beyond the decorator
        )
    with threads(n_jobs):
        problem = rank_problem(
            data, k_min, k_max, candidates, normalize=normalize, rng=rng if ratio else None
        )
        result: RankResult = entry.run(
            problem, rng=rng, max_samples=max_samples, verbose=verbose, checkpoint=folder, **params
        )
        return result


def checked_max_samples(value: Any) -> int | None:
    """Return the maximum number of samples to fit."""
    if value is not None and not is_count(value, 10):
        raise InvalidParameterError(f"max_samples must be None or an integer of at least 10, got {value!r}.")
    return None if value is None else int(value)
