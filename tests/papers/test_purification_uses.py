"""Purification beside NMF on pictures and mutations: quick settings, and verdicts on made-up records."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.artifacts import Pictures, Table
from reproduction.data.store import is_available
from reproduction.experiment import flat_records
from reproduction.purification.against_nmf import scores
from reproduction.purification.digits import overlaid_features
from reproduction.purification.signatures import evened, process_types
from reproduction.purification.swimmer import known_parts
from reproduction.registry import find_experiment
from tests.papers.quick_runs import artifacts, quick_records, verdicts

needs_swimmer = pytest.mark.skipif(
    not is_available("swimmer"), reason="the swimmers are not in the data home"
)
needs_mutations = pytest.mark.skipif(
    not is_available("brca_sbs96_wgs"), reason="the mutations are not in the data home"
)


def by_method(records):
    return {record["method"]: record for record in records}


def made_up(name, value):
    """Records of the full setting in which each method has the value that `value` gives it."""
    lines = []
    for setting in find_experiment(f"purification/{name}").trials(quick=False):
        records = [
            {"method": method, "mean": value(setting, method), "smallest": 0.5, "found": 0.5}
            for method in ("start", "purification", "nmf", "nmf-kl")
        ]
        lines.append({"setting": setting, "records": records})
    return flat_records(lines)


def outcome(name, value):
    return [verdict.met for verdict in verdicts(f"purification/{name}", made_up(name, value)).values()]


@pytest.mark.parametrize(("name", "n_claims"), [("swimmer", 5), ("digits", 3), ("signatures", 3)])
def test_verdicts_follow_the_means(name, n_claims):
    better = {"start": 0.5, "purification": 0.9, "nmf": 0.7, "nmf-kl": 0.8}
    assert outcome(name, lambda _, method: better[method]) == [True] * n_claims
    assert (
        outcome(name, lambda _, method: better[method] if method != "nmf-kl" else 0.95) == [False] * n_claims
    )


def test_one_case_that_is_lost_decides():
    def value(setting, method):
        lost = (
            method == "purification" and setting.get("exposures") == "as fitted" and setting["number"] == 793
        )
        return 0.1 if lost else {"purification": 0.9}.get(method, 0.7)

    assert outcome("signatures", value) == [False, True, True]


def test_scores_are_those_of_the_best_pairing():
    true = np.eye(3, 5)
    assert scores(true, true[[2, 0, 1]]) == {"mean": 1.0, "smallest": 1.0, "found": 1.0}
    found = scores(true, np.vstack([true[:2] - 5 * np.eye(5)[4], [1.0, 1, 0, 0, 0]]))
    assert found["smallest"] == 0
    assert found["found"] == pytest.approx(0.6667)


def test_overlaid_digits_are_recovered_where_nmf_fails():
    found = by_method(quick_records("purification/digits"))
    assert found["purification"]["mean"] > 0.95  # single features are lost in some draws (see the page)
    assert found["nmf"]["mean"] < 0.8
    assert found["purification"]["lost"] < 0.5 * found["nmf"]["lost"]
    assert overlaid_features(np.random.default_rng(0)).sum() == pytest.approx(20)
    records = list(found.values())
    settings = find_experiment("purification/digits").trials(quick=True)[0]
    tables = artifacts("purification/digits", [{**settings, **record} for record in records], Table)
    assert len(tables[0].rows) == 3


@pytest.mark.slow
@needs_swimmer
def test_limbs_of_swimmers():
    parts = known_parts()
    assert parts.shape == (17, 1024)
    np.testing.assert_array_equal(parts.sum(axis=1), [5] * 16 + [16])
    assert parts.sum(axis=0).max() == 1
    records = quick_records("purification/swimmer")
    stored = by_method(record for record in records if record["pictures"] == "stored")
    assert stored["purification"]["mean"] < 0.7 < stored["nmf"]["mean"]  # weights that depend on one another
    apart = by_method(record for record in records if record["pictures"] == "independent")
    assert apart["purification"]["mean"] > apart["nmf"]["mean"] > 0.97
    (pictures,) = artifacts("purification/swimmer", records, Pictures)
    assert [len(row) for row in pictures.images] == [8, 8, 8]
    assert pictures.images[0][0].shape == (22, 13)


@pytest.mark.slow
@needs_mutations
def test_mutations_are_no_place_for_purification():
    records = quick_records("purification/signatures")
    for exposures in ("as fitted", "independent"):
        found = by_method(record for record in records if record["exposures"] == exposures)
        assert 0.9 < found["purification"]["mean"] < found["nmf"]["mean"]


def test_mutations_are_told_apart():
    types = process_types(["A[C>T]G", "T[C>T]A", "T[C>G]T", "T[C>T]G", "A[T>C]G"])
    assert types["deamination"].tolist() == [True, False, False, True, False]
    assert types["apobec_t"].tolist() == [False, True, False, True, False]
    assert types["apobec_g"].tolist() == [False, False, True, False, False]
    np.testing.assert_allclose(evened(np.array([[4.0, 0], [0, 0], [0, 9]])), [[2, 0], [0, 3]])
