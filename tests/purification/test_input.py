"""What is refused, and in what words; what is left as it was."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import purify
from nonneg.exceptions import (
    InvalidDataError,
    InvalidParameterError,
    NonFiniteDataError,
    ShapeError,
    UnknownNameError,
    UnsupportedError,
)
from nonneg.purification import perturbed_features


@pytest.fixture(scope="module")
def small(planted):
    data, start = planted(n_samples=600, n_features=30, n_components=6, sparsity=1.5)
    return data.X, start


def spoiled(start, what):
    start = start.copy()
    if what == "zero":
        start[2] = 0
    elif what == "dependent":
        start[2] = start[0] + 2 * start[1]
    elif what == "nan":
        start[2, 4] = np.nan
    return start


@pytest.mark.parametrize(
    ("what", "error", "said"),
    [
        ("zero", InvalidParameterError, "Feature 2 is all zeros.*leave it out"),
        ("dependent", InvalidParameterError, "linearly dependent: feature [012] is a combination"),
        ("nan", NonFiniteDataError, "Feature 2 has the entry nan at 4"),
    ],
)
def test_bad_features(small, what, error, said):
    with pytest.raises(error, match=said):
        purify(small[0], spoiled(small[1], what))


def test_more_features_than_entries(small):
    X, start = small
    with pytest.raises(ShapeError, match=r"6 features of length 4 cannot be independent: .*n <= m"):
        purify(X[:, :4], start[:, :4])
    with pytest.raises(ShapeError, match=r"Expected features of shape \(n, 30\)"):
        purify(X, start[:, :9])
    with pytest.raises(ShapeError, match="Expected features"):
        purify(X, start[0])


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"update": "regresion"}, UnknownNameError, "Did you mean 'regression'"),
        ({"decode": "relu"}, UnknownNameError, "decode='relu'"),
        ({"eta": 0}, InvalidParameterError, "eta must be 'auto' or a number above 0"),
        ({"eta": True}, InvalidParameterError, "eta must be"),
        ({"anneal": 1.5}, InvalidParameterError, "anneal must be"),
        ({"r": 2.0}, UnsupportedError, "takes no r"),
        ({"r": -1.0, "update": "covariance"}, InvalidParameterError, "r must be .* above 0"),
        ({"alpha": [0.1, 0.2]}, ShapeError, "alpha must have one entry for each of the 6"),
        ({"alpha": "high"}, InvalidParameterError, "alpha must be 'auto', a number"),
        ({"alpha": np.inf}, InvalidParameterError, "alpha must be 'auto' or a finite number"),
        ({"tol": -1}, InvalidParameterError, "tol must be"),
        ({"max_iter": 1.5}, InvalidParameterError, "max_iter must be an integer"),
        ({"fresh_samples": 0}, InvalidParameterError, "fresh_samples must be an integer of at least 1"),
        ({"check_start": "warn"}, UnknownNameError, "check_start"),
        ({"normalize": "l2"}, UnknownNameError, "normalize"),
        ({"pseudo_inverse": "qr"}, UnknownNameError, "pseudo_inverse"),
        ({"truth": np.ones((2, 30)) + np.eye(2, 30)}, InvalidParameterError, "truth has 2 features"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_parameters(small, options, error, said):
    with pytest.raises(error, match=said):
        purify(*small, **options)


def test_bad_data(small):
    X, start = small
    spoilt = X.copy()
    spoilt[3, 5] = np.nan
    with pytest.raises(NonFiniteDataError, match=r"entry \[3, 5\] is nan"):
        purify(spoilt, start)
    with pytest.raises(NonFiniteDataError, match=r"entry \[3, 5\] is nan"):
        purify(lambda: iter([X, spoilt]), start)
    with pytest.raises(InvalidDataError, match="stream of samples is empty"):
        purify(iter([]), start)
    with pytest.raises(ShapeError, match="A batch of the stream has 29 columns"):
        purify([X, X[:, 1:]], start)
    with pytest.raises(UnsupportedError, match="no sample_weight"):
        purify([X], start, sample_weight=np.ones(len(X)))
    with pytest.raises(UnsupportedError, match="cannot be taken up"):
        purify([X], start, checkpoint="folder")


def test_inputs_stay_as_they_are_and_precision_is_kept(small):
    X, start = small
    X32 = X.astype(np.float32)
    before = X32.copy(), start.copy()
    result = purify(X32, start, balance=True, normalize="l1")
    np.testing.assert_array_equal(X32, before[0])
    np.testing.assert_array_equal(start, before[1])
    assert result.features.dtype == result.W.dtype == np.float32
    double = purify(X, start, normalize="l1")
    np.testing.assert_allclose(result.features, double.features, atol=1e-4)


def test_made_up_starts_have_the_asked_mixing():
    from nonneg.metrics import mixing

    true = np.random.default_rng(0).random((5, 20))
    found = mixing(true, perturbed_features(true, 0.3, rng=1))
    assert found.e_symmetric_norm == pytest.approx(0.3)
    np.testing.assert_allclose(found.diagonal, 1.0)
    assert found.n_norm < 1e-12
    positive = mixing(true, perturbed_features(true, 0.3, signs="positive", outside=0.5, diagonal=0.2, rng=1))
    assert positive.off_diagonal.min() > -1e-12
    np.testing.assert_allclose(np.abs(positive.outside).sum(axis=0), 0.5)
    assert np.abs(positive.diagonal - 1).max() <= 0.2
    assert mixing(true, perturbed_features(true, 0.3, signs="negative", rng=1)).off_diagonal.max() < 1e-12
    with pytest.raises(UnknownNameError, match="signs"):
        perturbed_features(true, signs="plus")
    with pytest.raises(InvalidParameterError, match="Expected level >= 0"):
        perturbed_features(true, -1.0)


@pytest.mark.parametrize(
    "features", ["anchors", {}, [[1.0], [1.0, 2.0]], np.ones((2, 30)) * 1j], ids=["text", "dict", "rows", "i"]
)
def test_features_that_are_no_numbers(small, features):
    with pytest.raises(InvalidParameterError, match="Features are an array of numbers"):
        purify(small[0], features)


def test_features_may_be_sparse_or_a_tensor(small):
    torch = pytest.importorskip("torch")
    X, start = small
    expected = purify(X, start).features
    np.testing.assert_array_equal(purify(X, sp.csr_array(start)).features, expected)
    np.testing.assert_array_equal(purify(X, torch.tensor(start, requires_grad=True)).features, expected)


@pytest.mark.parametrize("name", ["update", "decode", "pseudo_inverse", "normalize", "check_start"])
def test_names_are_texts(small, name):
    with pytest.raises(UnknownNameError, match=name):
        purify(*small, **{name: np.ones(3)})


@pytest.mark.parametrize(("name", "value"), [("balance", "no"), ("balance", 1), ("beta", "x"), ("beta", -1)])
def test_flags_and_weights(small, name, value):
    with pytest.raises(InvalidParameterError, match=f"{name} must be"):
        purify(*small, **{name: value})


def test_perturbed_features_are_finite():
    with pytest.raises(InvalidParameterError, match="leave nothing outside"):
        perturbed_features(np.eye(4), outside=0.1)
    with pytest.raises(InvalidParameterError, match="Expected level"):
        perturbed_features(np.eye(4), np.inf)
    with pytest.raises(ShapeError, match="one a row"):
        perturbed_features(np.ones(4))
