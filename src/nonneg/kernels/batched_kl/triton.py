"""The Kullback-Leibler divergence from many models on an NVIDIA GPU.

A line search holds a row of data, model and direction in registers while it tries its steps.
"""

from __future__ import annotations

from typing import Any

from nonneg._arrays import is_cuda_tensor

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# Columns that a program of the line search holds in registers, three numbers each; longer rows are read again
# for every step that is tried.
HELD = 4096
BLOCK = 1024
# Rows and columns of a tile whose columns are summed.
TILE_ROWS, TILE_COLUMNS = 32, 128


if triton is not None:

    @triton.jit
    def _terms(x, v, slopes, curvatures, bounds, x_step, size, BLOCK: tl.constexpr):
        batch = tl.program_id(1).to(tl.int64)
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = place < size
        at = batch * size + place
        lowest = tl.load(bounds + batch)
        entry = tl.load(x + batch * x_step + place, mask=inside, other=0.0)
        model = tl.load(v + at, mask=inside, other=1.0)
        model = tl.where(model < lowest, lowest, model)
        inverse = 1 / model
        tl.store(slopes + at, inverse * (model - entry), mask=inside)
        tl.store(curvatures + at, inverse * entry / model, mask=inside)

    @triton.jit
    def _up(x, v, d, t, lowest, inside):
        ahead = v + t * d
        ahead = tl.where(ahead < lowest, lowest, ahead)
        return tl.sum(tl.where(inside, (ahead - x) / ahead * d, 0.0), axis=0)

    @triton.jit
    def _search(
        x,
        v,
        d,
        slopes,
        steps,
        bounds,
        x_step,
        n_rows,
        n_columns,
        tries,
        BLOCK: tl.constexpr,
        WHOLE: tl.constexpr,
    ):
        row = tl.program_id(0)
        batch = tl.program_id(1).to(tl.int64)
        of_row = batch * n_rows + row
        x += batch * x_step + row.to(tl.int64) * n_columns
        at = of_row * n_columns
        lowest = tl.load(bounds + batch)
        columns = tl.arange(0, BLOCK)
        down = -tl.load(slopes + of_row)
        able = down > 0
        one = down * 0 + 1
        t = tl.where(able, one, one * 0)
        down = tl.where(able, down, one)
        found = tl.where(able, 0, 1)
        inside = columns < n_columns
        if WHOLE:
            X = tl.load(x + columns, mask=inside, other=0.0)
            V = tl.load(v + at + columns, mask=inside, other=1.0)
            D = tl.load(d + at + columns, mask=inside, other=0.0)
        number = 0
        while (number < tries) & (found == 0):
            if WHOLE:
                up = _up(X, V, D, t, lowest, inside)
            else:
                up = one * 0
                for first in range(0, n_columns, BLOCK):
                    place = first + columns
                    here = place < n_columns
                    Xp = tl.load(x + place, mask=here, other=0.0)
                    Vp = tl.load(v + at + place, mask=here, other=1.0)
                    Dp = tl.load(d + at + place, mask=here, other=0.0)
                    up += _up(Xp, Vp, Dp, t, lowest, here)
            good = up <= 0
            t = t * tl.where(good, one, down / (down + tl.where(good, one * 0, up)))
            found = tl.where(up <= 2 * down, 1, 0)
            number += 1
        t = tl.where(found > 0, t, t * 0)
        tl.store(steps + of_row, t)

    @triton.jit
    def _losses(
        x, v, out, bounds, wanted, x_step, n_rows, n_columns,
        SOME: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    ):  # fmt: skip
        batch = tl.program_id(1).to(tl.int64)
        last = n_rows
        if SOME:
            last = tl.where(tl.load(wanted + batch) != 0, n_rows, 0)
        columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
        lowest = tl.load(bounds + batch)
        total = tl.zeros((COLUMNS,), dtype=tl.float64)
        for first in range(0, last, ROWS):
            rows = first + tl.arange(0, ROWS)
            inside = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
            place = rows[:, None].to(tl.int64) * n_columns + columns[None, :]
            X = tl.load(x + batch * x_step + place, mask=inside, other=0.0).to(tl.float64)
            V = tl.load(v + batch * n_rows * n_columns + place, mask=inside, other=0.0).to(tl.float64)
            V = tl.where(lowest > V, lowest, V)
            ratio = tl.where(X > 0, X / V, 1.0)
            total += tl.sum(tl.where(inside, V - X + X * tl.log(ratio), 0.0), axis=0)
        tl.store(out + batch * n_columns + columns, total, mask=columns < n_columns)


def is_supported(v: Any) -> bool:
    """Tell whether the models are tensors on an NVIDIA GPU, and Triton is installed."""
    return triton is not None and is_cuda_tensor(v)


def _step(x: Any) -> int:
    """Return how far apart the data of two models are: nowhere, or as far as they are large."""
    return int(x[0].numel()) if x.ndim == 3 else 0


def newton_terms(x: Any, v: Any, bounds: Any) -> tuple[Any, Any]:
    """Return first and second derivatives; see `kernels.batched_kl`."""
    import torch

    x, v = x.contiguous(), v.contiguous()
    out = torch.empty_like(v), torch.empty_like(v)
    size = v[0].numel()
    grid = (triton.cdiv(size, BLOCK), v.shape[0])
    _terms[grid](x, v, *out, bounds.to(v.dtype), _step(x), size, BLOCK=BLOCK)
    return out


def line_search(x: Any, v: Any, d: Any, slopes: Any, bounds: Any, tries: int) -> Any:
    """Choose a step for every row; see `kernels.batched_kl`."""
    import torch

    x, v, d, slopes = x.contiguous(), v.contiguous(), d.contiguous(), slopes.contiguous()
    batch, n_rows, n_columns = v.shape
    steps = torch.empty_like(slopes)
    width = max(16, triton.next_power_of_2(n_columns))
    whole = width <= HELD
    width = width if whole else HELD
    _search[(n_rows, batch)](
        x, v, d, slopes, steps, bounds.to(v.dtype), _step(x), n_rows, n_columns, tries,
        BLOCK=width, WHOLE=whole, num_warps=max(1, min(8, width // 256)),
    )  # fmt: skip
    return steps


def column_losses(x: Any, v: Any, bounds: Any, wanted: Any = None) -> Any:
    """Return the divergence of every column; see `kernels.batched_kl`."""
    import torch

    x, v = x.contiguous(), v.contiguous()
    batch, n_rows, n_columns = v.shape
    out = torch.empty((batch, n_columns), dtype=torch.float64, device=v.device)
    _losses[(triton.cdiv(n_columns, TILE_COLUMNS), batch)](
        x, v, out, bounds, bounds if wanted is None else wanted.to(torch.int8), _step(x), n_rows, n_columns,
        SOME=wanted is not None, ROWS=TILE_ROWS, COLUMNS=TILE_COLUMNS,
    )  # fmt: skip
    return out
