"""Every example runs from an empty folder in less than a minute, and draws what it promises."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("plot_*.py"))
SECONDS = 60
# One process runs them all, each as a program of its own in a folder of its own: it starts once.
RUNNER = """
import json, os, runpy, sys, time, traceback
from pathlib import Path

outcomes = {}
for path in map(Path, sys.argv[1:]):
    os.makedirs(path.stem)
    os.chdir(path.stem)
    started, said = time.perf_counter(), ""
    try:
        runpy.run_path(str(path), run_name="__main__")
    except BaseException:
        said = traceback.format_exc()
    outcomes[path.stem] = {"said": said, "seconds": time.perf_counter() - started}
    os.chdir("..")
Path("outcomes.json").write_text(json.dumps(outcomes))
"""


def test_all_examples_run_and_draw_what_they_promise(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert EXAMPLES
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUNNER, *map(str, EXAMPLES)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS * len(EXAMPLES),
        check=False,
        env=os.environ | {"MPLBACKEND": "Agg"},
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads((tmp_path / "outcomes.json").read_text())
    assert {name: ran["said"] for name, ran in outcomes.items() if ran["said"]} == {}
    assert {name: ran["seconds"] for name, ran in outcomes.items() if ran["seconds"] >= SECONDS} == {}
    for example in EXAMPLES:
        promised = set(re.findall(r"``(\w+\.png)``", example.read_text(encoding="utf-8").split('"""')[1]))
        assert promised, example.stem
        assert {path.name for path in (tmp_path / example.stem).iterdir()} >= promised, example.stem
