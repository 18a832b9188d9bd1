"""The study of the certificate of MERIT: its settings, and claims that follow from records."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Verdict
from reproduction.studies.merit_certificate import EXPERIMENT, N_RANDOM, random_sizes, summarize
from tests.papers.quick_runs import quick_records, verdicts

CASE = {"part": "random", "kind": "uniform", "n": 250, "m": 40, "k": 6, "snr": 20.0, "found": 6, "signs": ""}
CASE |= {"number": 6, "unknown": 6, "from_spa": 0, "gap": 0.01}


def records(**changes):
    return [{**CASE, "draw": draw} | {k: v(draw) for k, v in changes.items()} for draw in range(N_RANDOM)]


def met(found, words):
    return next(a.met for a in summarize(found) if isinstance(a, Verdict) and words in a.claim)


def test_random_settings_are_repeatable_and_possible():
    for draw in range(200):
        sizes = random_sizes(draw)
        assert sizes == random_sizes(draw)
        assert 3 * sizes["k"] <= sizes["n"]
        assert sizes["k"] + 2 <= sizes["m"]


@pytest.mark.slow
def test_the_quick_setting():
    found = verdicts(EXPERIMENT.name, quick_records(EXPERIMENT.name))
    assert {verdict.met for verdict in found.values()} == {None}


def test_claims_about_warnings_follow_from_the_records():
    wrong = {"found": lambda draw: 5}
    warned = {"signs": lambda draw: "alternatives" if draw % 100 else ""}
    assert not met(records(**wrong), "choosing kinds: at least")
    assert met(records(**wrong, **warned), "choosing kinds: at least")
    assert not met(records(**warned), "choosing kinds: at most")
    assert met(records(), "choosing kinds: at most")


def test_claims_about_numbers_follow_from_the_records():
    assert met(records(), "choosing kinds: without K")
    assert not met(records(number=lambda draw: 5 + draw % 2), "choosing kinds: without K")
    assert met(records()[1:], "choosing kinds: without K") is None
