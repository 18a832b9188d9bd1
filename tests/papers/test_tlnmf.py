"""Quick settings of Figures 2, 3 and 4 of Zhang, Soubies & Fevotte, and how their verdicts come about."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from reproduction.artifacts import Table
from reproduction.registry import find_experiment
from reproduction.tlnmf.both_methods import drawn_frames, gcm_model, parameters
from reproduction.tlnmf.figure_3 import TARGETS, captures
from reproduction.tlnmf.figure_4 import arrival
from tests.papers.quick_runs import artifacts, quick_records, verdicts


@pytest.fixture(scope="module")
def divergences():
    return quick_records("tlnmf/figure-2")


def test_parameters_are_those_of_table_1():
    assert {name: parameters("gcm")[name] for name in ("M", "N", "K", "eps0", "J", "P")} == {
        "M": 10, "N": 50, "K": 5, "eps0": 1e-8, "J": 1000, "P": 100
    }  # fmt: skip
    assert {name: parameters("music")[name] for name in ("K", "eps0", "J", "P")} == {
        "K": 2, "eps0": 5e-7, "J": 100, "P": 10
    }  # fmt: skip


def test_draws_share_their_factors_but_not_their_realizations():
    assert drawn_frames("music", 2, 0).shape == (2, 151, 200)
    few, many = drawn_frames("gcm", 2, 0), drawn_frames("gcm", 3, 0)
    assert few.shape == (2, 50, 10)
    assert not np.array_equal(few, many[:2])
    np.testing.assert_array_equal(few, drawn_frames("gcm", 2, 0))
    assert not np.array_equal(gcm_model(0).H, gcm_model(1).H)


def test_divergence_falls_with_the_realizations_and_is_bounded(divergences):
    few, many = [record for record in divergences if record["kind"] == "gcm"]
    assert few["S"] == 10
    assert 7 < few["tl I"] / many["tl I"] < 14
    for record in (few, many):
        assert record["tl I"] < record["jd I"] < record["Q true"] < record["Q largest"]
        assert record["tl C"] == pytest.approx(record["tl L"] + record["tl I"], rel=1e-12)
        assert record["tl C"] < record["jd C"]
        assert record["jd L"] < record["tl L"]


def test_the_quick_setting_decides_nothing_and_is_drawn(divergences):
    found = verdicts("tlnmf/figure-2", divergences)
    assert {verdict.met for verdict in found.values()} == {None}
    table = artifacts("tlnmf/figure-2", divergences, Table)[0]
    assert [row["S"] for row in table.rows] == [10, 100]
    assert table.rows[1]["tl"].published == 2.232601


def as_in_theory(draw, slope=-1.0, gap=-2.0, level=220.0):
    return [
        {"kind": "gcm", "draw": draw, "S": S, "n_init": 100 if draw == 0 else 20, "max_iter": 1000}
        | {"tl I": level * S**slope, "jd I": level * S**slope + 500 * S**gap}
        | {"tl C": 2000.0, "jd C": 2000.0 + 200 * S**gap, "Q true": 500 / S, "Q largest": 900 / S}
        for S in (10, 30, 100, 300, 1000)
    ]


def test_slopes_and_levels_are_judged():
    good = verdicts("tlnmf/figure-2", as_in_theory(0) + as_in_theory(1))
    assert [verdict.met for verdict in good.values()] == [True, True, True, True, None, None]
    bad = verdicts("tlnmf/figure-2", as_in_theory(0, slope=-0.85, gap=-1.7, level=300.0))
    assert [verdict.met for verdict in bad.values()][:3] == [False, False, False]
    assert "draw 0: -0.850" in next(iter(bad.values())).detail
    swapped = [record | {"tl C": record["jd C"], "jd C": record["tl C"]} for record in as_in_theory(0)]
    assert (
        verdicts("tlnmf/figure-2", swapped)["0 <= C(JD) - C(TL) <= I(JD) - I(TL) in every trial (28)"].met
        is False
    )
    notes = [record | {"kind": "music", "max_iter": 100, "n_init": 10} for record in as_in_theory(0)]
    flat = [
        record | {"S": S, "tl I": value}
        for record, S, value in zip(notes, (1, 10, 100, 1000), (316, 20, 3.6, 2.96), strict=False)
    ]
    level = "music notes: I falls until S is about 100 and then levels off"
    assert verdicts("tlnmf/figure-2", flat)[level].met
    assert not verdicts("tlnmf/figure-2", [r | {"tl I": 316 / r["S"]} for r in flat])[level].met


def sinusoids(method, S, residual, frequencies):
    return {
        "kind": "music",
        "draw": 0,
        "S": S,
        "method": method,
        "max_iter": 100,
        "I": 3.0,
        "power share": 1.0,
        "frequencies": frequencies,
        "residuals": [residual] * 8,
        "atoms": [[0.0, 1.0, 0.0, -1.0, 0.0]] * 8,
        "components": [[0.1] * 8] * 2,
        "activations": [[1.0, 2.0]] * 2,
    }


def test_sinusoids_are_judged_by_residual_and_by_atoms_a_frequency():
    assert pytest.approx([440, 466.16, 880, 932.32]) == TARGETS
    pairs = [target + shift for target in TARGETS for shift in (-0.2, 0.3)]
    good, uneven = sinusoids("tl", 1, 0.04, pairs), sinusoids("tl", 1, 0.04, [440.0, *pairs[1:-1], 440.1])
    assert captures(good)
    assert not captures(sinusoids("jd", 1, 0.2, pairs))
    assert not captures(uneven)
    records = [
        good,
        sinusoids("jd", 1, 0.3, pairs),
        sinusoids("tl", 100, 0.04, pairs),
        sinusoids("jd", 100, 0.05, pairs),
        sinusoids("default", 1, 0.04, pairs),
        sinusoids("default", 100, 0.04, pairs),
    ]
    assert all(verdict.met for verdict in verdicts("tlnmf/figure-3", records).values())
    worse = [*records[:1], sinusoids("jd", 1, 0.04, pairs), *records[2:]]
    assert [verdict.met for verdict in verdicts("tlnmf/figure-3", worse).values()] == [
        True,
        False,
        True,
        True,
        True,
        True,
    ]


@pytest.mark.slow
def test_quick_atoms_are_described():
    records = quick_records("tlnmf/figure-3")
    assert [(record["S"], record["method"]) for record in records] == [
        (1, "tl"),
        (1, "jd"),
        (100, "tl"),
        (100, "jd"),
    ]
    for record in records:
        assert np.shape(record["atoms"]) == (8, 200)
        np.testing.assert_allclose(np.linalg.norm(record["atoms"], axis=1), 1.0, atol=1e-5)
        assert np.shape(record["activations"]) == (2, 151)
        assert 0 < record["power share"] <= 1
    assert all(verdict.met is None for verdict in verdicts("tlnmf/figure-3", records).values())


@pytest.mark.slow
def test_quick_curves_fall():
    records = quick_records("tlnmf/figure-4")
    assert len(records) == 6
    for record in records:
        values = [record["first"], *record["C"]]
        assert all(math.isfinite(value) for value in values)
        if record["kind"] == "gcm":
            assert all(after <= before + 1e-6 for before, after in itertools.pairwise(values))
    assert all(verdict.met is None for verdict in verdicts("tlnmf/figure-4", records).values())


def test_arrival_and_what_is_faster():
    grid = list(find_experiment("tlnmf/figure-4").trials(False)[0]["grid"])
    slow = {"kind": "gcm", "restart": 0, "grid": grid, "method": "tl", "first": 100.0}
    slow["C"] = [100.0 / J**2 for J in grid]
    assert arrival(slow) == 50
    fast = slow | {"method": "jd", "C": [1e-3 / J for J in grid]}
    assert arrival(fast) == 1
    found = verdicts("tlnmf/figure-4", [slow, fast])
    assert [verdict.met for verdict in found.values()] == [True, None]
