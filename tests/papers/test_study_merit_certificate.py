"""The study of the certificate of MERIT: its settings, and claims that follow from records."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.artifacts import Figure, Verdict
from reproduction.studies.known_model import wrong_probability
from reproduction.studies.merit_certificate import EXPERIMENT, N_RANDOM, random_sizes, summarize
from reproduction.studies.planted_anchors import n_found, planted
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
    # All kinds: half of the draws are of another kind, and these alone are warned of.
    other = {"kind": lambda draw: ("uniform", "shot")[draw % 2], "signs": lambda draw: "fit" * (draw % 2)}
    assert not met(records(**other), "all kinds: at most")
    assert not met(records(**wrong, **other), "all kinds: at least")
    assert met(records(**wrong, **other), "other kinds: at least")


def test_claims_about_numbers_follow_from_the_records():
    assert met(records(), "choosing kinds: without K")
    assert not met(records(number=lambda draw: 5 + draw % 2), "choosing kinds: without K")
    assert met(records()[1:], "choosing kinds: without K") is None


def test_curves_compare_statistics_of_right_and_wrong_answers():
    numbers = {"risk": lambda draw: draw % 2, "doubt": lambda draw: 0.5, "ratio": lambda draw: 2.0 - draw % 2}
    found = records(found=lambda draw: 6 - draw % 2, signs=lambda draw: "fit" * (draw % 4 == 1), **numbers)
    found += [record | {"part": "fixed"} for record in found]
    figure = next(a for a in summarize(found) if isinstance(a, Figure))
    curves = {one.label: (list(one.x), list(one.y)) for one in figure.panels[0].series}
    assert curves["with the model known"] == curves["alternatives"] == ([0, 0, 1], [0, 1, 1])
    assert curves["uncertain-anchors"] == ([0, 1], [0, 1])
    assert curves["certificate"] == ([0], [0.5])


@pytest.mark.slow
def test_who_knows_the_model_tells_the_probability_of_a_wrong_answer():
    # The selection may depend on the samples, not on the true weights: those nearest to the anchors.
    chances, wrong = [], []
    for draw in range(150):
        kind = ("uniform", "near-duplicates", "sparse")[draw % 3]
        data = planted(kind, 100, 30, 4, 14.0, draw, stream=99)
        squares = np.square(data.X[:, None] - data.H).sum(axis=2)
        selected = np.argmin(squares, axis=0)
        chances.append(wrong_probability(data, kind, selected))
        wrong.append(n_found(data, selected) < 4)
    chances, wrong = np.array(chances), np.array(wrong)
    assert 50 < wrong.sum() < 100
    assert abs(chances.mean() - wrong.mean()) < 0.08
    sure = (chances < 0.1) | (chances > 0.9)
    assert np.mean(wrong[sure] == (chances[sure] > 0.5)) > 0.9
    assert wrong_probability(planted("uniform", 100, 10, 4, 40.0, 0), "uniform", np.arange(4)) > 0.9
    clear = planted("uniform", 100, 10, 4, 40.0, 0)
    assert wrong_probability(clear, "uniform", clear.anchors) < 0.01


def test_two_streams_of_random_settings_follow_one_another():
    first, second = [random_sizes(draw) for draw in range(50)], [random_sizes(2000 + d) for d in range(50)]
    assert first != second
    assert len(EXPERIMENT.trials(False)) == 400 + 29 + 40


def test_the_default_is_compared_with_other_methods_from_5_db_on():
    others = {"part": "rivals", "spa": 5, "snpa": 6, "smoothed-spa": 0, "pp-spa": 0}
    rivals = [{**CASE, **others, "draw": draw} for draw in range(N_RANDOM)]
    assert met(records() + rivals, "from 5 dB on")
    assert met(records() + rivals[1:], "from 5 dB on") is None
    worse = records(found=lambda draw: 6 - (draw == 7))
    assert not met(worse + rivals, "from 5 dB on")
    # What is below 5 dB does not count.
    quiet = {"snr": lambda draw: 4.0 if draw == 7 else 20.0}
    assert met(
        records(found=lambda draw: 6 - (draw == 7), **quiet)
        + [rival | ({"snr": 4.0} if rival["draw"] == 7 else {}) for rival in rivals],
        "from 5 dB on",
    )
