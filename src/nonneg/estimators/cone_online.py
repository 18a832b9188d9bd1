"""The part of `ConeNMF` that learns from one batch after the other, and what it keeps on disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context

from nonneg._arrays import to_float64, to_numpy
from nonneg._threads import threads
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.certificates.certificate import Certificate
from nonneg.cones.encoding import cones_of, sums_by_cone
from nonneg.cones.geometry import angles_between
from nonneg.cones.rank_one import ConeResult
from nonneg.cones.streaming import SKETCH_ROWS, ConeStream, take_in
from nonneg.cones.streaming_certificate import stream_statements
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.local import local_matrix
from nonneg.estimators._base import FactorizingEstimator, input_data
from nonneg.estimators.stored_fields import Fields, Part, StoredArray, Value
from nonneg.exceptions import FileFormatError
from nonneg.rank_selection import estimate_rank


def memory_of_a_fit(
    data: DataMatrix, result: ConeResult, centroids: Array, basis: Any, size_angles: Any
) -> ConeStream:
    """Return what `partial_fit` goes on from after a fit: the past is remembered by one row a cone."""
    k = len(result.centroid_indices)
    counts, squared_norms = (to_float64(sums) for sums in sums_by_cone(data, result.labels[:, None], k))
    rows, radii = to_float64(centroids), np.full(k, np.pi / 2)
    if basis is not None:
        # A cone about another axis that holds the same samples is a cone about the centroid too.
        apart = [angles_between(np.stack(pair))[0, 1] for pair in zip(rows, basis, strict=True)]
        radii = np.minimum(radii, np.asarray(apart) + size_angles)
    return ConeStream(
        rows,
        np.asarray(result.centroid_indices, dtype=np.intp),
        radii,
        (np.sqrt(result.squared_singular_values)[:, None] * to_float64(result.H))[:, None, :],
        squared_norms,
        counts.astype(np.intp),
        n_found=k,
        n_seen=data.shape[0],
    )


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
                    "numbers": StoredArray("n_components_", kind="i"),
                    "radii": StoredArray("n_components_"),
                    "sketches": StoredArray("n_components_", "rows of a sketch", "n_features_in_"),
                    "squared_norms": StoredArray("n_components_"),
                    "counts": StoredArray("n_components_", kind="i"),
                    "n_found": Value(int),
                    "widest_join": Value(float),
                    "n_seen": Value(int),
                }
            }
        ),
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Any:
        """Take in one batch of samples, none of which is kept.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or dask array of shape (n_samples, n_features)
            The batch; never changed. It may be as small as one sample.
        y : Any
            Ignored.
        sample_weight : array of shape (n_samples,), optional
            An integer weight counts like so many equal samples.

        Returns
        -------
        ConeNMF
            Itself, with all attributes but `result_`.

        Notes
        -----
        A sample becomes a centroid, and when there is one too many the two nearest are joined. If all samples
        lie in at most `n_components` cones that satisfy the paper's assumption (2), no cone is ever mixed
        with another, whatever the order of the samples, and once all cones have shown up the clusters are
        these cones. For any samples, the statements of `certificate_` are true: they bound the error, the
        angles of all samples to their centroids, and what any other clustering could reach.

        Of each cone a centroid and eight rows are kept; the squared error of its direction is at most 9/8 of
        the best for the samples put into it (17/8 where the past is that of a `fit`). `first`, `seeding`,
        `n_starts`, `random_state` and `bounds` do not matter here.
        """
        first = not hasattr(self, "components_")
        data = input_data(self, X, reset=first, sample_weight=sample_weight)
        with threads(self.n_jobs):
            if first:
                k = estimate_rank(data).rank if self.n_components == "auto" else int(self.n_components)
                state = ConeStream.empty(k, data.shape[1])
            else:
                state = self._stream
            for block in _host_blocks(data):
                state = take_in(state, block)
            self._take_over(data, state)
            self.labels_ = cones_of(data, self.centroids_)[:, 0]
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
        self.centroid_indices_ = state.numbers.copy()
        self.basis_, self.size_angles_ = state.centroids.copy(), state.radii.copy()
        left = float(np.sum(state.squared_norms) - np.sum(explained))
        self.reconstruction_err_ = max(left, 0.0) ** 0.5
        statements = stream_statements(
            centroids=state.centroids[seen],
            radii=state.radii[seen],
            squared_norms=state.squared_norms[seen],
            explained=explained[seen],
            widest_join=state.widest_join,
            n_cones=state.n_cones,
        )
        self.certificate_ = Certificate(tuple(statements))

    def _complete_loaded(self) -> None:
        if self._stream.sketches.shape[1] > SKETCH_ROWS:
            raise FileFormatError(f"a cone is sketched by more than {SKETCH_ROWS} rows.")


def _host_blocks(data: DataMatrix) -> Iterator[LocalMatrix]:
    """Yield the rows of a batch as NumPy or SciPy ones, chunk by chunk."""
    blocks: Any = [data] if isinstance(data, LocalMatrix) else data.local_blocks()  # type: ignore[attr-defined]
    for block in blocks:
        if block.container == "array":
            weights = None if block.weights is None else to_numpy(block.weights)
            block = local_matrix(to_numpy(block.array), weights=weights)
        yield block
