"""Every example runs from an empty folder in less than a minute, and draws a figure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# `make docs` runs all examples; these take long and are run there only.
LONG = {
    "plot_gene_programs", "plot_initializations", "plot_signatures", "plot_penalties", "plot_pipeline",
    "plot_separation", "plot_solo_recordings", "plot_topic_changes", "plot_certificates", "plot_cluster",
}  # fmt: skip
QUICK = {"plot_anchors", "plot_cones", "plot_digits", "plot_losses", "plot_unmixing"}
EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("plot_*.py"))
SECONDS = 60
# One process runs them all, each as a program of its own in a folder of its own: it starts once.
RUNNER = """
import json, os, runpy, sys, time, traceback, warnings
from pathlib import Path

warnings.simplefilter("error")
warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
warnings.filterwarnings("ignore", "nonneg runs without its compiled core")
# Old versions of these use what newer versions of their own dependencies call deprecated.
warnings.filterwarnings("ignore", category=DeprecationWarning, module=r".*(matplotlib\\.|networkx/)")

from matplotlib import pyplot

outcomes = {}
for path in map(Path, sys.argv[1:]):
    os.makedirs(path.stem)
    os.chdir(path.stem)
    started, said = time.perf_counter(), ""
    try:
        runpy.run_path(str(path), run_name="__main__")
    except BaseException:
        said = traceback.format_exc()
    drawn = len(pyplot.get_fignums())
    pyplot.close("all")
    outcomes[path.stem] = {"said": said, "seconds": time.perf_counter() - started, "drawn": drawn}
    os.chdir("..")
Path("outcomes.json").write_text(json.dumps(outcomes))
"""


@pytest.mark.parametrize(
    "quick", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["quick", "others"]
)
def test_examples_run_and_draw_a_figure(quick, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    others = {path.stem for path in EXAMPLES} - LONG - QUICK
    examples = [path for path in EXAMPLES if path.stem in (QUICK if quick else others)]
    assert len(examples) == len(QUICK if quick else others) > 4
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, *map(str, examples)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS * len(examples),
        check=False,
        env=os.environ | {"MPLBACKEND": "Agg"},
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads((tmp_path / "outcomes.json").read_text())
    assert {name: ran["said"] for name, ran in outcomes.items() if ran["said"]} == {}
    assert {name: ran["seconds"] for name, ran in outcomes.items() if ran["seconds"] >= SECONDS} == {}
    assert {name for name, ran in outcomes.items() if not ran["drawn"]} == set()
