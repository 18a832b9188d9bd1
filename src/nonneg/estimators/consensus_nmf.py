"""Consensus NMF: the components on which many restarts agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from nonneg._arguments import checked_checkpoint
from nonneg._arrays import to_device
from nonneg._devices import device_work, likely_iterations
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import Array, SampleArray
from nonneg.consensus.certificate import consensus_certificate, recommended
from nonneg.consensus.clustering import CLUSTERINGS
from nonneg.consensus.combine import ConsensusOptions
from nonneg.consensus.fit import ConsensusProblem, candidates_of, warn_of_result
from nonneg.consensus.genes import score_spectra, tpm_spectra, warn_of_logarithms
from nonneg.consensus.resampling import RESAMPLING
from nonneg.consensus.restarts import RestartOptions
from nonneg.consensus.result import RankConsensus, RestartTable
from nonneg.data import DataMatrix
from nonneg.estimators._base import COUNT, Callback, Checkpoint, WeightedEstimator, input_data
from nonneg.estimators.saving import Fields, StoredArray
from nonneg.estimators.scaled_columns import SCALES, column_scale, divided_columns
from nonneg.exceptions import InvalidParameterError, UnknownNameError
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode
from nonneg.solvers.registry import beta_of

UNITS = ("z-score", "tpm")

_RANK_FIELDS: Fields = {
    "n_components": int,
    "spectra": StoredArray("n_components", "n_features_in_", nonnegative=True),
    "stability": StoredArray("n_components"),
    "recurrence": StoredArray("n_components", nonnegative=True),
    "usage": StoredArray("n_components", nonnegative=True),
    **dict.fromkeys(("silhouette", "silhouette_error", "error", "cophenetic", "best_loss"), float),
    "labels": StoredArray("components of restarts", kind="i"),
    "density": StoredArray("components of restarts"),
    "distances": StoredArray("shown", "shown"),
    "distance_labels": StoredArray("shown", kind="i"),
    **dict.fromkeys(("n_restarts", "n_outliers"), int),
    "draws": StoredArray(
        "complete restarts", "n_components", "n_features_in_", nonnegative=True, optional=True
    ),
}
_RESTART_FIELDS: Fields = {
    **dict.fromkeys(("n_components", "number", "n_iter"), StoredArray("restarts", kind="i")),
    "seed": StoredArray("restarts", kind="u"),
    "loss": StoredArray("restarts"),
    "converged": StoredArray("restarts", kind="b"),
}


@dataclass(eq=False, repr=False)
class ConsensusNMF(WeightedEstimator):
    """Consensus NMF: the components on which many restarts agree.

    X is factorized from `n_init` independent random initializations for every candidate number of components.
    The components of all restarts are clustered; those without near neighbors are left out; the median of
    each cluster is a consensus component, and W is fitted to them. One candidate is recommended, based on
    stability. This is the workflow of cNMF for gene programs [1]_, and with Poisson resampling and
    the Kullback-Leibler loss that of mutational signatures [2]_ [3]_.

    Parameters
    ----------
    n_components : int, list of int or range, default 2 to 10
        Number of components, or the candidates among which one is recommended.
    n_init : int, default 100
        Number of restarts for each number of components.
    clustering : {"kmeans", "matched"}, default "kmeans"
        "kmeans" as in cNMF; "matched" puts at most one component of a restart into a cluster, as NMFk does.
    density_threshold : float, default 0.5
        Components whose mean distance to their nearest neighbors is larger are outliers and are left out.
        Components have unit length, so distances lie between 0 and 1.41; 2 keeps all.
    resample : {"bootstrap", "poisson"} or None
        What each restart factorizes: X itself, samples of X drawn with replacement, or counts drawn from
        Poisson distributions with the entries of X as means.
    {beta_loss}
    scale : {"auto", "std", "max", "sum"} or None, default "auto"
        What the columns of X are divided by before the factorization. "auto" is "std" (without centering, as
        in cNMF) for the Frobenius loss, and None for others.
    max_iter : int, default 1000
        Maximum number of iterations of a restart.
    tol : float, default 1e-6
        Tolerance of the stopping rule of the solver. The error is quadratic around an optimum, so that 1e-6
        is a distance of a thousandth: restarts shall not differ because they stopped early.
    random_state : int, RandomState, Generator or None
        Where the seeds of the restarts come from.
    device : {None, "cpu", "auto", "cuda", "cuda:1", ...}, default None
        Where restarts run, see :class:`nonneg.NMF`. On a GPU, those of a rank run as one batch if possible.
    n_jobs : int or None
        Number of restarts to run at once; None uses all cores. Restarts run on threads, or inside
        ``joblib.parallel_config`` in processes (``backend="loky"``) or on a cluster (``backend="dask"``).
    verbose : int, default 0
        1 shows how many restarts are done, and the time left.
    callback : callable, optional
        Called with a :class:`nonneg.results.Progress` after each restart; returning True ends the fit with
        the restarts so far.
    checkpoint : str or path, optional
        Folder in which each restart is saved, and from which a run with the same data and parameters
        continues. Restarts and candidates may be added.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The consensus spectra in the unit of X; divided by `column_scale_` they sum to one.
    n_components_ : int
        Number of components: the only candidate, or the recommended one.
    rank_reason_ : str
        Why it is recommended.
    stability_ : array of shape (n_components,)
        Mean silhouette of the cluster of each component, at most 1.
    ranks_ : list of RankConsensus
        What was found for each candidate.
    restarts_ : RestartTable
        Seed, loss and number of iterations of each restart.
    n_iter_ : int
        Largest number of iterations of these restarts.
    reconstruction_err_ : float
        Frobenius norm of X - W H, or the square root of twice the beta-divergence, in scaled columns.
    column_scale_ : array of shape (n_features,)
        What the columns of X were divided by; ones without `scale`.
    certificate_ : Certificate
        How stable each component is, and how the error compares with the best restart.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    nonneg.NMF : A single factorization, or the best of several restarts.
    nonneg.applications.MutationalSignatures : Consensus NMF of mutation catalogs.

    Notes
    -----
    Restart i of rank k has a seed that depends on `random_state`, k and i alone, and runs on one thread:
    results do not depend on `n_jobs`, on the backend, on interruptions, or on which other ranks are tried.
    `fit_transform(X)` equals `fit(X).transform(X)`.

    References
    ----------
    .. [1] Kotliar et al. (2019), eLife 8:e43803.
    .. [2] Alexandrov et al. (2013), Cell Reports 3(1), 246-259.
    .. [3] Islam et al. (2022), Cell Genomics 2(11), 100179 (SigProfilerExtractor).

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import ConsensusNMF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(rng.dirichlet(np.full(3, 0.3), size=200) @ rng.gamma(0.3, 20.0, size=(3, 40)))
    >>> X = X[:, X.sum(axis=0) > 0]
    >>> model = ConsensusNMF(range(2, 6), n_init=10, random_state=0).fit(X)
    >>> model.n_components_
    3
    """

    n_components: int | Sequence[int] = (2, 3, 4, 5, 6, 7, 8, 9, 10)
    _: KW_ONLY
    n_init: int = 100
    clustering: str = "kmeans"
    density_threshold: float = 0.5
    resample: str | None = None
    beta_loss: str | float = "frobenius"
    scale: str | None = "auto"
    max_iter: int = 1000
    tol: float = 1e-6
    random_state: Seed = None
    device: str | None = None
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callback = None
    checkpoint: Checkpoint = None

    _keeps_draws = False  # whether `ranks_` hold the components of the restarts, which may be large
    _judge = cast("Any", staticmethod(recommended))  # returns the rank and the reason, from `ranks_`
    _stored: ClassVar[Fields] = {
        **WeightedEstimator._stored,
        "column_scale_": StoredArray("n_features_in_", nonnegative=True),
        "stability_": StoredArray("n_components_"),
        "rank_reason_": str,
        "ranks_": {RankConsensus: _RANK_FIELDS},
        "restarts_": {RestartTable: _RESTART_FIELDS},
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [*COUNT, "array-like", range],
        "n_init": [Interval(Integral, 2, None, closed="left")],
        "clustering": [StrOptions(set(CLUSTERINGS))],
        "density_threshold": [Interval(Real, 0, None, closed="neither")],
        "resample": [StrOptions(set(RESAMPLING)), None],
        "scale": [StrOptions({"auto", *SCALES}), None],
    }

    def _fit(self, X: Any, sample_weight: Any = None) -> DataMatrix:
        beta, name = beta_of(self.beta_loss), type(self).__name__
        ranks = candidates_of(self.n_components, name)
        counts = self._counts(X, reset=True, sample_weight=sample_weight)
        kind = ("std" if beta == 2.0 else None) if self.scale == "auto" else self.scale
        scale = None if kind is None else column_scale(counts, kind)
        data = divided_columns(counts, scale)
        problem = ConsensusProblem(
            counts, data, scale, ranks, int(self.n_init),
            RestartOptions(beta, self.max_iter, self.tol, self.resample),
            ConsensusOptions(self.clustering, self.density_threshold, self._keeps_draws),
        )  # fmt: skip
        problem.check(getattr(self, "feature_names_in_", None), name)
        warn_of_logarithms(X, counts, name)
        self.ranks_, self.restarts_ = problem.solve(
            seed=self.random_state, folder=checked_checkpoint(self.checkpoint), n_jobs=self.n_jobs,
            verbose=self.verbose, callback=self.callback, caller=name,
        )  # fmt: skip
        self.column_scale_ = np.ones(counts.shape[1]) if scale is None else scale
        k, self.rank_reason_ = self._judge(self.ranks_)
        self.components_ = data.to_caller(data.to_device(self._rank(k).spectra))
        self._take(k)
        warn_of_result(self._rank(k), self.restarts_, self)
        return data

    def _counts(self, X: Any, *, reset: bool, sample_weight: Any = None) -> DataMatrix:
        beta = beta_of(self.beta_loss)
        n_iter = likely_iterations(self.max_iter, self.n_init, beta)
        return input_data(
            self, X, reset=reset, sample_weight=sample_weight, n_iter=n_iter, positive=beta <= 0
        )

    def _take(self, k: int) -> None:
        """Make one rank the result, in the array type that the components have."""
        entry = self._rank(k)
        self.n_components_ = k
        spectra = entry.spectra * self.column_scale_
        self.components_ = to_device(spectra, self.components_, self.components_.dtype)
        self.stability_, self.reconstruction_err_ = entry.stability, entry.error
        self.n_iter_ = int(self.restarts_.n_iter[self.restarts_.of(k)].max())
        self.certificate_ = consensus_certificate(entry, self.restarts_, resampled=self.resample is not None)

    def _rank(self, k: int) -> RankConsensus:
        for consensus in self.ranks_:
            if isinstance(k, Integral) and consensus.n_components == k:
                return consensus
        tried = [consensus.n_components for consensus in self.ranks_]
        raise InvalidParameterError(f"{k!r} was not among the candidates {tried}.")

    def use_rank(self, n_components: int) -> ConsensusNMF:
        """Select a candidate other than the recommended one.

        Parameters
        ----------
        n_components : int
            One of the candidates.

        Returns
        -------
        ConsensusNMF
            Itself, with `components_`, `stability_`, `reconstruction_err_` and `certificate_` of that rank.
        """
        check_is_fitted(self)
        k = self._rank(n_components).n_components
        why = self.rank_reason_.rpartition("Recommended: ")[2]  # also if chosen by hand before
        self.rank_reason_ = f"{k} components were chosen by hand. Recommended: {why}"
        self._take(k)
        return self

    def _input(self, X: Any) -> DataMatrix:
        scale = None if np.all(self.column_scale_ == 1.0) else self.column_scale_
        return divided_columns(self._counts(X, reset=False), scale)

    def _weights(self, data: DataMatrix) -> SampleArray:
        Ht = data.to_device(self._rank(self.n_components_).spectra.T)
        with device_work(data):
            W, _ = encode(data, Ht, beta=beta_of(self.beta_loss), penalties=Penalties())
        return data.to_caller(W)

    def gene_spectra(self, counts: Any, W: Any, *, units: str = "z-score") -> Array:
        """Return the programs for all genes, including those that were not part of the factorization.

        Parameters
        ----------
        counts : array, sparse matrix or AnnData of shape (n_samples, n_genes)
            Counts of all genes, of the samples to which `W` belongs.
        W : array of shape (n_samples, n_components)
            Usages, as `transform` or `fit_transform` return them.
        units : {"z-score", "tpm"}, default "z-score"
            "z-score": coefficients of the regression of z-scored transcripts per million on the usages; large
            ones mark the genes that set a program apart. "tpm": what a program contributes to each gene in
            transcripts per million, by nonnegative regression on usages that sum to one.

        Returns
        -------
        array of shape (n_components, n_genes)
            One row per program.
        """
        UnknownNameError.check("units", units, UNITS)
        with threads(self.n_jobs):
            if units == "tpm":
                return tpm_spectra(counts, W, beta=beta_of(self.beta_loss))
            return score_spectra(counts, W)
