"""Models that go on learning after they were saved: nothing that they need is lost."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg import NMF, PurificationNMF, load


@pytest.mark.parametrize("beta_loss", ["frobenius", "kullback-leibler"])
@pytest.mark.parametrize("begun", ["fit", "partial_fit"])
def test_a_loaded_model_goes_on_as_the_saved_one(tmp_path, rng, beta_loss, begun):
    X = rng.random((30, 6)) + 0.1
    model = NMF(2, beta_loss=beta_loss, random_state=0, tol=1e-3)
    getattr(model, begun)(X[:20])
    model.save(tmp_path / "model")
    other = load(tmp_path / "model")
    for each in (model, other):
        each.partial_fit(X[20:])
    np.testing.assert_allclose(other.components_, model.components_, rtol=1e-12)
    assert other.n_steps_ == model.n_steps_
    if begun == "partial_fit":
        other.save(tmp_path / "again")
        np.testing.assert_array_equal(load(tmp_path / "again").components_, other.components_)


@pytest.mark.parametrize("n_first", [100, 300])
def test_a_purification_keeps_what_is_pending(tmp_path, rng, n_first):
    H = np.eye(3, 8) + 0.2 * rng.random((3, 8))
    W = np.where(rng.random((600, 3)) < 0.3, rng.uniform(0.7, 1.3, (600, 3)), 0.0)
    X = W @ H
    model = PurificationNMF(3, init=H + 0.02 * rng.random((3, 8)), batch_size=200)
    model.partial_fit(X[:n_first])
    model.save(tmp_path / "model")
    other = load(tmp_path / "model")
    for each in (model, other):
        each.partial_fit(X[n_first:])
    np.testing.assert_allclose(other.components_, model.components_, rtol=1e-10)
