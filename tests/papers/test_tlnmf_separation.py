"""The quick setting of the separation experiment, and how its verdicts come about."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table
from tests.papers.quick_runs import artifacts, quick_records, verdicts

NAME = "tlnmf/separation"


@pytest.mark.slow
def test_learned_transforms_separate_two_near_notes_where_the_cosine_transform_does_not():
    records = quick_records(NAME)
    sdr = {record["method"]: record["sdr"] for record in records}
    assert sdr["tl"] > 30
    assert sdr["jd"] > 25
    assert 8 < sdr["dct"] < 20
    assert max(record["residual"] for record in records) < 1e-13
    (table,) = artifacts(NAME, records, Table)
    assert [row["method"] for row in table.rows] == ["TL-NMF", "JD+NMF", "DCT IS-NMF"]
    assert [verdict.met for verdict in verdicts(NAME, records).values()] == [
        None,
        None,
        None,
        True,
        None,
        None,
    ]


def mixture(method, sdr, n_recordings=1, window="tukey", residual=1e-15):
    line = {"part": "mixtures", "set": "nonstationary440", "sir": 40.0, "sar": 40.0, "filtered_sdr": None}
    times = {"seconds": 1.0, "fit_seconds": 2.0, "residual": residual}
    return line | {"method": method, "sdr": sdr, "n_recordings": n_recordings, "window": window} | times


def recording(method, unseen, seconds):
    line = {"part": "recording", "objective": 1.0, "divergence": 0.1, "fit_seconds": 2 * seconds}
    return line | {"method": method, "unseen_objective": unseen, "seconds": seconds, "residual": 1e-15}


@pytest.mark.parametrize(
    ("records", "met"),
    [
        (
            [
                mixture("tl", 37.0),
                mixture("jd", 36.0),
                mixture("jd", 35.0) | {"init": "dct"},
                mixture("dct", 14.0),
                mixture("dct", 20.0, window="sine"),
                mixture("tl", 37.0, 10),
                mixture("jd", 36.5, 10),
                recording("tl", -5.0, 40.0),
                recording("dct", -4.0, 5.0),
            ],
            [True] * 6,
        ),
        (
            [
                mixture("tl", 29.0, residual=1e-3),
                mixture("jd", 36.0),
                mixture("jd", 35.0) | {"init": "dct"},
                mixture("dct", 14.0),
                mixture("dct", 20.0, window="sine"),
                mixture("tl", 37.0, 10),
                mixture("jd", 30.0, 10),
                recording("tl", -3.0, 90.0),
                recording("dct", -4.0, 5.0),
            ],
            [False] * 6,
        ),
    ],
)
def test_verdicts(records, met):
    assert [verdict.met for verdict in verdicts(NAME, records).values()] == met
    assert len(artifacts(NAME, records, Table)) == 2
