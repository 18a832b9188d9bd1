"""`non_negative_factorization` in the place of scikit-learn's: its own tests, but for messages."""

from __future__ import annotations

import inspect
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import non_negative_factorization as theirs
from sklearn.exceptions import ConvergenceWarning

from nonneg import NMF, non_negative_factorization
from nonneg.exceptions import DataTypeError, InvalidParameterError

suite = pytest.importorskip("sklearn.decomposition.tests.test_nmf")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def in_place(monkeypatch):
    """Ours in the place of theirs; error messages are our own."""
    monkeypatch.setattr(suite, "non_negative_factorization", non_negative_factorization)
    lenient = SimpleNamespace(raises=lambda kind, match=None: pytest.raises(kind), warns=pytest.warns)
    monkeypatch.setattr(suite, "pytest", lenient)


def test_the_signature_is_that_of_scikit_learn():
    ours, reference = (
        inspect.signature(function).parameters for function in (non_negative_factorization, theirs)
    )
    assert list(ours) == [*reference, "device"]  # ours alone; scikit-learn has no such option
    for name in reference:
        assert ours[name].default == reference[name].default, name
        assert ours[name].kind == reference[name].kind, name


@pytest.mark.covering(2)
@pytest.mark.parametrize("init", ["random", "nndsvd"])
@pytest.mark.parametrize("solver", ["cd", "mu"])
@pytest.mark.parametrize("alpha_W", [0.0, 1.0])
@pytest.mark.parametrize("alpha_H", [0.0, 1.0, "same"])
def test_consistency(in_place, monkeypatch, init, solver, alpha_W, alpha_H):
    # The function agrees with the class. Without a number of components, the class estimates one.
    monkeypatch.setattr(suite, "NMF", partial(NMF, None))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The multiplicative update")
        suite.test_non_negative_factorization_consistency(init, solver, alpha_W, alpha_H)


# The tests that pass with the words of our errors are in `tests/downstream`.
def test_wrong_parameters_are_refused(in_place):
    suite.test_non_negative_factorization_checking()
    suite.test_nmf_negative_beta_loss(sp.csr_array)


def test_factors_of_another_dtype_are_refused(in_place):
    suite.test_nmf_custom_init_dtype_error(suite.NMF)


def test_results_have_the_types_of_scikit_learn(rng):
    X = rng.random((12, 8)).astype(np.float32)
    before = X.copy()
    W, H, n_iter = non_negative_factorization(X, n_components=3, random_state=0)
    reference = theirs(X, n_components=3, random_state=0)
    assert (W.shape, H.shape) == (reference[0].shape, reference[1].shape)
    assert W.dtype == H.dtype == np.float32
    assert isinstance(n_iter, int)
    np.testing.assert_array_equal(X, before)


def test_a_fixed_h_is_encoded_exactly(rng):
    X, H = rng.random((12, 8)), rng.random((3, 8))
    W, same, n_iter = non_negative_factorization(X, H=H, update_H=False)
    assert same is H
    assert n_iter >= 1
    np.testing.assert_allclose(
        W, NMF(3, init="custom", max_iter=1, tol=0).fit(X, H=H, frozen_components=range(3)).transform(X)
    )


def test_reaching_max_iter_is_warned_of(rng):
    with pytest.warns(ConvergenceWarning, match="Maximum number of iterations 1 reached"):
        non_negative_factorization(rng.random((12, 8)), n_components=3, max_iter=1, random_state=0)


def test_wrong_parameters_are_refused_by_name(rng):
    X = rng.random((6, 5))
    with pytest.raises(InvalidParameterError, match="n_components=9 is larger than both"):
        non_negative_factorization(X, n_components=9)
    with pytest.raises(ValueError, match="'tol' parameter of NMF"):
        non_negative_factorization(X, tol=-1)
    with pytest.raises(DataTypeError, match="W should have the same dtype as X"):
        non_negative_factorization(X, X.astype(np.float32), X, init="custom")
