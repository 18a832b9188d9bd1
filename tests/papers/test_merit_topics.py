"""Topics (Table II and Figure 6 of Nguyen, Fu & Wu), in small."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.artifacts import Figure, Table
from reproduction.data.store import is_available
from reproduction.merit import figure_6, table_2
from reproduction.merit.gibbs_lda import gibbs_lda
from reproduction.merit.peak_memory import can_measure
from reproduction.merit.topic_draws import N_DRAWS, NUMBERS, make_draw, run_method
from reproduction.registry import find_experiment
from tests.papers.quick_runs import artifacts, quick_records, verdicts

PINNED = {"similarity": 1, "coherence": -479.443, "n_words": 3742}
TABLE_2, FIGURE_6 = "merit/table-2", "merit/figure-6"


@pytest.mark.skipif(not is_available("reuters21578"), reason="the Reuters-21578 set is not on this machine")
def test_a_draw_of_reuters_has_pinned_scores():
    # It is part of the printed row of K = 3.
    found = run_method(make_draw("reuters21578", 3, 0), "spa", seed=0, n_clusterings=1)
    assert {name: found[name] for name in PINNED} == pytest.approx(PINNED, abs=0.001)


def test_the_quick_table():
    records = quick_records(TABLE_2)
    assert {record["method"] for record in records} == {
        "spa",
        "fast-anchor",
        "xray",
        "merit",
        "merit of nonneg",
        "nmf",
    }
    assert all(record["accuracy"] > 0.5 for record in records)
    # Three measures, the other scores, and the ties.
    assert len(artifacts(TABLE_2, records, Table)) == 5
    assert {verdict.met for verdict in verdicts(TABLE_2, records).values()} == {None}


def made_up(change=0.0):
    return [
        {"corpus": corpus, "k": k, "draw": draw, "method": method, "npmi": 0.1}
        | {"n_words": 100, "seconds": 1.0, "tied": 3}
        | {measure: table_2.published(corpus, measure, of, k) + change for measure in table_2.MEASURES}
        | {"argmax accuracy": table_2.published(corpus, "accuracy", of, k) + change + 0.01}
        for corpus in table_2.CORPORA
        for k in NUMBERS
        for draw in range(N_DRAWS)
        for method, of in (
            ("spa", "spa"),
            ("merit", "merit"),
            ("merit of nonneg", "merit"),
            ("default", "merit"),
        )
    ]


def test_gibbs_sampling_finds_topics_of_words_of_their_own():
    counts = np.kron(np.eye(3, dtype=int), np.full((8, 5), 2))
    topics, memberships = gibbs_lda(counts, 3, seed=0, n_sweeps=50)
    np.testing.assert_allclose(topics.sum(axis=1), 1)
    np.testing.assert_allclose(memberships.sum(axis=1), 1)
    labels = memberships.argmax(axis=1)
    assert labels.tolist() == np.repeat(labels[::8], 8).tolist()
    assert len(set(labels)) == 3
    assert (topics.argmax(axis=0) == np.repeat(labels[::8], 5)).all()
    again = gibbs_lda(counts, 3, seed=0, n_sweeps=50)
    assert again[0].tobytes() == topics.tobytes()


def test_verdicts_compare_with_the_printed_table():
    assert {verdict.met for verdict in verdicts(TABLE_2, made_up()).values()} == {True}
    worse = verdicts(TABLE_2, made_up(-0.04)).values()
    # Coherence and overlap have more room than 0.04, accuracy has less.
    assert [verdict.met for verdict in worse] == [True, True, False, False, False, False] * 2
    assert {verdict.met for verdict in verdicts(TABLE_2, made_up()[:-1]).values()} == {True, None}


def test_the_full_table_and_what_is_left_out():
    settings = find_experiment(TABLE_2).trials(quick=False)
    groups = {setting["group"] for setting in settings}
    assert groups == set(table_2.GROUPS)
    assert sum(setting["group"] == "merit" for setting in settings) == 2 * 8 * N_DRAWS
    assert not any(s["group"] == "fast-gradient" and s["corpus"] == "tdt2" for s in settings)
    left = [{"corpus": "reuters21578", "k": 3, "draw": 0, "method": "fast-gradient", "left_out": 9000}]
    (words,) = [e.text for e in find_experiment(TABLE_2).summarize(made_up() + left) if hasattr(e, "text")]
    assert "1 draws of 9000 to 9000 words" in words


@pytest.mark.slow
@pytest.mark.skipif(not can_measure(), reason="memory is read from /proc")
def test_the_quick_figure():
    records = quick_records(FIGURE_6)
    assert {record["method"] for record in records} == {"merit", "spa"}
    assert len(artifacts(FIGURE_6, records, Figure)) == 1
    large = [
        {
            "corpus": "tdt2",
            "k": 10,
            "draw": 0,
            "method": method,
            "n_words": 19_000,
            "process": mb,
            "search": mb - 100,
        }
        for method, mb in (("merit", 300.0), ("merit(0)", 300.0), ("default", 310.0), ("whole", 450.0))
    ]
    large[-1]["seconds"] = 21.0
    assert [verdict.met for verdict in verdicts(FIGURE_6, large).values()] == [True, True, True, False]
    assert figure_6.trials(quick=False)[0]["method"] == "whole"
