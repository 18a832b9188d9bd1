"""Base of the factorizing estimators: input validation, scikit-learn's conventions, scoring, saving."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from nonneg._arrays import is_dask, is_non_numpy, to_device, to_numpy
from nonneg._devices import chosen_device
from nonneg._threads import threads
from nonneg._typing import Array, MatrixLike
from nonneg._warnings import warn_user
from nonneg.certificates.certificate import Certificate
from nonneg.data import DataMatrix
from nonneg.data.annotated import annotated_matrix
from nonneg.data.door import Request, wrap
from nonneg.data.sparse import on_host
from nonneg.estimators.saving import Fields, Names, SavableEstimator, StoredArray
from nonneg.exceptions import ShapeError, UnsupportedInputError
from nonneg.iteration import History, Progress, StopReason
from nonneg.iteration.progress import announce
from nonneg.metrics.arguments import table
from nonneg.solvers.registry import beta_of
from nonneg.solvers.result import mean_deviance

Callback = Callable[[Progress], bool | None] | None
Checkpoint = str | PathLike[str] | None
COUNT = [Interval(Integral, 1, None, closed="left")]
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
SHARED_VALUES: dict[str, list[Any]] = {
    "n_init": COUNT,
    # Names are looked up in the registries, which know the near ones.
    "solver": [str],
    "beta_loss": [str, Real],
    "alpha_W": [NOT_NEGATIVE],
    "alpha_H": [NOT_NEGATIVE, StrOptions({"same"})],
    "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    "method_params": [dict, None],
    "tol": [NOT_NEGATIVE],
    "max_iter": COUNT,
    "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
    "device": [str, None],
    "n_jobs": [Interval(Integral, None, -1, closed="right"), *COUNT, None],
    "verbose": ["verbose"],
    "callback": [callable, None],
    "checkpoint": [str, PathLike, None],
}
"""The values of parameters that mean the same in every estimator."""
VALUES_BY_TYPE: dict[str, list[Any]] = {
    "bool": ["boolean"],
    "int": COUNT,
    "int | None": [*COUNT, None],
    "float": [NOT_NEGATIVE],
    "float | None": [NOT_NEGATIVE, None],
    "int | str": [*COUNT, StrOptions({"auto"})],
    "int | str | None": [*COUNT, StrOptions({"auto"}), None],
    "str": [str],
    "str | None": [str, None],
}
"""The values of other parameters of a factorizing estimator, by annotation; a class states the exceptions."""
# Attributes of a fit, which no longer describe the model once a batch has changed it.
OF_A_FIT = ("result_", "history_", "certificate_", "reconstruction_err_", "n_iter_")


def _rank_estimate(values: Any) -> Any:
    from nonneg.rank_selection.comparison import RankComparison  # not every fit estimates a rank

    return RankComparison.from_dict(values)


class FactorizingEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavableEstimator):
    """An estimator whose `components_` are the rows of H in X ~ W H."""

    components_: Array
    missing: str = "error"
    n_jobs: int | None
    tol: Any
    max_iter: Any
    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    # Fits, and returns what `_encoded` makes the transformed data from.
    _fit: ClassVar[Callable[..., Any]]
    # Returns W for validated data; estimators with an `_encoded` or a `transform` of their own have none.
    _weights: ClassVar[Callable[..., Any]]
    _sparse_arrays: ClassVar[bool] = False  # whether it works on sparse tensors where they are
    # What a batch leaves behind or a method does not have is optional.
    _stored: ClassVar[Fields] = {
        "n_components_": int,
        "n_features_in_": int,
        "n_iter_": int | None,
        "n_steps_": int | None,
        "reconstruction_err_": float | None,
        "history_": History,
        "certificate_": Certificate,
        "rank_estimate_": _rank_estimate,
        "components_": StoredArray("n_components_", "n_features_in_", nonnegative=True),
        "feature_names_in_": Names("n_features_in_", optional=True),
    }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        own, kinds = vars(cls).get("_parameter_constraints", {}), inspect.get_annotations(cls)
        typed = {name: VALUES_BY_TYPE[kind] for name, kind in kinds.items() if kind in VALUES_BY_TYPE}
        cls._parameter_constraints = getattr(cls, "_parameter_constraints", {}) | typed | SHARED_VALUES | own
        super().__init_subclass__(**kwargs)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self._accepts_signed()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "mask"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _accepts_signed(self) -> bool:
        """Tell whether X may have negative entries."""
        return getattr(self, "negative", "error") == "keep" or getattr(self, "signed_components", False)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: Any = None) -> Any:
        """Fit the model to the data X.

        Parameters
        ----------
        {X, y}

        Returns
        -------
        estimator
            Itself, fitted.
        """
        self._fit(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: MatrixLike, y: Any = None, **fit_params: Any) -> Any:
        """Fit the model and return the transformed data.

        Parameters
        ----------
        X, y : Any
            See `fit`.
        **fit_params : Any
            Further arguments of `fit`, such as `sample_weight`.

        Returns
        -------
        array of shape (n_samples, n_components)
            What `transform` returns for X.
        """
        return self._encoded(self._fit(X, **fit_params))

    def _encoded(self, fitted: Any) -> Any:
        """Return the transformed data: what `_fit` returned, or the weights of the data that it returned."""
        if not isinstance(fitted, DataMatrix):
            return fitted
        with threads(self.n_jobs):
            return self._weights(fitted)

    def transform(self, X: MatrixLike) -> Any:
        """Return the weights W of data for the fitted components, each row on its own.

        Parameters
        ----------
        {X}

        Returns
        -------
        array of shape (n_samples, n_components)
            W, of the same array type as X.
        """
        check_is_fitted(self)
        return self._encoded(self._input(X))

    def _input(self, X: MatrixLike) -> DataMatrix:
        """Return validated data for `transform`."""
        return input_data(self, X, reset=False, signed=self._accepts_signed())

    def _shared(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return those parameters that the function behind the estimator has, too."""
        names = _parameters(function)
        return {name: value for name, value in self.get_params(deep=False).items() if name in names}

    def _set_components(self, H: Array) -> None:
        self.components_ = np.ascontiguousarray(H) if isinstance(H, np.ndarray) else H
        self.n_components_ = int(H.shape[0])

    def _name(self, result: Any, H: Array) -> None:
        """Set the attributes of a fit that all results have."""
        self._set_components(H)
        self.n_iter_, self.history_, self.certificate_ = result.n_iter, result.history, result.certificate
        self.__dict__.pop("n_steps_", None)

    def _finish(self, result: Any, H: Array) -> None:
        """Set these attributes and warn, as scikit-learn does, that `max_iter` ended the run."""
        self._name(result, H)
        statement, ended_early = result.certificate["stationarity"], result.stop_reason is StopReason.MAX_ITER
        # Not if it is stationary all the same. A tolerance that was met is no surprise: the certificate says
        # how far from stationary the result is.
        if ended_early and self.tol > 0 and self.max_iter and not statement.holds:
            warn_user(
                f"Maximum number of iterations {self.max_iter} reached before the tolerance tol was reached. "
                f"{statement.sentence} Raise max_iter (now {self.max_iter}).",
                ConvergenceWarning,
            )

    def _count_batch(self, H: Array) -> None:
        """Set the components after one more batch, and forget what described a fit alone."""
        self._set_components(H)
        for name in OF_A_FIT:
            self.__dict__.pop(name, None)
        self.n_steps_ = getattr(self, "n_steps_", 0) + 1

    def inverse_transform(self, X: Array) -> Any:
        """Transform data back to its original space.

        Parameters
        ----------
        X : array, sparse matrix or Dask array of shape (n_samples, n_components)
            Transformed data W.

        Returns
        -------
        array of shape (n_samples, n_features)
            The product W H, of the same array type as `X`.
        """
        check_is_fitted(self)
        reconstruction = reconstructed(X, self.components_)
        if hasattr(reconstruction, "iloc") and hasattr(self, "feature_names_in_"):
            reconstruction.columns = self.feature_names_in_
        return reconstruction

    def score(self, X: MatrixLike, y: Any = None, *, sample_weight: Any = None) -> float:
        """Return the negative mean deviance of the entries of X from W H.

        Parameters
        ----------
        {X, y, sample_weight}

        Returns
        -------
        float
            At most 0; larger is better. It is the negative mean squared error for the Frobenius loss, and the
            negative mean Poisson or gamma deviance for Kullback-Leibler and Itakura-Saito. W is what
            `transform` returns; penalties and missing entries do not count.

        Notes
        -----
        `GridSearchCV` and `cross_val_score` use it. W is fitted to the samples that are scored, so more
        components nearly always score higher, even on new samples: use `nonneg.estimate_rank` to choose their
        number.
        """
        check_is_fitted(self)
        W = self.transform(X)
        if hasattr(W, "to_numpy"):
            W = W.to_numpy()  # the user asked for data frames (`set_output`)
        # `transform` has checked the entries.
        data = input_data(self, X, reset=False, sample_weight=sample_weight, signed=True)
        with threads(self.n_jobs):
            Ht, W = data.to_device(self.components_.T), data.to_sample_array(W) if data.numpy_out else W
            return -mean_deviance(data, W, Ht, beta_of(getattr(self, "beta_loss", "frobenius")))


