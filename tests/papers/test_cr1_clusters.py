"""Quick settings of Tables VI and VII of Liu & Tan (2017), and how their verdicts come about."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from reproduction.artifacts import Measured, Table
from reproduction.cr1.clustering_methods import (
    METHODS,
    clustering_trials,
    k_means_labels,
    run_clusterings,
    spherical_labels,
)
from reproduction.cr1.initializations import Samples
from reproduction.cr1.real_sets import QUICK, load_set
from reproduction.cr1.spherical_kmeans import spherical_kmeans
from reproduction.data.store import is_available
from reproduction.published_values import published_values
from reproduction.registry import find_experiment
from tests.papers.quick_runs import artifacts, quick_records, verdicts
from tests.references.cones import cones_of_clusters

from nonneg import ConeNMF
from nonneg.data import as_data_matrix
from nonneg.datasets import circular_cones
from nonneg.metrics.clustering import purity

PRINTED = published_values("cr1_nmf")["table_7_clustering_tr11"]


@pytest.fixture(scope="module")
def records():
    return quick_records("cr1/table-6")


def test_all_fourteen_methods_and_the_default_are_scored(records):
    assert {record["method"] for record in records} == set(METHODS)
    runs = {method: sum(record["method"] == method for record in records) for method in METHODS}
    assert all(runs[method] == (1 if method.startswith(("nndsvd", "default")) else 2) for method in METHODS)
    assert all(0 <= record[key] <= 1 for record in records for key in ("nmi", "dice", "purity"))


def test_cones_apart_are_found_from_cones(records):
    # The noise turns the direction of the shortest point.
    pure = [record["purity"] for record in records if record["method"].startswith("cr1-nmf")]
    assert min(pure) >= 89 / 90
    assert len(pure) == 6


def test_the_table_has_the_means_of_the_runs(records):
    ours, theirs = artifacts("cr1/table-6", records, Table)
    assert [row["method"] for row in ours.rows] == list(METHODS)
    row = next(row for row in ours.rows if row["method"] == "rand+hals")
    values = [record["nmi"] for record in records if record["method"] == "rand+hals"]
    assert row["nmi"].value == pytest.approx(np.mean(values))
    assert theirs.rows[3] == {"method": "cr1-nmf+mult", "nmi": 0.987, "dice": 0.944, "purity": 0.961}


@pytest.mark.parametrize("labels", [k_means_labels, spherical_labels])
def test_directions_of_cones_are_found_by_the_best_of_some_runs(labels):
    real = load_set(QUICK)
    samples = Samples.of(real.X / np.linalg.norm(real.X, axis=1, keepdims=True))
    found = [labels(samples, real.k, np.random.default_rng(seed)) for seed in range(8)]
    assert max(purity(real.y, clusters) for clusters in found) > 0.99
    again = labels(samples, real.k, np.random.default_rng(0))
    np.testing.assert_array_equal(found[0], again)


def as_printed(change=0.0):
    columns = PRINTED["columns"][1:]
    return [
        {"panel": "table", "set": "tr11", "run": 0, "method": row[0], "pair dice": 0.5}
        | {
            key: value + change
            for key, value in zip(columns, row[1:], strict=True)
            if not key.endswith("_std")
        }
        for row in PRINTED["rows"]
    ]


def test_the_printed_numbers_agree_with_themselves():
    drawn, fixed, _ = verdicts("cr1/table-7", as_printed()).values()
    assert (drawn.met, fixed.met) == (True, True)
    table = artifacts("cr1/table-7", as_printed(), Table)[0]
    assert table.rows[0]["nmi"] == Measured(0.520, None, 0.520, 0.061)
    assert len(table.rows) == 14


def test_the_best_start_of_each_algorithm_is_counted():
    (counts,) = list(verdicts("cr1/table-7", as_printed()).values())[-1:]
    # One run has no spread, so that only the best is near; cr1-nmf is the best of all three in the paper.
    assert counts.met
    assert counts.detail.startswith("of 3: rand 0, cr1-nmf 3, spkm 0, nndsvd 0; in 3 cr1-nmf")
    worse = [record | ({"nmi": 0.6} if record["method"] == "cr1-nmf+mult" else {}) for record in as_printed()]
    worse += [record | {"nmi": 0.62} for record in worse if record["method"] == "cr1-nmf+mult"]
    (counts,) = list(verdicts("cr1/table-7", worse).values())[-1:]
    assert counts.detail.startswith("of 3: rand 0, cr1-nmf 3")
    worse[-1]["nmi"] = 0.606
    (counts,) = list(verdicts("cr1/table-7", worse).values())[-1:]
    assert counts.detail.startswith("of 3: rand 0, cr1-nmf 2, spkm 1, nndsvd 0; in 2 cr1-nmf")


def test_what_is_too_far_is_named():
    drawn, fixed, _ = verdicts("cr1/table-7", as_printed(0.045)).values()
    assert not drawn.met
    assert "rand+nnlsb purity 0.810 against 0.765" in drawn.detail
    near = as_printed(0.02)
    assert "purity" not in next(iter(verdicts("cr1/table-7", near).values())).detail
    assert not fixed.met
    assert "nndsvd+hals nmi 0.628 against 0.583" in fixed.detail


def test_the_full_setting_has_every_collection_and_one_record_a_setting():
    settings = find_experiment("cr1/table-7").trials(False)
    assert {setting["set"] for setting in settings} >= {"tr11", "tr12", "tr23", "tr41", "re0", "k1a", "la1"}
    first_points = [
        first
        for setting in settings
        if setting["panel"] == "first points"
        for first in range(setting["offset"], 414, setting["step"])
    ]
    assert sorted(first_points) == list(range(0, 414, 4))
    assert len(clustering_trials({"tr11": 2})) == 9


@pytest.mark.slow
@pytest.mark.skipif(not is_available("cluto_tr23"), reason="needs a data home with cluto_tr23")
def test_the_quick_setting_on_documents():
    found = quick_records("cr1/table-7")
    tables = artifacts("cr1/table-7", found, Table)
    assert len(tables) == 3
    weights = {r["weighting"]: r["nmi"] for r in found if r["panel"] == "preparation"}
    assert weights["log tf-idf"] > weights["counts"] + 0.1


@pytest.mark.slow
@pytest.mark.skipif(not is_available("cluto_tr11"), reason="needs a data home with cluto_tr11")
def test_deterministic_rows_of_the_paper():
    found = run_clusterings({"set": "tr11", "run": 0, "group": "hals"})
    row = next(record for record in found if record["method"] == "nndsvd+hals")
    assert [row[key] for key in ("nmi", "dice", "purity")] == pytest.approx([0.583, 0.511, 0.768], abs=0.02)


def test_a_direction_of_duplicates_is_better_than_their_centroid():
    """Section VI-B2: with a duplicate, rank-one NMF has the error 1 and the normalized mean 1.0954."""
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = ConeNMF(1).fit(X).components_[0]
    np.testing.assert_allclose(found / np.linalg.norm(found), [1, 0], atol=1e-9)
    center = spherical_kmeans(as_data_matrix(X), 1, rng=0)[:, 0]
    np.testing.assert_allclose(center, [2 / 5**0.5, 1 / 5**0.5], atol=1e-9)
    assert np.linalg.norm(X - np.outer(X @ center, center)) == pytest.approx(1.0954, abs=5e-5)


@pytest.mark.parametrize("seed", range(2))
def test_cones_apart_have_the_smallest_largest_size_angle(seed):
    """Equation (13): where the geometric assumption (3) holds, no other clustering has a smaller one."""
    data = circular_cones(7, 20, 2, size_angle=0.15, rng=seed)
    found = ConeNMF(2).fit(data.X).labels_

    def largest(labels):
        return cones_of_clusters(as_data_matrix(data.X), labels, 2).angles.max()

    others = (np.array([0, *rest]) for rest in product((0, 1), repeat=6))
    best = min(largest(labels) for labels in others if labels.any())
    assert largest(found) == pytest.approx(best, abs=1e-9)
