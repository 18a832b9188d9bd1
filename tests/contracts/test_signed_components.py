"""Semi-NMF: nonnegative weights, components of any sign."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import nonneg
from nonneg import NMF, estimate_errors, factorize
from nonneg.exceptions import FileFormatError, InvalidParameterError, NegativeDataError, UnsupportedError


@pytest.fixture
def signed():
    rng = np.random.default_rng(0)
    W = rng.gamma(0.5, size=(200, 3)) * (rng.random((200, 3)) < 0.5)
    H = rng.normal(size=(3, 12))
    return W @ H + 0.01 * rng.normal(size=(200, 12)), H


def test_what_remains_is_the_noise(signed):
    X, H = signed
    model = NMF(3, signed_components=True, n_init=5, random_state=0, max_iter=500).fit(X)
    assert model.reconstruction_err_ < 0.01 * X.size**0.5
    assert NMF(3, negative="keep", random_state=0).fit(X).reconstruction_err_ > 10 * model.reconstruction_err_
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (H, model.components_)]
    assert (unit[0] @ unit[1].T).max(axis=1).min() > 0.9
    assert model.components_.min() < 0 <= model.transform(X).min()
    assert model.certificate_["stationarity"].holds
    np.testing.assert_allclose(
        np.linalg.norm(X - model.transform(X) @ model.components_), model.reconstruction_err_
    )


def test_components_are_least_squares_and_the_loss_never_increases(signed):
    X, _ = signed
    result = factorize(X, 3, signed_components=True, rng=0, max_iter=30, tol=0)
    np.testing.assert_allclose(result.H, np.linalg.lstsq(result.W, X)[0], rtol=1e-8, atol=1e-10)
    loss = np.array(result.history.loss)
    assert (np.diff(loss) <= 1e-12 * loss[0]).all()
    assert loss[-1] == pytest.approx(0.5 * np.sum((X - result.W @ result.H) ** 2))


def test_a_weight_of_two_is_a_sample_given_twice(signed):
    X, _ = signed
    weights = np.where(np.arange(200) < 50, 2.0, 1.0)
    H = np.random.default_rng(1).normal(size=(3, 12))
    W = np.random.default_rng(2).random((200, 3))
    options = {"signed_components": True, "init": "custom", "max_iter": 20, "tol": 0}
    weighted = factorize(X, 3, W=W, H=abs(H), sample_weight=weights, **options)
    twice = np.repeat(np.arange(200), weights.astype(int))
    repeated = factorize(X[twice], 3, W=W[twice], H=abs(H), **options)
    np.testing.assert_allclose(weighted.H, repeated.H, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("container", ["sparse", "torch", "float32"])
def test_containers_agree(container, signed):
    X, _ = signed
    options = {"signed_components": True, "rng": 0, "max_iter": 10, "tol": 0}
    expected = factorize(X, 3, **options)
    if container == "sparse":
        other = sp.csr_array(X)
    elif container == "torch":
        other = pytest.importorskip("torch").asarray(X)
    else:
        other = X.astype(np.float32)
    result = factorize(other, 3, **options)
    bound = 1e-2 if container == "float32" else 1e-8
    np.testing.assert_allclose(np.asarray(result.H), expected.H, rtol=bound, atol=bound)


def test_saved_and_loaded(signed, tmp_path):
    model = NMF(3, signed_components=True, random_state=0).fit(signed[0])
    model.save(tmp_path / "model.nonneg")
    np.testing.assert_array_equal(nonneg.load(tmp_path / "model.nonneg").components_, model.components_)
    model.signed_components = False
    model.save(tmp_path / "false.nonneg")
    with pytest.raises(FileFormatError, match="nonnegative"):
        nonneg.load(tmp_path / "false.nonneg")


def test_what_it_does_not_take_is_said(signed):
    X, _ = signed
    with pytest.raises(NegativeDataError):
        NMF(3).fit(X)
    with pytest.raises(InvalidParameterError, match="signed_components=True is for the Frobenius loss"):
        NMF(3, signed_components=True, beta_loss=1.0).fit(X)
    refused = [
        ({"solver": "anls"}, {}, "solver"),
        ({"alpha_H": 0.1, "l1_ratio": 1.0}, {}, "L1 penalty"),
        ({"robust": "huber"}, {}, "robust"),
        ({"missing": "mask"}, {"mask": X > -1}, "missing"),
    ]
    for options, arguments, words in refused:
        with pytest.raises(UnsupportedError, match=words):
            NMF(3, signed_components=True, **options).fit(X, **arguments)
    model = NMF(3, signed_components=True, random_state=0).fit(X)
    with pytest.raises(InvalidParameterError, match="partial_fit"):
        model.partial_fit(X)
    with pytest.raises(UnsupportedError, match="signed_components"):
        estimate_errors(model, X)


def test_data_too_wide_for_products_with_the_update_of_W(rng):
    # Once the update of H was given W instead of the products X' W there.
    X = rng.normal(size=(130, 150))
    result = factorize(X, 60, signed_components=True, rng=0, max_iter=3, tol=0)
    assert result.loss == pytest.approx(0.5 * np.linalg.norm(X - result.W @ result.H) ** 2)


def test_a_run_with_a_callback_resumes_from_its_checkpoint(signed, tmp_path):
    """Components below zero were once taken for a broken state."""
    X, _ = signed
    options = {"signed_components": True, "init": "random", "random_state": 0, "tol": 0}
    options["callback"] = lambda progress: False
    NMF(3, max_iter=5, checkpoint=tmp_path, **options).fit(X)
    resumed = NMF(3, max_iter=9, checkpoint=tmp_path, **options).fit(X)
    np.testing.assert_allclose(resumed.components_, NMF(3, max_iter=9, **options).fit(X).components_)
