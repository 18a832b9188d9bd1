"""Clustering and rank-one NMF (Liu & Tan, Algorithm 2): one direction per cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from nonneg._arguments import checked_count, checked_nonnegative
from nonneg._arrays import to_float64
from nonneg._lazy import cached_property
from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg._typing import Array, FloatArray, IntArray, MatrixLike, SampleArray
from nonneg.certificates.certificate import Certificate
from nonneg.certificates.svd_lower_bound import relative_error_from_square, rounding_error
from nonneg.cones.certificate import cone_statements
from nonneg.cones.clustering import SEEDINGS, ConeClusters, cone_clusters
from nonneg.cones.directions import ClusterDirections, leading_directions
from nonneg.cones.encoding import memberships
from nonneg.cones.geometry.bounds import (
    cluster_bound,
    corrected_size_angles,
    expected_error,
    largest_angle_bound,
)
from nonneg.cones.geometry.size_angle import SizeAngles, size_angles
from nonneg.data.door import Request, wrap
from nonneg.data.matrix import DataMatrix
from nonneg.exceptions import InvalidParameterError

_COMPARISON_TOL = 1e-4  # for initializations that are only compared: squared, the error is known to 1e-8


@dataclass(frozen=True)
class ConeResult:
    """Clusters of directions, and the factorization with one direction per cluster.

    Attributes
    ----------
    labels : array of int of shape (n_samples,)
        The cluster of each sample; -1 for samples of zeros, which belong to none. A Dask array for Dask data.
    W : array of shape (n_samples, n_components)
        The projection of each sample on the direction of its cluster; zeros elsewhere.
    H : array of shape (n_components, n_features)
        The directions: unit rows.
    centroid_indices : array of int of shape (n_components,)
        The samples that are the centroids of the clusters.
    relative_error : float
        ||X - W H|| / ||X||, with the sample weights; for an exact fit it is rounding error.
    squared_singular_values : array of shape (n_components,)
        The squares of the leading singular values of the clusters: what each explains of ||X||^2.
    data : DataMatrix or None
        The data, from which the properties below are computed on first use. None with ``bounds=False``.
    """

    labels: Any
    W: SampleArray
    H: Array
    centroid_indices: IntArray
    relative_error: float
    squared_singular_values: FloatArray
    data: DataMatrix | None = None
    _labels: SampleArray = field(default=None)

    @cached_property
    def cones(self) -> SizeAngles:
        """The smallest cones around the clusters: axes, size angles, counts and norms of the clusters."""
        if self.data is None:
            raise InvalidParameterError(
                "The size angles and bounds need the data, which the result does not keep with bounds=False. "
                "Call cone_rank_one with bounds=True."
            )
        with threads(None):
            return size_angles(self.data, self._labels, to_float64(self.H))

    @property
    def basis(self) -> FloatArray:
        """The axes of the smallest cones around the clusters, unit rows: the paper's basis vectors."""
        return self.cones.axes

    @property
    def size_angles(self) -> FloatArray:
        """The angles of the smallest cones around the clusters, in radians."""
        return self.cones.angles

    @cached_property
    def bounds(self) -> dict[str, float]:
        """Bounds of the relative error, and a prediction."""
        # ``"cluster"`` is Theorem 4's bound (12) and ``"largest-angle"`` its weaker form (8); both hold for
        # any clustering, but for the rounding of the factors. ``"expected"`` is Theorem 6's value with the
        # cones estimated from the clusters, which is no bound.
        cones = self.cones
        estimates = corrected_size_angles(cones.initial_angles, cones.counts)
        return {
            "cluster": cluster_bound(cones.angles, cones.squared_norms),
            "largest-angle": largest_angle_bound(cones.angles),
            "expected": expected_error(estimates, cones.squared_norms),
        }

    @cached_property
    def certificate(self) -> Certificate:
        """Bounds and predictions of the error from the cones around the clusters."""
        cones = self.cones
        assert self.data is not None
        return Certificate(tuple(cone_statements(cones, self.relative_error, rounding_error(self.data))))

    def __repr__(self) -> str:
        shapes = f"W={tuple(self.W.shape)}, H={tuple(self.H.shape)}"
        return f"ConeResult(relative_error={self.relative_error:.6g}, {shapes})"


