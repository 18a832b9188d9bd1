"""Which programs of the tiles of beta-divergences are launched, and what they are told."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels.beta_products import TRIES
from nonneg.kernels.beta_sums import entrywise, tiles
from nonneg.kernels.beta_sums import problem as problem_module
from nonneg.kernels.beta_sums.problem import Problem
from nonneg.losses.beta import BetaLoss


class Launches:
    """In place of a kernel: notes the grid, the arguments and what is known at compile time."""

    def __init__(self):
        self.seen = []

    def __getitem__(self, grid):
        return lambda *given, **known: self.seen.append((grid, given, known))


@pytest.fixture
def launches(monkeypatch):
    found = {}
    for module, names in ((tiles, ("split", "sums", "search")), (entrywise, ("entries", "search_entries"))):
        for name in names:
            found[name] = Launches()
            monkeypatch.setattr(module, name, found[name], raising=False)
    return found


def launched(torch, n_left, n_right, k, *, dtype="float32", turned=False, masked=False, beta=0.5):
    kind = getattr(torch, dtype)
    x = torch.ones((n_right, n_left), dtype=kind).T if turned else torch.ones((n_left, n_right), dtype=kind)
    mask = torch.ones((n_left, n_right), dtype=torch.bool) if masked else None
    left, right = torch.ones((n_left, k), dtype=kind), torch.ones((n_right, k), dtype=kind)
    return Problem(x, left, right, BetaLoss(beta, 1e-9), mask)


@pytest.mark.torch
@pytest.mark.parametrize("k", [1, 16, 17, 64, 65, 256])
@pytest.mark.parametrize(("n_left", "n_right"), [(1, 1), (129, 4000), (40, 9000)])
def test_programs_cover_all_tiles(k, n_left, n_right, torch, launches):
    for newton in (False, True):
        problem = launched(torch, n_left, n_right, k)
        found = problem.run(newton=newton, second=newton, traced=newton, loss=not newton)
        ((blocks, parts), given, known) = launches["sums"].seen[-1]
        assert known["K"] == max(16, 2 ** int(np.ceil(np.log2(k))))
        assert blocks == -(-n_left // known["N_LEFT"])
        each = given[-1]
        assert each % known["N_RIGHT"] == 0
        assert parts == -(-n_right // each)
        assert parts == 1 or each >= 8 * known["N_RIGHT"]
        assert parts == 1 or (parts - 1) * blocks <= 528
        assert given[12:19] == (n_left, n_right, k, n_right, 1, n_right, 1)
        assert known["NEWTON"] is known["SECOND"] is known["TRACED"] is newton
        assert known["LOSS"] is not newton
        assert known["SUMS"]
        assert not any(known[name] for name in ("WEIGHTED", "EXACT", "SOME", "MASKED"))
        shapes = [None if part is None else tuple(part.shape) for part in found]
        rows = (n_left,)
        assert shapes == [(n_left, k), *([(n_left, k), rows, None] if newton else [None, None, rows])]
        ((programs,), given, known) = launches["split"].seen[-1]
        assert programs == -(-n_right // known["N"])
        assert tuple(given[2].shape) == (6 if newton else 3, n_right, known["K"])
        assert known["SQUARES"] is newton
        assert not any(known[name] for name in ("DAMPED", "CAPPED"))


@pytest.mark.torch
def test_kernels_are_told_what_is_given(torch, launches):
    problem = launched(torch, 5, 7, 3, masked=True, beta=0.0)
    vectors = {name: torch.ones(5, dtype=torch.bool) for name in ("exact", "rows")}
    options = {"weights": torch.ones(7), "damping": torch.ones(4), "capped": True, **vectors}
    problem.run(newton=True, second=True, sums=False, **options)
    known = launches["sums"].seen[-1][2]
    assert all(known[name] for name in ("WEIGHTED", "EXACT", "SOME", "MASKED", "NEWTON", "SECOND"))
    assert not any(known[name] for name in ("SUMS", "CONVEX"))
    known = launches["split"].seen[-1][2]
    assert known["DAMPED"]
    assert known["CAPPED"]
    for beta, kind, convex in ((0.0, 0, False), (1.0, 1, True), (2.0, 2, True), (0.5, 3, False),
                               (1.5, 4, True), (3.0, 5, False), (1.2, 5, True)):  # fmt: skip
        problem = launched(torch, 5, 7, 3, beta=beta)
        assert (problem.kind["KIND"], problem.kind["CONVEX"]) == (kind, convex)
        problem.run(newton=True, second=True, exact=vectors["exact"])
        assert launches["sums"].seen[-1][2]["EXACT"] is not convex  # a convex one is exact anyway


@pytest.mark.torch
@pytest.mark.parametrize("turned", [False, True])
def test_searches_go_over_all_rows_twice(turned, torch, launches):
    problem = launched(torch, 200, 7, 3, turned=turned, beta=1.0)
    zero = torch.zeros(200)
    problem.search(torch.zeros((200, 3)), zero, zero, zero)
    first, second = launches["search"].seen
    for (blocks,), given, known in (first, second):
        assert blocks == -(-200 // known["N_LEFT"])
        assert given[12:19] == (200, 7, 3, *problem.x.stride(), *problem.x.stride())
    assert [launch[1][-1] for launch in (first, second)] == [1, TRIES - 1]
    assert [launch[2]["RESUMED"] for launch in (first, second)] == [False, True]


@pytest.mark.torch
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("entries", [1, 20, 1 << 23])
def test_stored_models_are_made_a_block_at_a_time(turned, entries, torch, launches, monkeypatch):
    monkeypatch.setattr(problem_module, "STORED_ENTRIES", entries)
    problem = launched(torch, 9, 6, 3, dtype="float64", turned=turned, beta=1.0)
    weights = torch.ones(6, dtype=torch.float64)
    problem.run(newton=True, second=True, loss=True, weights=weights)
    long, wide = (6, 9) if turned else (9, 6)
    size = max(1, entries // wide)
    seen = launches["entries"].seen
    assert [launch[1][2].shape[0] for launch in seen] == [
        min(size, long - start) for start in range(0, long, size)
    ]
    for grid, given, known in seen:
        shape = given[2].shape
        assert grid == (-(-shape[0] // known["N_ROWS"]), -(-shape[1] // known["N_COLUMNS"]))
        assert given[9:11] == tuple(shape)
        assert (known["BY_ROW"], known["BY_COLUMN"]) == (turned, not turned)
        assert known["SECOND"]
        assert known["LOSS"]
        assert known["SUMS"]
        assert not known["EXACT"]
    if not turned:
        zero = torch.zeros(9, dtype=torch.float64)
        problem.search(torch.zeros((9, 3), dtype=torch.float64), zero, zero, zero)
        seen = launches["search_entries"].seen
        assert sum(launch[1][8] for launch in seen) == 9
        assert all(grid == (-(-given[8] // known["N_ROWS"]),) for grid, given, known in seen)
