"""Others' benchmarks: pages show their records, and scores and generators are what they say."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.others import (
    bench_plot_nmf,
    brunet,
    contexts,
    denovo,
    distributed,
    kotliar,
    lfr,
    liger,
    msighdp,
    octis,
    sigfittest,
)
from benchmarks.others.records import FOLDER, merge

PAGES = {
    bench_plot_nmf: "bench_plot_nmf", brunet: "brunet", contexts: "sigfittest", denovo: "denovo",
    distributed: "distributed", kotliar: "kotliar", lfr: "lfr", liger: "liger", msighdp: "denovo",
    octis: "octis", sigfittest: "sigfittest",
}  # fmt: skip


@pytest.mark.parametrize("module", PAGES, ids=lambda module: module.__name__.split(".")[-1])
def test_a_page_shows_the_tables_of_its_record(module):
    record = FOLDER / f"{module.__name__.split('.')[-1]}.json"
    page = (FOLDER.parent / "others" / f"{PAGES[module]}.md").read_text(encoding="utf-8")
    for table in module.tables(json.loads(record.read_text(encoding="utf-8"))["rows"]).split("\n\n"):
        assert table in page


def test_a_signature_counts_once_and_only_if_it_is_similar():
    planted = np.eye(4)
    extracted = np.array([[1.0, 0, 0, 0], [1.0, 0.1, 0, 0], [0, 1.0, 1.0, 0]])
    scores = denovo.scores(extracted, planted)
    assert (scores["extracted"], scores["true"]) == (3, 1)
    assert scores["F1"] == pytest.approx(2 / 7)


def test_the_simulation_has_the_shares_of_the_article(monkeypatch):
    monkeypatch.setattr(kotliar, "N_GENES", 2_000)
    drawn = kotliar.simulate(600, 1.0, 0)
    assert drawn.counts.shape == (len(drawn.usages), drawn.folds.shape[1])
    assert drawn.counts.sum(axis=1).min() >= 1000
    np.testing.assert_allclose(drawn.usages.sum(axis=1), 1.0)
    active = drawn.usages[:, -1] > 0
    # 30% of the cells of four of thirteen types, and a few doublets of such a cell.
    assert 0.05 < active.mean() < 0.2
    assert drawn.usages[:, -1].max() <= 0.7
    assert (drawn.folds >= 1).all()


def test_planted_programs_are_found_where_they_are_returned():
    rng = np.random.default_rng(0)
    programs = rng.gamma(0.3, size=(3, 200))
    folds = np.where(rng.random((3, 200)) < 0.1, 3.0, 1.0)
    counts = kotliar.sp.csr_array(rng.poisson(5.0, size=(50, 200)).astype(float))
    drawn = kotliar.Simulation(counts, programs, folds, np.ones((50, 3)))
    deviation = counts.toarray().std(axis=0)
    scores = kotliar.scores((programs / deviation)[::-1], folds[::-1], drawn, np.arange(200))
    assert (scores["found"], scores["genes"]) == (3, 1.0)


def test_data_sets_that_are_mixed_are_aligned_and_separate_ones_are_not():
    rng = np.random.default_rng(0)
    first, second = rng.random((100, 3)), rng.random((100, 3))
    far = [first * [1, 1, 0], second * [0, 0, 1] + [0, 0, 1]]
    assert liger.alignment([first, second]) > 0.8
    assert liger.alignment(far) < 0.01
    alone = [liger.neighbors(each, liger.NEIGHBORS) for each in (first, second)]
    assert liger.agreement([first, 3 * second], alone) == 1.0


def test_rows_that_were_run_again_replace_those_of_the_record(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.others.records.FOLDER", tmp_path)
    first = [{"shape": [2, 3], "method": name, "loss": 1.0} for name in ("a", "b")]
    merge("some", first, ("shape", "method"))
    rows = merge("some", [first[1] | {"loss": 0.5}], ("shape", "method"))
    assert [(row["method"], row["loss"]) for row in rows] == [("a", 1.0), ("b", 0.5)]
    assert json.loads((tmp_path / "some.json").read_text(encoding="utf-8"))["rows"] == rows
