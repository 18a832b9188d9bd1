"""Terms of the gradients and losses of a block, in ranges of rows, against the formulas of every entry."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.data import as_data_matrix
from nonneg.losses import beta as beta_module
from nonneg.losses.beta import BetaLoss, entries_and_mask, in_pieces, over_blocks
from nonneg.losses.penalties import Penalties, rescale_pair, scaled_penalties

WEIGHTS = np.linspace(0.2, 2.0, 17)


def entrywise(x, v, beta):
    if beta == 1:
        return np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / v), 0) - x + v
    if beta == 0:
        return x / v - np.log(x / v) - 1
    return (x**beta + (beta - 1) * v**beta - beta * x * v ** (beta - 1)) / (beta * (beta - 1))


@pytest.mark.parametrize("beta", [-0.5, 0.0, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("kind", ["dense", "sparse", "masked", "weighted", "offset", "torch"])
def test_terms_are_the_two_parts_of_the_gradient(beta, kind, rng, monkeypatch):
    monkeypatch.setattr(beta_module, "BLOCK_ENTRIES", 40)  # ranges of four rows
    monkeypatch.setattr(beta_module, "ARRAY_ENTRIES", 40)
    X, W, Ht = rng.random((17, 9)) + 0.1, rng.random((17, 3)) + 0.1, rng.random((9, 3)) + 0.1
    mask, weights, offset, given = None, None, 0.0, X
    if kind == "sparse":
        if beta < 1:
            pytest.skip("zeros have no finite divergence")
        X = np.where(rng.random(X.shape) < 0.5, X, 0.0)
        given = sp.csr_array(X)
    elif kind == "masked":
        mask = rng.random(X.shape) < 0.7
    elif kind == "weighted":
        weights = WEIGHTS
    elif kind == "offset":
        offset = 0.3
    elif kind == "torch":
        given = pytest.importorskip("torch").asarray(X)
    data = as_data_matrix(given, weights=weights, mask=mask)
    left, right = (data.to_device(factor) for factor in (W, Ht))
    loss = BetaLoss.of(data, beta, offset)
    seen = np.ones_like(X) if mask is None else mask.astype(float)
    counted = np.ones(17) if weights is None else weights
    x, v = X + offset, W @ Ht.T + offset
    total = np.sum(counted[:, None] * seen * entrywise(x, v, beta))
    ratio, power = seen * x * v ** (beta - 2), seen * v ** (beta - 1)
    for want_loss in (False, True):
        of_W = loss.terms_of_W(data, left, right, want_loss=want_loss)
        of_H = loss.terms_of_H(data, left, right, want_loss=want_loss)
        np.testing.assert_allclose(of_W.ratio, ratio @ Ht, rtol=1e-10)
        np.testing.assert_allclose(of_W.power + 0 * of_W.ratio, power @ Ht, rtol=1e-10)
        heavy = counted[:, None] * W
        np.testing.assert_allclose(of_H.ratio, ratio.T @ heavy, rtol=1e-10)
        np.testing.assert_allclose(of_H.power + 0 * of_H.ratio, power.T @ heavy, rtol=1e-10)
        for terms in (of_W, of_H):
            assert float(terms.loss) == pytest.approx(total if want_loss else 0.0, rel=1e-9)
    assert loss.value(data, left, right) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("error", [1e-7, 1e-9])
def test_the_loss_of_a_nearly_exact_fit_keeps_its_digits(error, rng):
    W, Ht = rng.random((17, 3)), rng.random((9, 3))
    noise = error * rng.standard_normal((17, 9))
    X = W @ Ht.T + noise
    data = as_data_matrix(X)
    loss, expected = BetaLoss.of(data, 2.0), 0.5 * np.sum((X - W @ Ht.T) ** 2)
    assert loss.value(data, W, Ht) == pytest.approx(expected, rel=1e-5, abs=0.0)
    assert loss.terms_of_W(data, W, Ht, want_loss=True).loss == pytest.approx(expected, rel=1e-5, abs=0.0)
    assert loss.terms_of_H(data, W, Ht, want_loss=True).loss == pytest.approx(expected, rel=1e-5, abs=0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_are_in_the_unit_of_the_data(dtype, rng):
    X = (5.0 * rng.random((6, 4))).astype(dtype)
    data, eps = as_data_matrix(X), float(np.finfo(dtype).eps)
    for beta in (0.0, 1.0, 1.5, 2.0):
        loss = BetaLoss.of(data, beta, 0.5)
        assert loss.lower_bound == pytest.approx(eps**2 * data.mean())
        assert loss.curvature_bound == pytest.approx(1e-3 * data.mean() if beta == 1.5 else 0.0)
        assert (loss.beta, loss.offset) == (beta, 0.5)
        assert loss.convex is (beta >= 1.0)
    assert not BetaLoss.of(data, 2.1).convex
    assert BetaLoss.of(as_data_matrix(np.zeros((2, 2))), 1.0).lower_bound == np.finfo(float).eps ** 2


@pytest.mark.parametrize("n_rows", [0, 1, 4, 17])
def test_ranges_cover_all_rows_once(n_rows, monkeypatch):
    monkeypatch.setattr(beta_module, "BLOCK_ENTRIES", 40)
    block = as_data_matrix(np.ones((n_rows, 10)))
    ranges = over_blocks(block, lambda start, stop: (start, stop))
    assert [row for start, stop in ranges for row in range(start, stop)] == list(range(n_rows))
    assert all(stop - start <= 4 for start, stop in ranges)
    (total,) = over_blocks(block, lambda start, stop: stop - start, add=lambda a, b: a + b)
    assert total == n_rows


def test_entries_and_mask_of_a_block(rng):
    X, mask = rng.random((5, 4)), rng.random((5, 4)) < 0.5
    for transposed in (False, True):
        x, seen = entries_and_mask(as_data_matrix(X, mask=mask), transposed=transposed)
        np.testing.assert_array_equal(x, np.where(mask, X, 0.0).T if transposed else np.where(mask, X, 0.0))
        np.testing.assert_array_equal(seen, mask.T if transposed else mask)
        x, seen = entries_and_mask(as_data_matrix(X), transposed=transposed)
        np.testing.assert_array_equal(x, X.T if transposed else X)
        assert seen is None


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_penalties_are_their_formula(weights, rng):
    W, Ht = rng.random((17, 3)), rng.random((9, 3))
    penalties = Penalties(l1_W=0.3, l2_W=0.2, l1_H=0.5, l2_H=0.7)
    counted = np.ones(17) if weights is None else weights
    assert penalties.of_W(W, weights) == pytest.approx(counted @ np.sum(0.3 * W + 0.1 * W**2, axis=1))
    assert penalties.of_H(Ht) == pytest.approx(np.sum(0.5 * Ht + 0.35 * Ht**2))
    for name in ("l1_W", "l2_W", "l1_H", "l2_H"):
        assert Penalties(**{name: 1.0}).any
    assert not Penalties().any
    assert Penalties(l1_W=1.0).of_H(Ht) == 0.0


@pytest.mark.parametrize("alpha_H", ["same", 0.5])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_penalties_are_scaled_to_the_data(alpha_H, weights):
    data = as_data_matrix(np.ones((17, 9)), weights=weights)
    found = scaled_penalties(data, 0.2, alpha_H, 0.3)
    of_W, of_H = 0.2 * 9, (0.2 if alpha_H == "same" else 0.5) * (17 if weights is None else WEIGHTS.sum())
    expected = (of_W * 0.3, of_W * 0.7, of_H * 0.3, of_H * 0.7)
    assert (found.l1_W, found.l2_W, found.l1_H, found.l2_H) == pytest.approx(expected)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_components_have_norm_one_and_zeros_stay(norm, rng):
    W, Ht = rng.random((5, 3)), rng.random((7, 3)) * [1.0, 50.0, 0.0]
    new_W, new_Ht = rescale_pair(W, Ht, norm)
    order = {"l1": 1, "l2": 2, "max": np.inf}[norm]
    np.testing.assert_allclose(np.linalg.norm(new_Ht, order, axis=0), [1.0, 1.0, 0.0])
    np.testing.assert_allclose(new_W @ new_Ht.T, W @ Ht.T)
    np.testing.assert_array_equal(new_W[:, 2], W[:, 2])


@pytest.mark.parametrize(("entries", "pieces"), [(12, [4, 4, 4, 4, 1]), (51, [17]), (48, [16, 1])])
@pytest.mark.parametrize("on_gpu", [True, False])
def test_pieces_of_rows_give_what_the_whole_gives(entries, pieces, on_gpu, rng, monkeypatch):
    monkeypatch.setattr(beta_module, "TILED_ENTRIES", entries)
    monkeypatch.setattr(beta_module, "in_tiles", lambda block, Ht: on_gpu)
    X, W, Ht = rng.random((17, 9)), rng.random((17, 3)), rng.random((9, 3))
    seen = []

    def function(block, W, before):
        seen.append(block.shape[0])
        assert before is None
        return (2 * W, block.dense_rows(0, block.shape[0])), (W.sum(axis=0), float(len(W)))

    (rows, data), (total, count) = in_pieces(function, as_data_matrix(X), Ht, W, None)
    assert seen == (pieces if on_gpu else [17])
    np.testing.assert_array_equal(rows, 2 * W)
    np.testing.assert_array_equal(data, X)
    np.testing.assert_allclose(total, W.sum(axis=0))
    assert count == 17.0
