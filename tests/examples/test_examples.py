"""Every example runs from an empty folder in less than a minute, and draws a figure."""

from __future__ import annotations

import runpy
import time
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


@pytest.mark.parametrize(
    "quick", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["quick", "others"]
)
# Old versions of these use what newer versions of their own dependencies call deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning:.*(matplotlib\\.|networkx/)")
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_examples_run_and_draw_a_figure(quick, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    pyplot.switch_backend("agg")
    others = {path.stem for path in EXAMPLES} - LONG - QUICK
    examples = [path for path in EXAMPLES if path.stem in (QUICK if quick else others)]
    assert len(examples) == len(QUICK if quick else others) > 4
    for path in examples:
        (tmp_path / path.stem).mkdir()
        monkeypatch.chdir(tmp_path / path.stem)
        started = time.perf_counter()
        with pyplot.rc_context():
            runpy.run_path(str(path), run_name="__main__")
        assert time.perf_counter() - started < SECONDS, path
        assert pyplot.get_fignums(), path
        pyplot.close("all")
