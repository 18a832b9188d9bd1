"""What the factorizing estimators share: reading the input, scikit-learn's conventions, saving."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nonneg._arrays import is_dask, is_non_numpy, to_device, to_numpy
from nonneg._typing import Array, SampleArray
from nonneg.certificates.certificate import Certificate
from nonneg.certificates.svd_lower_bound import relative_error_from_square
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.checks import checked_data
from nonneg.estimators.saving import SavableEstimator
from nonneg.estimators.stored_fields import Fields, Names, Record, StoredArray, Value
from nonneg.exceptions import ShapeError
from nonneg.iteration import History
from nonneg.losses.penalties import Penalties
from nonneg.rank_selection import RankResult


class FactorizingEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavableEstimator):
    """An estimator whose `components_` are the rows of H in X ~ W H."""

    components_: Array
    missing: str
    # What a batch leaves behind or a method does not have is optional.
    _stored: ClassVar[Fields] = {
        "n_components_": Value(int),
        "n_features_in_": Value(int),
        "n_iter_": Value(int, optional=True),
        "n_steps_": Value(int, optional=True),
        "reconstruction_err_": Value(float, optional=True),
        "history_": Record(History, optional=True),
        "certificate_": Record(Certificate.from_dict, optional=True),
        "rank_estimate_": Record(RankResult.from_dict, optional=True),
        "components_": StoredArray("n_components_", "n_features_in_", nonnegative=True),
        "feature_names_in_": Names("n_features_in_", optional=True),
    }

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "mask"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def inverse_transform(self, X: Any) -> Any:
        """Return the data that the coefficients stand for.

        Parameters
        ----------
        X : array, sparse matrix or dask array of shape (n_samples, n_components)
            Coefficients W, as `transform` returns them.

        Returns
        -------
        array of shape (n_samples, n_features)
            The product of X and `components_`, of the kind of X.
        """
        check_is_fitted(self)
        if not (sp.issparse(X) or is_dask(X) or hasattr(X, "iloc") or is_array_api_obj(X)):
            X = np.asarray(X)
        if len(X.shape) != 2 or X.shape[1] != self.components_.shape[0]:
            raise ShapeError(
                f"Expected coefficients of shape (n_samples, {self.components_.shape[0]}), one column a "
                f"component, got {tuple(X.shape)}. Pass what transform returns."
            )
        if is_non_numpy(X) and not is_dask(X):
            return X @ to_device(self.components_, X, X.dtype)
        return X @ to_numpy(self.components_)

    def score(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> float:
        """Return how well the model explains data: minus the mean deviance of an entry from W H.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or dask array of shape (n_samples, n_features)
            The data, new ones or those of the fit; never changed.
        y : Any
            Ignored.
        sample_weight : array of shape (n_samples,), optional
            An integer weight counts like so many equal samples.

        Returns
        -------
        float
            At most 0; larger is better, and sets of different sizes can be compared. For the squared error it
            is minus the mean squared error; for Kullback-Leibler and Itakura-Saito minus the mean Poisson or
            gamma deviance. W is what `transform` returns; penalties and missing entries do not count.

        Notes
        -----
        `GridSearchCV` and `cross_val_score` of scikit-learn use it. Every sample gets weights of its own, so
        that more components nearly always score higher on new samples too: `nonneg.estimate_rank` asks how
        many there are.
        """
        check_is_fitted(self)
        from nonneg.estimators.scoring import reconstruction_score

        return reconstruction_score(self, X, sample_weight)


def input_data(
    estimator: FactorizingEstimator,
    X: Any,
    *,
    reset: bool,
    sample_weight: Any = None,
    mask: Any = None,
    positive: bool = False,
    signed: bool = False,
) -> DataMatrix:
    """Check the input as scikit-learn does, and wrap it."""
    return checked_data(
        X,
        sample_weight=sample_weight,
        mask=mask,
        missing=estimator.missing,
        positive=positive,
        signed=signed,
        who=type(estimator).__name__,
        masks="missing" in estimator.get_params(deep=False),
        # The entries are checked after it, where a wrong one is named by its index.
        convert=lambda array: validate_data(
            estimator,
            array,
            reset=reset,
            accept_sparse=("csr", "csc"),
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        ),
        check_shape=lambda array: _check_n_features(estimator, array, reset=reset),
    )


def _check_n_features(estimator: Any, X: Any, *, reset: bool) -> None:
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


def _penalty_rows(block: LocalMatrix, W: Array, *, penalties: Penalties) -> tuple[tuple[()], tuple[float]]:
    return (), (penalties.left(W, block.weights),)


def reconstruction_error(
    data: DataMatrix, W: SampleArray, Ht: Array, *, beta: float, penalties: Penalties, objective: float
) -> float:
    """Return the root of twice the loss of W and Ht, penalties left out."""
    loss = objective
    if penalties.any:
        _, (left,) = data.map_reduce_rows(_penalty_rows, W, n_out=0, penalties=penalties)
        loss -= left + penalties.right(Ht)
    if beta == 2.0:
        squared_norm = data.squared_norm()
        if squared_norm > 0:
            return relative_error_from_square(data, W, Ht, 2 * loss / squared_norm) * math.sqrt(squared_norm)
    return math.sqrt(2 * max(loss, 0.0))
