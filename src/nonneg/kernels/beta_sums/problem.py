"""The arguments of the kernels, and their launch: tiles for float32, blocks of a stored model for float64.

Tensor cores multiply float64 as fast from cuBLAS as in tiles: there the model is stored a block of rows at a
time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nonneg._arrays import from_torch, is_float32, to_torch
from nonneg.kernels.beta_products import TRIES
from nonneg.kernels.beta_sums import entrywise, tiles

# The rank is padded to a power of two from this on, the least that `tl.dot` takes.
LEAST_K = 16
# Few rows on the left are shared by several programs, up to this number: four for each multiprocessor of an
# H200. Not read off the card, so that all cards add in the same order.
PROGRAMS = 528
# Minimum number of tiles per program.
LEAST_TILES = 8
# Which betas need no general powers.
KINDS = {0.0: 0, 1.0: 1, 2.0: 2, 0.5: 3, 1.5: 4}
ANY_KIND = 5
# Entries of a stored model: 64 MB of float64. Half as many take longer by a tenth on an H200.
STORED_ENTRIES = 1 << 23
# Rows and columns of a program on a stored model.
STORED_TILE, SEARCH_TILE = (4, 256), (4, 512)


@dataclass(frozen=True)
class Tile:
    """The shape of one program on tiles."""

    left: int  # rows of both factors that it holds at a time
    right: int
    warps: int  # warps, and tiles in flight
    stages: int


# The fastest of those tried on an H200, by padded rank: for data as they are stored, and for their transpose.
TILES = {
    16: (Tile(128, 64, 8, 2), Tile(64, 64, 4, 2)),
    32: (Tile(128, 64, 8, 2), Tile(64, 64, 4, 2)),
    64: (Tile(128, 64, 8, 2), Tile(64, 64, 4, 1)),
    128: (Tile(64, 64, 4, 1), Tile(64, 64, 4, 1)),
    256: (Tile(64, 32, 4, 1), Tile(64, 32, 4, 1)),
}
# With derivatives, whose second sum needs as much memory again.
LARGEST_NEWTON = Tile(32, 32, 4, 1)


@lru_cache(maxsize=64)
def _numbers(beta: float, lower_bound: float, curvature_bound: float, offset: float, device: Any) -> Any:
    import torch

    most = max(curvature_bound, lower_bound) ** (beta - 2.0) if 1 < beta < 2 else float("inf")
    return torch.tensor([beta, lower_bound, most, offset], dtype=torch.float64, device=device)


@dataclass(frozen=True)
class Wanted:
    """What to compute: ratio and power or, for Newton's method, first and second derivatives."""

    newton: bool
    second: bool = False  # the second sum
    traced: bool = False  # sums of the second derivatives
    loss: bool = False
    sums: bool = True
    weights: Any = None  # of the rows on the right
    damping: Any = None  # see `kernels.beta_sums.newton_sums`
    capped: bool = False
    exact: Any = None
    rows: Any = None  # which rows on the left matter


