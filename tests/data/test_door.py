"""Bad data are refused with the entry and the remedy; odd but good data pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.containers import FORMS, as_container

from nonneg.data.door import Request, locate, wrap
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
    UnknownNameError,
)

GOOD = np.arange(1.0, 31.0).reshape(10, 3)


def spoiled(value, at=(4, 2)):
    X = GOOD.copy()
    X[at] = value
    return X


@pytest.mark.parametrize("form", FORMS)
def test_a_negative_entry_is_named_with_a_remedy(form):
    with pytest.raises(NegativeDataError, match=r"entry \[4, 2\] is -1\.5.*before X was centered"):
        wrap(as_container(spoiled(-1.5), form))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("value", "words"),
    [(np.nan, "NaN.*missing='mask'"), (np.inf, "infinity.*replace"), (-np.inf, "infinity.*replace")],
)
def test_an_entry_that_is_not_finite_is_named_with_a_remedy(form, value, words):
    with pytest.raises(NonFiniteDataError, match=rf"contains {words}") as caught:
        wrap(as_container(spoiled(value), form))
    assert "[4, 2]" in str(caught.value)


@pytest.mark.parametrize("form", FORMS)
def test_a_zero_is_named_where_the_loss_is_infinite_there(form):
    with pytest.raises(InvalidDataError, match=r"entry \[4, 2\] is 0.*add small values"):
        wrap(as_container(spoiled(0.0), form), Request(positive=True))
    wrap(as_container(GOOD, form), Request(positive=True))


@pytest.mark.parametrize("form", ["dense", "strict", "dask"])
def test_a_zero_under_the_mask_is_no_zero(form):
    mask = np.ones(GOOD.shape, dtype=bool)
    mask[4, 2] = False
    wrap(as_container(spoiled(0.0), form), Request(mask=mask, positive=True))


def test_signed_data_pass_where_they_are_allowed():
    assert wrap(spoiled(-1.5), Request(signed=True)).extremes()[0] == -1.5


@pytest.mark.parametrize("X", [np.arange(3.0), np.float64(1.0), np.ones((2, 2, 2)), [1.0, 2.0]])
def test_other_than_two_dimensions_are_refused(X):
    with pytest.raises(ShapeError, match=r"Expected 2D array X.*got \dD array.*reshape"):
        wrap(X)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_empty_data_are_refused(shape):
    for X in (np.empty(shape), sp.csr_array(shape)):
        with pytest.raises(InvalidDataError, match="at least one sample and one feature"):
            wrap(X)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (GOOD.astype(complex), r"Complex data not supported.*abs\(X\)"),
        (GOOD.astype(object), r"dtype object.*astype\(float\)"),
        ([["a", "b"]], r"dtype <U1.*astype\(float\)"),
        (GOOD.astype("datetime64[s]"), "dtype datetime64"),
        (sp.csr_array(GOOD.astype(complex)), "Complex data not supported"),
    ],
    ids=["complex", "object", "text", "dates", "complex sparse"],
)
def test_other_than_real_numbers_are_refused(X, words):
    with pytest.raises(DataTypeError, match=words):
        wrap(X)


def test_complex_tensors_are_refused(xp):
    with pytest.raises(DataTypeError, match="Complex data not supported"):
        wrap(xp.ones((3, 2), dtype=xp.complex128))


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(
        ShapeError, match=r"mask of the same shape as X, \(10, 3\), got \(3, 10\).*True means observed"
    ):
        wrap(GOOD, Request(mask=np.ones((3, 10), dtype=bool)))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_mask_is_true_or_false(form):
    mask = np.full(GOOD.shape, 0.5)
    with pytest.raises(InvalidParameterError, match="True and False only; entry_weight takes other"):
        wrap(GOOD, Request(mask=form(mask)))
    assert wrap(GOOD, Request(mask=form(2 * mask))).n_missing == 0


def test_an_unknown_word_for_missing_is_refused():
    with pytest.raises(UnknownNameError, match=r"missing='masks' is not known.*Did you mean 'mask'"):
        wrap(GOOD, Request(missing="masks"))


@pytest.mark.parametrize(
    ("weights", "kind", "words"),
    [
        (np.ones(9), ShapeError, r"sample_weight.shape == \(9,\), expected \(10,\)"),
        (np.ones((10, 1)), ShapeError, "one weight per sample"),
        (np.where(np.arange(10) == 3, -1.0, 1.0), InvalidParameterError, r"sample_weight\[3\] is -1.0"),
        (np.where(np.arange(10) == 3, np.nan, 1.0), InvalidParameterError, r"sample_weight\[3\] is nan"),
        (np.zeros(10), InvalidParameterError, "one weight at least must be above zero"),
    ],
)
def test_bad_weights_are_refused(weights, kind, words):
    with pytest.raises(kind, match=words):
        wrap(GOOD, Request(sample_weight=weights))


def test_one_number_is_a_weight_for_all():
    assert wrap(GOOD, Request(sample_weight=2.0)).total_weight() == 20.0


def test_an_integer_or_bool_matrix_with_a_wrong_entry_is_refused():
    with pytest.raises(NegativeDataError, match=r"entry \[1, 0\] is -3"):
        wrap(np.array([[1, 2], [-3, 4]]))
    assert wrap(np.array([[True, False], [True, True]])).total() == 3.0


@pytest.mark.torch
def test_tensors_that_carry_gradients_or_are_sparse():
    torch = pytest.importorskip("torch")
    data = wrap(torch.tensor(GOOD, requires_grad=True))
    assert data.extremes() == (1.0, 30.0)
    # In host memory unless the caller works on sparse tensors.
    X = torch.tensor(GOOD).to_sparse()
    assert wrap(X).container == "sparse"
    assert wrap(X, Request(sparse_arrays=True)).container == "sparse-array"


def test_the_caller_is_named():
    with pytest.raises(NegativeDataError, match="passed to NMF"):
        wrap(spoiled(-1.0), Request(who="NMF"))


def test_locate_says_when_there_is_nothing():
    data = wrap(GOOD)
    assert locate(data, lambda xp, block: block > 29) == (9, 2, 30.0)
    with pytest.raises(LookupError, match="no entry"):
        locate(data, lambda xp, block: block > 99)


@pytest.mark.parametrize("X", ["data.csv", b"1 2", None, {"a": 1}, {1, 2}, iter([[1.0]]), Path("data.csv")])
def test_what_is_no_table_is_named(X):
    with pytest.raises(DataTypeError, match="Expected X as a table of numbers") as caught:
        wrap(X)
    assert ("nonneg.open_matrix" in str(caught.value)) == isinstance(X, str | Path)


def test_rows_of_unequal_length():
    with pytest.raises(ShapeError, match="a table of numbers, all rows of one length"):
        wrap([[1, 2], [3]])


@pytest.mark.parametrize("weights", ["x", {}, ["a", "b", "c"], object()])
def test_weights_that_are_no_numbers(weights):
    with pytest.raises(InvalidParameterError, match="Expected sample_weight as 3 numbers"):
        wrap(np.ones((3, 2)), Request(sample_weight=weights))


def test_a_rule_for_missing_entries_is_a_name():
    with pytest.raises(UnknownNameError, match="missing="):
        wrap(np.ones((3, 2)), Request(missing=np.ones(3)))
