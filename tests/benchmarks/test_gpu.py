"""The benchmark on a GPU: its tables, and that nothing is measured where there is none."""

from __future__ import annotations

import os
import time

import pytest
from benchmarks import gpu, gpu_iterations, run
from benchmarks.race import Settings

CARD = {
    "card": "NVIDIA H200", "driver": "1", "torch": "2", "cuda": "13", "triton": "3",
    "peers": {"torchnmf": None, "scikit-learn": "1.7"},
}  # fmt: skip


def record(kind, case, **facts):
    """Return a record as the benchmark yields it."""
    return {
        "claim": "gpu", "threads": 16, "gpu": CARD, "kind": kind, "case": case, "dtype": "float32",
        "contender": "nonneg", "machine": {"date": "2026-11-16 16:24 UTC"}, **facts,
    }  # fmt: skip


def test_tables_show_limits_bars_peers_and_failures():
    iteration = {
        "products": 1e-3,
        "limit": 1e-3,
        "land": 3,
        "goal": 2.5,
        "extra_bytes": 1e6,
        "allowed_bytes": 2e6,
    }
    found = [
        record("card", "the card", contender="card", rate=5e13, bandwidth=4e12),
        record("iteration", "HALS", seconds=2e-3, **iteration),
        record("iteration", "HALS", contender="plain PyTorch", seconds=4e-3),
        record("iteration", "HALS", contender="torchnmf", failure="ImportError: no"),
        record("whole", "whole fit", seconds=1.6, steps=1.0, ratio=1.6, land=1.5, goal=1.2),
        record("restarts", "100 restarts", seconds=1.0, alone=30.0, ratio=30.0, land=20, goal=60),
        record(
            "streamed", "streamed, array", size=4e9, free=1.4e9, seconds=0.1, bandwidth=5e10, ratio=0.8,
            passes=1.0, land=0.6, goal=0.85,
        ),
        record(
            "crossover", "50 iterations", operations=1e9, alone=1.0, seconds=2.0, ratio=0.5, chosen="cpu",
            cores=16,
        ),
    ]  # fmt: skip
    text = " ".join(gpu.table(found).split())
    assert "| HALS | float32 | 2 | 1 | 1 | 50% | 3 / 2.5 | goal | 1 of 2 |" in text
    assert "plain PyTorch | float32 | 4 |" in text
    assert "torchnmf: ImportError: no" in text
    assert "| whole fit | float32 | 1.6 | 1 | 1.6 | 1.5 / 1.2 | missed |" in text
    assert "| 100 restarts | float32 | 1 | 30 | 30 | 20 / 60 | met |" in text
    assert "| 80% | met |" in text
    assert "50 TFLOP/s" in text
    assert text.startswith("Run of 2026-11-16 16:24 UTC. NVIDIA H200, driver 1")
    found[1]["machine"] = {"date": "2026-11-15 11:00 UTC"}
    said = gpu.table(found)
    assert said.startswith("Run of 2026-11-16 16:24 UTC; rows of other runs are listed after it. NVIDIA")
    assert "\n\n- 2026-11-15 11:00 UTC: HALS\n\n" in said
    assert "torchnmf not installed" in text


def test_limits_are_those_of_the_formulas():
    case = gpu_iterations.Iteration("x", "hals", (1000, 500), 10)
    work = 4 * 1000 * 500 * 10 + 8 * 1500 * 100
    assert case.limit(1e9, 1e30) == pytest.approx(work / 1e9)
    assert case.limit(1e30, 1e9) == pytest.approx(4 * (1000 * 500 + 4 * 1500 * 10) / 1e9)


def test_a_failure_is_a_record_and_the_next_case_runs(torch):
    def fails():
        yield {"case": "first"}
        raise RuntimeError("no\nmore")

    first, second = gpu_iterations.guarded("case", fails)
    assert first == {"case": "first"}
    assert second["failure"] == "RuntimeError: no"


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # that it has threads
def test_a_group_that_hangs_or_dies_does_not_lose_the_others(torch, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu, "groups", lambda: ["hals", "streamed", "restarts"])
    monkeypatch.setattr(gpu, "LIMIT", 1)

    def measured(group, chosen):
        yield {"case": group}
        if group == "hals":
            time.sleep(60)
        if group == "restarts":
            os._exit(3)

    monkeypatch.setattr(gpu, "measured_here", measured)
    found = list(gpu.run(Settings()))
    assert [record["case"] for record in found] == ["hals", "hals", "streamed", "restarts", "restarts"]
    failures = [record.get("failure") for record in found]
    assert failures == [None, "not done after 1 s", None, None, "its process ended with code 3"]


def test_words_choose_cases():
    assert gpu.cases_of("anls", ()) == ["ANLS 1000000 x 1000, k=40, float32"]
    assert gpu.cases_of("anls", ("HALS",)) == []
    assert gpu.cases_of("hals", ("2000 x 1000",)) == ["HALS 2000 x 1000, k=20, float32"]
    assert gpu.cases_of("restarts", ("restarts",)) == ["restarts"]
    assert {"hals", "sparse", "streamed"} <= set(gpu.groups())


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_nothing_is_measured_without_a_gpu(torch, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert list(gpu.run(Settings(quick=True))) == []
    assert gpu.NAME in run.NAMES
