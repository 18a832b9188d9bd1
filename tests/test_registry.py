"""The base of the registries: lookup, near names, lazy imports and accepted parameters."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest

from nonneg._registry import Entry, Registry
from nonneg.exceptions import UnknownNameError, UnsupportedError

METHODS = Registry(
    "method",
    {
        "spa": Entry("math:sqrt", "successive projections", options=frozenset({"tie_tol"})),
        "merit": Entry(len, "Frank-Wolfe", options=frozenset({"mu", "lam"}), aliases=("frank-wolfe",)),
        "vca": Entry(len, "vertex components", options=frozenset({"lam"})),
    },
)


def test_names_and_aliases_are_found():
    assert METHODS.find("spa") is METHODS["spa"]
    assert METHODS.name_of("frank-wolfe") == "merit"


@pytest.mark.parametrize("name", ["sba", 3, None, ["spa"]])
def test_unknown_names_are_refused_with_the_parameter_and_the_near_ones(name):
    with pytest.raises(UnknownNameError, match=r"method=.* is not known. Expected one of") as caught:
        METHODS.find(name, also=("auto",))
    assert "auto" in str(caught.value)
    assert ("Did you mean 'spa'" in str(caught.value)) == (name in ("sba", ["spa"]))


def test_an_implementation_is_imported_when_it_first_runs():
    assert METHODS["spa"].run(9.0) == 3.0
    assert METHODS["merit"].run([1, 2]) == 2
    missing = Entry("no_such_module:function", "fails only when it is used")
    with pytest.raises(ModuleNotFoundError):
        missing.run()


def test_options_that_another_entry_accepts_are_refused_by_naming_it():
    METHODS.check_options("frank-wolfe", ["mu", "lam"])
    with pytest.raises(
        UnsupportedError, match=r"method='spa' does not accept mu; only 'merit' does\. It acc"
    ):
        METHODS.check_options("spa", ["mu"])
    with pytest.raises(UnsupportedError, match=r"only 'merit' and 'vca' do\. It accepts \['tie_tol'\]"):
        METHODS.check_options("spa", ["lam"])


def test_options_that_no_entry_accepts_are_refused_by_naming_the_accepted_ones():
    with pytest.raises(
        UnknownNameError, match=r"method='merit' does not accept lan\. It accepts.* mean 'lam'"
    ):
        METHODS.check_options("merit", ["lan"])


def test_one_near_name_is_offered_and_good_options_hide_no_bad_ones():
    close = Registry("method", {"a": Entry(len, "", options=frozenset({"lam1", "lam2"}))})
    with pytest.raises(UnknownNameError, match=r"does not accept lam3\. It .* Did you mean 'lam[12]'\?$"):
        close.check_options("a", ["lam1", "lam3"])


def test_entries_are_constants_whose_options_are_named():
    with pytest.raises(TypeError):
        Entry(len, "", frozenset())
    with pytest.raises(FrozenInstanceError):
        METHODS["spa"].summary = ""


def test_entries_can_be_registered_for_a_while():
    before = dict(METHODS)
    with METHODS.registered("mine", Entry(max, "for this test")) as mine, METHODS.registered("spa", mine):
        assert METHODS.find("mine") is METHODS["spa"] is mine
    assert dict(METHODS) == before


def test_lazy_entries_are_pickled():
    assert pickle.loads(pickle.dumps(METHODS["spa"])) == METHODS["spa"]  # noqa: S301
