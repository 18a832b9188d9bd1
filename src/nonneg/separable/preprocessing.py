"""Preprocessing: named steps that record which samples they keep, and what lies under them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._ties import rounded, vector_signs
from nonneg._typing import Array, IntArray
from nonneg.data import DataMatrix, LocalMatrix, as_data_matrix
from nonneg.data.spectral import leading_vectors
from nonneg.data.views import normalized_rows
from nonneg.exceptions import InvalidDataError, InvalidParameterError

PAIR_ENTRIES = 1 << 22  # of the differences of samples that exist at a time (32 MB)


@dataclass(frozen=True)
class Prepared:
    """Samples ready for a method, and their rows in X."""

    data: DataMatrix  # the samples
    kept: IntArray | None = None  # the row of X of each sample; None where all are kept
    details: dict[str, Any] = field(default_factory=dict)  # what each step did, by name

    def with_rows(self, rows: IntArray, **details: Any) -> Prepared:
        """Return the same with some of the samples."""
        if len(rows) == self.data.shape[0]:
            return Prepared(self.data, self.kept, self.details | details)
        origin = rows if self.kept is None else self.kept[rows]
        return Prepared(rows_of(self.data, rows), origin, self.details | details)


def prepared(
    data: DataMatrix,
    *,
    energy: float | None = None,
    normalize: str | None = None,
    reduce: int | None = None,
    centered: bool = False,
    merge: float | None = None,
) -> Prepared:
    """Run the requested steps, in this order."""
    points = Prepared(data)
    if energy is not None:
        points = keep_energy(points, energy)
    if normalize is not None:
        points = normalize_points(points, normalize)
    if reduce is not None:
        points = reduce_dimension(points, reduce, centered=centered)
    if merge is not None:
        points = merge_near_duplicates(points, merge)
    return points


def keep_energy(points: Prepared, share: float) -> Prepared:
    """Keep the samples with the largest norms that together hold a fraction of the squared norm."""
    rows = largest_rows(squared_norms(points.data), share)
    return points.with_rows(rows, energy={"share": share, "n_kept": len(rows)})


def largest_rows(squares: Any, share: float) -> IntArray:
    """Return the rows with the largest squared norms that together hold a fraction of their sum."""
    order = np.argsort(-squares, kind="stable")
    sums = np.cumsum(squares[order])
    n_kept = int(np.searchsorted(sums, share * sums[-1] * (1.0 - 1e-12))) + 1
    return np.sort(order[:n_kept])


def normalize_points(points: Prepared, norm: str) -> Prepared:
    """Divide every sample by its l1 or l2 norm."""
    if norm not in ("l1", "l2"):
        raise InvalidParameterError(f"normalize must be None, 'l1' or 'l2', got {norm!r}.")
    filled = np.flatnonzero(squared_norms(points.data) > 0)
    if not len(filled):
        raise InvalidDataError("All samples are zero: nothing can be normalized. Check X.")
    details = {"norm": norm, "n_zero": points.data.shape[0] - len(filled)}
    points = points.with_rows(filled, normalize=details)
    return Prepared(normalized_rows(points.data, norm), points.kept, points.details)


def reduce_dimension(points: Prepared, n_dimensions: int, *, centered: bool = False) -> Prepared:
    """Project the samples onto their leading directions."""
    largest = min(points.data.shape)
    if not isinstance(n_dimensions, int | np.integer) or not 1 <= n_dimensions <= largest:
        raise InvalidParameterError(
            f"reduce must be an integer from 1 to {largest}, the smaller side of X. Got {n_dimensions!r}."
        )
    directions, mean = principal_directions(points.data, int(n_dimensions), centered=centered)
    reduced = projected(points.data, directions, offset=mean)
    details = {"n_dimensions": directions.shape[1], "centered": centered}
    return Prepared(reduced, points.kept, points.details | {"reduce": details})


def merge_near_duplicates(points: Prepared, share: float) -> Prepared:
    """Keep one sample of each group of near-duplicates."""
    host = gathered(points.data)
    radius = share * float(np.sqrt(np.max(np.einsum("ij,ij->i", host, host))))
    rows, labels = representatives(host, radius)
    details = {"share": share, "n_kept": len(rows), "labels": labels}
    return points.with_rows(rows, merge=details)


def gathered(data: DataMatrix) -> Any:
    """Return all samples as one dense NumPy array of float64."""
    parts = data.reduce_rows(_dense_block)
    return np.concatenate(parts, axis=0)


def _dense_block(block: LocalMatrix) -> list[Any]:
    return [to_float64(block.dense_rows(0, block.shape[0]))]


def squared_norms(data: DataMatrix) -> Any:
    """Return the squared norms of the samples."""
    parts = data.reduce_rows(_block_squares)
    return np.concatenate(parts)


def _block_squares(block: LocalMatrix) -> list[Any]:
    return [to_float64(block.row_powers(2.0))]


def rows_of(data: DataMatrix, rows: IntArray) -> DataMatrix:
    """Return the given samples in the container of the data."""
    # A view of chunks has no array.
    in_memory = (
        data.container in ("dense", "array")
        if isinstance(data, LocalMatrix)
        else getattr(data, "array", None) is None
    )
    return as_data_matrix(data.take_rows(rows)) if in_memory else data.select(rows)  # type: ignore[attr-defined]


def mean_row(data: DataMatrix) -> Any:
    """Return the mean of the samples."""
    ones = data.to_sample_array(np.ones((data.shape[0], 1)))
    return to_float64(data.transposed_times(ones))[:, 0] / data.shape[0]


def projected(data: DataMatrix, basis: Any, *, offset: Any = None) -> DataMatrix:
    """Return the projected samples (x - offset) basis."""
    basis = np.asarray(basis, dtype=np.float64)
    shift = None if offset is None else data.to_device((offset @ basis)[None, :])
    points = data.map_rows(_reduced, basis=data.to_device(basis), shift=shift)
    return as_data_matrix(points)


def _reduced(block: LocalMatrix, *, basis: Array, shift: Array | None) -> Array:
    points = block.times(basis)
    return points if shift is None else points - shift


def principal_directions(data: DataMatrix, k: int, *, centered: bool) -> tuple[Any, Any]:
    """Return the leading directions of the samples, and their mean if it is subtracted."""
    # The centered data are never formed. With few features the covariance is decomposed; otherwise the
    # leading directions are computed in the span of k + 1 leading singular vectors and the mean, which
    # contains them if the data have at most k + 1 dimensions.
    if not centered:
        return leading_vectors(data, k), None
    mean = mean_row(data)
    n, m = data.shape
    span = leading_vectors(data, min(n, m, k + 1 if m > 500 else m))
    wide = np.linalg.qr(np.column_stack([span, mean]))[0] if span.shape[1] < m else span
    points = projected(data, wide, offset=mean)
    inner = leading_vectors(points, min(k, *points.shape))
    directions = wide @ inner
    # The signs of the inner directions depend on those of the columns of `wide`, which are arbitrary.
    return directions * vector_signs(directions), mean


def representatives(points: Any, radius: float) -> tuple[IntArray, IntArray]:
    """Select representatives: every sample is within a radius of one, and no two of them are."""
    # Close points are close along any direction: pairs are searched among neighbors in the order along the
    # direction of largest variance, so that no table of all pairs is formed. Representatives are selected in
    # rounds, each of which selects the points with larger norms than all their undecided neighbors.
    points = np.asarray(points, dtype=np.float64)
    first, second = _close_pairs(points, radius)
    n = len(points)
    norms = rounded(np.einsum("ij,ij->i", points, points))
    rank = np.empty(n, dtype=np.int64)
    rank[np.lexsort((np.arange(n), -norms))] = np.arange(n)  # 0 is the largest norm
    leader = np.full(n, -1, dtype=np.int64)
    open_points = np.ones(n, dtype=bool)
    while open_points.any():
        alive = open_points[first] & open_points[second]
        first, second = first[alive], second[alive]
        best = np.where(open_points, rank, n)
        np.minimum.at(best, first, rank[second])
        np.minimum.at(best, second, rank[first])
        winners = open_points & (best == rank)
        leader[winners] = np.flatnonzero(winners)
        # A neighbor of several winners joins the one with the largest norm.
        leaders = np.full(n, n, dtype=np.int64)
        for mine, other in ((first, second), (second, first)):
            won = winners[other] & ~winners[mine]
            np.minimum.at(leaders, mine[won], rank[other[won]])
        joined = leaders < n
        by_rank = np.argsort(rank)
        leader[joined] = by_rank[leaders[joined]]
        open_points &= ~(winners | joined)
    leaders = np.unique(leader)
    return leaders, np.searchsorted(leaders, leader)


def _close_pairs(points: Any, radius: float) -> tuple[IntArray, IntArray]:
    n, m = points.shape
    centered = points - points.mean(axis=0)
    direction = np.linalg.eigh(centered.T @ centered)[1][:, -1] if m > 1 else np.ones(1)
    along = points @ direction
    order = np.argsort(along, kind="stable")
    along, sorted_points = along[order], points[order]
    firsts, seconds = [], []
    slack = radius + 1e-12 * float(np.abs(along).max(initial=0.0))
    for offset in range(1, n):
        near = np.flatnonzero(along[offset:] - along[:-offset] <= slack)
        if not near.size:
            break
        step = max(1, PAIR_ENTRIES // m)
        for start in range(0, len(near), step):
            part = near[start : start + step]
            gap = sorted_points[part + offset] - sorted_points[part]
            close = part[np.einsum("ij,ij->i", gap, gap) <= radius * radius]
            firsts.append(order[close])
            seconds.append(order[close + offset])
    nothing = np.empty(0, dtype=np.int64)
    return np.concatenate([nothing, *firsts]), np.concatenate([nothing, *seconds])
