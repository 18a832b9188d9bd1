"""The study of numbers of topics: its collections, its measures and its verdicts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reproduction.artifacts import Table
from reproduction.registry import find_experiment
from reproduction.studies.topic_collections import mixed_collection
from reproduction.studies.topic_number_curves import silhouette, strength
from reproduction.studies.topic_numbers import CANDIDATES, CHOOSING, REPORTING, RULES, is_near
from tests.papers.quick_runs import artifacts, verdicts

NAME = "studies/topic-numbers"


def test_sets_that_choose_and_sets_that_report_are_apart():
    trials = find_experiment(NAME).trials(quick=False)
    drawn = {
        group: {(s["collection"], s["draw"]) for s in trials if s["group"] == group}
        for group in ("choosing", "reporting")
    }
    assert not drawn["choosing"] & drawn["reporting"]
    # Collections are in one group only; of generated ones the draws differ.
    shared = {name.split(",")[0] for name in CHOOSING} & {name.split(",")[0] for name in REPORTING}
    assert shared == {"planted-4000"}


@pytest.mark.slow
def test_documents_that_mix_topics():
    counts, y = mixed_collection(4, seed=3)
    assert counts.shape[0] == len(y) >= 1500
    assert set(y) == {0, 1, 2, 3}
    assert np.diff(counts.indptr).min() > 0
    again, _ = mixed_collection(4, seed=3)
    assert (counts != again).nnz == 0


def test_prediction_strength_and_silhouette():
    one = np.array([0, 0, 0, 1, 1, 1])
    np.testing.assert_allclose(strength(one, one, 2), 1.0)
    # Of the three pairs of each group, one stays together.
    np.testing.assert_allclose(strength(one, np.array([0, 0, 1, 1, 0, 0]), 2), 1 / 3)
    weights = np.repeat(np.eye(2), 3, axis=0)
    assert silhouette(sp.csr_array(weights), one, 2) == pytest.approx(1.0)
    assert silhouette(sp.csr_array(weights), np.array([0, 1, 0, 1, 0, 1]), 2) < 0.5


def test_what_is_near():
    assert [k for k in range(1, 20) if is_near(k, 10)] == [7, 8, 9, 10, 11, 12, 13]


@pytest.mark.parametrize(("classes", "met"), [(6, [True] * 3), (12, [False, False, False])])
def test_rules_and_verdicts(classes, met):
    records = []
    for name, draws in REPORTING.items():
        for draw in draws:
            same = {"group": "reporting", "collection": name, "draw": draw, "part": 0, "n_documents": 1000}
            for k in CANDIDATES:
                curves = dict.fromkeys(
                    ("modularity all", "modularity 10", "words 0.8", "strength", "npmi", "silhouette"), 0.7
                )
                curves |= {"modularity 30": 0.6 - 0.02 * abs(k - 6), "held-out": 0.9 + 0.01 * abs(k - 8)}
                curves |= {"rand 0.8": [0.5, 0.9], "rand 0.5": [0.2, 0.4]}
                nmi = 0.8 - 0.01 * abs(k - classes)
                records.append(same | {"classes": classes, "k": k, "nmi": nmi} | curves)
    assert [verdict.met for verdict in verdicts(NAME, records).values()] == met
    table, rules = artifacts(NAME, records, Table)
    assert {(row["k"], row["range"]) for row in table.rows} == {(6, "5 to 7")}
    assert [row["right"] for row in table.rows] == ["yes" if met[0] else "no"] * 20
    assert len(rules.rows) == len(RULES)
    ours, error = rules.rows[0], next(row for row in rules.rows if row["rule"] == "held-out error")
    assert ours["both"] == (20 if met[0] else 0)
    assert ours["gap"] == pytest.approx(0.01 * -abs(6 - classes))
    assert (error["near"], error["kept"]) == ((0, 20) if classes == 6 else (0, 0))
    # Without all collections nothing is decided.
    some = [record for record in records if record["collection"] == "bbc"]
    assert [verdict.met for verdict in verdicts(NAME, some).values()] == [None] * 3
