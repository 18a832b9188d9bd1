"""SeparableNMF: scikit-learn's contract, containers, weights, and saved models."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from tests.references.checks import parametrize_with_options
from tests.references.containers import MAIN_FORMS, as_container, plain

from nonneg import NMF, SeparableNMF, load
from nonneg.datasets import separable_dirichlet
from nonneg.exceptions import FileFormatError, InvalidParameterError, NegativeDataError, UnknownNameError


@parametrize_with_options(
    SeparableNMF(2, method="spa"),
    SeparableNMF(),
    SeparableNMF(2, method="xray", sum_to_one=False),
    SeparableNMF(2, method="fast-gradient", random_state=0, sum_to_one=True),
)
def test_follows_the_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return separable_dirichlet(80, 15, 5, snr=30, rng=0)


@pytest.mark.covering(1)
@pytest.mark.parametrize("form", MAIN_FORMS)
@pytest.mark.parametrize("sum_to_one", [True, False])
def test_holders_agree(form, sum_to_one, data):
    expected = SeparableNMF(5, method="spa", sum_to_one=sum_to_one).fit(data.X)
    X = as_container(data.X, form)
    model = SeparableNMF(5, method="spa", sum_to_one=sum_to_one)
    W = model.fit_transform(X)
    assert type(W).__module__.partition(".")[0] == type(model.transform(X)).__module__.partition(".")[0]
    np.testing.assert_array_equal(model.anchor_indices_, expected.anchor_indices_)
    np.testing.assert_array_equal(plain(model.components_), data.X[model.anchor_indices_])
    np.testing.assert_allclose(plain(W), expected.transform(data.X), atol=1e-10)
    np.testing.assert_array_equal(plain(W), plain(model.transform(X)))
    assert model.reconstruction_err_ == pytest.approx(
        np.linalg.norm(data.X - plain(W) @ plain(model.components_))
    )


def test_attributes(data):
    model = SeparableNMF(5, method="fast-gradient", random_state=0).fit(data.X)
    assert set(model.anchor_indices_) == set(data.anchors)
    assert model.n_components_ == 5
    assert model.coefficients_.shape == (80, 80)
    assert sp.issparse(model.coefficients_)
    assert model.duality_gap_ is None
    assert len(model.history_) == model.n_iter_ == model.result_.n_iter
    assert model.certificate_ is model.result_.certificate
    assert list(model.get_feature_names_out()) == [f"separablenmf{i}" for i in range(5)]
    np.testing.assert_allclose(model.inverse_transform(model.transform(data.X)), data.X, atol=0.2)


def test_weights_sum_to_one_where_the_features_do():
    X = separable_dirichlet(60, 12, 4, rng=1).X
    rows = X / X.sum(axis=1, keepdims=True)
    model = SeparableNMF(4, method="spa").fit(rows)
    assert model.sum_to_one_
    np.testing.assert_allclose(model.transform(rows).sum(axis=1), 1.0)
    # New data follow the model, whatever they sum to.
    np.testing.assert_allclose(model.transform(3 * rows).sum(axis=1), 1.0)
    other = SeparableNMF(4, method="xray").fit(X)
    assert not other.sum_to_one_
    np.testing.assert_allclose(other.transform(3 * X), 3 * other.transform(X), rtol=1e-8, atol=1e-10)


def test_preprocessing_and_options_reach_the_method(data):
    model = SeparableNMF(
        5, method="xray", normalize="l1", reduce=8, method_params={"variant": "rand"}, random_state=0
    )
    model.fit(np.abs(data.X))
    assert set(model.anchor_indices_) == set(data.anchors)
    assert set(model.result_.details) == {"normalize", "reduce"}
    with pytest.raises(UnknownNameError, match=r"'xray' does not accept variants.*Did you mean 'variant'"):
        SeparableNMF(5, method="xray", method_params={"variants": "rand"}).fit(np.abs(data.X))
    with pytest.raises(InvalidParameterError, match="mu must be a finite number above 0"):
        SeparableNMF(5, method="merit", method_params={"mu": 0}).fit(data.X)
    with pytest.raises(NegativeDataError, match="SeparableNMF"):
        SeparableNMF(5, method="xray").fit(-data.X)
    with pytest.raises(UnknownNameError, match="Did you mean 'snpa'"):
        SeparableNMF(5, method="snap").fit(data.X)


@pytest.mark.parametrize("method", ["spa", "fast-gradient"])
def test_saved_models_come_back(method, data, tmp_path):
    turned = data.X @ np.linalg.qr(np.random.default_rng(0).normal(size=(15, 15)))[0]
    model = SeparableNMF(5, method=method, random_state=3, sum_to_one=True).fit(turned)
    assert model.components_.min() < 0
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert isinstance(again, SeparableNMF)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.anchor_indices_, model.anchor_indices_)
    np.testing.assert_array_equal(again.transform(turned), model.transform(turned))
    if model.coefficients_ is None:
        assert again.coefficients_ is None
    else:
        assert (again.coefficients_ != model.coefficients_).nnz == 0
    assert again.duality_gap_ == model.duality_gap_


def _header(arrays, **changes):
    header = json.loads(bytes(arrays["header"]).decode()) | changes
    return np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)


def test_a_damaged_model_is_refused(data, tmp_path):
    path = tmp_path / "model.npz"
    SeparableNMF(5, method="fast-gradient", random_state=0).fit(data.X).save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    for change, said in [
        ({"anchor_indices_": np.array([-1, 1, 2, 3, 4])}, "nonnegative anchor_indices_"),
        ({"header": _header(arrays, sum_to_one_=3)}, "expected sum_to_one_ of type bool"),
        (
            {"coefficients_.indices": arrays["coefficients_.indices"] + 1000},
            "damaged",
        ),
        (
            {"coefficients_.indptr": arrays["coefficients_.indptr"][::-1].copy()},
            "damaged",
        ),
    ]:
        np.savez(path, **(arrays | change))
        with pytest.raises(FileFormatError, match=said):
            load(path)


def test_clone_and_single_precision(data):
    model = clone(SeparableNMF(5, method="snpa"))
    W = model.fit_transform(data.X.astype(np.float32))
    assert W.dtype == model.components_.dtype == np.float32


def test_nmf_starts_from_anchors(data):
    X = np.abs(data.X)
    anchors = SeparableNMF(5, method="spa").fit(X)
    model = NMF(5, max_iter=1, tol=0).fit(X, H=anchors.components_)
    other = NMF(5, init="random", random_state=0, max_iter=1, tol=0).fit(X)
    assert model.reconstruction_err_ < other.reconstruction_err_
