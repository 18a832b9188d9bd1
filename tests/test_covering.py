"""Covering arrays leave no value, or no pair of values, out."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from tests.covering import cover, leave_the_rest

CASES = [
    {"solver": a, "loss": b, "form": c}
    for a, b, c in product("hmn", (0, 1, 2), "dst")
    if (a, b) != ("h", 0)  # not all go together
]


def of(cases, strength):
    return {each for case in cases for each in combinations(case.items(), strength)}


@pytest.mark.parametrize(("strength", "most"), [(1, 3), (2, 12)])
def test_every_value_or_pair_occurs(strength, most):
    chosen = [CASES[at] for at in cover(CASES, strength)]
    assert of(chosen, strength) == of(CASES, strength)
    assert len(chosen) <= most
    assert cover(CASES, strength) == cover(CASES, strength)


def test_one_parameter_and_no_case():
    assert cover([{"loss": 1}, {"loss": 2}, {"loss": 1}], 2) == {0, 1}
    assert cover([], 1) == set()
    assert cover(CASES, 0) == {0}  # one stands for all


def test_the_others_are_marked_slow(request, tmp_path):
    path = tmp_path / "test_small.py"
    path.write_text(
        "import pytest\n"
        "@pytest.mark.covering(1)\n"
        "@pytest.mark.parametrize('b', 'ab')\n"
        "@pytest.mark.parametrize('a', [pytest.param('torch', marks=pytest.mark.torch), 0, 1])\n"
        "def test_product(a, b): ...\n"
        "@pytest.mark.parametrize('a', [0])\n"
        "def test_plain(a): ...\n"
    )
    module = pytest.Module.from_parent(request.session, path=path)
    items = list(request.session.genitems(module))
    leave_the_rest(items)
    names = {item.name for item in items if not item.get_closest_marker("slow")}
    # A case of PyTorch, which may be skipped, stands for itself alone.
    assert names == {"test_product[torch-a]", "test_product[0-a]", "test_product[1-b]", "test_plain[0]"}
