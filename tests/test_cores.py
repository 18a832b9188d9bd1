"""How many cores a process may use, and what is kept in the user's cache, on every system."""

from __future__ import annotations

import json
import math
import multiprocessing.process
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from nonneg import _cores


@pytest.mark.parametrize(
    ("system", "given", "expected"),
    [
        ("linux", {}, "home/.cache/nonneg"),
        ("linux", {"XDG_CACHE_HOME": "there"}, "there/nonneg"),
        ("linux", {"LOCALAPPDATA": "there"}, "home/.cache/nonneg"),
        ("darwin", {"XDG_CACHE_HOME": "there"}, "home/Library/Caches/nonneg"),
        ("win32", {}, "home/AppData/Local/nonneg"),
        ("win32", {"LOCALAPPDATA": "there"}, "there/nonneg"),
    ],
)
def test_the_cache_is_where_the_system_wants_it(system, given, expected, monkeypatch):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(_cores, "sys", SimpleNamespace(platform=system, modules=sys.modules))
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    assert _cores.user_cache() == Path(expected)


@pytest.mark.parametrize(
    ("affinity", "quota", "share", "expected"),
    [(4, math.inf, math.inf, 4), (4, 3, math.inf, 3), (4, math.inf, 2, 2), (4, 2.9, 9, 2), (4, 0.4, 9, 1)],
)
def test_the_least_of_all_limits_counts_and_one_core_is_left(affinity, quota, share, expected, monkeypatch):
    monkeypatch.setattr(_cores, "_quota", lambda: quota)
    monkeypatch.setattr(_cores, "_share_of_worker", lambda: share)
    known = SimpleNamespace(sched_getaffinity=lambda process: set(range(affinity)), cpu_count=lambda: 99)
    monkeypatch.setattr(_cores, "os", known)
    assert _cores.available_cores() == expected
    # Where the system does not tell the cores of the process, those of the machine count.
    monkeypatch.setattr(_cores, "os", SimpleNamespace(cpu_count=lambda: affinity))
    assert _cores.available_cores() == expected
    monkeypatch.setattr(_cores, "os", SimpleNamespace(cpu_count=lambda: None))
    assert _cores.available_cores() == 1


class LokyProcess:
    """What joblib calls its workers."""


@pytest.mark.parametrize(("said", "expected"), [("3", 3), ("0", 1), ("many", math.inf), (None, math.inf)])
def test_workers_of_joblib_are_told_their_share(said, expected, monkeypatch):
    if said is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert _cores._share_of_worker() == math.inf  # this process is none
    monkeypatch.setattr(multiprocessing.process, "current_process", LokyProcess)
    assert _cores._share_of_worker() == expected


@pytest.mark.parametrize("kept", [0, -1.0, math.inf, math.nan, "3", None, [3]])
def test_what_is_kept_must_be_a_positive_number(kept, monkeypatch, tmp_path):
    monkeypatch.setattr(_cores, "user_cache", lambda: tmp_path)
    assert _cores.remembered("thing", lambda: 2) == 2
    (file,) = (tmp_path / "machine").iterdir()
    assert file.name.startswith("thing-")
    file.write_text(json.dumps(kept))
    assert _cores.remembered("thing", lambda: 5.0) == 5.0
    assert json.loads(file.read_text()) == 5.0
    assert list((tmp_path / "machine").iterdir()) == [file]
    assert _cores.remembered("other", lambda: 7.0) == 7.0
    assert _cores.remembered("thing", lambda: 9.0) == 5.0


@pytest.mark.parametrize(
    ("quota", "period", "expected"), [("0", "100", math.inf), ("1", "100", 1), ("100", "0", math.inf)]
)
def test_quotas_of_the_first_version(quota, period, expected, tmp_path):
    (tmp_path / "proc").write_text("1:cpu:/a\n")
    (tmp_path / "cpu" / "a").mkdir(parents=True)
    (tmp_path / "cpu" / "a" / "cpu.cfs_quota_us").write_text(quota)
    (tmp_path / "cpu" / "a" / "cpu.cfs_period_us").write_text(period)
    assert _cores.cgroup_quota(tmp_path / "proc", tmp_path) == expected


def test_names_of_groups_may_have_colons(tmp_path):
    (tmp_path / "proc").write_text("0::/a:b\n")
    (tmp_path / "a:b").mkdir()
    (tmp_path / "a:b" / "cpu.max").write_text("200 100")
    assert _cores.cgroup_quota(tmp_path / "proc", tmp_path) == 2


def test_groups_from_the_top_downward():
    top = Path("top")
    assert _cores._upward(top, "/a/../b") == [top, top / "a", top / "a" / "b"]
    assert _cores._upward(top, "/") == [top]


def test_the_cores_of_this_process():
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert 1 <= _cores.available_cores() <= count
