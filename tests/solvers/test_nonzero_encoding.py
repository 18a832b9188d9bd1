"""Newton steps on sparse rows, as a GPU makes them: the minimum of every row, whatever others need."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.losses.penalties import Penalties
from nonneg.solvers import encoding

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:Sparse ")]


@pytest.fixture
def problem(torch, rng, monkeypatch):
    monkeypatch.setattr(encoding, "is_cpu_tensor", lambda array: False)
    X = rng.poisson(3 * rng.gamma(0.5, size=(14, 3)) @ rng.gamma(0.5, size=(3, 20))).astype(float)
    X[3] = 0.0
    X[5] = 0.0
    X[5, 4] = 1000.0
    Ht = rng.gamma(1.0, size=(20, 3))
    return as_data_matrix(torch.asarray(X).to_sparse_csr()), X, torch.asarray(Ht)


def encoded(data, Ht, penalties):
    return encoding.encode_beta(data, Ht, beta=1.0, penalties=penalties).numpy()


@pytest.mark.parametrize("l1", [0.0, 0.4])
@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_every_row_is_a_minimum(problem, l1, l2):
    data, X, Ht = problem
    W, H = encoded(data, Ht, Penalties(l1_W=l1, l2_W=l2)), Ht.numpy().T
    assert (W >= 0).all()
    assert not W[3].any() or np.abs(W[3]).max() < 1e-6
    rows = np.arange(14) != 3
    gradient = (1 - X / np.maximum(W @ H, 1e-30)) @ H.T + l1 + l2 * W
    scale = np.abs(X / np.maximum(W @ H, 1e-30)) @ H.T + H.sum(axis=1)
    positive = W > 1e-7
    assert np.abs((gradient / scale)[rows][positive[rows]]).max() < 1e-6
    assert (gradient / scale)[rows][~positive[rows]].min() > -1e-6


def test_neither_the_other_rows_nor_their_number_at_a_time_matter(problem, monkeypatch):
    data, _, Ht = problem
    whole = encoded(data, Ht, Penalties())
    monkeypatch.setattr(encoding, "HESSIANS", 1)
    np.testing.assert_allclose(encoded(data, Ht, Penalties()), whole, rtol=1e-7, atol=1e-9)
