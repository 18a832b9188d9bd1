"""IntegrativeNMF: shared and data-set-specific components of several data sets."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from nonneg._arrays import to_numpy
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg.estimators._base import reconstructed
from nonneg.estimators.data_sets import DataSets, data_sets_of
from nonneg.estimators.integrative_online import OnlineIntegration
from nonneg.estimators.preparation import warn_unless_converged
from nonneg.exceptions import UnknownNameError
from nonneg.integrative.factorize import INITS, integrate
from nonneg.integrative.problem import Components, DataSet, encode, objective
from nonneg.iteration import Progress
from nonneg.solvers.factorize import checked_rank

COUNT = [Interval(Integral, 1, None, closed="left")]


class IntegrativeNMF(OnlineIntegration):
    r"""Integrative NMF (iNMF): several data sets with the same features, and what they share.

    Minimize over nonnegative weights :math:`W_i`, shared components H and specific components :math:`V_i`

    .. math::

        \sum_i \tfrac{1}{2} \|X_i - W_i (H + V_i)\|_F^2 + \tfrac{\lambda}{2} \|W_i V_i\|_F^2 .

    What differs between the data sets (batches, donors, technologies) goes to :math:`V_i`, so that H contains
    the components that all of them share.

    Parameters
    ----------
    n_components : int, default 20
        Number of components.
    lam : float, default 0.1
        Weight :math:`\lambda` of the penalty on what is specific to a data set. A larger weight makes the
        data sets share more; the limit is NMF of all samples. The default was chosen on planted batches
        (``studies/integration``); LIGER's is 5.
    scale : bool, default True
        Whether to divide every feature of every data set by its root mean square in that data set, which
        removes factors by which a whole data set differs in a feature.
    init : {"nndsvd", "random"}, default "nndsvd"
        Initial shared components.
    n_init : int, default 1
        Number of restarts with ``init="random"``, of which the one with the lowest objective is kept.
    max_iter : int, default 200
        Maximum number of iterations, per restart.
    tol : float, default 1e-3
        Stop when the violation of the optimality conditions is at most this fraction of the first one.
    random_state : int, RandomState, Generator or None
        Random numbers, for ``init="random"``.
    batch_size : int, default 1024
        Used by `partial_fit`, as in `NMF`.
    forget_factor : float, default 0.7
        Used by `partial_fit`, as in `NMF`: what is left of the past of a data set after a mini-batch of it.
    n_jobs : int or None
        Number of threads; None uses all cores.
    verbose : int, default 0
        1 shows a progress line.
    callback : callable, optional
        Called with a :class:`nonneg.results.Progress` after each iteration; returning True stops the fit.
    checkpoint : str or path, optional
        Folder in which the run is saved every few seconds, and from which it is resumed.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Shared components H, in units of the scaled features.
    specific_components_ : array of shape (n_batches, n_components, n_features)
        Specific components :math:`V_i`, in the same units.
    batch_names_ : list of str
        The data sets, in the order of `specific_components_`.
    batch_scale_ : array of shape (n_batches, n_features)
        What the features of each data set were divided by.
    n_components_, n_iter_, n_steps_ : int
        Numbers of components, of iterations of `fit`, and of mini-batches of `partial_fit`.
    reconstruction_err_ : float
        Root of twice the objective.
    history_ : History
        What was measured after each iteration.
    certificate_ : Certificate
        Whether weights, shared and specific components are a stationary point.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if the data have any.

    Notes
    -----
    Divide samples by their totals first if these only reflect how deeply a sample was measured
    (``scanpy.pp.normalize_total``). Weights are not aligned between data sets: instead of LIGER's quantile
    normalization, use scanpy's integration methods on ``obsm["X_nmf"]``.

    References
    ----------
    .. [1] Yang & Michailidis (2016), Bioinformatics 32(1) (iNMF).
    .. [2] Welch et al. (2019), Cell 177(7) (LIGER).
    .. [3] Gao et al. (2021), Nature Biotechnology 39 (online iNMF: `partial_fit`).

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import IntegrativeNMF
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.random((30, 8)), rng.random((20, 8))
    >>> model = IntegrativeNMF(3).fit([X, Y])
    >>> model.components_.shape, model.specific_components_.shape
    ((3, 8), (2, 3, 8))
    >>> [W.shape for W in model.transform([X, Y])]
    [(30, 3), (20, 3)]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": COUNT,
        "lam": [Interval(Real, 0, None, closed="left")],
        "scale": ["boolean"],
        "init": [StrOptions(set(INITS))],
        "n_init": COUNT,
        "max_iter": COUNT,
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
        "batch_size": COUNT,
        "forget_factor": [Interval(Real, 0, 1, closed="right")],
        "n_jobs": [Interval(Integral, None, -1, closed="right"), *COUNT, None],
        "verbose": ["verbose"],
        "callback": [callable, None],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_components: int = 20,
        *,
        lam: float = 0.1,
        scale: bool = True,
        init: str = "nndsvd",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-3,
        random_state: Seed = None,
        batch_size: int = 1024,
        forget_factor: float = 0.7,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[Progress], bool | None] | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.n_components = n_components
        self.lam = lam
        self.scale = scale
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.batch_size = batch_size
        self.forget_factor = forget_factor
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, *, batch: Any = None, batch_key: str | None = None,
        sample_weight: Any = None,
    ) -> IntegrativeNMF:  # fmt: skip
        """Learn shared and specific components.

        Parameters
        ----------
        X : list of arrays or AnnData objects, dict of them by name, or one array or AnnData
            Nonnegative data sets with the same features. One array with several data sets stacked on top of
            each other needs `batch` or `batch_key`; without them it is a single data set. Never modified.
        y : Any
            Ignored.
        batch : array of shape (n_samples,), optional
            The data set of each row, for one array.
        batch_key : str, optional
            The column of ``adata.obs`` that names the data set of each row, for one AnnData object.
        sample_weight : array of shape (n_samples,), optional
            Sample weights of all rows, data set after data set for a list.

        Returns
        -------
        self : IntegrativeNMF
            The fitted estimator.
        """
        self._fit(X, batch, batch_key, sample_weight)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(
        self, X: Any, y: Any = None, *, batch: Any = None, batch_key: str | None = None,
        sample_weight: Any = None,
    ) -> Any:  # fmt: skip
        """Learn shared and specific components, and return the weights.

        Parameters
        ----------
        X : list of arrays or AnnData objects, dict of them by name, or one array or AnnData
            As in `fit`.
        y : Any
            Ignored.
        batch : array of shape (n_samples,), optional
            As in `fit`.
        batch_key : str, optional
            As in `fit`.
        sample_weight : array of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        array of shape (n_samples, n_components), or list or dict of them
            The weights, in the form of X.
        """
        given, W = self._fit(X, batch, batch_key, sample_weight)
        return given.joined(W)

    def _fit(self, X: Any, batch: Any, batch_key: str | None, sample_weight: Any) -> tuple[DataSets, Any]:
        given = data_sets_of(self, X, batch, batch_key, reset=True, sample_weight=sample_weight)
        k = checked_rank(self.n_components, given.shape, type(self).__name__)
        with threads(self.n_jobs):
            data = [self._scaled(one) for one in given.matrices]
        result = integrate(
            data, k, lam=float(self.lam), init=self.init, n_init=self.n_init, max_iter=self.max_iter,
            tol=self.tol, rng=self.random_state, n_jobs=self.n_jobs, verbose=self.verbose,
            callback=self.callback, checkpoint=self.checkpoint, caller=type(self).__name__,
        )  # fmt: skip
        self.batch_names_ = list(given.names)
        self.batch_scale_ = np.stack([to_numpy(one.scale)[:, 0] for one in data])
        self._keep(result.components, result.sums)
        self.n_iter_ = result.n_iter
        self.history_ = result.history
        self.certificate_ = result.certificate
        self.reconstruction_err_ = math.sqrt(2.0 * result.loss)
        self.__dict__.pop("n_steps_", None)
        warn_unless_converged(self, result.stop_reason, result.certificate["stationarity"], stacklevel=5)
        return given, result.W

    def _place(self, name: str | None) -> int | None:
        """Return the position of a data set; None for samples of an unknown one."""
        if name is None or name in self.batch_names_:
            return None if name is None else self.batch_names_.index(name)
        raise UnknownNameError.of("batch", name, self.batch_names_, other="None for a new data set")

    def _scale_of(self, at: int | None) -> Any:
        scale = self.batch_scale_.astype(np.float64)
        return np.sqrt(np.mean(scale**2, axis=0)) if at is None else scale[at]

    def transform(self, X: Any, *, batch: Any = None, batch_key: str | None = None) -> Any:
        """Return the weights of data for the fitted components.

        Parameters
        ----------
        X : list of arrays or AnnData objects, dict of them by name, or one array or AnnData
            The data. A list has the data sets of the fit in their order.
        batch : str, int or array of shape (n_samples,), optional
            The data set of all rows, or of each. Without it, one array is treated as a new data set, for
            which only the shared components are known.
        batch_key : str, optional
            As in `fit`.

        Returns
        -------
        array of shape (n_samples, n_components), or list or dict of them
            The weights, in the form of X.
        """
        check_is_fitted(self)
        given = data_sets_of(self, X, batch, batch_key, reset=False)
        return given.joined(self._weights(given))

    def _weights(self, given: DataSets) -> list[Any]:
        rows = []
        with threads(self.n_jobs):
            for name, matrix in zip(given.names, given.matrices, strict=True):
                # A single data set has no specific components, and its name says nothing.
                at = self._place(None if given.anonymous else name)
                found = self._found(matrix)
                Vt = 0.0 * found.Ht if at is None else found.Vt[at, ...]
                data = DataSet.of(matrix, scale=self._scale_of(at))
                rows.append(encode(data, found.Ht, Vt, float(self.lam))[0])
        return rows

    def inverse_transform(self, X: Any, *, batch: Any = None) -> Any:
        """Return the data that weights represent, in the units of a data set.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Weights of one data set.
        batch : str or int, optional
            Which data set; without it, what the data sets share.

        Returns
        -------
        array of shape (n_samples, n_features)
            The product of weights and components, times the scale.
        """
        check_is_fitted(self)
        at = self._place(None if batch is None else str(batch))
        K = to_numpy(self.components_)
        K = K if at is None else K + self.specific_components_[at]
        return reconstructed(X, (K * self._scale_of(at)).astype(K.dtype))

    def score(
        self, X: Any, y: Any = None, *, batch: Any = None, batch_key: str | None = None,
        sample_weight: Any = None,
    ) -> float:  # fmt: skip
        """Return the negative mean squared error of the scaled entries.

        Parameters
        ----------
        X : list of arrays or AnnData objects, dict of them by name, or one array or AnnData
            As in `transform`.
        y : Any
            Ignored.
        batch : str, int or array of shape (n_samples,), optional
            As in `transform`.
        batch_key : str, optional
            As in `transform`.
        sample_weight : array of shape (n_samples,), optional
            Sample weights, as in `fit`.

        Returns
        -------
        float
            At most 0; larger is better.
        """
        check_is_fitted(self)
        given = data_sets_of(self, X, batch, batch_key, reset=False, sample_weight=sample_weight)
        left = count = 0.0
        with threads(self.n_jobs):
            for name, matrix in zip(given.names, given.matrices, strict=True):
                at = self._place(None if given.anonymous else name)
                found = self._found(matrix)
                Vt = 0.0 * found.Ht if at is None else found.Vt[at, ...]
                data = DataSet.of(matrix, scale=self._scale_of(at))
                _, sums, _ = encode(data, found.Ht, Vt, float(self.lam))
                left += 2.0 * objective(Components(found.Ht, Vt[None, ...]), [sums], 0.0, data.squared_norm)
                count += matrix.total_weight() * matrix.shape[1]
        return -left / count
