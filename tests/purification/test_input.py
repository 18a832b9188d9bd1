"""Input that is refused, with its message; inputs stay unmodified."""

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


@pytest.fixture(scope="module")
def small(planted):
    data, init = planted(n_samples=600, n_features=30, n_components=6, sparsity=1.5)
    return data.X, init


def spoiled(init, what):
    init = init.copy()
    if what == "zero":
        init[2] = 0
    elif what == "dependent":
        init[2] = init[0] + 2 * init[1]
    elif what == "nan":
        init[2, 4] = np.nan
    return init


@pytest.mark.parametrize(
    ("what", "error", "said"),
    [
        ("zero", InvalidParameterError, "Feature 2 of init is all zeros.*leave it out"),
        ("dependent", InvalidParameterError, "linearly dependent: feature [012] is a combination"),
        ("nan", NonFiniteDataError, r"entry \[2, 4\] is nan"),
    ],
)
def test_bad_features(small, what, error, said):
    with pytest.raises(error, match=said):
        purify(small[0], spoiled(small[1], what))


def test_more_features_than_entries(small):
    X, init = small
    with pytest.raises(
        ShapeError, match=r"6 features of length 4 cannot be independent: .*n_components <= n_features"
    ):
        purify(X[:, :4], init[:, :4])
    with pytest.raises(ShapeError, match=r"init must have shape \(n_components, 30\)"):
        purify(X, init[:, :9])
    with pytest.raises(ShapeError, match="init must have shape"):
        purify(X, init[0])


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"update": "regresion"}, UnknownNameError, "Did you mean 'regression'"),
        ({"decode": "relu"}, UnknownNameError, "decode='relu'"),
        ({"step_size": 0}, InvalidParameterError, "step_size must be 'auto' or a number in"),
        ({"step_size": True}, InvalidParameterError, "step_size must be"),
        ({"threshold_decay": 1.5}, InvalidParameterError, "threshold_decay must be"),
        ({"scale": 2.0}, UnsupportedError, "does not accept `scale`"),
        ({"scale": -1.0, "update": "covariance"}, InvalidParameterError, "scale must be .* above 0"),
        ({"threshold": [0.1, 0.2]}, InvalidParameterError, "threshold must be 'auto' or a finite number"),
        ({"threshold": "high"}, InvalidParameterError, "threshold must be 'auto' or a finite number"),
        ({"threshold": np.inf}, InvalidParameterError, "threshold must be 'auto' or a finite number"),
        ({"tol": -1}, InvalidParameterError, "tol must be"),
        ({"max_iter": 1.5}, InvalidParameterError, "max_iter must be an integer"),
        ({"batch_size": 0}, InvalidParameterError, "batch_size must be an integer of at least 1"),
        ({"check_init": "warn"}, UnknownNameError, "check_init"),
        ({"normalize": "l3"}, UnknownNameError, "normalize"),
        ({"pseudo_inverse": "qr"}, UnknownNameError, "pseudo_inverse"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_parameters(small, options, error, said):
    with pytest.raises(error, match=said):
        purify(*small, **options)


def test_bad_data(small):
    X, init = small
    spoilt = X.copy()
    spoilt[3, 5] = np.nan
    with pytest.raises(NonFiniteDataError, match=r"entry \[3, 5\] is nan"):
        purify(spoilt, init)
    with pytest.raises(NonFiniteDataError, match=r"entry \[3, 5\] is nan"):
        purify(lambda: iter([X, spoilt]), init)
    with pytest.raises(InvalidDataError, match="stream of samples is empty"):
        purify(iter([]), init)
    with pytest.raises(ShapeError, match="A batch of the stream has 29 columns"):
        purify([X, X[:, 1:]], init)
    with pytest.raises(UnsupportedError, match="no sample_weight"):
        purify([X], init, sample_weight=np.ones(len(X)))
    with pytest.raises(UnsupportedError, match="cannot be resumed"):
        purify([X], init, checkpoint="folder")


def test_inputs_stay_as_they_are_and_precision_is_kept(small):
    X, init = small
    X32 = X.astype(np.float32)
    before = X32.copy(), init.copy()
    result = purify(X32, init, balance=True, normalize="l1")
    np.testing.assert_array_equal(X32, before[0])
    np.testing.assert_array_equal(init, before[1])
    assert result.H.dtype == result.W.dtype == np.float32
    double = purify(X, init, normalize="l1")
    np.testing.assert_allclose(result.H, double.H, atol=1e-4)


@pytest.mark.parametrize(
    "features", ["anchors", {}, [[1.0], [1.0, 2.0]], np.ones((2, 30)) * 1j], ids=["text", "dict", "rows", "i"]
)
def test_features_that_are_no_numbers(small, features):
    with pytest.raises(InvalidParameterError, match="init must be an array of numbers"):
        purify(small[0], features)


def test_features_may_be_sparse_or_a_tensor(small):
    torch = pytest.importorskip("torch")
    X, init = small
    expected = purify(X, init).H
    np.testing.assert_array_equal(purify(X, sp.csr_array(init)).H, expected)
    np.testing.assert_array_equal(purify(X, torch.tensor(init, requires_grad=True)).H, expected)


@pytest.mark.parametrize("name", ["update", "decode", "pseudo_inverse", "normalize", "check_init"])
def test_names_are_texts(small, name):
    with pytest.raises(UnknownNameError, match=name):
        purify(*small, **{name: np.ones(3)})


@pytest.mark.parametrize(("normalize", "order"), [("l1", 1), ("l2", 2)])
def test_features_are_normalized(small, normalize, order):
    plain, normalized = (purify(*small, normalize=given) for given in (None, normalize))
    norms = np.linalg.norm(plain.H, order, axis=1)
    np.testing.assert_allclose(normalized.H, plain.H / norms[:, None], rtol=1e-12)
    np.testing.assert_allclose(normalized.W, plain.W * norms, rtol=1e-8, atol=1e-12)
