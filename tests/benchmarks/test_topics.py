"""Cases of the measurements that run, and the table of the topics."""

from __future__ import annotations

from benchmarks import merit_iteration, run, topics
from benchmarks.race import Settings


def test_a_whole_name_means_one_case():
    sizes = [f"N={size}" for size in merit_iteration.SIZES]
    assert Settings().named(sizes) == sizes
    assert Settings(only_cases=("N=1000",)).named(sizes) == ["N=1000"]
    assert Settings(only_cases=("0000", "N=1000")).named(sizes) == sizes
    assert Settings(only_cases=("0000",)).named(sizes) == sizes[1:]
    assert Settings(only_cases=("digits",)).named(sizes) == []


def test_merit_iteration_runs_the_cases_asked_for(monkeypatch):
    monkeypatch.setattr(merit_iteration, "measured_apart", lambda *words: {"words": words})
    found = list(merit_iteration.run(Settings(threads=2, only_cases=("N=1000",))))
    assert [record["words"] for record in found] == [("merit_iteration", "speed", 1000, 2)]


def test_the_bar_is_of_one_draw_on_two_threads(monkeypatch):
    stages = dict.fromkeys(topics.STAGES, 1.0)
    found = {"seconds": 19.0, "cpu": 30.0, "peak": 4e8, "stages": stages}
    monkeypatch.setattr(topics, "measured_apart", lambda *words: dict(found))
    one, two = (list(topics.run(Settings(threads=count))) for count in (1, 2))
    assert [record.get("met") for record in one + two] == [None, None, None, True]
    found["peak"] = 6e8
    (missed,) = topics.run(Settings(threads=2, only_cases=(topics.ASKED,)))
    assert not missed["met"]
    text = topics.table([*one, missed, {"case": "tdt2 K=5", "threads": 2, "failure": "no documents"}])
    assert "missed" in text
    assert "failed: no documents" in text
    assert topics.NAME in run.NAMES
