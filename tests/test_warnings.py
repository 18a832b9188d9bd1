"""Warnings name the line of the user's program."""

from __future__ import annotations

import sys
from types import FunctionType

import numpy as np
import pytest

from nonneg._warnings import warn_user
from nonneg.applications import MixedMembership, TopicModel
from nonneg.applications.communities import as_graph
from nonneg.exceptions import DataChangedWarning, NonnegWarning


def deep(again, n):
    """Warn through n more calls."""
    if n:
        again(again, n - 1)
    else:
        warn_user("deep", NonnegWarning)


def test_a_warning_is_at_the_first_line_outside_of_the_library():
    def inner():
        warn_user("careful", NonnegWarning)

    with pytest.warns(NonnegWarning, match="careful") as said:
        inner()
    assert said[0].lineno == inner.__code__.co_firstlineno + 1
    # The same as a function of the library, as deep as it may be.
    names = {"__name__": "nonneg.some.module", "warn_user": warn_user, "NonnegWarning": NonnegWarning}
    for depth in (0, 3):
        outer = FunctionType(deep.__code__, names)
        with pytest.warns(NonnegWarning, match="deep") as said:
            lines = [outer(outer, depth), sys._getframe().f_lineno]
        assert (said[0].filename, said[0].lineno) == (__file__, lines[1])


@pytest.fixture(scope="module")
def counts():
    return np.random.default_rng(0).poisson(1.0, (30, 12)) * 1.0


def without_words(counts):
    padded = counts.copy()
    padded[3] = 0.0
    return padded


LOOPS = np.pad(np.ones((5, 5)), ((0, 1), (0, 1)))
CALLS = {
    "transform": lambda X: TopicModel(2, random_state=0).fit(X).transform(without_words(X)),
    "fit": lambda X: TopicModel(2, random_state=0).fit(without_words(X)),
    "fit_transform": lambda X: TopicModel(2, random_state=0).fit_transform(without_words(X)),
    "seeds": lambda X: TopicModel(2, seed_words={"a": [1, "zoo"]}, random_state=0).fit(X),
    "loops": lambda X: as_graph(LOOPS),
    "isolated": lambda X: MixedMembership(1, method="spa").fit(LOOPS),
}


@pytest.mark.parametrize("call", list(CALLS))
def test_warnings_of_fits_are_those_of_the_caller(call, counts):
    with pytest.warns((DataChangedWarning, NonnegWarning)) as said:
        CALLS[call](counts)
    assert {each.filename for each in said} == {__file__}