def cone_rank_one(
    X: MatrixLike,
    n_components: int,
    *,
    first: int | None = None,
    rng: Seed = None,
    seeding: str = "farthest",
    n_init: int = 1,
    sample_weight: Any = None,
    tol: float = 1e-10,
    max_iter: int = 300,
    bounds: bool = True,
    n_jobs: int | None = None,
) -> ConeResult:
    """Cluster the samples by direction and factorize each cluster with rank one (cr1-nmf).

    Parameters
    ----------
    X : array, sparse matrix or Dask array of shape (n_samples, n_features)
        Nonnegative data; never changed.
    n_components : int
        The number of clusters, at most the number of distinct directions among the samples.
    first : int, optional
        The sample that is the first centroid. By default the one farthest from the mean direction; a random
        one where `rng` is given or the seeding is random.
    rng : None, int, Generator, RandomState or SeedSequence
        Source of random numbers. With None and ``seeding="farthest"`` the first initialization is
        deterministic.
    seeding : {"farthest", "plus-plus"}, default "farthest"
        The next centroid is the sample farthest from the previous ones (the paper's rule), or a random
        sample, drawn with probability proportional to one minus its largest cosine with them.
    n_init : int, default 1
        Number of initializations, each with its own first centroid; the clusters with the smallest relative
        error are kept. With the same `rng`, more of them never increase the error by more than 1e-8.
    sample_weight : array of shape (n_samples,), optional
        Sample weights; an integer weight is equivalent to repeating the sample.
    tol : float, default 1e-10
        Relative residual of the leading singular pairs of the clusters; at least 100 times the machine
        epsilon of the data.
    max_iter : int, default 300
        Maximum number of iterations for these; each is one pass over the data.
    bounds : bool, default True
        Whether the result keeps the data, which `size_angles`, `bounds` and `certificate` need.
    n_jobs : int, optional
        Number of threads; all cores by default.

    Returns
    -------
    ConeResult
        Clusters and factors; size angles, bounds and certificate are computed on first use. No
        cluster is empty. Of equal cosines the lowest index wins. Samples of zeros have the label -1 and a row
        of zeros in W.

    Raises
    ------
    InvalidParameterError
        If the samples have fewer distinct directions than `n_components`. Repeated samples, and multiples of
        a sample, have one direction; the message says how many were found.

    Notes
    -----
    O(n_components n_samples n_features) for the clusters, and a few passes over the data for the directions.
    If the data lie in cones that satisfy the paper's assumption (2), the clusters are these cones for any
    first centroid. Lengths do not matter for the clusters, so there is no `normalize`. There is no `verbose`,
    `callback` or `checkpoint`, because a call takes only a few passes over the data.

    References
    ----------
    .. [1] Liu & Tan (2017), Rank-one NMF-based initialization for NMF and relative error bounds under a
       geometric assumption, IEEE Trans. Signal Processing 65(18), 4717-4731, Algorithms 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg import cone_rank_one
    >>> X = np.array([[2.0, 0.0, 0.1], [0.0, 3.0, 0.0], [4.0, 0.1, 0.0], [0.0, 1.0, 0.1]])
    >>> result = cone_rank_one(X, 2)
    >>> result.labels[0] == result.labels[2], result.labels[1] == result.labels[3]
    (True, True)
    """
    data = wrap(X, Request(sample_weight=sample_weight, who="cone_rank_one", masks=False))
    _check_counts(n_components, n_init, first, seeding, data.shape[0])
    checked_nonnegative("tol", tol)
    checked_count("max_iter", max_iter)
    with threads(n_jobs):
        best: tuple[ConeClusters, ClusterDirections] | None = None
        for source in _sources(rng, n_init):
            clusters = cone_clusters(data, n_components, first=first, rng=source, seeding=seeding)
            _check_found(len(clusters.centroid_indices), n_components)
            pairs = leading_directions(
                data,
                clusters.labels,
                clusters.centroids,
                tol=tol if n_init == 1 else max(tol, _COMPARISON_TOL),
                max_iter=max_iter,
            )
            if best is None or pairs.squared_values.sum() > best[1].squared_values.sum():
                best = clusters, pairs
        assert best is not None
        clusters, pairs = best
        if n_init > 1:
            pairs = leading_directions(data, clusters.labels, pairs.directions, tol=tol, max_iter=max_iter)
        W = memberships(data, clusters.labels, pairs.products, n_components)
        H = data.to_device(pairs.directions)
        # Projections on unit vectors: what they explain of the squares and what they leave add up to all.
        residual = 1.0 - float(pairs.squared_values.sum()) / data.squared_norm()
        error = relative_error_from_square(data, W, H.T, residual)
    return ConeResult(
        labels=clusters.labels[:, 0],
        W=W,
        H=H,
        centroid_indices=clusters.centroid_indices,
        relative_error=error,
        squared_singular_values=pairs.squared_values,
        data=data if bounds else None,
        _labels=clusters.labels,
    )


def _sources(rng: Seed, n_init: int) -> Iterator[Seed]:
    # Without a seed the first initialization is deterministic.
    if rng is not None:
        yield from generator(rng).spawn(n_init)
    else:
        yield None
        yield from generator(None).spawn(n_init - 1)


def _check_counts(n_components: Any, n_init: Any, first: int | None, seeding: str, n_rows: int) -> None:
    checked_count("n_components", n_components)
    checked_count("n_init", n_init)
    if n_components > n_rows:
        raise InvalidParameterError(
            f"n_components={n_components} clusters cannot be made of {n_rows} samples. "
            f"Use at most {n_rows} components."
        )
    if first is not None and n_init > 1 and seeding == SEEDINGS[0]:
        raise InvalidParameterError(
            f"first={first} fixes the clusters, so n_init={n_init} initializations would all be equal. "
            "Leave one of the two out, or use seeding='plus-plus'."
        )


def _check_found(n_found: int, n_components: int) -> None:
    if n_found < n_components:
        raise InvalidParameterError(
            f"n_components={n_components} clusters need as many distinct directions, but the samples have "
            f"{n_found} (samples that are multiples of one another count once, samples of zeros not at all). "
            f"Use n_components={n_found} or fewer."
            if n_found
            else f"n_components={n_components} clusters need distinct directions, but all samples are zeros."
        )
