"""The part of `ConeNMF` that learns from one batch after the other, and what it keeps on disk."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context

from nonneg._threads import threads
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.certificates.certificate import Certificate
from nonneg.cones.certificate import stream_statements
from nonneg.cones.encoding import nearest_cones
from nonneg.cones.streaming import SKETCH_SIZE, ConeStream, update_stream
from nonneg.data import DataMatrix
from nonneg.estimators._base import FactorizingEstimator, input_data
from nonneg.estimators.preparation import rank_of
from nonneg.estimators.stored_fields import Fields, Part, StoredArray, Value
from nonneg.exceptions import FileFormatError

NUMBER_OF_CONES = ("singular-value-ratio",)
"""How "auto" estimates the number of cones, as Liu & Tan do."""


class OnlineConeEstimator(FactorizingEstimator):
    """An estimator that also learns the cones of a stream."""

    n_components: int | str
    n_jobs: int | None
    labels_: Any
    centroids_: Array
    centroid_indices_: IntArray
    basis_: FloatArray
    size_angles_: FloatArray
    certificate_: Certificate
    _stream: ConeStream
    _stored: ClassVar[Fields] = {
        **FactorizingEstimator._stored,
        "labels_": StoredArray("n_samples", kind="i"),
        "centroids_": StoredArray("n_components_", "n_features_in_"),
        "centroid_indices_": StoredArray("n_components_", kind="i"),
        "basis_": StoredArray("n_components_", "n_features_in_", optional=True),
        "size_angles_": StoredArray("n_components_", optional=True),
        "_stream": Part(
            {
                ConeStream: {
                    "centroids": StoredArray("n_components_", "n_features_in_"),
                    "centroid_indices": StoredArray("n_components_", kind="i"),
                    "radii": StoredArray("n_components_"),
                    "sketches": StoredArray("n_components_", "rows of a sketch", "n_features_in_"),
                    "squared_norms": StoredArray("n_components_"),
                    "counts": StoredArray("n_components_", kind="i"),
                    "n_found": Value(int),
                    "largest_merge_angle": Value(float),
                    "n_seen": Value(int),
                }
            }
        ),
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Any:
        """Update the cones with one batch of samples, none of which is kept.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or Dask array of shape (n_samples, n_features)
            The batch; never changed. It may be as small as one sample.
        y : Any
            Ignored.
        sample_weight : array of shape (n_samples,), optional
            Sample weights; an integer weight is equivalent to repeating the sample.

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
        `first`, `seeding`, `n_init`, `random_state` and `bounds` have no effect here.
        """
        first = not hasattr(self, "components_")
        data = input_data(self, X, reset=first, sample_weight=sample_weight)
        with threads(self.n_jobs):
            if first:
                k = rank_of(self, data, methods=NUMBER_OF_CONES)
                state = ConeStream.empty(k, data.shape[1])
            else:
                state = self._stream
            state = update_stream(state, data)
            self._take_over(data, state)
            self.labels_ = nearest_cones(data, self.centroids_)[:, 0]
        self.n_steps_ = getattr(self, "n_steps_", 0) + 1
        return self

    def _take_over(self, data: DataMatrix, state: ConeStream) -> None:
        directions, explained = state.directions()
        seen = slice(0, state.n_found)
        self.__dict__.pop("result_", None)  # it speaks of a fit, and no longer of the model
        self._stream = state
        self.components_ = data.to_device(directions)
        self.n_components_ = state.n_cones
        self.centroids_ = data.to_device(state.centroids)
        self.centroid_indices_ = state.centroid_indices.copy()
        self.basis_, self.size_angles_ = state.centroids.copy(), state.radii.copy()
        left = float(np.sum(state.squared_norms) - np.sum(explained))
        self.reconstruction_err_ = max(left, 0.0) ** 0.5
        statements = stream_statements(
            centroids=state.centroids[seen],
            radii=state.radii[seen],
            squared_norms=state.squared_norms[seen],
            explained=explained[seen],
            largest_merge_angle=state.largest_merge_angle,
            n_cones=state.n_cones,
        )
        self.certificate_ = Certificate(tuple(statements))

    def _complete_loaded(self) -> None:
        if self._stream.sketches.shape[1] > SKETCH_SIZE:
            raise FileFormatError(f"a cone is sketched by more than {SKETCH_SIZE} rows.")
