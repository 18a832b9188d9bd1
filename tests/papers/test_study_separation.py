"""The quick setting of the study of separation, and how its verdicts come about."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table
from reproduction.studies.mixtures import FAMILIES, FAMILY
from reproduction.studies.separation import METHODS, left_out
from tests.papers.quick_runs import artifacts, quick_records, verdicts

NAME = "studies/separation"


@pytest.mark.slow
def test_the_default_is_better_than_the_usual_stft_nmf():
    records = quick_records(NAME)
    sdr = {(record["mixture"], record["method"]): record["gain_sdr"] for record in records}
    for rival in ("sklearn-kl", "sklearn-frobenius"):
        # The gain of a single mixture depends on the local minimum that was found.
        assert sum(sdr[kind, "auto"] - sdr[kind, rival] for kind in ("piano+drums", "notes")) > 6
    assert [verdict.met for verdict in verdicts(NAME, records).values()][1:] == [None, True, None]


def made_up(gain, seconds):
    scores = dict.fromkeys(METHODS, 1.0) | {"auto": 5 + gain, "sklearn-kl": 5.0, "trained": 5 + 2 * gain}
    mixtures = [
        {
            "part": "mixtures",
            "mixture": kind,
            "draw": 0,
            "method": method,
            "gain_sdr": sdr,
            "residual": 1e-15,
        }
        for kind in FAMILY
        for method, sdr in scores.items()
    ]
    return [*mixtures, {"part": "time", "rate": 44100, "first_call": seconds, "second_call": 1.0}]


@pytest.mark.parametrize(
    ("records", "met"),
    [(made_up(1.0, 1.0), [True] * 4), (made_up(0.0, 3.0), [True, False, True, False])],
)
def test_verdicts(records, met):
    assert [verdict.met for verdict in verdicts(NAME, records).values()] == met
    assert len(artifacts(NAME, records, Table)) == 3


def test_a_rule_is_chosen_without_the_family_it_is_reported_on():
    means = {(family, method): 0.0 for family in FAMILIES for method in METHODS}
    first, *others = FAMILIES
    means[first, "timbre"] = 9.0
    for family in others:
        means[family, "auto"] = 1.0
    rows = {row["family"]: row for row in left_out(means)}
    assert rows[first]["chosen"] == 0.0
    assert rows[others[0]]["chosen"] == 0.0
    assert "timbre" in rows[others[0]]["rule"]
