"""The quick setting of the study of separation, and how its verdicts come about."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table
from reproduction.studies.mixtures import CHOOSING, REPORTING
from tests.papers.quick_runs import artifacts, quick_records, verdicts

NAME = "studies/separation"


@pytest.mark.slow
def test_the_default_is_better_than_the_usual_stft_nmf():
    records = quick_records(NAME)
    sdr = {(record["mixture"], record["method"]): record["gain_sdr"] for record in records}
    # The gain of a single mixture depends on the local minimum that was found.
    for rival in ("sklearn-kl", "sklearn-frobenius"):
        gains = [sdr[mixture, "default"] - sdr[mixture, rival] for mixture in ("piano+drums", "notes")]
        assert min(gains) > 0
        assert sum(gains) / 2 > 3
    exact = [record["residual"] for record in records if record["method"] == "default"]
    assert max(exact) < 1e-13
    assert len(artifacts(NAME, records, Table)) == 1
    assert [verdict.met for verdict in verdicts(NAME, records).values()] == [None, True, None, None]


def made_up(gain, unseen, seconds):
    common = {"part": "mixtures", "sir": 9.0, "sar": 9.0, "gain_sdr": 1.0, "residual": 1e-15}
    common |= {"seconds_taken": 1.0}
    mixtures = [
        common | {"mixture": mixture, "method": method, "sdr": sdr}
        for mixture in (*CHOOSING, *REPORTING)
        for method, sdr in (("default", 5 + gain), ("sklearn-kl", 5.0), ("sklearn-frobenius", 4.0))
    ]
    choice = {"part": "choice", "begin": 20.0, "lapped": False, "seen": 1.0, "seconds_taken": 9.0}
    choices = [
        choice | {"method": method, "unseen": value, "fraction": 0.0, "held_out": [1.0, 2.0]}
        for method, value in (("auto", unseen), ("tl", 3.0), ("dct", 2.0))
    ]
    return [*mixtures, *choices, {"part": "time", "rate": 44100, "seconds_taken": seconds}]


@pytest.mark.parametrize(
    ("records", "met"),
    [
        (made_up(1.0, 2.0, 1.0), [True] * 4),
        (made_up(0.0, 2.0, 1.0), [False, True, True, True]),
        (made_up(-1.0, 2.5, 3.0), [False, True, False, False]),
    ],
)
def test_verdicts(records, met):
    assert [verdict.met for verdict in verdicts(NAME, records).values()] == met
    assert len(artifacts(NAME, records, Table)) == 3
