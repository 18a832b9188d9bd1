"""How many sources there are, their names, and the warning where one of them has all of the energy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from nonneg.applications.audio.sources import (
    balance_statement,
    checked_n_sources,
    checked_names,
    completed_names,
    default_names,
    grouped_by_hand,
    separation_certificate,
    warn_of_one_source,
)
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.exceptions import InvalidParameterError, NonnegWarning, UnknownNameError


@pytest.mark.parametrize(
    ("named", "n_sources", "names"),
    [
        ((), 2, ("source 1", "source 2")),
        ((), 1, ("source 1",)),
        (("a", "b"), 2, ("a", "b")),
        (("a", "b"), 3, ("a", "b", "rest")),
        (("a", "b"), 4, ("a", "b", "source 3", "source 4")),
    ],
)
def test_names_are_completed(named, n_sources, names):
    assert completed_names(named, n_sources) == names
    assert default_names(0) == ()


@pytest.mark.parametrize(
    ("names", "message"), [(("a", " "), "got ' '"), (("a", 1), "got 1"), (("a", "b", "a"), "'a' twice")]
)
def test_names_can_be_read_and_told_apart(names, message):
    assert checked_names(["a", "b"], "training") == ("a", "b")
    with pytest.raises(InvalidParameterError, match=f"training.*{message}"):
        checked_names(names, "training")


@pytest.mark.parametrize(
    ("n_sources", "n_components", "grouping", "named", "expected"),
    [
        (None, None, "auto", (), 2),
        (3, None, "auto", (), 3),
        (1, 1, "auto", (), 1),
        (3, 3, "auto", (), 3),
        (np.int64(3), None, "auto", (), 3),
        (None, None, "auto", ("a", "b", "c"), 3),
        (4, None, "auto", ("a", "b", "c"), 4),
        (None, None, {"a": [0], "b": [1], "c": [2]}, (), 3),
        (3, None, {"a": [0], "b": [1], "c": [2]}, (), 3),
        (4, None, {"a": [0], "b": [1], "c": [2]}, (), 3),  # and the rest
        (None, None, [0, 1, 1, 2], (), 3),
        (3, 4, [0, 1, 1, 2], (), 3),
    ],
)
def test_numbers_of_sources(n_sources, n_components, grouping, named, expected):
    assert checked_n_sources(n_sources, n_components, grouping, named) == expected


@pytest.mark.parametrize(
    ("n_sources", "n_components", "grouping", "message"),
    [
        (0, None, "auto", "n_sources must be an integer of at least 1, got 0"),
        (True, None, "auto", "n_sources must be an integer of at least 1, got True"),
        (2.0, None, "auto", "n_sources must be an integer of at least 1, got 2.0"),
        (2, 0, "auto", "n_components must be an integer of at least 1, got 0"),
        (3, 2, "auto", "n_components=2 is less than n_sources=3"),
        (None, 1, "auto", "n_components=1 is less than n_sources=2"),
        (2, None, [0, 1, 2], "grouping names 3 sources, but n_sources=2"),
        (1, None, {"a": [0], "b": [1]}, "grouping names 2 sources, but n_sources=1"),
        (4, None, {"a": [0], "b": [1]}, "grouping names 2 sources, but n_sources=4"),
    ],
)
def test_numbers_of_sources_that_do_not_go_together(n_sources, n_components, grouping, message):
    with pytest.raises(InvalidParameterError, match=message):
        checked_n_sources(n_sources, n_components, grouping, ())


def test_unknown_groupings_are_named():
    with pytest.raises(UnknownNameError, match="grouping"):
        checked_n_sources(2, None, "loudness", ())


@pytest.mark.parametrize(
    ("grouping", "labels", "names"),
    [
        ({"a": [0, 2], "b": 1}, [0, 1, 0], ("a", "b")),
        ({"a": [2]}, [1, 1, 0], ("a", "rest")),
        ({"rest": [0, 1, 2]}, [0, 0, 0], ("rest",)),
        ([1, 0, 1], [1, 0, 1], ("source 1", "source 2")),
    ],
)
def test_components_by_hand(grouping, labels, names):
    found, called = grouped_by_hand(grouping, 3)
    assert found.tolist() == labels
    assert called == names


@pytest.mark.parametrize(
    ("grouping", "message"),
    [
        ({"a": [-1]}, "component -1 to 'a', but the 3 components are numbered from 0 to 2 .from 1 to 3 on"),
        ({"a": [0, 3]}, "component 3 to 'a'"),
        ({"a": [0.5]}, "expected the components of 'a'"),
        ({"a": [[0], [1]]}, "expected the components of 'a'"),
        ({"a": [0, 1], "b": [2, 1]}, "component 1 to 'a' and to 'b'"),
    ],
)
def test_components_by_hand_that_are_refused(grouping, message):
    with pytest.raises(InvalidParameterError, match=message):
        grouped_by_hand(grouping, 3)


def test_balance_of_the_energies():
    assert balance_statement(np.array([1.0])) is None
    even, edge, one = (balance_statement(np.array(each)) for each in ([0.5, 0.5], [0.95, 0.05], [0.04, 0.96]))
    assert (even.verdict, edge.verdict, one.verdict) == (Verdict.HOLDS, Verdict.HOLDS, Verdict.FAILS)
    assert (one.number, one.threshold) == (0.96, 0.95)
    assert "has 96.0% of the energy of all sources; more than 95% leaves hardly anything" in one.sentence
    known = Certificate(tuple(Statement(name, "", 0.0, 1.0, Verdict.HOLDS) for name in ("stationarity", "x")))
    found = separation_certificate(known, np.array([0.5, 0.5]), {"timbre": 0.6, "x": 0.5})
    assert [entry.name for entry in found] == ["stationarity", "x", "grouping", "energy-shares"]
    assert found["stationarity"].quantities["by_design"] == "separation"
    assert "by_design" not in found["x"].quantities
    assert len(list(separation_certificate(known, np.array([1.0]), {}))) == 2


@pytest.mark.parametrize(
    ("names", "shares", "called"),
    [
        (("source 1", "source 2"), [0.04, 0.96], "Source 2 of 2 has 96.0%"),
        (("drums", "rest"), [0.99, 0.01], "The source 'drums' has 99.0%"),
        (("drums", "rest"), [0.95, 0.05], None),
        (("drums",), [1.0], None),
    ],
)
def test_one_source_with_all_of_the_energy_is_warned_of(names, shares, called):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_one_source(names, np.array(shares))
    assert [entry.category for entry in caught] == ([NonnegWarning] if called else [])
    assert all(str(entry.message).startswith(called) for entry in caught)
