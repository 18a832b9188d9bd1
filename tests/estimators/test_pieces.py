"""What estimators do before and after a fit: scales, names of data sets, frames, numbers and warnings."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from tests.references.containers import as_container

from nonneg import NMF, IntegrativeNMF, TransformNMF
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data import as_data_matrix
from nonneg.estimators import data_sets, preparation, scaled_columns
from nonneg.estimators.data_sets import data_sets_of
from nonneg.estimators.frame_input import input_frames, number_of_axes
from nonneg.estimators.scaled_columns import column_scale, dominant_columns
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NonFiniteDataError,
    ShapeError,
)
from nonneg.iteration import StopReason

rng = np.random.default_rng(0)
X = rng.gamma(1.0, size=(9, 5))
X[:, 3], X[:, 4] = 0.0, 2.0  # a column of zeros, and one that is constant


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_scales_are_those_of_the_observed_entries(form, weighted, masked):
    weights = np.array([2.0, 0.0, 1.0, 1.0, 3.0, 1.0, 1.0, 0.5, 1.0])
    mask = np.random.default_rng(1).random(X.shape) < 0.7
    mask[0] = True
    data = as_data_matrix(
        as_container(X, form), weights=weights if weighted else None, mask=mask if masked else None
    )
    w = (weights[:, None] if weighted else 1.0) * (mask if masked else 1.0) * np.ones_like(X)
    total, count = (w * X).sum(axis=0), w.sum(axis=0)
    deviation = np.sqrt((w * (X - total / count) ** 2).sum(axis=0) / count)
    largest = np.where(w > 0, X, 0.0).max(axis=0)
    np.testing.assert_allclose(column_scale(data, "max"), [*largest[:3], 1.0, 2.0])
    np.testing.assert_allclose(column_scale(data, "sum"), [*total[:3], 1.0, total[4]])
    np.testing.assert_allclose(column_scale(data, "std"), [*deviation[:3], 1.0, 2.0])


def test_scales_do_not_depend_on_blocks(monkeypatch):
    data = as_data_matrix(X, weights=np.arange(1.0, 10.0))
    whole = {kind: column_scale(data, kind) for kind in scaled_columns.SCALES}
    powers = scaled_columns._column_powers(data, beta=1.5)[1][0]
    monkeypatch.setattr(type(data), "row_blocks", lambda self, size: [(0, 2), (2, 7), (7, 9)])
    for kind, expected in whole.items():
        np.testing.assert_allclose(column_scale(data, kind), expected)
    np.testing.assert_allclose(scaled_columns._column_powers(data, beta=1.5)[1][0], powers)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_of_a_column_is_measured_by_powers(form, weighted):
    w = np.arange(1.0, 10.0) if weighted else np.ones(9)
    data = as_data_matrix(as_container(X, form), weights=w if weighted else None)
    for beta in (1.0, 2.0):
        np.testing.assert_allclose(scaled_columns._column_powers(data, beta=beta)[1][0], w @ X**beta)


@pytest.mark.parametrize(
    ("sums", "expected"),
    [
        ([1.0, 97.0, 1.0, 1.0], [1]),
        ([2.0, 94.0, 2.0, 2.0], None),
        ([48.0, 1.0, 47.5, *[0.1] * 17], [0, 2]),  # a tenth of 20 columns
        ([48.0, 1.0, 47.5, *[0.1] * 16], None),
        ([1.0, 97.0, 1.0], None),  # too few columns
        ([0.0, 0.0, 0.0, 0.0], None),
        ([24.5, 24.5, 24.0, 24.0, *[0.05] * 60], None),  # more than three
    ],
)
def test_a_few_columns_may_dominate(sums, expected):
    found = dominant_columns(as_data_matrix(np.array([sums])), 1.0)
    if expected is None:
        assert found is None
    else:
        assert found == (expected, pytest.approx(np.array(sums)[expected].sum() / sum(sums)))
    # All entries count alike for Itakura-Saito.
    assert dominant_columns(as_data_matrix(np.array([sums]) + 1.0), 0.0) is None


def test_components_come_back_in_the_unit_of_the_data():
    model = NMF(2, scale="max")
    H = np.arange(6.0).reshape(2, 3)
    assert model._scaled_H(H, 1) is H
    model.column_scale_ = np.array([1.0, 2.0, 4.0])
    np.testing.assert_array_equal(model._scaled_H(H, 1), H * model.column_scale_)
    np.testing.assert_array_equal(model._scaled_H(H, -1), H / model.column_scale_)
    assert model._scaled_H(None, 1) is None
    assert model._scaled_H(H.astype(np.float32), 1).dtype == np.float32
    assert model._scaled_H(H.astype(int).tolist(), 1).dtype == np.float64
    model._scaled(as_data_matrix(X), reset=True)
    np.testing.assert_array_equal(model.column_scale_, column_scale(as_data_matrix(X), "max"))
    model.scale = None
    data = as_data_matrix(X)
    assert model._scaled(data, reset=True) is data
    assert not hasattr(model, "column_scale_")


@pytest.mark.parametrize("reason", [StopReason.MAX_ITER, StopReason.CONVERGED, StopReason.CALLBACK])
@pytest.mark.parametrize("verdict", [Verdict.HOLDS, Verdict.FAILS, Verdict.NOT_VERIFIABLE])
@pytest.mark.parametrize(
    ("tol", "max_iter"), [(1e-4, 9), (1e-5, 9), (1e-3, 9), (0.0, 9), (1e-4, 0), (1e-4, 1)]
)
def test_a_fit_that_has_not_converged_is_warned_of(reason, verdict, tol, max_iter):
    model = SimpleNamespace(tol=tol, max_iter=max_iter)
    statement = Statement("stationarity", "It is so.", 1.0, 1.0, verdict)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        preparation.warn_by_certificate(model, reason, statement, "Advice. ", stacklevel=2)
    asked = tol > 0 and max_iter > 0
    if asked and reason is StopReason.MAX_ITER and (tol < 1e-4 or verdict is not Verdict.HOLDS):
        expected = f"Maximum number of iterations {max_iter} reached"
    elif asked and reason is StopReason.CONVERGED and verdict is Verdict.FAILS and tol <= 1e-4:
        expected = "The tolerance tol was reached, but the fit has not converged. It is so. Advice. Lower tol"
    else:
        assert not caught
        return
    assert len(caught) == 1
    assert caught[0].category is ConvergenceWarning
    assert str(caught[0].message).startswith(expected)


@pytest.mark.parametrize(
    ("init", "solver", "reason", "warned", "advice"),
    [
        (None, "hals", StopReason.CONVERGED, True, False),
        ("random", "hals", StopReason.CONVERGED, True, False),
        ("nndsvda", "hals", StopReason.CONVERGED, True, True),
        ("custom", "hals", StopReason.CONVERGED, True, True),
        ("anchors", "hals", StopReason.CONVERGED, True, True),
        ("nndsvd", "mu", StopReason.CONVERGED, False, False),
        ("nndsvd", "mu", StopReason.MAX_ITER, True, False),
        ("nndsvd", "hals", StopReason.CONVERGED, True, False),
    ],
)
def test_the_warning_names_the_initialization_where_that_is_at_fault(init, solver, reason, warned, advice):
    statement = Statement("stationarity", "It is so.", 1.0, 1.0, Verdict.FAILS)
    result = SimpleNamespace(solver=solver, stop_reason=reason, certificate={"stationarity": statement})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        preparation.warn_unless_converged(NMF(2, init=init), result)
    assert len(caught) == warned
    assert advice == any("far away" in str(each.message) for each in caught)


@pytest.mark.parametrize(
    ("init", "W", "H", "frozen", "kept", "warned"),
    [
        (None, "W", "H", False, ("W", "H"), False),
        ("custom", "W", None, False, ("W", None), False),
        ("random", None, None, False, (None, None), False),
        ("random", "W", "H", False, (None, None), True),
        ("random", None, "H", False, (None, None), True),
        ("random", None, "H", True, (None, "H"), False),
        ("random", "W", "H", True, (None, "H"), True),
        ("anchors", None, "H", False, (None, None), True),
    ],
)
def test_given_factors_are_used_or_warned_of(init, W, H, frozen, kept, warned):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert preparation.given_factors(NMF(2, init=init), W, H, frozen=frozen) == kept
    assert [each.category for each in caught] == [RuntimeWarning] * warned


@pytest.mark.parametrize(
    ("solver", "init", "warned"), [("mu", "nndsvd", 1), ("mu", None, 0), ("hals", "nndsvd", 0)]
)
def test_zeros_that_a_solver_cannot_leave_are_warned_of(solver, init, warned):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        preparation.given_factors(NMF(2, init=init, solver=solver), None, None)
    assert len(caught) == warned


def test_the_number_of_components_is_that_of_given_factors():
    data = as_data_matrix(X)
    W, H = np.ones((9, 2)), np.ones((3, 5))
    for n, given, expected in (
        (None, {}, 5), (4, {}, 4), ("auto", {"H": H}, 3), ("auto", {"W": W}, 2),
        ("auto", {"W": W, "H": H}, 3), ("auto", {"H": H.tolist()}, 3),
    ):  # fmt: skip
        model = NMF(n)
        model.rank_estimate_ = "of another fit"
        assert preparation.rank_of(model, data, given.get("W"), given.get("H")) == expected
        assert not hasattr(model, "rank_estimate_")


def test_anchors_are_given_factors():
    data = as_data_matrix(X[:, :3])
    assert preparation.resolved_init(NMF(2, init="random"), data, 2, None, None) == ("random", None, None)
    assert preparation.resolved_init(NMF(2, init="anchors"), data, 2, None, "H") == (None, None, "H")
    init, W, H = preparation.resolved_init(NMF(2, init="anchors"), data, 2, None, None)
    assert (init, W.shape, H.shape) == ("custom", (9, 2), (2, 3))
    with pytest.raises(InvalidParameterError, match="n_init=3 with init='anchors'"):
        preparation.resolved_init(NMF(2, init="anchors", n_init=3), data, 2, None, None)
    line = as_data_matrix(np.outer(np.arange(1.0, 5.0), np.ones(3)))
    with pytest.raises(InvalidParameterError, match=r"found 1 samples .*n_components=2"):
        preparation.resolved_init(NMF(2, init="anchors"), line, 2, None, None)


def sets_of(X, batch=None, batch_key=None, *, model=None, reset=True, **options):
    return data_sets_of(model or IntegrativeNMF(2), X, batch, batch_key, reset=reset, **options)


def test_data_sets_have_names_and_weights_in_the_form_of_the_data():
    first, second = X[:4], X[4:]
    for given, form, names in (
        ([first, second], "list", ["0", "1"]), ((first, second), "list", ["0", "1"]),
        ({"b": first, 7: second}, "dict", ["b", "7"]),
    ):  # fmt: skip
        found = sets_of(given)
        assert (found.form, found.names, found.shape, found.anonymous) == (form, names, (9, 5), False)
        weights = found.joined(["one", "two"])
        assert weights == (["one", "two"] if form == "list" else {"b": "one", "7": "two"})
    alone = sets_of(X)
    assert (alone.names, alone.anonymous, alone.joined(["one"])) == (["0"], True, "one")
    assert sets_of(sp.dok_array(X)).anonymous  # a mapping, but one matrix
    assert sets_of(X.tolist()).anonymous
    named = sets_of(X, "lung")
    assert (named.names, named.form, named.joined(["one"])) == (["lung"], "rows", "one")
    assert sets_of(X, ["lung"] * 9).names == ["lung"]
    split = sets_of(X, [1, 0, 1, 1, 0, 0, 1, 0, 0])
    assert split.names == ["0", "1"]
    assert [one.tolist() for one in split.rows] == [[1, 4, 5, 7, 8], [0, 2, 3, 6]]
    joined = split.joined([np.zeros((5, 2)), np.ones((4, 2))])
    assert joined[:, 0].tolist() == [1, 0, 1, 1, 0, 0, 1, 0, 0]


def test_weights_of_samples_are_those_of_one_data_set_after_the_other():
    weights = np.arange(1.0, 10.0)
    found = sets_of([X[:4], X[4:]], sample_weight=weights)
    np.testing.assert_array_equal(found.matrices[0].weights, weights[:4])
    np.testing.assert_array_equal(found.matrices[1].weights, weights[4:])
    with pytest.raises(ShapeError, match=r"sample_weight.shape == \(8,\), expected \(9,\)"):
        sets_of([X[:4], X[4:]], sample_weight=weights[1:])


def test_a_list_has_the_data_sets_of_the_fit():
    model = IntegrativeNMF(2)
    sets_of({"a": X[:4], "b": X[4:]}, model=model)
    model.batch_names_ = ["a", "b"]
    assert sets_of([X[:2], X[2:]], model=model, reset=False).names == ["a", "b"]
    assert sets_of({"b": X}, model=model, reset=False).names == ["b"]
    assert sets_of([X], model=model).names == ["0"]  # of a new fit
    with pytest.raises(ShapeError, match="expected 2, got 1"):
        sets_of([X], model=model, reset=False)


@pytest.mark.parametrize(
    ("given", "batch", "key", "error", "words"),
    [
        ([X], ["a"], None, InvalidParameterError, "batch is for one array"),
        ({}, None, None, InvalidDataError, "at least one data set, got none"),
        (X, ["a"] * 8, None, ShapeError, "batch has 8 labels, but X has 9 samples"),
        (X, ["a"], "sample", InvalidParameterError, "mean the same"),
        (X, None, "sample", InvalidParameterError, "X is not an AnnData object"),
        ([X, X[:, :3]], None, None, ValueError, "features"),
    ],
)
def test_data_sets_that_cannot_be_told_apart(given, batch, key, error, words):
    with pytest.raises(error, match=words):
        sets_of(given, batch, key)


def test_a_matrix_has_two_axes():
    assert data_sets._is_matrix(X)
    assert not data_sets._is_matrix(X[0])
    assert not data_sets._is_matrix([1.0])


FRAMES = np.random.default_rng(2).standard_normal((2, 4, 3))


def test_frames_get_an_axis_of_realizations():
    model = TransformNMF(2)
    assert input_frames(model, FRAMES, reset=True).shape == (2, 4, 3)
    assert model.n_features_in_ == 3
    assert input_frames(model, FRAMES[0], reset=False).shape == (1, 4, 3)
    assert input_frames(model, FRAMES[:1, :1], reset=False).shape == (1, 1, 3)  # one frame can be transformed
    assert input_frames(model, FRAMES.astype(np.float32), reset=False).dtype == np.float32
    assert input_frames(model, FRAMES.astype(int), reset=False).dtype == np.float64


@pytest.mark.parametrize(
    ("frames", "reset", "error", "words"),
    [
        (FRAMES[:, :1], True, InvalidDataError, "two frames, got n_samples=1"),
        (FRAMES[:, :, :1], True, InvalidDataError, "two samples, got n_features=1"),
        (FRAMES[:0], True, InvalidDataError, r"shape \(0, 4, 3\)"),
        (FRAMES[:, :0], True, InvalidDataError, r"shape \(2, 0, 3\)"),
        (FRAMES[None], True, ShapeError, r"got \(1, 2, 4, 3\)"),
        (1j * FRAMES, True, DataTypeError, "Complex data not supported"),
        (FRAMES.astype(str), True, DataTypeError, "Data of dtype <U"),
        (FRAMES[:, :, :2], False, ShapeError, "X has 2 features, but TransformNMF is expecting 3"),
        (
            np.where(np.isclose(FRAMES, FRAMES[1, 2, 0]), np.inf, FRAMES),
            True,
            NonFiniteDataError,
            "1, frame 2, sample 0",
        ),
    ],
)
def test_frames_that_cannot_be_used(frames, reset, error, words):
    model = TransformNMF(2)
    model.n_features_in_ = 3
    with pytest.raises(error, match=words):
        input_frames(model, frames, reset=reset)


def test_axes_of_inputs():
    assert [number_of_axes(given) for given in (FRAMES, X, sp.csr_array(X), X.tolist(), [1.0])] == [
        3,
        2,
        2,
        2,
        1,
    ]
