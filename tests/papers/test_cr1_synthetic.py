"""Quick settings of the synthetic experiments of Liu & Tan (2017), against what the paper says of them."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.experiments.cr1.cone_draws import FULL, draw_cones, n_mixed_clusters
from nonneg.experiments.exhibits import Figure, Table, Verdict
from nonneg.experiments.experiment import flat_records
from nonneg.experiments.grouping import grouped
from nonneg.experiments.registry import find_experiment


def quick_records(name: str) -> list[dict]:
    experiment = find_experiment(name)
    lines = [
        {"setting": setting, "records": experiment.run(setting)} for setting in experiment.trials(quick=True)
    ]
    return flat_records(lines)


def exhibits(name: str, records: list[dict], kind: type) -> list:
    return [exhibit for exhibit in find_experiment(name).summarize(records) if isinstance(exhibit, kind)]


def verdicts(name: str, records: list[dict]) -> dict[str, Verdict]:
    return {verdict.claim: verdict for verdict in exhibits(name, records, Verdict)}


def test_a_draw_depends_on_its_number_and_angle_alone():
    small = FULL | {"n_drawn": 20, "n_features": 100, "n_cones": 3}
    X, cones, _ = draw_cones({"alpha": 0.2, "draw": 1} | small)
    again, same, _ = draw_cones({"draw": 1, "alpha": 0.2, "panel": "right"} | small)
    np.testing.assert_array_equal(again, X)
    np.testing.assert_array_equal(same, cones)
    assert not np.array_equal(draw_cones({"alpha": 0.2, "draw": 2} | small)[0], X)
    assert not np.array_equal(draw_cones({"alpha": 0.3, "draw": 1} | small)[0], X)


def test_a_mixed_cluster_is_found_and_a_split_cone_is_none():
    cones = np.array([0, 0, 1, 1, 2])
    assert n_mixed_clusters(np.array([0, 3, 1, 1, 2]), cones) == 0
    assert n_mixed_clusters(np.array([0, 0, 0, 1, 1]), cones) == 2
    assert n_mixed_clusters(np.array([-1, 0, -1, 1, 2]), cones) == 0  # rows of zeros belong to no cluster


class TestFigure3:
    NAME = "cr1/figure-3"

    @pytest.fixture(scope="class")
    def records(self):
        return quick_records(self.NAME)

    def test_the_number_of_cones_is_found_in_little_noise_and_in_much_with_many_points(self, records):
        ranks = {key: [r["rank"] for r in group] for key, group in grouped(records, "noise", "n").items()}
        assert ranks[0.1, 60] == ranks[0.1, 240] == ranks[0.1, 960] == [6, 6, 6]
        assert ranks[0.5, 960] == [6, 6, 6]
        assert sum(ranks[0.5, 60]) < 18

    def test_the_curves_and_the_table_say_so(self, records):
        (figure,) = exhibits(self.NAME, records, Figure)
        little, much, true = figure.panels[0].series
        assert little.y == [6.0, 6.0, 6.0] == true.y
        assert much.y[-1] == 6.0
        (table,) = exhibits(self.NAME, records, Table)
        assert [row["found"] for row in table.rows][:3] == ["100 %"] * 3

    def test_what_is_to_be_shown_is_judged_by_the_full_setting_alone(self, records):
        assert all(verdict.met is None for verdict in verdicts(self.NAME, records).values())
        full = [
            {"noise": 0.1, "n": n, "n_cones": 40, "draw": draw, "rank": 40 - (draw == 0 and n == 5000)}
            for n in (1000, 2000, 5000)
            for draw in range(20)
        ]
        (found, _) = verdicts(self.NAME, full).values()
        assert found.met  # 19 of 20 are 95 %
        (missed, _) = verdicts(self.NAME, [r for r in full if r["draw"] < 10]).values()
        assert missed.met is False
        assert "N = 5000: 90 %" in missed.detail