class WeightedEstimator(FactorizingEstimator):
    """A factorizing estimator whose samples have weights."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: Any = None, *, sample_weight: Any = None) -> Any:
        """Fit the model to the data X.

        Parameters
        ----------
        {X, y, sample_weight}

        Returns
        -------
        estimator
            Itself, fitted.
        """
        self._fit(X, sample_weight=sample_weight)
        return self


@functools.cache
def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


def reconstructed(X: Array, components: Array) -> Any:
    """Return the product of coefficients and components, in the array type of the coefficients."""
    if not (sp.issparse(X) or is_dask(X) or hasattr(X, "iloc") or is_array_api_obj(X)):
        X = table(X, "X", f"(n_samples, {len(components)})", hint="Pass what transform returns.")
    if len(X.shape) != 2 or X.shape[1] != components.shape[0]:
        raise ShapeError(
            f"Expected coefficients of shape (n_samples, {components.shape[0]}), one column per "
            f"component, got {tuple(X.shape)}. Pass what transform returns."
        )
    if is_non_numpy(X) and not is_dask(X):
        return X @ to_device(components, X, X.dtype)
    return X @ to_numpy(components)


def input_data(
    estimator: FactorizingEstimator,
    X: MatrixLike,
    *,
    reset: bool,
    signed: bool = False,
    n_iter: float = 1.0,
    **weights: Any,
) -> DataMatrix:
    """Validate the input as scikit-learn does, and wrap it; a fit does about `n_iter` iterations."""
    # `weights` are those of samples and entries, or other fields of a `Request`.
    who = type(estimator).__name__
    names = None if reset else getattr(estimator, "feature_names_in_", None)
    annotated = annotated_matrix(X, names=names, who=who)
    rules: dict[str, Any] = {
        "accept_sparse": ("csr", "csc"),
        "dtype": [np.float64, np.float32],
        # The entries are checked after it, where a wrong one is named by its index.
        "ensure_all_finite": False,
    }

    def convert(array: Any) -> Any:
        if annotated is None:
            return validate_data(estimator, array, reset=reset, **rules)
        array = check_array(array, estimator=estimator, input_name="X", **rules)
        check_n_features(estimator, array, reset=reset)
        return array

    device = chosen_device(
        getattr(estimator, "device", None),
        X if annotated is None else annotated.entries,
        getattr(estimator, "n_components", None),
        n_iter=n_iter if reset else 1.0,
        fitted=not reset,
    )
    data = wrap(
        X if annotated is None else annotated,
        Request(
            **{"batch": not reset} | weights,
            missing=estimator.missing,
            negative=getattr(estimator, "negative", None),
            signed=signed or getattr(estimator, "signed_components", False),
            who=who,
            verbose=int(getattr(estimator, "verbose", 0)),
            masks="missing" in estimator.get_params(deep=False),
            convert=convert,
            check_shape=lambda array: check_n_features(estimator, array, reset=reset),
            device=device,
            sparse_arrays=estimator._sparse_arrays,
        ),
    )
    if annotated is not None and reset:
        estimator.feature_names_in_ = np.asarray(annotated.column_names, dtype=object)
    return data


def rank_of(model: Any, data: DataMatrix, W: Any = None, H: Any = None, **options: Any) -> int:
    """Return the number of components; options are those of `automatic_rank`, for "auto"."""
    vars(model).pop("rank_estimate_", None)
    if model.n_components is None:
        return data.shape[1]
    if model.n_components != "auto":
        return int(model.n_components)
    for factor, axis in ((H, 0), (W, 1)):
        if factor is not None and len(np.shape(factor)) == 2:
            return int(np.shape(factor)[axis])
    if data.is_weighted:
        raise UnsupportedInputError(
            "The number of components cannot be estimated from entries with weights. Pass n_components (-k)."
        )
    from nonneg.rank_selection.comparison import automatic_rank  # most fits do not need it

    verbose = int(getattr(model, "verbose", 0))
    estimate = automatic_rank(on_host(data), n_jobs=model.n_jobs, verbose=verbose, **options)
    model.rank_estimate_ = estimate
    announce(f"{type(model).__name__}: n_components='auto' takes {estimate.rank}: {estimate.reason}", verbose)
    return int(estimate.rank)


def check_n_features(estimator: Any, X: MatrixLike, *, reset: bool) -> None:
    """Remember the number of features, or compare with that of the fit."""
    if len(X.shape) != 2:
        return
    n_features = int(X.shape[1])
    if reset:
        estimator.n_features_in_ = n_features
        vars(estimator).pop("feature_names_in_", None)
    elif n_features != estimator.n_features_in_:
        raise ShapeError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
