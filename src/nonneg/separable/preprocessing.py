"""Preprocessing: named steps that record which samples they kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nonneg._arrays import to_float64
from nonneg._typing import IntArray
from nonneg.data import DataMatrix, LocalMatrix, as_data_matrix
from nonneg.data.views import normalized_rows
from nonneg.exceptions import InvalidDataError, InvalidParameterError
from nonneg.separable.near_duplicates import representatives
from nonneg.separable.reduction import principal_directions, projected
from nonneg.separable.spa import squared_row_norms


@dataclass(frozen=True)
class Prepared:
    """Samples ready for a method, and their rows in X."""

    data: DataMatrix  # the samples
    kept: IntArray | None = None  # the row of X of each sample; None where all are kept
    facts: dict[str, Any] = field(default_factory=dict)  # what each step did, by name

    def with_rows(self, rows: IntArray, **facts: Any) -> Prepared:
        """Return the same with some of the samples."""
        if len(rows) == self.data.shape[0]:
            return Prepared(self.data, self.kept, self.facts | facts)
        kept = rows if self.kept is None else self.kept[rows]
        return Prepared(rows_of(self.data, rows), kept, self.facts | facts)


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
    squares = _squares(points.data)
    order = np.argsort(-squares, kind="stable")
    sums = np.cumsum(squares[order])
    n_kept = int(np.searchsorted(sums, share * sums[-1] * (1.0 - 1e-12))) + 1
    rows = np.sort(order[: min(n_kept, len(order))])
    return points.with_rows(rows, energy={"share": share, "n_kept": len(rows)})


def normalize_points(points: Prepared, norm: str) -> Prepared:
    """Divide every sample by its l1 or l2 norm."""
    if norm not in ("l1", "l2"):
        raise InvalidParameterError(f"normalize must be None, 'l1' or 'l2', got {norm!r}.")
    filled = np.flatnonzero(_squares(points.data) > 0)
    if not len(filled):
        raise InvalidDataError("All samples are zero: nothing can be normalized. Check X.")
    facts = {"norm": norm, "n_zero": points.data.shape[0] - len(filled)}
    points = points.with_rows(filled, normalize=facts)
    return Prepared(normalized_rows(points.data, norm), points.kept, points.facts)


def reduce_dimension(points: Prepared, n_dimensions: int, *, centered: bool = False) -> Prepared:
    """Project the samples onto their leading directions."""
    largest = min(points.data.shape)
    if not isinstance(n_dimensions, int | np.integer) or not 1 <= n_dimensions <= largest:
        raise InvalidParameterError(
            f"reduce must be an integer from 1 to {largest}, the smaller side of X. Got {n_dimensions!r}."
        )
    directions, mean = principal_directions(points.data, int(n_dimensions), centered=centered)
    reduced = projected(points.data, directions, offset=mean)
    facts = {"n_dimensions": directions.shape[1], "centered": centered}
    return Prepared(reduced, points.kept, points.facts | {"reduce": facts})


def merge_near_duplicates(points: Prepared, share: float) -> Prepared:
    """Keep one sample of each group of near-duplicates."""
    host = gathered(points.data)
    radius = share * float(np.sqrt(np.max(np.einsum("ij,ij->i", host, host))))
    chosen, labels = representatives(host, radius)
    facts = {"share": share, "n_kept": len(chosen), "labels": labels}
    return points.with_rows(chosen, merge=facts)


def gathered(data: DataMatrix) -> Any:
    """Return all samples as one dense NumPy array of float64."""
    _, (parts,) = data.map_reduce_rows(_dense_block, n_out=0)
    return np.concatenate(parts, axis=0)


def _dense_block(block: LocalMatrix) -> tuple[tuple[()], tuple[list[Any]]]:
    return (), ([to_float64(block.dense_rows(0, block.shape[0]))],)


def _squares(data: DataMatrix) -> Any:
    _, (parts,) = data.map_reduce_rows(_block_squares, n_out=0)
    return np.concatenate(parts)


def _block_squares(block: LocalMatrix) -> tuple[tuple[()], tuple[list[Any]]]:
    return (), ([to_float64(squared_row_norms(block))],)


def rows_of(data: DataMatrix, rows: IntArray) -> DataMatrix:
    """Return the given samples in the container of the data."""
    if isinstance(data, LocalMatrix):
        return (
            as_data_matrix(data.take_rows(rows))
            if data.container in ("dense", "array")
            else data.select(rows)
        )
    if getattr(data, "array", None) is None:  # as of a view of chunks
        return as_data_matrix(data.take_rows(rows))
    return data.select(rows)  # type: ignore[attr-defined]
