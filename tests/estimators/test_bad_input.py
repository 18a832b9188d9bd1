"""Wrong input is refused with what was expected, what came and what to do."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from nonneg import NMF, ConeNMF, PurificationNMF, SeparableNMF, factorize
from nonneg.exceptions import InvalidDataError, NonnegError


def changed(X, value, at=(2, 3)):
    X = X.copy()
    X[at] = value
    return X


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (-1.0, r"Negative values in data passed to NMF \(input X\): entry \[2, 3\] is -1.0.*clip"),
        (np.nan, r"Input X contains NaN: entry \[2, 3\].*missing='mask'"),
        (np.inf, r"Input X contains infinity: entry \[2, 3\].*replace"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "fit_transform", "partial_fit", "transform"])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_wrong_entries_are_named(value, said, method, form, low_rank):
    model = NMF(3, max_iter=5, tol=0).fit(low_rank)
    before = model.components_.copy()
    with pytest.raises(ValueError, match=said) as caught:
        getattr(model, method)(form(changed(low_rank, value)))
    assert isinstance(caught.value, NonnegError)
    np.testing.assert_array_equal(model.components_, before)


def test_wrong_entries_are_named_in_other_holders(xp, low_rank):
    for value, said in ((-1.0, r"entry \[2, 3\] is -1"), (np.nan, r"entry \[2, 3\].*missing='mask'")):
        with pytest.raises(ValueError, match=said):
            NMF(3).fit(xp.asarray(changed(low_rank, value)))


def test_what_an_estimator_cannot_do_is_not_advised(low_rank):
    for estimator in (ConeNMF(3), SeparableNMF(3, method="spa"), PurificationNMF(3)):
        with pytest.raises(ValueError, match=r"entry \[2, 3\].*leave that sample or feature out") as caught:
            estimator.fit(changed(low_rank, np.nan))
        assert "missing" not in str(caught.value)


def test_infinity_is_not_missing(low_rank):
    with pytest.raises(ValueError, match=r"infinity: entry \[2, 3\]"):
        NMF(3, missing="mask").fit(changed(low_rank, np.inf))


@pytest.mark.parametrize(
    ("X", "error", "said"),
    [
        (np.ones(5), ValueError, "Expected 2D array, got 1D array instead"),
        (np.ones((0, 5)), ValueError, r"Found array with 0 sample\(s\)"),
        (np.ones((5, 0)), ValueError, r"Found array with 0 feature\(s\)"),
        (np.ones((3, 3)) * 1j, ValueError, "Complex data not supported"),
        ([["a", "b"], ["c", "d"]], ValueError, "could not convert string to float"),
        (np.array([[{}, 1], [2, 3]], dtype=object), TypeError, "string.* number"),
        (np.ones((2, 2, 2)), ValueError, "dim 3"),
    ],
    ids=["one-dimensional", "no rows", "no columns", "complex", "text", "object", "three-dimensional"],
)
def test_forms_that_are_refused(X, error, said):
    with pytest.raises(error, match=said):
        NMF(2).fit(X)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (
            {"n_components": 0},
            r"The 'n_components' parameter of NMF must be an int in the range \[1, inf\).*Got 0",
        ),
        ({"n_components": True}, "n_components must be a number, not True or False; got True"),
        ({"n_components": -2}, r"'n_components' parameter of NMF.*Got -2"),
        ({"n_components": 2.5}, r"'n_components' parameter of NMF.*Got 2.5"),
        ({"n_components": 61}, "n_components=61 is larger than both sides of X, 60 x 40.*at most 60"),
        ({"max_iter": 0}, r"'max_iter' parameter of NMF must be an int in the range \[1, inf\)"),
        ({"tol": -1.0}, r"'tol' parameter of NMF must be a float in the range \[0.0, inf\)"),
        ({"alpha_W": -1}, "'alpha_W' parameter of NMF"),
        ({"alpha_H": "equal"}, "'alpha_H' parameter of NMF"),
        ({"l1_ratio": 2.0}, r"'l1_ratio' parameter of NMF must be a float in the range \[0.0, 1.0\]"),
        ({"missing": "drop"}, "'missing' parameter of NMF must be a str among"),
        ({"forget_factor": 0.0}, "'forget_factor' parameter of NMF"),
        ({"random_state": -1}, "'random_state' parameter of NMF"),
        ({"callback": 3}, "'callback' parameter of NMF must be a callable"),
        ({"solver": "hal"}, "solver='hal' is not known.*Did you mean 'hals'"),
        ({"beta_loss": "frobenus"}, "beta_loss='frobenus' is not known.*, or a number. Did you mean 'frob"),
        ({"beta_loss": float("nan")}, "beta_loss must be a name or a number between -1024 and 1024"),
        ({"init": "nndsvdx"}, "init='nndsvdx' is not known.*Did you mean 'nndsvd"),
        ({"init": "anchor"}, "init='anchor' is not known. Expected one of .'cr1'"),
        ({"solver": "cd", "beta_loss": 0}, "Invalid beta_loss parameter: solver 'cd' does not handle"),
        ({"solver": "hals", "beta_loss": 1}, "solver='hals' does not minimize.*kullback-leibler.*mu"),
        ({"init": "custom"}, "init='custom' starts from given factors, but neither W nor H is given"),
        ({"init": "nndsvd", "n_components": 50}, "nndsvd"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_parameters_that_are_refused(parameters, said, low_rank):
    with pytest.raises(ValueError, match=said) as caught:
        NMF(**{"n_components": 2, **parameters}).fit(low_rank)
    assert isinstance(caught.value, NonnegError)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"W": np.ones((60, 3)), "H": np.ones((2, 40))}, r"Expected W of shape.*\(60, 2\), got \(60, 3\)"),
        ({"W": np.ones((60, 2)), "H": np.ones((2, 39))}, r"Expected H of shape.*\(2, 40\), got \(2, 39\)"),
        ({"W": -np.ones((60, 2)), "H": np.ones((2, 40))}, r"Expected a nonnegative W, got W\[0, 0\] = -1"),
        ({"H": np.full((2, 40), np.nan)}, r"Expected a finite H, got H\[0, 0\] = nan"),
        ({"H": np.zeros((2, 40))}, "The given H is full of zeros"),
        ({"frozen_components": [0]}, "frozen_components.*H is not given"),
        ({"H": np.ones((2, 40)), "frozen_components": [2]}, "frozen_components contains 2, but .* 0 to 1"),
        ({"sample_weight": np.ones(59)}, r"sample_weight.shape == \(59,\), expected \(60,\)"),
        ({"sample_weight": -np.ones(60)}, r"sample_weight\[0\] is -1.0"),
        ({"sample_weight": np.full(60, 1e200)}, r"sums to 6e\+201.* Divide them by their mean"),
        ({"sample_weight": np.zeros(60)}, "sample_weight sums to 0: one weight at least must be above zero"),
        ({"mask": np.ones((60, 39), bool)}, r"Expected a mask of the same shape as X, \(60, 40\)"),
    ],
)
def test_given_arrays_that_do_not_fit(given, said, low_rank):
    with pytest.raises(ValueError, match=said):
        NMF(2).fit(low_rank, **given)


def test_features_are_counted(low_rank):
    model = NMF(2, max_iter=5, tol=0).fit(low_rank)
    for method in (model.transform, model.partial_fit):
        with pytest.raises(ValueError, match="X has 39 features, but NMF is expecting 40 features as input"):
            method(low_rank[:, :39])
    with pytest.raises(ValueError, match=r"Expected coefficients of shape \(n_samples, 2\).*got \(60, 40\)"):
        model.inverse_transform(low_rank)


def test_zeros_and_itakura_saito(low_rank):
    X = changed(low_rank, 0.0)
    with pytest.raises(ValueError, match=r"beta_loss <= 0 and X contains zeros.*\[2, 3\].*add small values"):
        NMF(2, beta_loss="itakura-saito").fit(X)
    with pytest.raises(ValueError, match=r"sparse data would need every zero|X contains zeros"):
        NMF(2, beta_loss="itakura-saito").fit(scipy.sparse.csr_array(X))
    with pytest.raises(ValueError, match="on sparse data would need every zero to be stored"):
        NMF(2, beta_loss=0.5).fit(scipy.sparse.csr_array(X))


def test_missing_entries_of_a_solver_without_them(low_rank):
    with pytest.raises(ValueError, match=r"does not take missing entries.*'newton'"):
        NMF(2, beta_loss="itakura-saito", solver="mu", missing="mask").fit(changed(low_rank, np.nan))


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
@pytest.mark.parametrize("init", ["nndsvda", "random"])
def test_zero_rows_and_columns_work(loss, init, low_rank):
    X = low_rank.copy()
    X[[0, 7]] = 0
    X[:, [1, 5]] = 0
    model = NMF(3, beta_loss=loss, init=init, random_state=0, max_iter=50, tol=0)
    W = model.fit_transform(X)
    assert np.isfinite(W).all()
    assert np.isfinite(model.components_).all()
    np.testing.assert_allclose((W @ model.components_)[[0, 7]], 0, atol=1e-6 * X.mean())


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_all_zeros_work(loss, form):
    model = NMF(2, beta_loss=loss, max_iter=500).fit(form(np.zeros((6, 4))))
    assert model.reconstruction_err_ == pytest.approx(0, abs=1e-6)
    assert np.isfinite(model.transform(form(np.zeros((3, 4))))).all()
    assert NMF(max_iter=500).fit(np.zeros((6, 4))).n_components_ == 1


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1), (2, 2)])
def test_very_small_data(shape, rng):
    X = rng.random(shape) + 0.1
    model = NMF(1, max_iter=500)
    W = model.fit_transform(X)
    assert W.shape == (shape[0], 1)
    assert NMF(max_iter=500).fit(X).n_components_ >= 1


@pytest.mark.parametrize("method", ["fit", "transform", "partial_fit"])
def test_the_mask_of_a_masked_array_is_not_lost(method, low_rank):
    model = NMF(3, missing="mask", max_iter=5, tol=0).fit(low_rank)
    with pytest.raises(TypeError, match=r"numpy.ma.MaskedArray.*`mask`"):
        getattr(model, method)(np.ma.masked_greater(low_rank, 1.0))


def test_a_data_frame_of_dask_is_refused_with_the_way_out(low_rank):
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    frame = frames.from_pandas(pandas.DataFrame(low_rank), npartitions=2)
    for call in (NMF(3).fit, lambda X: factorize(X, 3)):
        with pytest.raises(TypeError, match="to_dask_array"):
            call(frame)


@pytest.mark.parametrize("method", ["toPandas", "to_scipy_sparse", "collect"])
def test_data_that_have_to_be_converted_are_refused_with_the_way_out(method):
    lazy = type("LazyFrame", (), {method: lambda self: None})()
    for call in (NMF(3).fit, lambda X: factorize(X, 3)):
        with pytest.raises(TypeError, match=rf"does not read a .*LazyFrame. Pass X.{method}\(\)"):
            call(lazy)


def test_one_frozen_component_is_a_sequence_too(low_rank):
    with pytest.raises(ValueError, match="must be a sequence of indices of rows of H, got 0"):
        NMF(3).fit(low_rank, H=low_rank[:3], frozen_components=0)


def test_products_out_of_range_are_an_error_and_no_nan(low_rank):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"NaN.*float32.*other units"):
        NMF(3, beta_loss="itakura-saito", max_iter=50).fit((low_rank + 0.01).astype(np.float32) * 1e-20)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (-2.0, r"entry \[1, 1\] \(row 'second', column 'ash'\) is -2\.0"),
        (np.nan, r"entry \[1, 1\] \(row 'second', column 'ash'\) is nan"),
        ("much", r"X contains text: row 'second', column 'ash' is 'much'\. .*X\.drop\(columns='ash'\)"),
    ],
)
def test_entries_of_a_data_frame_are_named_by_row_and_column(value, said):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"alcohol": [1.0, 2.0, 3.0], "ash": [4.0, value, 6.0]}, index=["first", "second", "third"]
    )
    with pytest.raises(ValueError, match=said):
        NMF(1).fit(frame)


def test_all_columns_of_text_are_named_at_once():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"day": pandas.to_datetime(["2024-01-05"]), "ash": [1.0], "kind": ["x"]})
    with pytest.raises(TypeError, match=r"X\.drop\(columns=\['day', 'kind'\]\)"):
        NMF(1).fit(frame)


@pytest.mark.parametrize("size", [1e-20, 1e-100])
def test_weights_beyond_the_range_of_single_precision_are_refused(size):
    X = np.random.default_rng(0).random((20, 6)).astype(np.float32)
    uncertainty = np.full(X.shape, 0.1)
    uncertainty[3, 2] = size
    with pytest.raises(InvalidDataError, match=r"weights.* (float32|leave the range of float32)"):
        NMF(2).fit(X, uncertainty=uncertainty)
    with pytest.raises(InvalidDataError, match=r"1 / uncertainty\^2, overflow in float32.*float64"):
        NMF(2).fit(X, uncertainty=size * (1 + X.astype(float)))
    assert np.isfinite(
        NMF(2, max_iter=5, tol=0).fit(X.astype(float), uncertainty=1e-18 * (1 + X)).components_
    ).all()
