"""Memory (Figure 4b of Nguyen, Fu & Wu) and the run on a million points, in small."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Figure, Table
from reproduction.experiment import Workspace, flat_records
from reproduction.merit import figure_4b, million
from reproduction.merit.million import lowest_ratio
from reproduction.merit.peak_memory import can_measure, measured_peak
from reproduction.registry import find_experiment
from tests.papers.quick_runs import artifacts, verdicts

from nonneg.exceptions import NonnegError, UnsupportedError

FIGURE_4B, MILLION = "merit/figure-4b", "merit/million"
needs_proc = pytest.mark.skipif(not can_measure(), reason="memory is read from /proc")


@pytest.mark.slow
@needs_proc
def test_a_convex_rival_needs_square_arrays_and_merit_does_not():
    settings = [s for s in find_experiment(FIGURE_4B).trials(quick=True) if s["n"] == 800]
    records = flat_records([{"setting": s, "records": figure_4b.run(s)} for s in settings])
    search = {record["method"]: record["search"] for record in records}
    square = 800 * 800 * 8 / 1e6
    assert 3 * square < search["fast-gradient"] < 15 * square
    assert search["spa"] < search["merit"] < 0.5 * search["fast-gradient"]
    assert all(record["process"] > record["search"] for record in records)
    assert len(artifacts(FIGURE_4B, records, Figure)) == len(artifacts(FIGURE_4B, records, Table)) == 1
    assert {verdict.met for verdict in verdicts(FIGURE_4B, records).values()} == {None}


@needs_proc
def test_a_process_that_fails_says_why(rng):
    with pytest.raises(NonnegError, match="n_components=9 is more than"):
        measured_peak(rng.random((8, 5)), 9, {"method": "spa"})


def test_verdicts_on_memory():
    def records(merit, fast):
        line = {"n_features": 50, "points": 4.0}
        return [
            {"method": method, "n": n, "search": megabytes(n), "process": megabytes(n) + 200} | line
            for method, megabytes in (("merit", merit), ("fast-gradient", fast), ("spa", lambda n: n / 1000))
            for n in (2000, 10_000)
        ]

    good = verdicts(FIGURE_4B, records(lambda n: n / 300, lambda n: 46e-6 * n * n)).values()
    assert [verdict.met for verdict in good] == [True] * 6
    bad = verdicts(FIGURE_4B, records(lambda n: 8e-7 * n * n, lambda n: n / 3)).values()
    assert [verdict.met for verdict in bad] == [True, False, False, False, False, True]


def searches(rates):
    return [
        {"stage": "search", "n": 100_000, "snr": snr, "draw": draw, "method": method, "success": int(hit)}
        | {"found": 40 if hit else 39, "margin": 0.1, "iteration_s": 0.02}
        for (snr, method), hits in rates.items()
        for draw, hit in enumerate(hits)
    ]


def test_the_ratio_is_the_lowest_at_which_merit_alone_succeeds():
    always, never, mixed = (1, 1), (0, 0), (1, 0)
    rates = {
        (10, "merit"): mixed, (10, "spa"): never, (11, "merit"): always, (11, "spa"): mixed,
        (12, "merit"): always, (12, "spa"): never, (13, "merit"): always, (13, "spa"): never,
        (14, "merit"): always, (14, "spa"): always,
    }  # fmt: skip
    assert lowest_ratio(searches(rates)) == 12
    assert lowest_ratio(searches({key: rates[key] for key in rates if key[0] in (10, 11, 14)})) is None
    # A ratio that only one of the draws was tried at does not count.
    assert lowest_ratio(searches(rates | {(9, "merit"): (1,), (9, "spa"): (0,)})) == 12


def test_a_draw_is_not_searched_below_a_ratio_at_which_merit_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(million, "_both", lambda setting, checkpoint: [{"snr": setting["snr"]}])
    done = searches({(12, "merit"): (1, 0), (12, "spa"): (0, 0)})
    setting = {"stage": "search", "n": 100_000, "snr": 11}
    assert million.run(setting | {"draw": 0}, Workspace(tmp_path, done)) == [{"snr": 11}]
    (skipped,) = million.run(setting | {"draw": 1}, Workspace(tmp_path, done))
    assert skipped == {"outcome": "MERIT failed at a higher ratio"}
    assert million.run(setting | {"snr": 13, "draw": 1}, Workspace(tmp_path, done)) == [{"snr": 13}]
    assert lowest_ratio([*done, setting | skipped]) is None


def test_the_stages_of_the_large_run(tmp_path):
    common = {"data": "dirichlet", "n_features": 30, "n_anchors": 20, "dtype": "float32"}
    done = []
    for snr in (40, 2):
        setting = {"stage": "search", "n": 60, "snr": snr, "draw": 0} | common
        found = million.run(setting, Workspace(tmp_path, done))
        done += flat_records([{"setting": setting, "records": found}])
    success = {(record["snr"], record["method"]): record["success"] for record in done}
    assert success[40, "spa"] == success[40, "merit"] == 1
    assert success[2, "spa"] == 0
    # Whatever these few points gave, the ratio of the next stage is made certain.
    done = [record | {"success": 1} if record["method"] == "merit" else record for record in done]
    large = {"stage": "large", "n": 100, "step": 1, "draw": 0} | common
    spa, merit = million.run(large, Workspace(tmp_path, done))
    assert merit["found_snr"] == spa["found_snr"] == 3
    assert merit["n_iter"] == 100
    assert merit["iterations_s"] <= merit["total_s"]
    assert merit["gap"] > 0
    assert not any(tmp_path.iterdir())
    done += flat_records([{"setting": large, "records": [spa, merit | {"success": 1}]}])
    assert million.run(large | {"step": 2}, Workspace(tmp_path, done)) == [{"outcome": "not needed"}]
    done.append(large | {"step": 2, "outcome": "not needed"})
    assert len(artifacts(MILLION, done, Table)) == 2
    assert million.run(large, Workspace(tmp_path, []))[0]["outcome"].startswith("no ratio")


def test_verdicts_on_a_million_points():
    rates = {(12, "merit"): (1, 1, 1), (12, "spa"): (0, 0, 0)}
    line = {"stage": "large", "n": 1_000_000, "n_anchors": 40, "found_snr": 12, "resumed": False, "step": 0}
    merit = line | {"method": "merit", "success": 1, "found": 40, "total_s": 220.0, "iterations_s": 200.0}
    spa = line | {"method": "spa", "success": 0, "found": 39, "total_s": 1.0}
    assert [v.met for v in verdicts(MILLION, [*searches(rates), merit, spa]).values()] == [True] * 3
    slow = merit | {"success": 0, "found": 38, "total_s": 250.0}
    assert [v.met for v in verdicts(MILLION, [*searches(rates), slow, spa]).values()] == [False, False, True]
    assert [v.met for v in verdicts(MILLION, searches(rates)).values()] == [None, None, True]


def test_the_full_setting_is_refused_without_a_gpu(monkeypatch):
    monkeypatch.setattr(million, "has_cuda", lambda: False)
    with pytest.raises(UnsupportedError, match=r"need an NVIDIA GPU that PyTorch can use.*--quick"):
        find_experiment(MILLION).check_machine(quick=False)
    find_experiment(MILLION).check_machine(quick=True)
