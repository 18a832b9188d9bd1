"""Statements and certificates: frozen, iterable, by name, through JSON and back, readable."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest

from nonneg.exceptions import InvalidParameterError, UnknownNameError
from nonneg.results import Certificate, Statement, Verdict


@pytest.fixture
def certificate():
    return Certificate(
        (
            Statement("stationarity", "It is small.", np.float32(0.5), 1.0, "holds", {"steps": np.int64(3)}),
            Statement(
                "eckart-young-bound", "Unknown.", None, 1.1, Verdict.NOT_VERIFIABLE, {"loss": "frobenius"}
            ),
            Statement("gap", "It is large.", np.inf, None, "fails"),
        )
    )


def test_it_goes_through_json_and_comes_back_equal(certificate):
    text = json.dumps(certificate.as_dict(), allow_nan=False)
    assert Certificate.from_dict(json.loads(text)) == certificate


@pytest.mark.parametrize("through", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])  # noqa: S301
def test_it_can_be_copied(through, certificate):
    assert through(certificate) == certificate


def test_statements_are_found_by_name_and_in_order(certificate):
    assert [statement.name for statement in certificate] == ["stationarity", "eckart-young-bound", "gap"]
    assert certificate["gap"].number == np.inf
    assert len(certificate) == 3
    assert "gap" in certificate
    assert "gaps" not in certificate
    with pytest.raises(UnknownNameError, match=r"statement='gaps' is not known.*Did you mean 'gap'"):
        certificate["gaps"]


def test_nothing_can_be_changed(certificate):
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.statements = ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate["gap"].number = 0.0
    with pytest.raises(TypeError):
        certificate["stationarity"].quantities["steps"] = 4


def test_numbers_become_python_s_own(certificate):
    statement = certificate["stationarity"]
    assert type(statement.number) is float
    assert type(statement.quantities["steps"]) is int
    assert statement.verdict is Verdict.HOLDS
    assert statement.holds
    assert not certificate["eckart-young-bound"].holds


def test_it_reads_as_text(certificate):
    lines = str(certificate).splitlines()
    assert lines[0] == "[holds] stationarity: It is small."
    assert lines[1] == "[not verifiable] eckart-young-bound: Unknown."
    assert str(Certificate()) == "(no statements)"
    assert (
        repr(certificate)
        == "Certificate(stationarity: holds, eckart-young-bound: not verifiable, gap: fails)"
    )
    assert "verdict='fails'" in repr(certificate["gap"])


def test_numbers_for_papers_are_printed_on_request_and_if_something_follows():
    certificate = Certificate(
        (
            Statement("conditioning", "Far apart.", 2.0, 0.0, "holds"),
            Statement("theorem-3", "Says nothing.", None, None, "not verifiable"),
            Statement("cones-in-orthant", "They reach out.", -1.0, 0.0, "fails"),
            Statement("candidates", "spa leaves the least.", 1.0, None, "holds"),
        )
    )
    first, last = str(certificate).splitlines()
    assert first == "[holds] candidates: spa leaves the least."
    assert "3 more" in last
    assert len(certificate.describe(verbose=True).splitlines()) == len(certificate)
    assert "Far apart" not in certificate._repr_html_()
    near = Statement("conditioning", "A mixture.", 0.0, 1e-10, "fails")
    proved = Statement("theorem-3", "It applies.", 0.5, 0.0, "holds")
    assert not near.is_detail
    assert not proved.is_detail


def test_statements_can_be_added_and_replaced(certificate):
    more = certificate.with_statements(
        [Statement("gap", "Now small.", 0.0, 1.0, "holds"), Statement("new", "New.", 1.0, None, "holds")]
    )
    assert more.names == ("stationarity", "eckart-young-bound", "gap", "new")
    assert more["gap"].holds
    assert not certificate["gap"].holds


def test_wrong_verdicts_names_and_quantities_are_refused():
    with pytest.raises(InvalidParameterError, match="Expected a verdict among"):
        Statement("a", "b", 1.0, 1.0, "perhaps")
    statement = Statement("a", "b", 1.0, 1.0, "holds")
    with pytest.raises(InvalidParameterError, match="different names"):
        Certificate((statement, statement))
    with pytest.raises(InvalidParameterError, match="among the quantities"):
        Statement("a", "b", 1.0, 1.0, "holds", {"array": np.ones(3)})
