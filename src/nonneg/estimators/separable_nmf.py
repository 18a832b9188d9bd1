"""SeparableNMF: the components are samples, with the interface of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import SampleArray
from nonneg.data import DataMatrix
from nonneg.estimators._base import (
    COUNT,
    NOT_NEGATIVE,
    Callback,
    Checkpoint,
    FactorizingEstimator,
    input_data,
)
from nonneg.estimators.saving import Fields, Sparse, StoredArray
from nonneg.separable.registry import METHODS
from nonneg.separable.select import select_anchors
from nonneg.separable.weights import anchor_factors, anchor_weights, vertices_of


@dataclass(eq=False, repr=False)
class SeparableNMF(FactorizingEstimator):
    r"""Separable factorization, X ~ W H with rows of X as rows of H: pure pixels, anchor words, pure nodes.

    Parameters
    ----------
    {function: n_components, method, method_params, init, tol, max_iter}
    sum_to_one : bool or "auto", default "auto"
        Whether the weights of a sample sum to one, or are only nonnegative. "auto" looks at the data: they do
        if the features of every sample sum to one.
    {function: energy, normalize, reduce, centered, merge}
    {random_state, n_jobs, verbose}
    {function: callback, checkpoint}

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The anchors: rows of X, not preprocessed; averages of such rows for methods that smooth.
    {n_components_}
    anchor_indices_ : array of int of shape (n_components,)
        Their row indices; for methods that average, see `SelectionResult.anchors`.
    coefficients_ : sparse array of shape (n_samples, n_samples) or None
        The C of the convex methods, in the orientation of the paper: column l writes sample l as a mixture.
    duality_gap_ : float or None
        A bound on the distance of the objective at `coefficients_` from its minimum.
    sum_to_one_ : bool
        Whether the weights of a sample sum to one.
    {reconstruction_err_}
    n_iter_ : int
        Number of iterations, or of anchors of a greedy method.
    history_ : History
        The measures after each iteration, or after each anchor of a greedy method.
    {certificate_}
    result_ : SelectionResult
        The complete result, with row maxima and scores.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    nonneg.select_anchors : The function behind it.

    Notes
    -----
    `transform` solves each sample's least-squares problem exactly, and `fit_transform(X)` equals
    `fit(X).transform(X)`. Methods that accept signed data say so in the registry. There is no `n_init`,
    because the convex problems have no local minima, and no `sample_weight`, because anchors are extreme
    samples, whatever their weights.

    References
    ----------
    .. [1] Nguyen, Fu & Wu (2022), IEEE Trans. Signal Processing 70 (MERIT).

    Examples
    --------
    >>> from nonneg import SeparableNMF
    >>> from nonneg.datasets import separable_dirichlet
    >>> planted = separable_dirichlet(100, 20, 5, rng=0)
    >>> model = SeparableNMF(5, method="spa").fit(planted.X)
    >>> sorted(model.anchor_indices_) == sorted(planted.anchors)
    True
    """

    n_components: int | None = None
    _: KW_ONLY
    method: str = "auto"
    method_params: Mapping[str, Any] | None = None
    init: Any = None
    tol: float | None = None
    max_iter: int | None = None
    sum_to_one: bool | str = "auto"
    energy: float | None = None
    normalize: str | None = None
    reduce: int | None = None
    centered: bool = False
    merge: float | None = None
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callback = None
    checkpoint: Checkpoint = None

    # Points, and so components, may have negative entries.
    _function: ClassVar[Any] = select_anchors
    _stored: ClassVar[Fields] = {
        **FactorizingEstimator._stored,
        "components_": StoredArray("n_components_", "n_features_in_", finite=True),
        "anchor_indices_": StoredArray("n_components_", kind="i", nonnegative=True),
        "sum_to_one_": bool,
        "duality_gap_": float | None,
        "coefficients_": Sparse("csc", "n_samples", optional=True),
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "init": [str, "array-like", None],
        "tol": [NOT_NEGATIVE, None],
        "max_iter": [*COUNT, None],
        "sum_to_one": ["boolean", StrOptions({"auto"})],
        "energy": [Interval(Real, 0, 1, closed="right"), None],
        "normalize": [StrOptions({"l1", "l2"}), None],
        "merge": [Interval(Real, 0, None, closed="neither"), None],
    }

    def _accepts_signed(self) -> bool:
        return bool(METHODS.find(self.method).signed)

    def _fit(self, X: Any) -> SampleArray:
        data = input_data(self, X, reset=True, signed=self._accepts_signed())
        result = select_anchors(data, **self._shared(select_anchors), rng=self.random_state)
        with threads(self.n_jobs):
            factors = anchor_factors(data, vertices_of(data, result), self.sum_to_one)
        self._finish(result, factors.H)
        self.result_ = result
        self.anchor_indices_, self.coefficients_ = result.anchors, result.coefficients
        self.duality_gap_, self.sum_to_one_ = result.gap, factors.sum_to_one
        self.reconstruction_err_ = factors.error
        return factors.W

    def _weights(self, data: DataMatrix) -> SampleArray:
        return anchor_weights(data, self.components_, sum_to_one=self.sum_to_one_)
