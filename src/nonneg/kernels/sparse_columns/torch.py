"""Columns with few entries whose lists are PyTorch tensors, so that they stay on the GPU with the points.

Many threads add at once, in no fixed order. They add integers only, so that the sum is always the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nonneg._arrays import to_numpy
from nonneg._typing import Array
from nonneg.kernels.sparse_columns import GROWTH, UNDERFLOW, SparseColumns

# Values up to 1 are split into two integers of this number of bits: sums of 2^26 values fit into 64 bits.
BITS = 36


def tensor_on(array: Any, device: Any) -> Array:
    """Return a copy of a NumPy array as a tensor on a device."""
    import torch

    return torch.tensor(array, device=device)


def columns_to_device(columns: SparseColumns, device: Any) -> SparseColumns:
    """Return a copy of the lists as tensors on a device."""
    rows, weights, counts = (
        tensor_on(array, device) for array in (columns.rows, columns.weights, columns.counts)
    )
    return SparseColumns(rows, weights, counts, columns.total)


def columns_to_numpy(columns: SparseColumns) -> SparseColumns:
    """Return the lists as NumPy arrays."""
    rows, weights, counts = (to_numpy(array) for array in (columns.rows, columns.weights, columns.counts))
    return SparseColumns(rows, weights, counts, columns.total)


def add_to_columns(
    columns: SparseColumns, entering: Array, gain: int, *, total: float
) -> tuple[SparseColumns, Array]:
    """Add the same weight to one row of every column; see `kernels.sparse_columns.step_columns`."""
    import torch

    old_rows, old_weights, old_counts = _lists(columns)
    n, room = old_rows.shape
    capacity = room + (GROWTH if int(old_counts.max()) >= room else 0)
    rows, weights = (array.new_zeros((n, capacity)) for array in (old_rows, old_weights))
    rows[:, :room], weights[:, :room] = old_rows, old_weights
    entering = entering[:, None]
    place = torch.arange(capacity, device=rows.device)
    here = (rows == entering) & (place < old_counts[:, None])
    found = here.any(dim=1, keepdim=True)
    first = here.to(torch.uint8).argmax(dim=1, keepdim=True)
    at = torch.where(found, first, old_counts[:, None].long())
    reached = weights.gather(1, at) * found + gain
    rows.scatter_(1, at, entering.to(rows.dtype))
    weights.scatter_(1, at, reached)
    counts = old_counts + (~found[:, 0]).to(old_counts.dtype)
    return SparseColumns(rows, weights, counts, float(total)), reached[:, 0]


def raised_row_facts(
    row_max: Array, row_count: Array, entering: Array, reached: Array, fresh: Array
) -> tuple[Array, Array]:
    """Update the facts of the rows after such a step; see `kernels.sparse_columns.raised_row_facts`."""
    higher = row_max.scatter_reduce(0, entering, reached, "amax")
    return higher, row_count.scatter_add(0, entering, fresh.to(row_count.dtype))


def exact_sums(places: Array, values: Array, n_sums: int) -> Array:
    """Sum values by place, with a result that does not depend on their order.

    Parameters
    ----------
    places : tensor of int64
        Where each value belongs.
    values : tensor of float64
        Between 0 and 1.
    n_sums : int
        The number of places.

    Returns
    -------
    tensor of float64 of shape (n_sums,)
        Exact to 2^-72 times the number of values.
    """
    import torch

    unit = float(1 << BITS)
    high = (values * unit).floor()
    low = ((values * unit - high) * unit).floor()
    sums = torch.zeros((2, n_sums), dtype=torch.int64, device=values.device)
    for total, part in zip(sums, (high, low), strict=True):
        total.scatter_add_(0, places, part.long())
    return sums[0].double() / unit + sums[1].double() / unit / unit


@dataclass(frozen=True)
class NearEntries:
    """Entries near the largest of their row."""

    rows: Array  # where they are, column by column
    columns: Array
    weights: Array  # their weights
    values: Array  # exp((weight - largest) / scale), 1 for the largest


def near_maxima(columns: SparseColumns, row_max: Array, scale: float) -> NearEntries:
    """List the entries whose exp((weight - largest of the row) / scale) is not zero in float64.

    Parameters
    ----------
    columns : SparseColumns
        Of tensors.
    row_max : tensor of shape (n_columns,)
        The largest weight of every row.
    scale : float
        Positive; weights are measured in it.

    Returns
    -------
    NearEntries
        Its memory is that of the listed entries.
    """
    import torch

    rows, weights, counts = _lists(columns)
    capacity = rows.shape[1]
    used = torch.arange(capacity, device=rows.device) < counts[:, None]
    below = row_max.index_select(0, rows.view(-1)).view(rows.shape) - weights
    # Integers stay integers: the reach is truncated to an integer within their range.
    reach = UNDERFLOW * scale
    if not weights.dtype.is_floating_point:
        reach = int(min(reach, torch.iinfo(weights.dtype).max))
    at = (used & (below <= reach)).view(-1).nonzero()[:, 0]
    distance = below.view(-1)[at].double()
    values = (distance * (-1.0 / max(scale, 1e-300))).exp()
    return NearEntries(
        rows=rows.view(-1)[at].long(),
        columns=at // capacity,
        weights=weights.view(-1)[at],
        values=torch.where(distance == 0, torch.ones_like(values), values),
    )


def _lists(columns: SparseColumns) -> tuple[Array, Array, Array]:
    return columns.rows, columns.weights, columns.counts
