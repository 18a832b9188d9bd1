"""Small files for the commands, and pages that are drawn only where a test looks at them."""

from __future__ import annotations

import importlib.util
import time

import numpy as np
import pytest

from nonneg.cli import terminal


@pytest.fixture
def drawn():
    """Let the figures of a report be drawn."""


@pytest.fixture(autouse=True)
def _empty_drawings(request, monkeypatch):
    """Make figures but leave their drawings empty, which takes half of the time of a command otherwise.

    Tests of a report ask for `drawn`; tests/report draws every page.
    """
    if "drawn" not in request.fixturenames and importlib.util.find_spec("matplotlib") is not None:
        backend = importlib.import_module("matplotlib.backends.backend_svg")
        monkeypatch.setattr(
            backend.FigureCanvasSVG, "print_svg", lambda self, stream, **named: stream.write("<svg ></svg>")
        )


@pytest.fixture(autouse=True)
def _times_are_durations():
    """See that the time in the record of a command is not longer than the test that ran it."""
    began = time.perf_counter()
    terminal.begin(json=False)
    yield
    seconds = (terminal.outcome.record or {}).get("result", {}).get("seconds")
    assert seconds is None or 0 <= seconds <= time.perf_counter() - began


@pytest.fixture
def array_file(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).random((12, 6)))
    return path


@pytest.fixture
def csv_file(tmp_path):
    path = tmp_path / "fruit.csv"
    rows = np.random.default_rng(0).random((5, 3)).round(3)
    lines = [",apple,pear,plum", *(f"shop {at},{','.join(map(str, row))}" for at, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n")
    return path
