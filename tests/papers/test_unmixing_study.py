"""The quick setting of the study of unmixing: the default beside every method, and what the page says."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.artifacts import Table, Verdict
from reproduction.registry import find_experiment
from reproduction.studies.unmixing_scenes import KINDS, N_CHOOSING, drawn_scene, n_findr
from tests.papers.quick_runs import artifacts, quick_records

NAME = "studies/unmixing"


@pytest.fixture(scope="module")
def records():
    return quick_records(NAME)


@pytest.mark.slow
def test_the_default_is_closest(records):
    for kind in {record["kind"] for record in records}:
        angles = {
            record["method"]: np.mean(record["angles"])
            for record in records
            if record["kind"] == kind and "angles" in record
        }
        assert angles["auto"] == min(angles.values())
    table = artifacts(NAME, records, Table)[0]
    assert all(row["ours single angle"] <= row["single angle"] for row in table.rows)


@pytest.mark.slow
def test_two_kinds_do_not_decide_the_claims(records):
    assert all(verdict.met is None for verdict in artifacts(NAME, records, Verdict))


def test_draws_that_report_are_below_those_that_chose():
    settings = find_experiment(NAME).trials(quick=False)
    assert all(setting.get("first_draw", 0) < N_CHOOSING for setting in settings)
    assert {setting["kind"] for setting in settings} >= set(KINDS)


def test_n_findr_finds_pure_pixels():
    planted = drawn_scene("random, 40 dB", 0)
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(4), 300)
    weights[[5, 70, 150, 299]] = np.eye(4)
    found = n_findr(weights @ planted.vertices, 4)
    assert sorted(np.argmin(np.linalg.norm(found[:, None] - planted.vertices, axis=2), axis=1)) == [
        0,
        1,
        2,
        3,
    ]
    assert np.min(np.linalg.norm(found[:, None] - planted.vertices, axis=2), axis=1).max() < 1e-9
