"""select_anchors: what it refuses, and in which words."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.containers import as_container

from nonneg import select_anchors
from nonneg.exceptions import (
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    NonnegWarning,
    UnknownNameError,
    UnsupportedError,
)
from nonneg.separable import METHODS
from nonneg.separable.registry import split_params


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
        ({"n_components": 2.5}, "integer of at least 1, got 2.5"),
        ({"n_components": True}, "integer of at least 1, got True"),
        ({"n_components": 91}, "n_components=91 is more than the 90 samples"),
        (
            {"lam": -1.0, "method": "merit"},
            "lam must be a finite number not below 0, or a rule: .*, got -1.0",
        ),
        (
            {"lam": "much", "method": "merit"},
            "lam must be a finite number not below 0, or a rule: .*, got 'much'",
        ),
        ({"lam": float("nan"), "method": "merit"}, "lam must be"),
        ({"mu": 0.0, "method": "merit"}, "mu must be a finite number above 0.* got 0.0"),
        ({"mu": -1e-5, "method": "merit"}, "mu must be a finite number above 0"),
        ({"max_iter": 0, "method": "merit"}, "max_iter must be an integer of at least 1"),
        ({"tol": -1.0, "method": "merit"}, "tol must be None or a number not below 0"),
        ({"energy": 0.0}, "energy must be above 0 and at most 1"),
        ({"energy": 1.5}, "energy must be above 0 and at most 1"),
        ({"normalize": "l3"}, "normalize must be None, 'l1' or 'l2', got 'l3'"),
        ({"reduce": 0}, "reduce must be an integer from 1 to 20"),
        ({"reduce": 21}, "reduce must be an integer from 1 to 20"),
        ({"merge": 0.0}, "merge must be above 0"),
        ({"merge": "little"}, "merge must be above 0.*got 'little'"),
        ({"energy": "most"}, "energy must be above 0 and at most 1.*got 'most'"),
        ({"tie_tol": -1.0}, "tie_tol must be a share from 0 to 1"),
        ({"tie_tol": "none"}, "tie_tol must be a share from 0 to 1"),
        ({"snr": float("nan"), "method": "vca"}, "snr must be None or a number of decibels, got nan"),
        ({"clean_up": "no", "method": "fast-anchor"}, "clean_up must be True or False, got 'no'"),
        ({"memory_limit": "8 GB", "method": "fast-gradient"}, "memory_limit must be a number of bytes"),
        ({"callback": 3, "method": "merit"}, "callback must be None or a function"),
        ({"checkpoint": 3, "method": "merit"}, "checkpoint must be None or the path"),
        ({"centered": "no", "method": "merit"}, "centered must be True or False, got 'no'"),
        (
            {"centered": True, "method": "snpa"},
            "centered=True applies to the projection .* pass reduce=",
        ),
        ({"lam": 1e12, "method": "fast-gradient"}, "is so large that all coefficients are zero"),
        ({"n_components": 60, "merge": 0.5}, "more than the .* samples that 'merge' left"),
        ({"n_components": 7}, "found 6 anchors, fewer than n_components=7.*Ask for 6 or fewer"),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(options, said, clean):
    ours = {"n_components", "method", "energy", "normalize", "reduce", "centered", "merge"}
    plain = {key: value for key, value in options.items() if key in ours}
    rest = {key: value for key, value in options.items() if key not in ours}
    plain = {"n_components": 6, "method": "spa"} | plain | split_params(rest)
    with pytest.raises(InvalidParameterError, match=said):
        select_anchors(clean.X, **plain)


@pytest.mark.parametrize("n_features", [3, 8])
@pytest.mark.parametrize("name", METHODS)
def test_more_anchors_than_distinct_points(name, n_features):
    X = np.repeat(np.eye(3, n_features) + 1, 4, axis=0)
    with pytest.raises(ValueError, match="3"):
        select_anchors(X, 4, method=name, rng=0)


def test_unknown_names(clean):
    with pytest.raises(UnknownNameError, match="Did you mean 'spa'"):
        select_anchors(clean.X, 3, method="sap")
    with pytest.raises(
        UnknownNameError, match=r"'spa' does not accept tie_tolerance. It accepts .*'tie_tol'"
    ):
        select_anchors(clean.X, 3, method="spa", method_params={"tie_tolerance": 0.1})
    with pytest.raises(InvalidParameterError, match="Pass tol by its own name, not in method_params"):
        select_anchors(clean.X, 3, method_params={"tol": 0.1})
    with pytest.raises(UnknownNameError, match="variant='best'"):
        select_anchors(clean.X, 3, method="xray", method_params={"variant": "best"})


def test_options_of_other_methods_are_refused(clean):
    with pytest.raises(
        UnsupportedError,
        match="'spa' does not accept lam; only 'merit', 'merit-exact' and 'fast-gradient' do",
    ):
        select_anchors(clean.X, 3, method="spa", method_params={"lam": 0.5})
    with pytest.raises(UnsupportedError, match="'spa' does not accept mu; only 'merit' does"):
        select_anchors(clean.X, 3, method="spa", method_params={"mu": 1e-5})
    with pytest.raises(
        UnsupportedError,
        match=r"'xray' does not accept centered=True; only 'fast-anchor', .*'merit'.* and .* do",
    ):
        select_anchors(clean.X, 3, method="xray", reduce=4, centered=True)


def test_signed_data_are_refused_by_name(clean):
    X = clean.X.copy()
    X[4, 7] = -0.5
    with pytest.raises(NegativeDataError, match=r"method='xray'.*entry \[4, 7\] is -0.5"):
        select_anchors(X, 3, method="xray")
    assert select_anchors(X, 3, method="spa").n_components == 3


def test_other_bad_data(clean):
    X = clean.X.copy()
    X[1, 2] = np.nan
    with pytest.raises(NonFiniteDataError, match=r"entry \[1, 2\]"):
        select_anchors(X, 3, method="spa")
    with pytest.raises(InvalidParameterError, match="All samples are zero"):
        select_anchors(np.zeros((5, 4)), 2, method="spa")
    with pytest.raises(ValueError, match="2D"):
        select_anchors(np.ones(5), 2, method="spa")


@pytest.mark.parametrize("form", ["dense", "csr", "torch", "dask"])
def test_anchors_of_zeros_are_pointed_out(form, clean):
    X = np.concatenate([clean.X, np.zeros((2, 20))])
    with pytest.warns(NonnegWarning, match=r"Sample 9\d was found as an anchor, but it is all zeros"):
        select_anchors(as_container(X, form), 7, method="fast-anchor")


def test_data_of_few_points_and_features():
    assert select_anchors([[3.0]], 1, method="spa").anchors.tolist() == [0]
    assert select_anchors([[1.0], [4.0], [2.0]], 1, method="spa").anchors.tolist() == [1]
    with pytest.raises(InvalidParameterError, match="2 is more than the 1 samples"):
        select_anchors([[3.0, 1.0]], 2, method="spa")


@pytest.mark.parametrize("form", ["dense", "csr", "dask"])
def test_indices_are_those_of_the_data_whatever_the_steps(form, clean):
    X = np.concatenate([np.zeros((3, 20)), 1e-6 * np.ones((2, 20)), clean.X])
    expected = {int(i) + 5 for i in clean.anchors}
    for steps in (
        {"energy": 0.9999},
        {"normalize": "l1", "energy": 0.9999},
        {"merge": 0.01, "energy": 0.9999},
    ):
        result = select_anchors(as_container(X, form), 6, method="snpa", reduce=8, **steps)
        assert set(result.anchors) == expected
        assert result.details["energy"]["n_kept"] <= 90
        assert set(result.details["kept"]) >= expected


def test_maxima_and_coefficients_are_those_of_all_points(clean):
    X = np.concatenate([np.zeros((3, 20)), clean.X])
    result = select_anchors(X, 6, method="fast-gradient", normalize="l1", rng=0, max_iter=40)
    assert result.row_maxima.shape == (93,)
    assert result.coefficients.shape == (93, 93)
    np.testing.assert_array_equal(result.row_maxima[:3], 0)
    inner = select_anchors(clean.X, 6, method="fast-gradient", normalize="l1", rng=0, max_iter=40)
    np.testing.assert_array_equal(result.row_maxima[3:], inner.row_maxima)
    assert abs(result.coefficients[3:, 3:] - inner.coefficients).max() == 0
    assert set(result.anchors) == {int(i) + 3 for i in clean.anchors}


def test_result_says_what_happened(clean):
    text = repr(select_anchors(clean.X, 6, method="spa"))
    assert text == (
        "SelectionResult(6 anchors by 'spa', n_iter=6, stopped because all that was asked for was found)"
    )


@pytest.mark.parametrize("name", METHODS)
def test_every_method_states_how_sure_it_is(name, clean, noisy):
    options = {"max_iter": 60} if METHODS[name].kind == "convex" else {}
    exact = select_anchors(clean.X, 6, method=name, rng=0, **options).certificate
    assert exact["conditioning"].holds
    rough = select_anchors(np.abs(noisy.X), 6, method=name, rng=0, **options).certificate
    if "anchor-margin" in exact:
        assert exact["anchor-margin"].holds
    elif "largest-residual" in exact:  # some methods do not see what they left
        assert exact["largest-residual"].holds
        assert not rough["largest-residual"].holds
        assert rough["largest-residual"].number > exact["largest-residual"].number


def test_conditioning_is_the_distance_from_the_hull_of_the_others():
    X = np.array([[2.0, 0, 0], [0, 2.0, 0], [0, 0, 1.0], [1, 1, 0]])
    statement = select_anchors(X, 3, method="spa").certificate["conditioning"]
    # The third corner is nearest: its distance from the middle of the other two.
    assert statement.number == pytest.approx(np.sqrt(1 + 1 + 1))


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_merit_takes_points_that_were_normalized_and_not_reduced(form, clean):
    result = select_anchors(as_container(3.0 * clean.X, form), 6, method="merit", normalize="l1", max_iter=10)
    plain = select_anchors(
        as_container(clean.X / clean.X.sum(axis=1, keepdims=True), form), 6, method="merit", max_iter=10
    )
    np.testing.assert_allclose(result.row_maxima, plain.row_maxima, atol=1e-9)
