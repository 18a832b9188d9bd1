"""IntegrativeNMF: shared and data-set-specific components of several data sets."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted

from nonneg._arrays import to_numpy
from nonneg._threads import threads
from nonneg._typing import Array, FloatArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.annotated import annotated_matrix, check_labels
from nonneg.estimators._base import Callback, Checkpoint, FactorizingEstimator, input_data, reconstructed
from nonneg.estimators.saving import Fields, Names, StoredArray
from nonneg.exceptions import InvalidParameterError, ShapeError, UnknownNameError, UnsupportedInputError
from nonneg.integrative.factorize import integrate
from nonneg.integrative.problem import Components, DataSet, encode, objective
from nonneg.solvers.factorize import checked_rank


@dataclass(frozen=True)
class DataSets:
    """Data sets with their names."""

    names: list[str]
    matrices: list[DataMatrix]
    rows: list[Any] | None = None  # where the rows of each were in one array; None for a list

    def joined(self, weights: list[Any]) -> Any:
        """Return the weights of the data sets in the form of the data."""
        if self.rows is None or len(weights) == 1:
            return weights if self.rows is None else weights[0]
        plain = [to_numpy(part) for part in weights]
        W = np.empty((sum(map(len, plain)), plain[0].shape[1]), dtype=plain[0].dtype)
        for rows, part in zip(self.rows, plain, strict=True):
            W[rows] = part
        return self.matrices[0].to_sample_array(W)


NEW = "a data set that is not known"  # what one array without labels is to `transform`


def data_sets_of(
    estimator: FactorizingEstimator, X: Any, batch: Any, *, reset: bool, sample_weight: Any = None
) -> DataSets:
    """Validate several data sets; those after the first have its features."""
    # AnnData objects have a shape, too; a list of rows has not.
    if not (isinstance(X, list | tuple) and X and all(len(getattr(each, "shape", ())) == 2 for each in X)):
        if reset and batch is not None and np.ndim(batch) == 0:
            raise ShapeError(f"Expected a label per sample, such as batch=adata.obs['donor'], got {batch!r}.")
        annotated = annotated_matrix(X)
        rows = getattr(X, "index", None) if annotated is None else annotated.row_names
        check_labels((rows, None), batch, "batch")
        return _split(input_data(estimator, X, reset=reset, sample_weight=sample_weight), batch)
    if batch is not None:
        raise InvalidParameterError("batch is for one array; a list already separates the data sets.")
    names = [str(i) for i in range(len(X))] if reset else list(getattr(estimator, "batch_names_", ()))
    if len(names) != len(X):
        raise ShapeError(
            f"A list has the data sets of the fit in their order: expected {len(names)}, got {len(X)}. Pass "
            "one array with batch='NAME'."
        )
    weights: list[Any] = [None] * len(X)
    if sample_weight is not None:
        weights = np.split(np.asarray(sample_weight), np.cumsum([matrix.shape[0] for matrix in X])[:-1])
    matrices = [
        input_data(estimator, matrix, reset=reset and i == 0, sample_weight=own)
        for i, (matrix, own) in enumerate(zip(X, weights, strict=True))
    ]
    return DataSets(names, matrices)


def _split(data: DataMatrix, batch: Any) -> DataSets:
    if np.ndim(batch) == 0:
        return DataSets([NEW if batch is None else str(batch)], [data], [slice(None)])
    values = np.asarray(batch, dtype=object).tolist()
    labels = np.asarray([str(label) for label in values])
    if labels.shape != (data.shape[0],):
        raise ShapeError(f"batch has {labels.size} labels, but X has {data.shape[0]} samples.")
    named = [isinstance(label, str) for label in values]
    if (lost := np.flatnonzero(np.isin(labels, ("nan", "None", "NaT", "<NA>")) & ~np.asarray(named))).size:
        raise InvalidParameterError(f"batch[{lost[0]}] is {labels[lost[0]]}. Give every sample a label.")
    names = sorted(set(labels.tolist()))
    if len(names) == 1:
        return DataSets(names, [data], [slice(None)])
    if not isinstance(data, LocalMatrix):
        raise UnsupportedInputError(
            "batch splits X by rows, but X is not in memory. Pass a list with one array per data set."
        )
    rows = [np.flatnonzero(labels == name) for name in names]
    return DataSets(names, [data.select(own) for own in rows], rows)


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
    {max_iter}
    tol : float, default 1e-3
        Stop when the violation of the optimality conditions is at most this fraction of the first one.
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
    {n_components_, n_iter_}
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
    normalization, use scanpy's integration methods on ``obsm["X_nmf"]``. There is no
    `init`, `n_init` or `random_state`: the initialization is NNDSVD, and nothing is random.

    References
    ----------
    .. [1] Yang & Michailidis (2016), Bioinformatics 32(1) (iNMF).
    .. [2] Welch et al. (2019), Cell 177(7) (LIGER).

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
    max_iter: int = 200
    tol: float = 1e-3
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callback = None
    checkpoint: Checkpoint = None

    _stored: ClassVar[Fields] = {
        **FactorizingEstimator._stored,
        "batch_names_": Names("n_batches_", container=list),
        "batch_scale_": StoredArray("n_batches_", "n_features_in_", nonnegative=True),
        "specific_components_": StoredArray(
            "n_batches_", "n_components_", "n_features_in_", nonnegative=True
        ),
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, batch: Any = None, sample_weight: Any = None) -> IntegrativeNMF:
        """Learn shared and specific components.

        Parameters
        ----------
        X : list of arrays or AnnData objects, or one array or AnnData object
            Nonnegative data sets with the same features. One array with several data sets stacked on top of
            each other needs `batch`; without it, it is a single data set. Never modified.
        {y}
        batch : array of shape (n_samples,), optional
            The data set of each row, for one array or AnnData object: ``adata.obs["donor"]``.
        sample_weight : array of shape (n_samples,), optional
            Sample weights of all rows, data set after data set for a list.

        Returns
        -------
        self : IntegrativeNMF
            The fitted estimator.
        """
        self._fit(X, batch, sample_weight)
        return self

    def _fit(self, X: Any, batch: Any = None, sample_weight: Any = None) -> Any:
        sets = data_sets_of(self, X, batch, reset=True, sample_weight=sample_weight)
        n_samples, n_features = sum(matrix.shape[0] for matrix in sets.matrices), sets.matrices[0].shape[1]
        k = checked_rank(self.n_components, (n_samples, n_features), type(self).__name__)
        with threads(self.n_jobs):
            ones = None if self.scale else np.ones(n_features)
            data = [DataSet.of(matrix, scale=ones) for matrix in sets.matrices]
        result = integrate(data, k, **self._shared(integrate), caller=type(self).__name__)
        self.specific_components_ = np.ascontiguousarray(to_numpy(result.components.Vt).transpose(0, 2, 1))
        self.batch_names_ = ["0"] if sets.names == [NEW] else sets.names
        self.batch_scale_ = np.stack([to_numpy(data_set.scale)[:, 0] for data_set in data])
        self.reconstruction_err_ = math.sqrt(2.0 * result.loss)
        self._finish(result, result.components.Ht.T)
        return sets.joined(result.W)

    def _place(self, name: str) -> int | None:
        """Return the position of a data set; None for samples of an unknown one."""
        if name != NEW and name not in self.batch_names_:
            raise UnknownNameError.of("batch", name, self.batch_names_, other="None for a new data set")
        return None if name == NEW else self.batch_names_.index(name)

    def _scale_of(self, place: int | None) -> FloatArray:
        scale = self.batch_scale_.astype(np.float64)
        return np.sqrt(np.mean(scale**2, axis=0)) if place is None else scale[place]

    def _known(self, name: str, matrix: DataMatrix) -> tuple[DataSet, Array, Array]:
        """Return a data set with its scale, and the transposed components that belong to it."""
        place = self._place(name)
        Ht = matrix.to_device(to_numpy(self.components_).T)
        own = 0.0 * self.specific_components_[0] if place is None else self.specific_components_[place]
        return DataSet.of(matrix, scale=self._scale_of(place)), Ht, matrix.to_device(own.T)

    def transform(self, X: Any, *, batch: Any = None) -> Any:
        """Return the weights of data for the fitted components.

        Parameters
        ----------
        X : list of arrays or AnnData objects, or one array or AnnData object
            The data. A list has the data sets of the fit in their order.
        batch : str, int or array of shape (n_samples,), optional
            The data set of all rows, or of each. Without it, one array is treated as a new data set, for
            which only the shared components are known.

        Returns
        -------
        array of shape (n_samples, n_components), or list of them
            The weights, in the form of X.
        """
        check_is_fitted(self)
        sets = data_sets_of(self, X, batch, reset=False)
        with threads(self.n_jobs):
            pairs = zip(sets.names, sets.matrices, strict=True)
            return sets.joined([encode(*self._known(*pair), float(self.lam))[0] for pair in pairs])

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
        place = self._place(NEW if batch is None else str(batch))
        K = to_numpy(self.components_)
        K = K if place is None else K + self.specific_components_[place]
        return reconstructed(X, (K * self._scale_of(place)).astype(K.dtype))

    def score(self, X: Any, y: Any = None, *, batch: Any = None, sample_weight: Any = None) -> float:
        """Return the negative mean squared error of the scaled entries.

        Parameters
        ----------
        X, y, batch : Any
            See `transform`; `y` is ignored.
        sample_weight : array of shape (n_samples,), optional
            Sample weights, as in `fit`.

        Returns
        -------
        float
            At most 0; larger is better.
        """
        check_is_fitted(self)
        sets = data_sets_of(self, X, batch, reset=False, sample_weight=sample_weight)
        squares = count = 0.0
        with threads(self.n_jobs):
            for name, matrix in zip(sets.names, sets.matrices, strict=True):
                data, Ht, Vt = self._known(name, matrix)
                _, sums, _ = encode(data, Ht, Vt, float(self.lam))
                squares += 2.0 * objective(Components(Ht, Vt[None, ...]), [sums], 0.0, data.squared_norm)
                count += matrix.total_weight() * matrix.shape[1]
        return -squares / count
