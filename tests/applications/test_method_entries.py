"""What the registries of methods of the applications share."""

from __future__ import annotations

import pytest

from nonneg._registry import Registry
from nonneg.applications.method_entries import ApplicationMethod, iteration_params
from nonneg.exceptions import UnsupportedError

KNOWN = Registry(
    "method",
    {
        "slow": ApplicationMethod(len, "with iterations", shared=frozenset({"tol", "max_iter"})),
        "some": ApplicationMethod(len, "with a limit", shared=frozenset({"max_iter"})),
        "none": ApplicationMethod(len, "at once"),
    },
)


def test_parameters_of_iterations_go_to_methods_that_accept_them():
    assert iteration_params(KNOWN, "slow", tol=0.0, max_iter=None) == {"tol": 0.0}
    assert iteration_params(KNOWN, "some", tol=None, max_iter=3) == {"max_iter": 3}
    assert iteration_params(KNOWN, "none", tol=None) == {}
    with pytest.raises(UnsupportedError, match="method='some' does not accept tol; only 'slow' does"):
        iteration_params(KNOWN, "some", tol=0.1)
    with pytest.raises(
        UnsupportedError, match="method='none' does not accept max_iter; only 'slow' and 'some' do"
    ):
        iteration_params(KNOWN, "none", max_iter=3)
