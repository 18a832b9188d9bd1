"""The quick setting of Figure 3 of Liu & Tan (2017): the number of cones is found."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Figure, Table
from reproduction.grouping import grouped
from tests.papers.quick_runs import artifacts, quick_records, verdicts

NAME = "cr1/figure-3"


@pytest.fixture(scope="module")
def records():
    return quick_records(NAME)


def test_the_number_of_cones_is_found_in_little_noise_and_in_much_with_many_points(records):
    ranks = {key: [r["rank"] for r in group] for key, group in grouped(records, "noise", "n").items()}
    assert ranks[0.1, 60] == ranks[0.1, 240] == ranks[0.1, 960] == [6, 6, 6]
    assert ranks[0.5, 960] == [6, 6, 6]
    assert sum(ranks[0.5, 60]) < 18


def test_the_curves_and_the_table_say_so(records):
    (figure,) = artifacts(NAME, records, Figure)
    for panel in figure.panels:
        little, much, true = panel.series
        assert little.y == [6.0, 6.0, 6.0] == true.y
        assert much.y[-1] == 6.0
    (table,) = artifacts(NAME, records, Table)
    assert [row["found"] for row in table.rows][:3] == ["100%"] * 3


def test_what_is_to_be_shown_is_judged_by_the_full_setting_alone(records):
    assert all(verdict.met is None for verdict in verdicts(NAME, records).values())
    full = [
        {"noise": 0.1, "n": n, "n_cones": 40, "draw": draw, "rank": 40 - (draw == 0 and n == 5000)}
        | {"ratio": 1.1, "ratio_before": None}
        for n in (1000, 2000, 5000)
        for draw in range(20)
    ]
    found, *_ = verdicts(NAME, full).values()
    assert found.met  # 19 of 20 are 95%
    missed, _ = verdicts(NAME, [r for r in full if r["draw"] < 10]).values()
    assert not missed.met
    assert "N = 5000: 90%" in missed.detail
