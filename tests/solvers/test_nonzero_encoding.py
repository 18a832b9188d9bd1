"""Newton steps on sparse rows, as a GPU makes them: the minimum of every row, whatever others need."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.losses.beta import BetaLoss
from nonneg.losses.nonzeros import sums_for_W
from nonneg.losses.penalties import Penalties
from nonneg.solvers import nonzero_encoding
from nonneg.solvers.nonzero_encoding import _placed, _ranges, _Rows, encode_on_gpu

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:Sparse ")]


@pytest.fixture
def problem(torch, rng):
    X = rng.poisson(3 * rng.gamma(0.5, size=(14, 3)) @ rng.gamma(0.5, size=(3, 20))).astype(float)
    X[3] = 0.0
    X[5] = 0.0
    X[5, 4] = 1000.0
    Ht = rng.gamma(1.0, size=(20, 3))
    return as_data_matrix(torch.asarray(X).to_sparse_csr()), X, torch.asarray(Ht)


def encoded(data, Ht, penalties, *, start=None, tol=1e-12, max_iter=100):
    loss = BetaLoss.of(data, 1.0)
    return encode_on_gpu(data, start, Ht, sums_for_W(data, Ht), loss, penalties, tol, max_iter).numpy()


@pytest.mark.parametrize("l1", [0.0, 0.4])
@pytest.mark.parametrize("l2", [0.0, 0.7])
@pytest.mark.parametrize("given", [False, True])
def test_every_row_is_a_minimum(problem, torch, rng, l1, l2, given):
    data, X, Ht = problem
    start = torch.asarray(rng.random((14, 3))) if given else None
    W, H = encoded(data, Ht, Penalties(l1_W=l1, l2_W=l2), start=start), Ht.numpy().T
    assert (W >= 0).all()
    assert not W[3].any() or np.abs(W[3]).max() < 1e-6
    rows = np.arange(14) != 3
    gradient = (1 - X / np.maximum(W @ H, 1e-30)) @ H.T + l1 + l2 * W
    scale = np.abs(X / np.maximum(W @ H, 1e-30)) @ H.T + H.sum(axis=1)
    positive = W > 1e-7
    assert np.abs((gradient / scale)[rows][positive[rows]]).max() < 1e-6
    assert (gradient / scale)[rows][~positive[rows]].min() > -1e-6


@pytest.mark.parametrize("left", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("hessians", [1, 1 << 26])
def test_neither_the_other_rows_nor_their_number_at_a_time_matter(problem, monkeypatch, left, hessians):
    data, _, Ht = problem
    whole = encoded(data, Ht, Penalties())
    monkeypatch.setattr(nonzero_encoding, "LEFT", left)
    monkeypatch.setattr(nonzero_encoding, "HESSIANS", hessians)
    np.testing.assert_allclose(encoded(data, Ht, Penalties()), whole, rtol=1e-7, atol=1e-9)


def test_it_ends_when_no_row_is_left(problem, monkeypatch):
    data, _, Ht = problem
    seen, step = [], _Rows.step

    def noted(self, csr, W, sums, *, own):
        found = step(self, csr, W, sums, own=own)
        seen.append((own, found[1].numpy()))
        return found

    monkeypatch.setattr(_Rows, "step", noted)
    tol = 1e-14
    encoded(data, Ht, Penalties(), tol=tol)
    needed = tol**0.5 / 30
    assert [own for own, _ in seen[:5]] == [False] * 4 + [True]
    assert (seen[-1][1] <= needed).all()
    assert all((residuals > needed).any() for _, residuals in seen[4:-1])
    assert any((residuals > needed).sum() == 1 for _, residuals in seen[4:-1])  # the last row goes on alone
    seen.clear()
    encoded(data, Ht, Penalties(), max_iter=2)
    assert len(seen) == 2


def test_ranges_and_places(problem, torch):
    data, *_ = problem
    csr = data.csr
    blocks = [(0, 14)] if csr.plan is None else [block[:2] for block in csr.plan.blocks]
    assert sorted(row for first, last in _ranges(csr, 4) for row in range(first, last)) == list(range(14))
    assert all(last - first <= 4 for first, last in _ranges(csr, 4))
    assert _ranges(csr, 100) == [tuple(block) for block in blocks]
    xp, out, W = data.xp, torch.zeros((4, 2)), torch.ones((2, 2))
    assert _placed(xp, out, None, W) is W
    placed = _placed(xp, out, torch.tensor([3, 1]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert placed.tolist() == [[0, 0], [3, 4], [0, 0], [1, 2]]
    assert not out.any()
