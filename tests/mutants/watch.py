"""Which tests execute a line, and how long they take: a plugin of pytest (`-p tests.mutants.watch`)."""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.mutants.changes import ROOT

SOURCE = ROOT / "src" / "nonneg"
KEPT = ROOT / ".mutants"
N_TESTS = 60  # of those that execute a line, the quickest
WATCH = pytest.StashKey[Any]()
PASSED = pytest.StashKey[bool]()
SECONDS_OF: dict[str, float] = {}  # of the tests that passed in this process


def pytest_load_initial_conftests(early_config: Any) -> None:
    """Start to watch, in the processes that run tests, before they import anything."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        _start(early_config)


def pytest_configure(config: Any) -> None:
    """The same where that came too late."""
    if hasattr(config, "workerinput") and config.stash.get(WATCH, None) is None:
        _start(config)


def _start(config: Any) -> None:
    import coverage

    watch = coverage.Coverage(data_file=None, source=[str(SOURCE)], config_file=False)
    watch.start()
    config.stash[WATCH] = watch


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Name the test that runs, and measure it."""
    watch = item.config.stash.get(WATCH, None)
    if watch is None:
        return (yield)
    watch.switch_context(item.nodeid)
    started = time.perf_counter()
    answer = yield
    if item.stash.get(PASSED, False):
        SECONDS_OF[item.nodeid] = time.perf_counter() - started
    watch.switch_context("")
    return answer


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Note whether the test passes: one that fails anyway, or is skipped, catches nothing."""
    report = yield
    item.stash[PASSED] = report.passed and item.stash.get(PASSED, True)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was seen: of every line that was executed, the quickest tests that do so."""
    if (watch := session.config.stash.get(WATCH, None)) is None:
        return
    watch.stop()
    data = watch.get_data()
    lines = {
        Path(file).relative_to(ROOT).as_posix(): {
            line: sorted(set(tests) & SECONDS_OF.keys(), key=lambda test: (SECONDS_OF[test], test))[:N_TESTS]
            for line, tests in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
    (KEPT / f"seen.{os.getpid()}.json").write_text(json.dumps({"seconds": SECONDS_OF, "lines": lines}))


def keep_tests() -> None:
    """Put together what the processes saw."""
    seen = [json.loads(path.read_text()) for path in sorted(KEPT.glob("seen.*.json"))]
    seconds: dict[str, float] = {}
    lines: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for each in seen:
        seconds.update(each["seconds"])
        for name, found in each["lines"].items():
            for line, tests in found.items():
                lines[name][line] |= set(tests)
    tests = sorted(seconds, key=lambda name: seconds[name])
    number = {name: at for at, name in enumerate(tests)}  # quickest first
    kept = {
        name: {line: sorted(number[test] for test in found)[:N_TESTS] for line, found in each.items()}
        for name, each in lines.items()
    }
    times = [seconds[name] for name in tests]
    (KEPT / "tests.json").write_text(json.dumps({"tests": tests, "seconds": times, "lines": kept}))
