"""Mutational signatures of tumors, their exposures, and the uncertainty of both."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.applications.signatures.assignment import bootstrap_intervals
from nonneg.applications.signatures.catalog import CHANNELS, read_catalog
from nonneg.applications.signatures.matching import THRESHOLD, SignatureMatch, match_signatures
from nonneg.certificates.certificate import Certificate
from nonneg.consensus.certificate import lowest_akaike
from nonneg.consensus.result import RankConsensus
from nonneg.data import as_data_matrix
from nonneg.estimators.consensus_nmf import ConsensusNMF
from nonneg.estimators.saving import Fields, Names, SavableEstimator, StoredArray
from nonneg.exceptions import InvalidDataError, InvalidParameterError, NonnegWarning
from nonneg.iteration import Progress
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode

MOST = 25  # the largest number of signatures that SigProfilerExtractor tries by default


@dataclass(eq=False, repr=False)
class MutationalSignatures(SavableEstimator):
    """Extract mutational signatures from counts of single base substitutions.

    Poisson-resampled catalogs are factorized many times for every number of signatures, with the
    Kullback-Leibler divergence, which is maximum likelihood for counts. Signatures on which the restarts
    agree are kept (`nonneg.ConsensusNMF`). Their number is the one with the lowest Akaike criterion [3]_.

    Parameters
    ----------
    n_signatures : int, list of int, range or None, default None
        Number of signatures, or the candidates among which one is recommended. None is 1 to 25, as in
        SigProfilerExtractor [1]_, or to the number of tumors where that is smaller.
    n_init : int, default 100
        Number of restarts for each number of signatures.
    resample : {"poisson", "bootstrap"} or None, default "poisson"
        Whether each restart sees resampled counts, tumors drawn with replacement, or the same counts.
    clustering : {"matched", "kmeans"}, default "matched"
        See `nonneg.ConsensusNMF`.
    max_iter : int, default 1000
        Maximum number of iterations of a restart.
    tol : float, default 1e-4
        Tolerance of the stopping rule.
    random_state : int, RandomState, Generator or None
        Where the seeds of the restarts come from.
    device : {None, "cpu", "auto", "cuda", "cuda:1", ...}, default None
        Where restarts run, see `nonneg.NMF`. On a GPU, those with the same number of signatures run as one
        batch.
    n_jobs : int or None
        Number of restarts to run at once; None uses all cores.
    verbose : int, default 0
        1 shows how many restarts are done, and the time left.
    callback : callable, optional
        Called with a :class:`nonneg.results.Progress` after each restart; returning True ends the fit.
    checkpoint : str or path, optional
        Folder in which each restart is saved, and from which a run continues.

    Attributes
    ----------
    signatures_ : array of shape (n_signatures, 96)
        The signatures in the order of `nonneg.applications.signatures.CHANNELS`; each sums to one.
    exposures_ : array of shape (n_samples, n_signatures)
        Number of mutations of each tumor that each signature explains.
    n_signatures_ : int
        The number of signatures, given or recommended.
    rank_reason_ : str
        Why it is recommended.
    stability_ : array of shape (n_signatures,)
        Mean silhouette of each signature over the restarts.
    ranks_ : list of RankConsensus
        Stability and error of every candidate.
    certificate_ : Certificate
        How stable each signature is.
    sample_names_ : list of str
        Names of the tumors, if X has any.
    channels_found_ : bool array of shape (96,)
        The channels that have counts; signatures are zero in the others.
    consensus_ : ConsensusNMF
        The model behind it.

    Notes
    -----
    Only single base substitutions in their 96 trinucleotide contexts (SBS-96) are read. No table of known
    signatures comes with nonneg; `match` takes yours.

    The Akaike criterion of k signatures is the Poisson deviance of the counts from the consensus signatures
    with their exposures, plus twice the number of free parameters, k (tumors + channels - 1). Restarts that
    disagree have a poor consensus, so it also rises where signatures are not reproducible.

    References
    ----------
    .. [1] Islam et al. (2022), Cell Genomics 2(11), 100179.
    .. [2] Alexandrov et al. (2013), Cell Reports 3(1), 246-259.
    .. [3] Akaike (1974), IEEE Transactions on Automatic Control 19(6), 716-723.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg.applications import MutationalSignatures
    >>> rng = np.random.default_rng(0)
    >>> signatures = rng.dirichlet(np.full(96, 0.1), size=2)
    >>> X = rng.poisson(rng.gamma(1.0, 500.0, size=(40, 2)) @ signatures).T  # 96 x 40
    >>> model = MutationalSignatures([2, 3], n_init=5, random_state=0).fit(X)
    >>> model.n_signatures_, model.exposures_.shape
    (2, (40, 2))
    """

    n_signatures: int | Sequence[int] | None = None
    _: KW_ONLY
    n_init: int = 100
    resample: str | None = "poisson"
    clustering: str = "matched"
    max_iter: int = 1000
    tol: float = 1e-4
    random_state: Seed = None
    device: str | None = None
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callable[[Progress], bool | None] | None = None
    checkpoint: str | PathLike[str] | None = None

    _stored: ClassVar[Fields] = {
        "consensus_": ConsensusNMF,
        "signatures_": StoredArray("n_signatures_", 96, nonnegative=True),
        "exposures_": StoredArray("samples", "n_signatures_", nonnegative=True),
        "sample_names_": Names("samples", container=list, optional=True),
        "channels_found_": StoredArray(96, kind="b", optional=True),
    }

    def fit(self, X: Any, y: Any = None) -> MutationalSignatures:
        """Extract the signatures.

        Parameters
        ----------
        X : data frame or array of counts
            96 mutation types x n tumors (COSMIC's layout) or n x 96. A data frame names its channels, such as
            A[C>A]A, in any order; an array has them in COSMIC's order. Never modified.
        {y}

        Returns
        -------
        MutationalSignatures
            The fitted estimator.
        """
        counts, names = read_catalog(X)
        occurring = counts.sum(axis=0) > 0
        used = counts[counts.sum(axis=1) > 0][:, occurring]
        if not used.size:
            raise InvalidDataError("There are no mutations in X: all counts are zero.")
        candidates = range(1, min(MOST, *used.shape) + 1) if self.n_signatures is None else self.n_signatures
        model = ConsensusNMF(
            candidates, n_init=self.n_init, resample=self.resample, clustering=self.clustering,
            beta_loss="kullback-leibler", max_iter=self.max_iter, tol=self.tol, verbose=self.verbose,
            random_state=self.random_state, device=self.device, n_jobs=self.n_jobs, callback=self.callback,
            checkpoint=self.checkpoint,
        )  # fmt: skip
        model._keeps_draws, model._judge = True, partial(lowest_akaike, shape=used.shape)
        try:
            model.fit(used)
        except InvalidParameterError as error:
            # The names that the user typed.
            words = str(error).replace("n_components", "n_signatures")
            raise InvalidParameterError(words.replace("ConsensusNMF", type(self).__name__)) from error
        self.consensus_ = model
        single = getattr(X, "dtype", None) == np.float32
        self.signatures_: FloatArray = np.zeros(0, dtype=np.float32 if single else np.float64)
        self.sample_names_ = names or [str(at) for at in range(len(counts))]
        self._take(counts, occurring)
        return self

    def _take(self, counts: FloatArray, occurring: Any) -> None:
        self.channels_found_ = occurring
        self.signatures_ = np.zeros((self.n_signatures_, len(CHANNELS)), dtype=self.signatures_.dtype)
        self.signatures_[:, occurring] = self.consensus_.components_
        self.signatures_ /= self.signatures_.sum(axis=1, keepdims=True)
        self.exposures_ = self._exposures(counts)

    @property
    def n_signatures_(self) -> int:
        """The number of signatures."""
        return self.consensus_.n_components_

    @property
    def rank_reason_(self) -> str:
        """Reason for the recommended number."""
        return self.consensus_.rank_reason_.replace("component", "signature")

    @property
    def stability_(self) -> FloatArray:
        """Mean silhouette of each signature."""
        return self.consensus_.stability_

    @property
    def ranks_(self) -> list[RankConsensus]:
        """Stability and error of every candidate."""
        return self.consensus_.ranks_

    @property
    def certificate_(self) -> Certificate:
        """Stability of each signature."""
        return self.consensus_.certificate_

    def use_rank(self, n_signatures: int, X: Any) -> MutationalSignatures:
        """Select a candidate other than the recommended one.

        Parameters
        ----------
        n_signatures : int
            One of the candidates.
        X : data frame or array of counts
            The counts that the model was fitted to.

        Returns
        -------
        MutationalSignatures
            Itself, with signatures, exposures and certificate of that number.
        """
        check_is_fitted(self, "consensus_")
        self.consensus_.use_rank(n_signatures)
        self._take(read_catalog(X)[0], self.channels_found_)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the exposures of tumors to the signatures.

        Parameters
        ----------
        X : data frame or array of counts
            96 mutation types x n tumors, or n x 96.

        Returns
        -------
        array of shape (n_samples, n_signatures)
            Numbers of mutations; maximum likelihood for Poisson counts.
        """
        check_is_fitted(self, "consensus_")
        return self._exposures(read_catalog(X)[0])

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Extract the signatures and return the exposures.

        Parameters
        ----------
        X, y : Any
            See `fit`.

        Returns
        -------
        array of shape (n_samples, n_signatures)
            Numbers of mutations.
        """
        return self.fit(X, y).exposures_

    def _exposures(self, counts: FloatArray, signatures: FloatArray | None = None) -> FloatArray:
        signatures = np.asarray(self.signatures_ if signatures is None else signatures, dtype=np.float64)
        W, _ = encode(as_data_matrix(counts), signatures.T.copy(), beta=1.0, penalties=Penalties())
        return np.asarray(W, dtype=self.signatures_.dtype)

    def exposure_intervals(
        self, X: Any, *, level: float = 0.95, n_bootstrap: int = 100, rng: Seed = 0
    ) -> tuple[FloatArray, FloatArray]:
        """Return bootstrap intervals of the exposures.

        Parameters
        ----------
        X : data frame or array of counts
            96 mutation types x n tumors, or n x 96.
        level, n_bootstrap, rng : Any, default 0.95, 100 and 0
            As in `nonneg.applications.signatures.assign_signatures`.

        Returns
        -------
        low, high : array of shape (n_samples, n_signatures)
            Quantiles of the exposures of the drawn catalogs, each with the signatures of another restart.

        Notes
        -----
        Restarts saw resampled catalogs, so their signatures vary like those of other tumors would: the
        intervals reflect the uncertainty of the counts and of the signatures. With ``resample=None`` all
        restarts saw the same catalog, and the intervals leave out the uncertainty of the signatures. So do
        models saved before files included the signatures of restarts; a warning says so.
        """
        check_is_fitted(self, "consensus_")
        counts, _ = read_catalog(X)
        random = generator(rng)
        consensus, draws = self.consensus_, self.signatures_[None]
        (known,) = (rank.draws for rank in consensus.ranks_ if rank.n_components == consensus.n_components_)
        if known is not None and len(known):
            draws = np.zeros((*known.shape[:2], len(CHANNELS)))
            draws[:, :, self.channels_found_] = known
        else:
            warnings.warn(
                "The model does not contain the signatures of single restarts, so the intervals reflect the "
                "uncertainty of the counts alone. Fit it again to include that of the signatures.",
                NonnegWarning,
                stacklevel=2,
            )
        turns = random.permutation(len(draws))

        def exposures(drawn: FloatArray, number: int) -> FloatArray:
            return self._exposures(drawn, draws[turns[number % len(turns)]])

        return bootstrap_intervals(counts, exposures, level, n_bootstrap, random)

    def match(self, reference: Any, *, threshold: float = THRESHOLD, rng: Seed = 0) -> list[SignatureMatch]:
        """Match the signatures with a table of known ones.

        Parameters
        ----------
        reference : data frame or array
            Known signatures, such as COSMIC's table, which does not come with nonneg.
        threshold : float, default 0.85
            Smallest cosine of a match. It also has to exceed what shuffled channels reach.
        rng : None, int, Generator or RandomState, default 0
            Random numbers for the shuffling.

        Returns
        -------
        list of SignatureMatch
            One per signature.
        """
        check_is_fitted(self, "consensus_")
        return match_signatures(self.signatures_, reference, threshold=threshold, rng=rng)
