"""ConeNMF: clusters of directions and one component per cluster, with scikit-learn's interface."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg.certificates.certificate import Certificate
from nonneg.certificates.svd_lower_bound import eckart_young_statement
from nonneg.cones.clustering import SEEDINGS
from nonneg.cones.encoding import nearest_cones, project_on_cones, unit_rows
from nonneg.cones.rank_one import ConeResult, cone_rank_one
from nonneg.cones.streaming import SKETCH_SIZE, ConeStream, stream_after_fit, stream_statements, update_stream
from nonneg.data import DataMatrix
from nonneg.estimators._base import WeightedEstimator, input_data, rank_of
from nonneg.estimators.saving import Fields, StoredArray
from nonneg.exceptions import FileFormatError
from nonneg.losses.penalties import Penalties
from nonneg.solvers.certificate import certify

NUMBER_OF_CONES = ("singular-value-ratio",)
"""Method by which "auto" estimates the number of cones, as Liu & Tan do."""


@dataclass(eq=False, repr=False)
class ConeNMF(WeightedEstimator):
    r"""Clusters of directions and one component per cluster: the method cr1-nmf of Liu and Tan.

    Samples are clustered by the angles between them: centroids are samples picked greedily, each the farthest
    from those before it, and a sample belongs to the nearest. The component of a cluster is its leading
    singular vector, which is nonnegative. The two steps are not iterated, so a fit costs little more than
    `n_components` products with the data.

    Parameters
    ----------
    n_components : int or "auto", default "auto"
        The number of cones, at most the number of distinct directions among the samples. "auto" takes the
        largest ratio of consecutive singular values, as the paper does (`nonneg.estimate_rank`).
    {function: seeding}
    n_init : int, default 1
        Number of initializations; the clusters with the smallest error are kept. With "farthest" the first
        centroid of the first one is the sample farthest from the mean direction; all others are random.
    bounds : bool, default True
        Whether `fit` also finds the smallest cones around the clusters, and with them bounds on the error
        (`basis_`, `size_angles_` and most of `certificate_`). It takes several more passes over the data.
    {random_state, n_jobs}

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The direction of each cone: unit rows. After `partial_fit`, zeros for cones that have not been seen.
    {n_components_, rank_estimate_}
    labels_ : array of int of shape (n_samples,)
        The cone of each sample of the fit, or of the last batch; -1 for samples of zeros.
    centroids_ : array of shape (n_components, n_features)
        The directions of the centroids, by which the cone of a sample is chosen.
    centroid_indices_ : array of int of shape (n_components,)
        The samples that are the centroids, counted over all batches; -1 for cones that have not been seen.
    basis_ : array of shape (n_components, n_features)
        The axes of the smallest cones around the clusters (with `bounds`); after `partial_fit`, the
        centroids.
    size_angles_ : array of shape (n_components,)
        The size angles of these cones, in radians: no sample of a cluster is farther from its axis. After
        `partial_fit` they are upper bounds, because samples are not kept.
    reconstruction_err_ : float
        The Frobenius norm of X - W H, with the sample weights. After `partial_fit`, an upper bound on it for
        all samples so far.
    certificate_ : Certificate
        What is known about clusters and error; see `certify`.
    result_ : ConeResult
        Labels, W, H and everything else that the function `nonneg.cone_rank_one` returns, without the data.
    {n_steps_, n_features_in_, feature_names_in_}

    See Also
    --------
    nonneg.cone_rank_one : The function behind it.
    nonneg.NMF : With ``init="cr1"`` it starts here and continues to a local optimum.

    Notes
    -----
    `transform` gives each sample one entry, in the column of its cone: the projection on that direction.
    `fit_transform(X)` equals `fit(X).transform(X)`, and `predict(X)` equals `labels_`.

    There is no `init`, `tol`, `max_iter`, `verbose`, `callback` or `checkpoint`, because nothing is iterated
    to convergence: a fit takes a fixed number of products with the data.

    References
    ----------
    .. [1] Liu & Tan (2017), Rank-one NMF-based initialization for NMF and relative error bounds under a
       geometric assumption, IEEE Trans. Signal Processing 65(18), 4717-4731.

    Examples
    --------
    >>> from nonneg import ConeNMF
    >>> from nonneg.datasets import circular_cones
    >>> planted = circular_cones(300, 50, 4, size_angle=0.2, rng=0)
    >>> model = ConeNMF(n_components=4).fit(planted.X)
    >>> model.certificate_["geometric-assumption"].holds
    True
    """

    n_components: int | str = "auto"
    _: KW_ONLY
    seeding: str = "farthest"
    n_init: int = 1
    bounds: bool = True
    random_state: Seed = None
    n_jobs: int | None = None

    _function: ClassVar[Any] = cone_rank_one
    _stored: ClassVar[Fields] = {
        **WeightedEstimator._stored,
        "labels_": StoredArray("n_samples", kind="i"),
        "centroids_": StoredArray("n_components_", "n_features_in_"),
        "centroid_indices_": StoredArray("n_components_", kind="i"),
        "basis_": StoredArray("n_components_", "n_features_in_", optional=True),
        "size_angles_": StoredArray("n_components_", optional=True),
        "_stream": {
            ConeStream: {
                "centroids": StoredArray("n_components_", "n_features_in_"),
                "centroid_indices": StoredArray("n_components_", kind="i"),
                "sketches": StoredArray("n_components_", "rows of a sketch", "n_features_in_"),
                **dict.fromkeys(("radii", "squared_norms"), StoredArray("n_components_")),
                "counts": StoredArray("n_components_", kind="i"),
                **dict.fromkeys(("n_found", "n_seen"), int),
                "largest_merge_angle": float,
            }
        },
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "seeding": [StrOptions(set(SEEDINGS))],
    }

    def _fit(self, X: Any, sample_weight: Any = None) -> DataMatrix:
        data = input_data(self, X, reset=True, sample_weight=sample_weight)
        k = rank_of(self, data, methods=NUMBER_OF_CONES)
        result = self._best_of_inits(data, k)
        with threads(self.n_jobs):
            (statement,) = certify(data, result.W, result.H.T, beta=2.0, penalties=Penalties(), free=None)
            self.centroids_ = unit_rows(data, result.centroid_indices)
            self.reconstruction_err_ = result.relative_error * math.sqrt(data.squared_norm())
            # Cones are not iterated, so that "more iterations" is no advice.
            quantities = {**statement.quantities, "by_design": "cones"}
            self.certificate_ = Certificate((replace(statement, quantities=quantities),))
            for name in ("basis_", "size_angles_", "n_steps_"):
                self.__dict__.pop(name, None)
            if self.bounds:
                self.basis_, self.size_angles_ = result.basis, result.size_angles
                self.certificate_ = self.certificate_.with_statements(result.certificate)
            self._stream = stream_after_fit(data, result, self.centroids_, bounds=self.bounds)
        self._set_components(result.H)
        self.labels_, self.centroid_indices_ = result.labels, result.centroid_indices
        # The data would otherwise travel with every copy of the model.
        self.result_ = replace(result, data=None, _labels=None)
        return data

    def _best_of_inits(self, data: DataMatrix, k: int) -> ConeResult:
        options: dict[str, Any] = {"seeding": self.seeding, "n_jobs": self.n_jobs}
        # The deterministic initialization comes first, so that more of them never give a larger error.
        results = [cone_rank_one(data, k, **options)] if self.seeding == "farthest" else []
        if (drawn := self.n_init - len(results)) > 0:
            rng = generator(self.random_state)
            results.append(cone_rank_one(data, k, rng=rng, n_init=drawn, **options))
        return min(results, key=lambda result: result.relative_error)

    def predict(self, X: Any) -> Any:
        """Return the cone of each sample: the one whose centroid is at the smallest angle.

        Parameters
        ----------
        {X}

        Returns
        -------
        array of int of shape (n_samples,)
            From 0; -1 for samples of zeros. A Dask array for Dask data.
        """
        check_is_fitted(self)
        data = input_data(self, X, reset=False)
        with threads(self.n_jobs):
            return nearest_cones(data, data.to_device(self.centroids_))[:, 0]

    def _weights(self, data: DataMatrix) -> Any:
        return project_on_cones(data, data.to_device(self.centroids_), data.to_device(self.components_))

    def certify(self, X: Any, *, sample_weight: Any = None) -> Certificate:
        """Add the Eckart-Young lower bound to `certificate_`.

        Parameters
        ----------
        {X, sample_weight}

        Returns
        -------
        Certificate
            With the statement "eckart-young-bound".
        """
        check_is_fitted(self)
        data = input_data(self, X, reset=False, sample_weight=sample_weight)
        with threads(self.n_jobs):
            statement = eckart_young_statement(data, self._weights(data), data.to_device(self.components_.T))
        self.certificate_ = self.certificate_.with_statements([statement])
        return self.certificate_

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Any:
        """Update the cones with one batch of samples, as small as one, none of which is kept.

        Parameters
        ----------
        {X, y, sample_weight}

        Returns
        -------
        ConeNMF
            Itself, with all attributes but `result_`.

        Notes
        -----
        Each sample becomes a centroid, and if there is then one too many, the two nearest are merged. If all
        samples lie in at most `n_components` cones that satisfy the paper's assumption (2), no cone is ever
        mixed with another, whatever the order of the samples, and once all cones have appeared, the clusters
        are these cones. For any samples, the statements of `certificate_` are true: they bound the error, the
        angles of all samples to their centroids, and what any other clustering could reach.

        For each cone, a centroid and eight rows are kept; the squared error of its direction is at most 9/8
        of the best possible one for the samples assigned to it (17/8 if the stream continues a `fit`).
        `seeding`, `n_init`, `random_state` and `bounds` have no effect here.
        """
        first = not hasattr(self, "components_")
        data = input_data(self, X, reset=first, sample_weight=sample_weight)
        with threads(self.n_jobs):
            if first:
                k = rank_of(self, data, methods=NUMBER_OF_CONES)
                state = ConeStream.empty(k, data.shape[1])
            else:
                state = self._stream
            self._stream = state = update_stream(state, data)
            self.centroids_ = data.to_device(state.centroids)
            self.labels_ = nearest_cones(data, self.centroids_)[:, 0]
        directions, explained = state.directions()
        self._count_batch(data.to_device(directions))
        self.centroid_indices_ = state.centroid_indices.copy()
        self.basis_, self.size_angles_ = state.centroids.copy(), state.radii.copy()
        residual = float(np.sum(state.squared_norms) - np.sum(explained))
        self.reconstruction_err_ = max(residual, 0.0) ** 0.5
        self.certificate_ = Certificate(tuple(stream_statements(state, explained)))
        return self

    def _complete_loaded(self) -> None:
        if self._stream.sketches.shape[1] > SKETCH_SIZE:
            raise FileFormatError(f"a cone is sketched by more than {SKETCH_SIZE} rows.")
