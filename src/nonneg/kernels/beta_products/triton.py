"""Elementwise parts of the beta-divergences on an NVIDIA GPU, each in one pass over the entries.

Array operations read and write an array of the size of the block for every sign of the formula, and
logarithms in float64 twice as much: 5 to 10 times the bytes.
"""

from __future__ import annotations

from typing import Any

from nonneg._arrays import from_torch, on_gpu, to_torch
from nonneg.kernels.sparse_products.triton import constants

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# Entries of a program, 8 for each of 128 threads.
TILE = 1024
# Rows and columns of a program that adds the divergences of columns: small, so that all processors have work.
ROWS, COLUMNS = 32, 128
# Divergences with formulas of their own; all others have powers.
OTHER = 3


if triton is not None:

    @triton.jit
    def _power(v, exponent):
        return tl.exp(exponent * tl.log(v))

    @triton.jit
    def _loss(x, v, beta, B: tl.constexpr):
        """Return the divergences in float64: differences of terms that nearly cancel."""
        x, v = x.to(tl.float64), v.to(tl.float64)
        safe = tl.where(x > 0, x, v)
        if B == 2:
            return 0.5 * (x - v) * (x - v)
        elif B == 1:
            return v - x + x * tl.log(safe / v)
        elif B == 0:
            return x / v - 1 - tl.log(safe / v)
        else:
            power = _power(v, beta - 1)
            own = tl.where(x > 0, _power(safe, beta), 0.0)
            return (own + (beta - 1) * power * v - beta * x * power) / (beta * (beta - 1))

    @triton.jit
    def _raised(v, beta, B: tl.constexpr):
        """Return v^(beta - 2)."""
        if B == 2:
            return v * 0 + 1
        elif B == 1:
            return 1 / v
        elif B == 0:
            return 1 / (v * v)
        else:
            return _power(v, (beta - 2).to(v.dtype))

    @triton.jit
    def _weighted(term, weights, row, at, inside, stride, WEIGHTED: tl.constexpr):
        """Return a term times the weights of its entries; weights of columns have a stride of 0."""
        if WEIGHTED:
            return term * tl.load(weights + row * stride + at, mask=inside, other=0)
        else:
            return term

    @triton.jit
    def _terms(
        x, v, weights, first, second, sums, numbers, lowers, n_columns, x_rows, model_rows,
        x_stride, v_stride, stride,
        NEWTON: tl.constexpr, SECOND: tl.constexpr, BOUNDED: tl.constexpr, LOSSES: tl.constexpr,
        B: tl.constexpr, WEIGHTED: tl.constexpr, TILE: tl.constexpr,
    ):  # fmt: skip
        row = tl.program_id(0).to(tl.int64)
        at = tl.program_id(1) * TILE + tl.arange(0, TILE)
        inside = at < n_columns
        data = tl.load(x + (row % x_rows) * x_stride + at, mask=inside, other=1)
        model = tl.load(v + row * v_stride + at, mask=inside, other=1)
        beta, lower = tl.load(numbers), tl.load(lowers + row // model_rows)
        model = tl.maximum(model, lower.to(model.dtype))
        if LOSSES:
            term = _weighted(_loss(data, model, beta, B), weights, row, at, inside, stride, WEIGHTED)
            part = tl.program_id(1) * tl.num_programs(0) + row
            tl.store(sums + part, tl.sum(tl.where(inside, term, 0.0)))
        raised = _weighted(_raised(model, beta, B), weights, row, at, inside, stride, WEIGHTED)
        place = row * n_columns + at
        if NEWTON:
            tl.store(first + place, raised * (model - data), mask=inside)
            curvature = raised
            if SECOND:
                own = raised
                if BOUNDED:
                    bounded = tl.maximum(model, tl.load(numbers + 2).to(model.dtype))
                    own = _weighted(_raised(bounded, beta, B), weights, row, at, inside, stride, WEIGHTED)
                narrow = beta.to(model.dtype)
                curvature = (narrow - 1) * own + (2 - narrow) * raised * data / model
                curvature = tl.where(curvature < 0, 0.0, curvature)
            tl.store(second + place, curvature, mask=inside)
        else:
            tl.store(first + place, data * raised, mask=inside)
            if SECOND:
                tl.store(second + place, model * raised, mask=inside)

    @triton.jit
    def _losses(
        x, v, weights, row_weights, out, numbers, n_rows, n_columns, x_stride, v_stride, stride,
        OF_ROWS: tl.constexpr, B: tl.constexpr, WEIGHTED: tl.constexpr, ROWS: tl.constexpr,
        TILE: tl.constexpr,
    ):  # fmt: skip
        """Sum the divergences of a few rows and columns, over the columns or over the rows."""
        at = tl.program_id(1) * TILE + tl.arange(0, TILE)
        inside = at < n_columns
        beta, lower = tl.load(numbers), tl.load(numbers + 1)
        total = tl.zeros((TILE,), tl.float64)
        begin = tl.program_id(0).to(tl.int64) * ROWS
        for row in range(begin, tl.minimum(begin + ROWS, n_rows)):
            data = tl.load(x + row * x_stride + at, mask=inside, other=1)
            model = tl.load(v + row * v_stride + at, mask=inside, other=1)
            term = _loss(data, tl.maximum(model, lower.to(model.dtype)), beta, B)
            term = _weighted(term, weights, row, at, inside, stride, WEIGHTED)
            if OF_ROWS:
                tl.store(out + tl.program_id(1) * n_rows + row, tl.sum(tl.where(inside, term, 0.0)))
            else:
                total += term * tl.load(row_weights + row)
        if not OF_ROWS:
            tl.store(out + tl.program_id(0).to(tl.int64) * n_columns + at, total, mask=inside)

    @triton.jit
    def _search(
        x, v, d, weights, linear, quadratic, slopes, steps, numbers, lowers, n_columns, x_rows,
        model_rows, tries, x_stride, v_stride, d_stride, stride,
        B: tl.constexpr, CONVEX: tl.constexpr, WEIGHTED: tl.constexpr, MOVED: tl.constexpr,
        TILE: tl.constexpr,
    ):  # fmt: skip
        row = tl.program_id(0).to(tl.int64)
        beta, lower = tl.load(numbers), tl.load(lowers + row // model_rows)
        along, bend = tl.load(linear + row).to(tl.float64), tl.load(quadratic + row).to(tl.float64)
        down = -tl.load(slopes + row).to(tl.float64)
        t = tl.where(down > 0, 1.0, 0.0).to(tl.float64)
        base = t * 0
        accepted = down <= 0
        # The losses that are not convex are compared with the loss at the step 0, which comes first.
        tried = 0 if CONVEX else -1
        while (tried < tries) & (accepted == 0):
            length = tl.where(tried < 0, 0.0, t)
            sums = tl.zeros((TILE,), tl.float64)
            for begin in range(0, n_columns, TILE):
                at = begin + tl.arange(0, TILE)
                inside = at < n_columns
                data = tl.load(x + (row % x_rows) * x_stride + at, mask=inside, other=1)
                model = tl.load(v + row * v_stride + at, mask=inside, other=1)
                step = tl.load(d + row * d_stride + at, mask=inside, other=0)
                model = tl.maximum(model + length.to(model.dtype) * step, lower.to(model.dtype))
                if CONVEX:
                    term = (_raised(model, beta, B) * (model - data) * step).to(tl.float64)
                else:
                    term = _loss(data, model, beta, B)
                term = _weighted(term, weights, row, at, inside, stride, WEIGHTED)
                sums += tl.where(inside, term, 0.0)
            total = tl.sum(sums)
            if CONVEX:
                up = total + along + bend * t
                accepted = up <= 2 * down
                t = tl.where(up <= 0, t, t * down / (down + tl.maximum(up, 0.0)))
            else:
                base = tl.where(tried < 0, total, base)
                gain = base - total - t * (along + 0.5 * bend * t)
                ends = (down < 1e-9 * base) & (gain > -1e-14 * base)
                accepted = (tried >= 0) & ((gain > 0) | ends)
                t = tl.where(accepted | (tried < 0), t, 0.4 * t)
            tried += 1
        t = tl.where(accepted, t, 0.0)
        tl.store(steps + row, t.to(steps.dtype.element_ty))
        for begin in range(0, n_columns if MOVED else 0, TILE):
            at = begin + tl.arange(0, TILE)
            inside = at < n_columns
            model = tl.load(v + row * v_stride + at, mask=inside, other=0)
            step = tl.load(d + row * d_stride + at, mask=inside, other=0)
            tl.store(v + row * v_stride + at, model + t.to(model.dtype) * step, mask=inside)


def is_supported(x: Any) -> bool:
    """Tell whether the kernels take the array: PyTorch's or CuPy's, in float32 or float64, on a GPU."""
    return triton is not None and on_gpu(x) and str(x.dtype).endswith(("float32", "float64"))


def _rows(array: Any) -> Any:
    tensor = to_torch(array)
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _weights(weights: Any, v: Any) -> tuple[Any, int]:
    """Return weights of entries or columns, and the stride of their rows; something to point at for None."""
    if weights is None:
        return v, 0
    weights = _rows(weights).to(v.dtype)
    return weights, 0 if weights.ndim == 1 else weights.stride(0)


def _kind(beta: float) -> int:
    return int(beta) if beta in (0.0, 1.0, 2.0) else OTHER


def _entrywise(
    x: Any, v: Any, weights: Any, beta: float, lower_bound: float, *,
    newton: bool, second: bool, curvature_bound: float = 0.0, bounds: Any = None, losses: bool = False,
) -> tuple[Any, Any, Any]:  # fmt: skip
    import torch

    x, v, weighted = _rows(x), _rows(v), weights is not None
    numbers = constants(torch.float64, v.device, beta, lower_bound, curvature_bound)
    lowers = numbers[1:] if bounds is None else bounds
    weights, stride = _weights(weights, v)
    # The model is not needed after its ratios: their memory is the same.
    first = torch.empty(v.shape, dtype=v.dtype, device=v.device) if newton or not v.is_contiguous() else v
    other = torch.empty_like(first) if second or newton else first
    grid = v.shape[0], triton.cdiv(v.shape[1], TILE)
    sums = torch.empty(grid[::-1], dtype=torch.float64, device=v.device) if losses else numbers
    if v.numel():
        _terms[grid](
            x, v, weights, first, other, sums, numbers, lowers, v.shape[1], x.shape[0],
            v.shape[0] if bounds is None else v.shape[0] // len(bounds), x.stride(0), v.stride(0), stride,
            NEWTON=newton, SECOND=second, BOUNDED=curvature_bound > lower_bound, LOSSES=losses,
            B=_kind(beta), WEIGHTED=weighted, TILE=TILE,
        )  # fmt: skip
    return first, other, sums


def _summed(
    x: Any, v: Any, weights: Any, row_weights: Any, beta: float, lower_bound: float, *, of_rows: bool
) -> Any:
    import torch

    like, x, v, weighted = v, _rows(x), _rows(v), weights is not None
    weights, stride = _weights(weights, v)
    n_rows, n_columns = v.shape
    rows, tile = (1, TILE) if of_rows else (ROWS, COLUMNS)
    grid = triton.cdiv(n_rows, rows), triton.cdiv(n_columns, tile)
    shape = (grid[1], n_rows) if of_rows else (grid[0], n_columns)
    sums = torch.empty(shape, dtype=torch.float64, device=v.device)
    on_rows = v.new_ones(n_rows) if row_weights is None else to_torch(row_weights).contiguous()
    if v.numel():
        _losses[grid](
            x, v, weights, on_rows, sums, constants(torch.float64, v.device, beta, lower_bound), n_rows,
            n_columns, x.stride(0), v.stride(0), stride,
            OF_ROWS=of_rows, B=_kind(beta), WEIGHTED=weighted, ROWS=rows, TILE=tile,
        )  # fmt: skip
    return from_torch(sums.sum(dim=0), like)


def ratio_terms(x: Any, v: Any, beta: float, lower_bound: float, mask: Any = None) -> tuple[Any, Any]:
    """Return x v^(beta - 2) and v^(beta - 1); see `kernels.beta_products.ratio_terms`."""
    return ratio_terms_and_losses(x, v, beta, lower_bound, mask, losses=False)[:2]


def ratio_terms_and_losses(
    x: Any, v: Any, beta: float, lower_bound: float, mask: Any = None, *, losses: bool = True
) -> tuple[Any, Any, Any]:
    """Return both in one pass; see `kernels.beta_products.ratio_terms_and_losses`."""
    options = {"newton": False, "second": beta != 1, "losses": losses}
    ratio, power, sums = _entrywise(x, v, mask, beta, lower_bound, **options)
    power = mask if beta == 1 else from_torch(power, v)
    return from_torch(ratio, v), power, from_torch(sums.sum(dim=0), v) if losses else None


def row_losses(x: Any, v: Any, beta: float, lower_bound: float, weights: Any = None, mask: Any = None) -> Any:
    """Return the divergence of every row in float64; see `kernels.beta_products.row_losses`."""
    weights = mask if weights is None else weights if mask is None else weights * mask
    return _summed(x, v, weights, None, beta, lower_bound, of_rows=True)


def column_losses(
    x: Any, v: Any, beta: float, lower_bound: float, row_weights: Any = None, weights: Any = None
) -> Any:
    """Return the divergence of every column in float64; see `kernels.beta_products.column_losses`."""
    return _summed(x, v, weights, row_weights, beta, lower_bound, of_rows=False)


def newton_terms(
    x: Any, v: Any, weights: Any, beta: float, lower_bound: float,
    curvature_bound: float = 0.0, exact: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Return weighted first and second derivatives; see `kernels.beta_products.newton_terms`."""
    second, bound = exact or 1 <= beta <= 2, curvature_bound if 1 < beta < 2 else 0.0
    terms = _entrywise(x, v, weights, beta, lower_bound, newton=True, second=second, curvature_bound=bound)
    return from_torch(terms[0], v), from_torch(terms[1], v)


def line_search(
    x: Any, v: Any, d: Any, weights: Any, beta: float, lower_bound: float,
    linear: Any, quadratic: Any, slopes: Any, tries: int,
) -> tuple[Any, Any]:  # fmt: skip
    """Choose a step along d for every row; see `kernels.beta_products.line_search`."""
    out, steps = _searched(x, v, d, weights, beta, lower_bound, (linear, quadratic, slopes), tries)
    return from_torch(out, v), from_torch(steps, v)


def _searched(
    x: Any, v: Any, d: Any, weights: Any, beta: float, lower_bound: float, along: Any, tries: int, *,
    bounds: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    import torch

    x, v, d, weighted = _rows(x), _rows(v).contiguous(), _rows(d), weights is not None
    weights, stride = _weights(weights, v)
    numbers = constants(torch.float64, v.device, beta, lower_bound)
    lowers, n_models = (numbers[1:], 1) if bounds is None else (bounds, len(bounds))
    steps = v.new_empty(v.shape[0])
    of_rows = (to_torch(values).contiguous() for values in along)
    if v.shape[0]:
        _search[v.shape[0],](
            x, v, d, weights, *of_rows, steps, numbers, lowers, v.shape[1], x.shape[0],
            max(1, v.shape[0] // n_models), tries, x.stride(0), v.stride(0), d.stride(0), stride,
            B=_kind(beta), CONVEX=1 <= beta <= 2, WEIGHTED=weighted, MOVED=bounds is None, TILE=TILE,
        )  # fmt: skip
    return v, steps


def batched_kl_terms(x: Any, v: Any, bounds: Any) -> tuple[Any, Any]:
    """Return the derivatives for many models; see `kernels.batched_kl.newton_terms`."""
    data, model = (to_torch(array).reshape(-1, v.shape[-1]) for array in (x, v))
    slope, curvature, _ = _entrywise(
        data, model, None, 1.0, 0.0, newton=True, second=True, bounds=to_torch(bounds)
    )
    return from_torch(slope.reshape(v.shape), v), from_torch(curvature.reshape(v.shape), v)


def batched_kl_steps(x: Any, v: Any, d: Any, slopes: Any, bounds: Any, tries: int) -> Any:
    """Return a step for every row of every model; see `kernels.batched_kl.line_search`."""
    data, model, change = (to_torch(array).reshape(-1, v.shape[-1]) for array in (x, v, d))
    down = to_torch(slopes).reshape(-1)
    none = down.new_zeros(down.shape)
    along = none, none, down
    _, steps = _searched(data, model, change, None, 1.0, 0.0, along, tries, bounds=to_torch(bounds))
    return from_torch(steps.reshape(slopes.shape), v)
