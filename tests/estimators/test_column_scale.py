"""Columns divided by their maximum, standard deviation or sum; components in the unit of the table."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import nonneg
from nonneg import NMF
from nonneg.data import as_data_matrix
from nonneg.estimators.scaled_columns import dominant_columns
from nonneg.exceptions import InvalidParameterError, UnsupportedInputError

SCALES = {"max": lambda X: X.max(axis=0), "std": lambda X: X.std(axis=0), "sum": lambda X: X.sum(axis=0)}


@pytest.fixture(scope="module")
def wine():
    return load_wine().data


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_it_is_the_fit_of_divided_columns_in_the_units_of_the_table(scale, loss, wine):
    settings = {"n_components": 3, "beta_loss": loss, "max_iter": 30, "tol": 0}
    divisor = SCALES[scale](wine)
    model, plain = NMF(scale=scale, **settings), NMF(**settings)
    W, expected = model.fit_transform(wine), plain.fit_transform(wine / divisor)
    np.testing.assert_allclose(model.column_scale_, divisor)
    np.testing.assert_allclose(W, expected, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(model.components_, plain.components_ * divisor, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(model.transform(wine[:5]), W[:5], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(W), plain.inverse_transform(expected) * divisor)
    assert model.reconstruction_err_ == pytest.approx(plain.reconstruction_err_, rel=1e-6)


@pytest.mark.parametrize(
    ("scale", "scaler"), [("max", MaxAbsScaler()), ("std", StandardScaler(with_mean=False))]
)
def test_a_pipeline_with_scikit_learns_scaler_is_the_same(scale, scaler, wine):
    pipeline = make_pipeline(scaler, NMF(3, max_iter=20, tol=0))
    W = pipeline.fit_transform(wine)
    model = NMF(3, scale=scale, max_iter=20, tol=0)
    np.testing.assert_allclose(model.fit_transform(wine), W, rtol=1e-6, atol=1e-9)
    in_units = pipeline[0].inverse_transform(pipeline[1].components_)
    np.testing.assert_allclose(model.components_, in_units, rtol=1e-6, atol=1e-9)


def test_no_column_leads_every_component(wine):
    """Proline, in hundreds, holds 98% of the squared norm; with magnesium it leads every component."""
    names = np.array(load_wine().feature_names)
    plain = NMF(3, max_iter=1000).fit(wine)
    assert set(names[plain.components_.argmax(axis=1)]) <= {"proline", "magnesium"}
    model = NMF(3, scale="max", max_iter=1000).fit(wine)
    shares = (model.components_ / model.column_scale_) ** 2
    assert (shares[:, names == "proline"] < 0.5 * shares.sum(axis=1, keepdims=True)).all()
    # Every column is explained, not proline alone.
    residuals = [wine - fitted.inverse_transform(fitted.transform(wine)) for fitted in (plain, model)]
    before, after = (np.linalg.norm(residual / wine.max(axis=0)) for residual in residuals)
    assert after < 0.8 * before


@pytest.mark.parametrize("scale", SCALES)
def test_sparse_missing_weights_and_single_precision(scale, wine, rng):
    X = np.where(rng.random(wine.shape) < 0.3, 0.0, wine)[:40]
    settings = {"n_components": 2, "scale": scale, "max_iter": 10, "tol": 0}
    dense = NMF(**settings).fit(X)
    np.testing.assert_allclose(NMF(**settings).fit(sp.csr_array(X)).components_, dense.components_, rtol=1e-6)
    assert NMF(**settings).fit(X.astype(np.float32)).components_.dtype == np.float32
    holes = X.copy()
    holes[3, 2] = np.nan
    masked = NMF(missing="mask", **settings).fit(holes)
    expected = SCALES[scale](np.delete(X[:, 2], 3))
    assert masked.column_scale_[2] == pytest.approx(expected)
    counts = rng.integers(0, 3, size=40)
    weighted = NMF(**settings).fit(X, sample_weight=counts)
    repeated = NMF(**settings).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(weighted.column_scale_, repeated.column_scale_)


def test_constant_and_empty_columns_stay_finite():
    X = np.column_stack([np.full(20, 1e6), np.zeros(20), np.arange(20.0), np.arange(20.0)[::-1]])
    for scale in SCALES:
        model = NMF(2, scale=scale, max_iter=500, tol=1e-3).fit(X)
        assert np.isfinite(model.components_).all()
        assert model.column_scale_[1] == 1.0
    assert NMF(2, scale="std", max_iter=500, tol=1e-3).fit(X).column_scale_[0] == 1e6


def test_given_and_frozen_components_are_in_the_units_of_the_table(wine, rng):
    H = wine[:3].copy()
    model = NMF(3, scale="max", init="custom", max_iter=5, tol=0).fit(wine, H=H, frozen_components=[1])
    np.testing.assert_allclose(model.components_[1], H[1])


def test_it_is_saved_and_certified(wine, tmp_path):
    model = NMF(3, scale="max", max_iter=400).fit(wine)
    assert model.certify(wine)["eckart-young-bound"].number < 2.0
    model.save(tmp_path / "model.npz")
    again = nonneg.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.column_scale_, model.column_scale_)
    np.testing.assert_array_equal(again.transform(wine[:7]), model.transform(wine[:7]))
    assert not hasattr(again.set_params(scale=None).fit(wine), "column_scale_")


def test_what_cannot_be_scaled_is_said(wine):
    with pytest.raises(InvalidParameterError, match=r"partial_fit does not accept scale='max'"):
        NMF(2, scale="max").partial_fit(wine)
    dask = pytest.importorskip("dask.array")
    with pytest.raises(UnsupportedInputError, match=r"X / X\.max\(axis=0\)"):
        NMF(2, scale="max").fit(dask.from_array(wine, chunks=(50, -1)))


def test_columns_that_dominate_are_said(wine):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(wine, columns=load_wine().feature_names)
    statement = NMF(2, max_iter=1, tol=0).fit(frame).certificate_["column-balance"]
    assert statement.sentence.startswith("98.38% of what the loss measures is in 1 of 13 columns (proline)")
    assert not statement.holds
    assert "column-balance" not in NMF(2, max_iter=1, tol=0, scale="max").fit(frame).certificate_


def test_which_columns_dominate(wine, digits):
    found = dominant_columns(as_data_matrix(wine), 2.0)
    assert found == ([12], pytest.approx(0.984, abs=1e-3))
    cancer = load_breast_cancer()
    columns, share = dominant_columns(as_data_matrix(cancer.data), 2.0)
    assert {cancer.feature_names[at] for at in columns} == {"mean area", "worst area"}
    assert share > 0.98
    for other, beta in ((digits, 2.0), (wine, 0.0), (wine[:, :3], 2.0)):
        assert dominant_columns(as_data_matrix(other), beta) is None
    weights = np.arange(178.0)
    dense = dominant_columns(as_data_matrix(wine, weights=weights), 2.0)
    thin = dominant_columns(as_data_matrix(sp.csr_array(wine), weights=weights), 2.0)
    assert thin == (dense[0], pytest.approx(dense[1]))
