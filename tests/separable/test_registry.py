"""The registry is what the guide says, and what the methods take."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from nonneg.separable import METHODS

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "separable.md"


def test_the_table_of_the_guide_is_the_registry():
    rows = re.findall(
        r"^\| `([\w-]+)` \| (greedy|convex|choice) \| ([^|]+) \|", GUIDE.read_text("utf-8"), re.MULTILINE
    )
    written = {name: (kind, "nonnegative data only" not in what) for name, kind, what in rows}
    assert written == {name: (method.kind, method.signed) for name, method in METHODS.items()}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_the_options_that_it_declares(name):
    accepted = set(inspect.signature(METHODS[name].run).parameters)
    assert accepted - {"data", "n_components", "rng"} == METHODS[name].options | METHODS[name].shared
    assert METHODS[name].seeded == ("rng" in accepted)
