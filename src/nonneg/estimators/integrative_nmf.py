"""IntegrativeNMF: shared and data-set-specific components of several data sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from nonneg._arrays import to_numpy
from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.annotated import AnnDataMatrix, is_anndata
from nonneg.estimators._base import (
    COUNT,
    ITERATION_CONSTRAINTS,
    FactorizingEstimator,
    input_data,
    reconstructed,
)
from nonneg.estimators.preparation import warn_unless_converged
from nonneg.estimators.saving import Fields, Names, StoredArray, Value
from nonneg.exceptions import (
    InvalidDataError,
    InvalidParameterError,
    ShapeError,
    UnknownNameError,
    UnsupportedInputError,
)
from nonneg.integrative.factorize import INITS, initial_components, integrate, online_step
from nonneg.integrative.problem import Components, DataSet, Sums, encode, objective
from nonneg.iteration import Progress
from nonneg.solvers.factorize import checked_rank
from nonneg.solvers.online import decay_of

# Attributes of a fit, which no longer describe the model once a mini-batch has changed it.
OF_A_FIT = ("history_", "certificate_", "reconstruction_err_", "n_iter_")


@dataclass(frozen=True)
class DataSets:
    """Data sets with their names."""

    names: list[str]
    matrices: list[DataMatrix]
    form: str  # "one", "list", "dict" or "rows": how they came, and how weights are returned
    rows: list[Any] | None = None  # where the rows of each were, for one array

    @property
    def anonymous(self) -> bool:
        """Whether one data set came without a name."""
        return self.form == "one"

    @property
    def shape(self) -> tuple[int, int]:
        """Samples of all data sets, and features."""
        return sum(one.shape[0] for one in self.matrices), self.matrices[0].shape[1]

    def joined(self, weights: list[Any]) -> Any:
        """Return the weights of the data sets in the form of the data."""
        if self.form in ("list", "dict"):
            return list(weights) if self.form == "list" else dict(zip(self.names, weights, strict=True))
        if self.rows is None:
            return weights[0]
        plain = [to_numpy(one) for one in weights]
        W = np.empty((sum(map(len, plain)), plain[0].shape[1]), dtype=plain[0].dtype)
        for rows, one in zip(self.rows, plain, strict=True):
            W[rows] = one
        return self.matrices[0].to_sample_array(W)


def data_sets_of(
    estimator: FactorizingEstimator,
    X: Any,
    batch: Any,
    batch_key: str | None,
    *,
    reset: bool,
    sample_weight: Any = None,
) -> DataSets:
    """Validate several data sets; those after the first have its features."""
    by_name = isinstance(X, Mapping) and not sp.issparse(X)  # sparse matrices by keys are mappings too
    several = by_name or (isinstance(X, list | tuple) and len(X) > 0 and all(_is_matrix(one) for one in X))
    if batch_key is not None:
        batch = _labels_of(X, batch, batch_key)
    if not several:
        data = input_data(estimator, X, reset=reset, sample_weight=sample_weight)
        return DataSets(["0"], [data], "one") if batch is None else _split(data, batch)
    if batch is not None:
        raise InvalidParameterError("batch is for one array; a list or dict already separates the data sets.")
    names = [str(name) for name in X] if by_name else [str(at) for at in range(len(X))]
    given = list(X.values()) if by_name else list(X)
    if not given:
        raise InvalidDataError("Expected at least one data set, got none.")
    known = getattr(estimator, "batch_names_", None)
    if not reset and not by_name and known is not None:
        if len(given) != len(known):
            raise ShapeError(
                f"A list has the data sets of the fit in their order: expected {len(known)}, got "
                f"{len(given)}. Pass one array with batch='NAME', or a dict by name."
            )
        names = list(known)
    weights: list[Any] = [None] * len(given)
    if sample_weight is not None:
        lengths = [one.shape[0] for one in given]
        sample_weight = np.asarray(sample_weight)
        if len(sample_weight) != sum(lengths):
            raise ShapeError(
                f"sample_weight.shape == {sample_weight.shape}, expected ({sum(lengths)},): one weight per "
                "sample, data set after data set."
            )
        weights = np.split(sample_weight, np.cumsum(lengths)[:-1])
    matrices = [
        input_data(estimator, one, reset=reset and at == 0, sample_weight=own)
        for at, (one, own) in enumerate(zip(given, weights, strict=True))
    ]
    return DataSets(names, matrices, "dict" if by_name else "list")


def _is_matrix(X: Any) -> bool:
    return is_anndata(X) or isinstance(X, AnnDataMatrix) or len(getattr(X, "shape", ())) == 2


def _labels_of(X: Any, batch: Any, key: str) -> Any:
    if batch is not None:
        raise InvalidParameterError("batch and batch_key mean the same: pass only one of them.")
    adata = X.adata if isinstance(X, AnnDataMatrix) else X
    if not is_anndata(adata):
        raise InvalidParameterError("batch_key names a column of adata.obs, but X is not an AnnData object.")
    if key not in adata.obs:
        columns = ", ".join(map(repr, map(str, adata.obs.columns)))
        raise InvalidParameterError(
            f"batch_key={key!r} is not a column of adata.obs. Columns: {columns or 'none'}."
        )
    return np.asarray(adata.obs[key].astype(str))


def _split(data: DataMatrix, batch: Any) -> DataSets:
    if isinstance(batch, str) or np.ndim(batch) == 0:
        return DataSets([str(batch)], [data], "rows")
    labels = np.asarray([str(one) for one in np.asarray(batch).tolist()])
    if labels.shape != (data.shape[0],):
        raise ShapeError(f"batch has {labels.size} labels, but X has {data.shape[0]} samples.")
    names = sorted(set(labels.tolist()))
    if len(names) == 1:
        return DataSets(names, [data], "rows")
    if not isinstance(data, LocalMatrix):
        raise UnsupportedInputError(
            "batch splits X by rows, but X is not in memory. Pass a list with one array per data set."
        )
    rows = [np.flatnonzero(labels == name) for name in names]
    return DataSets(names, [data.select(own) for own in rows], "rows", rows)


@dataclass(eq=False, repr=False)
class IntegrativeNMF(FactorizingEstimator):
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
    {n_jobs, verbose, callback, checkpoint}

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
    {history_}
    certificate_ : Certificate
        Whether weights, shared and specific components are a stationary point.
    {n_features_in_, feature_names_in_}

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

    n_components: int = 20
    _: KW_ONLY
    lam: float = 0.1
    scale: bool = True
    init: str = "nndsvd"
    n_init: int = 1
    max_iter: int = 200
    tol: float = 1e-3
    random_state: Seed = None
    batch_size: int = 1024
    forget_factor: float = 0.7
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callable[[Progress], bool | None] | None = None
    checkpoint: str | PathLike[str] | None = None

    missing = "error"

    _stored: ClassVar[Fields] = {
        **FactorizingEstimator._stored,
        "n_batches_": Value(int),
        "batch_names_": Names("n_batches_", container=list),
        "batch_scale_": StoredArray("n_batches_", "n_features_in_", nonnegative=True),
        "specific_components_": StoredArray(
            "n_batches_", "n_components_", "n_features_in_", nonnegative=True
        ),
        "_gram": StoredArray("n_batches_", "n_components_", "n_components_", finite=True),
        "_cross": StoredArray("n_batches_", "n_features_in_", "n_components_", finite=True),
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ITERATION_CONSTRAINTS,
        "n_components": COUNT,
        "lam": [Interval(Real, 0, None, closed="left")],
        "scale": ["boolean"],
        "init": [StrOptions(set(INITS))],
        "n_init": COUNT,
        "batch_size": COUNT,
        "forget_factor": [Interval(Real, 0, 1, closed="right")],
    }

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
        {y}
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
        X, y, batch, batch_key, sample_weight : Any
            See `fit`.

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
        X, y, batch, batch_key : Any
            See `transform`; `y` is ignored.
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

    @property
    def n_batches_(self) -> int:
        """Number of data sets."""
        return len(self.batch_names_)

    @n_batches_.setter
    def n_batches_(self, value: int) -> None:
        # A saved model holds it as the length of an axis; the names say it again.
        pass

    def _scaled(self, matrix: DataMatrix) -> DataSet:
        return DataSet.of(matrix, scale=None if self.scale else np.ones(matrix.shape[1]))

    def _keep(self, found: Components, sums: list[Sums]) -> None:
        H = found.Ht.T
        self.components_ = np.ascontiguousarray(H) if isinstance(H, np.ndarray) else H
        self.n_components_ = int(H.shape[0])
        self.specific_components_ = np.ascontiguousarray(to_numpy(found.Vt).transpose(0, 2, 1))
        self._gram = np.stack([to_numpy(one.gram) for one in sums])
        self._cross = np.stack([to_numpy(one.cross) for one in sums])

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, *, batch: Any = None, batch_key: str | None = None) -> Any:
        """Update all components with a mini-batch of one or several data sets, known or new.

        Parameters
        ----------
        X : array, sparse matrix, data frame, AnnData, or list or dict of them
            The mini-batch, as in `fit`. Not kept.
        {y}
        batch : str, int or array of shape (n_samples,), optional
            The data set of all rows, or of each. A new name is a new data set, whose scale is that of this
            mini-batch.
        batch_key : str, optional
            As in `fit`.

        Returns
        -------
        self : IntegrativeNMF
            The estimator, with updated components. After `fit`, training continues from its components.
        """
        first = not hasattr(self, "components_")
        given = data_sets_of(self, X, batch, batch_key, reset=first)
        if first:
            self.batch_names_, self.batch_scale_ = [], np.empty((0, given.shape[1]))
        with threads(self.n_jobs):
            for name, matrix in zip(given.names, given.matrices, strict=True):
                self._learn(name, self._scaled(matrix))
        for name in OF_A_FIT:
            self.__dict__.pop(name, None)
        self.n_steps_ = getattr(self, "n_steps_", 0) + 1
        return self

    def _learn(self, name: str, data: DataSet) -> None:
        matrix, p = data.matrix, data.matrix.shape[1]
        begin = not self.batch_names_
        if begin:
            k = checked_rank(self.n_components, matrix.shape, type(self).__name__)
            found = initial_components([data], k, init=self.init, rng=generator(self.random_state))
            past: list[Sums] = []
        else:
            k = self.n_components_
            found = self._found(matrix)
            past = [
                Sums(matrix.to_device(gram), matrix.to_device(cross))
                for gram, cross in zip(self._gram, self._cross, strict=True)
            ]
        if name in self.batch_names_:
            at = self.batch_names_.index(name)
            data = DataSet.of(matrix, scale=self.batch_scale_[at])
        else:
            at = len(self.batch_names_)
            self.batch_names_.append(name)
            self.batch_scale_ = np.concatenate([self.batch_scale_, to_numpy(data.scale).T])
            past.append(Sums(matrix.to_device(np.zeros((k, k))), matrix.to_device(np.zeros((p, k)))))
            if not begin:
                zero = matrix.to_device(np.zeros((1, p, k)))
                found = Components(found.Ht, matrix.xp.concat([found.Vt, zero]))
        decay = decay_of(self.forget_factor, self.batch_size, matrix.shape[0])
        self._keep(*online_step(data, at, found, past, lam=float(self.lam), decay=decay, first=begin))

    def _found(self, matrix: DataMatrix) -> Components:
        Vt = to_numpy(self.specific_components_).transpose(0, 2, 1)
        return Components(matrix.to_device(to_numpy(self.components_).T), matrix.to_device(Vt))
