"""Every example runs from an empty folder in less than a minute, and draws what it promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("plot_*.py"))
SECONDS = 60


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=os.environ | {"MPLBACKEND": "Agg"},
    )
    assert done.returncode == 0, done.stderr
    promised = set(re.findall(r"``(\w+\.png)``", example.read_text(encoding="utf-8").split('"""')[1]))
    assert promised
    assert {path.name for path in tmp_path.iterdir()} >= promised