class Problem:
    """Data, factors and loss."""

    def __init__(self, x: Any, left: Any, right: Any, loss: Any, mask: Any) -> None:
        self.like = left
        self.x, left, right = (to_torch(array) for array in (x, left, right))
        self.left, self.right = left.contiguous(), right.contiguous()
        self.mask = self.x if mask is None else to_torch(mask)
        self.k = int(right.shape[1])
        self.shape = int(left.shape[0]), int(right.shape[0])
        self.beta = float(loss.beta)
        self.numbers = _numbers(self.beta, loss.lower_bound, loss.curvature_bound, loss.offset, self.x.device)
        self.kind = {
            "KIND": KINDS.get(self.beta, ANY_KIND),
            "CONVEX": 1.0 <= self.beta <= 2.0,
            "MASKED": mask is not None,
        }
        self.in_tiles = is_float32(self.x.dtype)

    def empty(self, *shape: int, dtype: Any = None) -> Any:
        """Return memory on the device."""
        import torch

        return torch.empty(shape, dtype=dtype or self.x.dtype, device=self.x.device)

    def vector(self, values: Any) -> Any:
        """Return a vector for a kernel; any array where there is none."""
        return self.numbers if values is None else to_torch(values).contiguous()

    def run(self, **options: Any) -> list[Any]:
        """Return the two sums, the traces and the losses; None for what was not asked for."""
        wanted = Wanted(**options)
        found = self._tiled(wanted) if self.in_tiles else self._stored(wanted)
        return [None if array is None else from_torch(array, self.like) for array in found]

    def search(self, direction: Any, linear: Any, quadratic: Any, slopes: Any, losses: Any = None) -> Any:
        """Return a step for every row on the left."""
        import torch

        base = self.numbers
        if not self.kind["CONVEX"]:
            base = to_torch(self.run(newton=False, sums=False, loss=True)[3] if losses is None else losses)
        penalty = torch.stack([to_torch(part) for part in (linear, quadratic, slopes)]).to(torch.float64)
        direction = to_torch(direction).contiguous()
        search = self._tiled_search if self.in_tiles else self._stored_search
        return from_torch(search(direction, penalty, base), self.like)

    @property
    def tile(self) -> Tile:
        """The shape of a program on tiles."""
        return TILES[self.padded][0 if self.x.stride(1) == 1 else 1]

    @property
    def padded(self) -> int:
        """The padded rank."""
        return max(LEAST_K, 1 << (self.k - 1).bit_length())

    def tile_options(self, tile: Tile) -> dict[str, Any]:
        """Return arguments known at compile time."""
        sizes = {"N_LEFT": tile.left, "N_RIGHT": tile.right, "K": self.padded}
        return {**self.kind, **sizes, "num_warps": tile.warps, "num_stages": tile.stages}

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes and strides."""
        return *self.shape, self.k, *self.x.stride(), *self.mask.stride()

    def split_right(self, *, squares: bool, damping: Any = None, capped: bool = False) -> Any:
        """Return the factor on the right, and its squares, in parts of half precision."""
        import torch

        n_right = self.shape[1]
        dtype = torch.float32 if tiles.INTERPRETED else torch.bfloat16
        out = self.empty(6 if squares else 3, n_right, self.padded, dtype=dtype)
        rows = max(1, 2048 // self.padded)
        tiles.split[(-(-n_right // rows),)](
            self.right,
            self.vector(damping),
            out,
            n_right,
            self.k,
            SQUARES=squares,
            DAMPED=damping is not None,
            CAPPED=capped,
            N=rows,
            K=self.padded,
        )
        return out

    def _tiled(self, wanted: Wanted) -> list[Any]:
        import torch

        n_left, n_right = self.shape
        tile = LARGEST_NEWTON if wanted.newton and self.padded == max(TILES) else self.tile
        blocks, n_tiles = -(-n_left // tile.left), -(-n_right // tile.right)
        n_parts = max(1, min(-(-PROGRAMS // max(1, blocks)), n_tiles // LEAST_TILES))
        n_each = max(1, -(-n_tiles // n_parts)) * tile.right
        n_parts = max(1, -(-n_right // n_each))
        squares = wanted.newton and wanted.second
        right = self.split_right(squares=squares, damping=wanted.damping, capped=wanted.capped)
        whole, long = (n_parts, n_left, self.k), (n_parts, n_left)
        out = [
            self.empty(*whole) if wanted.sums else None,
            self.empty(*whole) if wanted.second else None,
            self.empty(*long) if wanted.traced else None,
            self.empty(*long, dtype=torch.float64) if wanted.loss else None,
        ]
        tiles.sums[(blocks, n_parts)](
            self.x,
            self.mask,
            self.left,
            right,
            self.vector(wanted.weights),
            self.vector(wanted.exact),
            self.vector(wanted.rows),
            self.numbers,
            *(self.numbers if array is None else array for array in out),
            *self.sizes,
            n_each,
            NEWTON=wanted.newton,
            WEIGHTED=wanted.weights is not None,
            EXACT=self._exact(wanted),
            SOME=wanted.rows is not None,
            SECOND=wanted.second,
            TRACED=wanted.traced,
            LOSS=wanted.loss,
            SUMS=wanted.sums,
            **self.tile_options(tile),
        )
        return [None if part is None else part[0] if n_parts == 1 else part.sum(dim=0) for part in out]

    def _exact(self, wanted: Wanted) -> bool:
        return wanted.exact is not None and not self.kind["CONVEX"]

    def _tiled_search(self, direction: Any, penalty: Any, losses: Any) -> Any:
        import torch

        n_left, right = self.shape[0], self.split_right(squares=False)
        steps, lengths = self.empty(n_left), self.empty(n_left, dtype=torch.float64)
        done = self.empty(n_left, dtype=torch.int8)
        for resumed in (False, True):
            tiles.search[(-(-n_left // self.tile.left),)](
                self.x,
                self.mask,
                self.left,
                direction,
                right,
                penalty,
                losses,
                self.numbers,
                torch.sort(done, stable=True).indices if resumed else done,
                lengths,
                done,
                steps,
                *self.sizes,
                TRIES - 1 if resumed else 1,
                RESUMED=resumed,
                **self.tile_options(self.tile),
            )
        return steps

    def _blocks(self, n: int, length: int) -> Iterator[slice]:
        size = max(1, STORED_ENTRIES // max(1, length))
        return (slice(start, start + size) for start in range(0, n, size))

    def _stored(self, wanted: Wanted) -> list[Any]:
        # Blocks of what is contiguous in memory: rows on the left, or rows on the right of transposed data.
        n_left, n_right = self.shape
        squares = None
        if wanted.newton and wanted.second:
            squares = self.right * self.right
            if wanted.damping is not None:
                added = to_torch(wanted.damping)
                squares += (
                    added[:-1].minimum(added[-1] * squares.amax(1, True)) if wanted.capped else added[:-1]
                )
        if self.x.stride(1) == 1 or self.x.stride(0) != 1:
            parts = [
                self._block(self.x[rows], self.mask[rows], self.left[rows], self.right, wanted, rows, squares)
                for rows in self._blocks(n_left, n_right)
            ]
            return [None if part[0] is None else _joined(part) for part in zip(*parts, strict=True)]
        out: list[Any] = [None] * 4
        for rows in self._blocks(n_right, n_left):
            second = None if squares is None else squares[rows]
            block = self.x.T[rows], self.mask.T[rows], self.right[rows], self.left
            part = self._block(*block, wanted, rows, second, turned=True)
            out = [b if a is None else a + b for a, b in zip(out, part, strict=True)]
        return out

    def _block(
        self,
        x: Any,
        mask: Any,
        rows: Any,
        columns: Any,
        wanted: Wanted,
        chosen: slice,
        squares: Any,
        *,
        turned: bool = False,
    ) -> list[Any]:
        import torch

        v = rows @ columns.T
        two = torch.empty_like(v) if wanted.second else self.numbers
        terms = torch.empty_like(v, dtype=torch.float64) if wanted.loss else self.numbers
        weights = self.vector(wanted.weights)
        exact = self._exact(wanted) and not turned
        grid = tuple(-(-size // step) for size, step in zip(v.shape, STORED_TILE, strict=True))
        entrywise.entries[grid](
            x,
            mask,
            v,
            two,
            terms,
            weights[chosen] if turned and wanted.weights is not None else weights,
            weights,
            self.vector(wanted.exact)[chosen] if exact else self.numbers,
            self.numbers,
            *v.shape,
            *x.stride(),
            *mask.stride(),
            NEWTON=wanted.newton,
            BY_ROW=turned and wanted.weights is not None,
            BY_COLUMN=not turned and wanted.weights is not None,
            EXACT=exact,
            SECOND=wanted.second,
            LOSS=wanted.loss,
            SUMS=wanted.sums,
            N_ROWS=STORED_TILE[0],
            N_COLUMNS=STORED_TILE[1],
            **self.kind,
        )
        axis, right = (0, rows) if turned else (1, columns)
        other = right if squares is None else squares

        def times(terms: Any, factor: Any) -> Any:
            return terms.T @ factor if turned else terms @ factor

        return [
            times(v, right) if wanted.sums else None,
            times(two, other) if wanted.second else None,
            two.sum(dim=axis) if wanted.traced else None,
            terms.sum(dim=axis) if wanted.loss else None,
        ]

    def _stored_search(self, direction: Any, penalty: Any, losses: Any) -> Any:
        n_left, n_right = self.shape
        steps = self.empty(n_left)
        for rows in self._blocks(n_left, n_right):
            x, mask = self.x[rows], self.mask[rows]
            model, change = self.left[rows] @ self.right.T, direction[rows] @ self.right.T
            entrywise.search_entries[(-(-x.shape[0] // SEARCH_TILE[0]),)](
                x,
                mask,
                model,
                change,
                penalty[:, rows],
                losses if self.kind["CONVEX"] else losses[rows],
                self.numbers,
                steps[rows],
                *x.shape,
                n_left,
                *x.stride(),
                *mask.stride(),
                TRIES,
                N_ROWS=SEARCH_TILE[0],
                N_COLUMNS=SEARCH_TILE[1],
                **self.kind,
            )
        return steps


def _joined(parts: tuple[Any, ...]) -> Any:
    import torch

    return parts[0] if len(parts) == 1 else torch.cat(parts)
