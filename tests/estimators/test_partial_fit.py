"""One batch after the other: as good as scikit-learn's MiniBatchNMF, and near to a fit of the whole."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import MiniBatchNMF

from nonneg import NMF


def batches(X, size):
    return [X[start : start + size, :] for start in range(0, X.shape[0], size)]


def learned(model, X, size, passes):
    for _ in range(passes):
        for batch in batches(X, size):
            model.partial_fit(batch)
    return model


def loss(model, X, beta_loss="frobenius"):
    """The loss with the best coefficients, the same way for both libraries."""
    ours = NMF(model.n_components_, beta_loss=beta_loss, init="custom", max_iter=1, tol=0)
    ours.fit(X, H=np.maximum(model.components_, 1e-12), frozen_components=range(model.n_components_))
    return ours.result_.loss


@pytest.mark.covering(1)
@pytest.mark.parametrize(
    ("beta_loss", "size", "passes"),
    [("frobenius", 100, 1), ("frobenius", 300, 5), ("kullback-leibler", 200, 3), (1.5, 200, 2)],
)
def test_not_worse_than_scikit_learns(beta_loss, size, passes, digits):
    X = digits[:400] + (beta_loss != "frobenius") * 0.1
    ours = learned(NMF(8, beta_loss=beta_loss, random_state=0), X, size, passes)
    theirs = learned(MiniBatchNMF(8, beta_loss=beta_loss, random_state=0), X, size, passes)
    assert loss(ours, X, beta_loss) <= loss(theirs, X, beta_loss)
    assert ours.n_steps_ == theirs.n_steps_


@pytest.mark.covering(0)
@pytest.mark.parametrize("beta_loss", ["frobenius", "kullback-leibler"])
def test_near_to_a_fit_of_the_whole(beta_loss, digits):
    excess = []
    for seed in range(3):  # the first batch decides which local minimum is found
        X = digits[np.random.default_rng(seed).permutation(len(digits))][:240] + 0.01
        model = learned(NMF(6, beta_loss=beta_loss, random_state=0), X, 60, 6)
        whole = NMF(6, beta_loss=beta_loss, random_state=0, max_iter=60, tol=0).fit(X)
        excess.append(loss(model, X, beta_loss) / whole.result_.loss)
    assert np.median(excess) <= 1.06


def test_sparse_batches_give_what_dense_ones_give(counts):
    for beta_loss in ("frobenius", "kullback-leibler", 1.5):
        dense = learned(NMF(4, beta_loss=beta_loss, random_state=0), counts.toarray(), 30, 2)
        thin = learned(NMF(4, beta_loss=beta_loss, random_state=0), scipy.sparse.csr_array(counts), 30, 2)
        np.testing.assert_allclose(
            thin.components_, dense.components_, rtol=1e-5, atol=1e-7, err_msg=str(beta_loss)
        )


def test_chunks(low_rank):
    da = pytest.importorskip("dask.array")
    local = learned(NMF(3, random_state=0), low_rank, 30, 1).components_
    chunked = learned(NMF(3, random_state=0), da.from_array(low_rank, chunks=(15, 40)), 30, 1).components_
    np.testing.assert_allclose(chunked, local, rtol=1e-6, atol=1e-9)


def test_tensors(xp, low_rank):
    local = learned(NMF(3, random_state=0), low_rank, 30, 1).components_
    other = learned(NMF(3, random_state=0), xp.asarray(low_rank), 30, 1).components_
    np.testing.assert_allclose(np.asarray(other), local, rtol=1e-6, atol=1e-9)
    # Batches may change hands.
    mixed = NMF(3, random_state=0).partial_fit(low_rank[:20]).partial_fit(xp.asarray(low_rank[20:40]))
    assert type(mixed.components_) is type(xp.asarray(low_rank))
    assert isinstance(mixed.partial_fit(low_rank[40:]).components_, np.ndarray)


def test_missing_entries(low_rank, rng):
    holes = low_rank.copy()
    holes[rng.random(low_rank.shape) < 0.2] = np.nan
    model = learned(NMF(4, missing="mask", random_state=0), holes, 20, 20)
    found = model.inverse_transform(model.transform(holes))
    lost = np.isnan(holes)
    assert np.linalg.norm((found - low_rank)[lost]) < 0.1 * np.linalg.norm(low_rank[lost])


def test_goes_on_from_a_fit(low_rank):
    model = NMF(4, random_state=0, max_iter=1000).fit(low_rank)
    before, error = model.components_.copy(), model.reconstruction_err_
    model.partial_fit(low_rank[:10])
    assert not np.array_equal(model.components_, before)
    now = np.linalg.norm(low_rank - model.transform(low_rank) @ model.components_)
    assert now < 2 * error  # ten samples do not outweigh the sixty before
    for name in ("result_", "certificate_", "history_", "reconstruction_err_", "n_iter_"):
        assert not hasattr(model, name)  # they spoke of the fit
    assert model.n_steps_ == 1
    assert not hasattr(model.fit(low_rank), "n_steps_")


def test_the_past_is_forgotten_at_the_rate_asked_for(low_rank, rng):
    other = rng.gamma(1.0, size=(60, 2)) @ rng.gamma(1.0, size=(2, 40))

    def error_on_the_first(forget_factor):
        model = NMF(4, random_state=0, forget_factor=forget_factor)
        learned(model, low_rank, 20, 5)
        learned(model, other, 20, 5)
        return np.linalg.norm(low_rank - model.transform(low_rank) @ model.components_)

    assert error_on_the_first(1.0) < error_on_the_first(0.2)


@pytest.mark.parametrize("beta_loss", ["frobenius", "kullback-leibler", "itakura-saito"])
def test_penalties_count(beta_loss, low_rank):
    def size(alpha):
        model = NMF(3, beta_loss=beta_loss, random_state=0, alpha_W=0, alpha_H=alpha, l1_ratio=0.5)
        return learned(model, low_rank, 20, 3).components_.sum()

    assert size(1.0) < size(0.0)


def test_given_start_first_batch_and_precision(low_rank, rng):
    H = rng.random((2, 40)).astype(np.float32)
    given = H.copy()
    model = NMF("auto", init="custom").partial_fit(low_rank[:5].astype(np.float32), H=H)
    assert model.n_components_ == 2
    assert model.components_.dtype == np.float32
    np.testing.assert_array_equal(H, given)
    few = NMF(6, random_state=0).partial_fit(low_rank[:3])  # fewer samples than components
    assert few.partial_fit(low_rank[3:]).components_.shape == (6, 40)
    assert NMF().partial_fit(low_rank).n_components_ == 4
    with pytest.raises(ValueError, match="n_components=41 is larger than both sides"):
        NMF(41).partial_fit(low_rank[:5])


@pytest.mark.parametrize("beta_loss", ["frobenius", "kullback-leibler"])
def test_a_stream_that_begins_with_silence_is_learned(beta_loss, low_rank):
    silent, other = (NMF(3, beta_loss=beta_loss, random_state=0) for _ in range(2))
    silent.partial_fit(0 * low_rank).partial_fit(low_rank)
    np.testing.assert_array_equal(silent.components_, other.partial_fit(low_rank).components_)


def test_the_penalty_of_the_components_grows_with_the_samples_so_far(low_rank):
    # Otherwise it would vanish beside the sums over the past.
    options = {"random_state": 0, "alpha_W": 0.1, "l1_ratio": 0.0, "forget_factor": 1.0}
    whole = NMF(3, max_iter=2000, **options).fit(low_rank)
    online = learned(NMF(3, **options), low_rank, len(low_rank), 60)
    sizes = [np.linalg.norm(model.transform(low_rank) @ model.components_) for model in (online, whole)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.01)
    assert sizes[1] < 0.97 * np.linalg.norm(low_rank)
