"""The quick setting of the study of training recordings, and how its verdicts come about."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table
from reproduction.studies.separation_trained import CHOOSING, REPORTING, training
from tests.papers.quick_runs import artifacts, quick_records, verdicts

NAME = "studies/separation-trained"


@pytest.mark.slow
def test_training_recordings_are_compared_with_true_groups_and_fixed_templates():
    records = quick_records(NAME)
    assert [record["method"] for record in records] == ["trained", "default", "oracle", "fixed"]
    assert all(record["residual"] < 1e-12 for record in records)
    assert len(artifacts(NAME, records, Table)) == 1
    met = [verdict.met for verdict in verdicts(NAME, records).values()]
    assert met == [None, None, None, None, None, True, None]


def test_training_recordings_are_other_draws():
    one, other = (training("bass+drums", draw, 0.5, 2) for draw in (1000, 1001))
    assert list(one) == ["bass", "drums"]
    assert {len(signal) for signal in one.values()} == {2 * round(0.5 * 11025)}
    assert not (one["bass"] == other["bass"]).all()


def made_up(gain, fixed):
    common = {"part": "mixtures", "n_solos": 8, "draw": 1000, "sir": 9.0, "sar": 9.0, "residual": 1e-15}
    common |= {"seconds_taken": 1.0, "in_order": True}
    mixtures = [
        common | {"mixture": kind, "method": method, "sdr": sdr, "gain_sdr": sdr}
        for kind in (*CHOOSING, *REPORTING)
        for method, sdr in (("trained", 5 + gain), ("oracle", 5.0), ("fixed", fixed))
    ]
    shorter = {"part": "lengths", "n_solos": 1, "method": "trained", "mixture": REPORTING[0]}
    return [*mixtures, mixtures[0] | shorter]


@pytest.mark.parametrize(
    ("records", "met"),
    [
        (made_up(2.0, 4.0), [True] * 7),
        (made_up(-0.9, 4.0), [True] * 7),
        (made_up(-1.1, 4.0), [False] * 4 + [False, True, True]),
        (made_up(1.0, 7.0), [True] * 4 + [False, True, True]),
    ],
)
def test_verdicts(records, met):
    assert [verdict.met for verdict in verdicts(NAME, records).values()] == met
    assert len(artifacts(NAME, records, Table)) == 3
