"""What pages of anchors say, for records that are written by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
from nonneg.report import anchor_page, wording

percent, number, seconds = wording.percent, wording.number, wording.seconds


@pytest.fixture(autouse=True)
def as_called(page_contexts):
    """Let drawings be the arguments they were called with, and pages their contexts."""


ANCHORS = {
    "title": "t",
    "values": [3.0, 2.0],
    "certificate": [],
    "parameters": {"a": 1},
    "result": {
        "n_anchors": 2,
        "explained": 0.875,
        "measure": "score",
        "unknown_rank": False,
        "margin": 0.5,
        "stop_reason": {"sentence": " it `ended`. "},
        "sum_to_one": True,
        "n_iter": 1,
        "seconds": 2.0,
        "method": "spa",
        "relative_error": 0.25,
        "duality_gap": None,
        "lam": None,
        "objective": 1.5,
        "steps": {},
    },
    "data": {"shape": [1200, 1], "source": "s", "dtype": "float64"},
    "anchors": [
        {"component": 0, "row": 1100, "value": 3.0, "margin": None, "mean_weight": 0.5, "name": "x"},
        {"component": 1, "row": 4, "value": 2.0, "margin": 0.5, "mean_weight": 0.25},
    ],
}


def anchors(**changes):
    return ANCHORS | {"result": ANCHORS["result"] | changes}


@pytest.mark.parametrize("n_samples", [30, 31])
def test_the_page_of_anchors(n_samples, rng):
    W = rng.random((n_samples, 2))
    names = [f"{at}" for at in range(n_samples)]
    history = {"loss": [2.0, 1.0], "n_iter": [1, 2], "seconds": [0.1, 0.2]}
    template, found = anchor_page.build_anchor_page(ANCHORS | {"history": history}, W, names)
    assert template == "anchors.html"
    assert found["answer"] == f"2 samples explain {percent(0.875)} of the squared norm of the data."
    shown, what, given = found["weights"][1]
    order = np.lexsort((-W.max(axis=1), W.argmax(axis=1))) if n_samples == 31 else np.arange(30)
    np.testing.assert_array_equal(shown, W[order].T)
    assert (what, given) == ("sample", None if n_samples == 31 else names)
    assert found["weights"][2] == {"ordered": n_samples == 31}
    assert found["order"] == (", sorted by the largest weight" if n_samples == 31 else "")
    assert [curve[1] for curve in found["curves"]] == [
        ([2.0, 1.0], [1, 2], "iteration"),
        ([2.0, 1.0], [0.1, 0.2], "seconds"),
    ]
    assert found["bars"] == (
        "ranked_bars",
        ([3.0, 2.0], 2, "score"),
        {"order": "in the order they were picked"},
    )
    assert found["rows"][0] == {
        "component": 0,
        "row": number(1100),
        "name": "x",
        "value": number(3.0),
        "margin": number(None),
        "weight": number(0.5),
    }
    assert (found["named"], found["rows"][1]["name"]) == (True, None)
    _, found = anchor_page.build_anchor_page(anchors(measure="maximum"), W)
    assert (found["curves"], found["named"], found["bars"][2]) == ([], False, {"order": "largest first"})


def test_words_about_anchors():
    assert anchor_page.anchor_sentence(anchors(n_anchors=1, explained=-1.0)) == (
        f"1 sample explains {percent(0.0)} of the squared norm of the data."
    )
    assert anchor_page._outcome(ANCHORS) == (
        f"{wording.counted(1200, 'sample')} with 1 feature from s. Anchors by spa, weights that sum to one. "
        f"The search took 1 iteration and {seconds(2.0)}, and stopped because it ended."
    )
    assert "weights that are nonnegative." in anchor_page._outcome(anchors(sum_to_one=False))
    followed = "The 2 anchors are in color. They are followed by the best of the other samples."
    assert anchor_page._bars_text(ANCHORS) == followed
    assert anchor_page._bars_text(anchors(margin=None)) == "The 2 anchors are in color."
    assert anchor_page._bars_text(anchors(measure="maximum")) == "The 2 anchors are in color."
    assert anchor_page._bars_text(anchors(unknown_rank=True)).startswith("The number of anchors was taken")
    names = [name for name, _ in anchor_page._tiles(anchors(duality_gap=0.5))]
    assert names == ["anchors", "relative error", "smallest margin", "duality gap", "time"]
    assert [name for name, _ in anchor_page._tiles(ANCHORS)] == [*names[:3], "time"]
    assert [heading for heading, _ in anchor_page._facts(ANCHORS)] == ["Data", "Result", "Parameters"]
    stepped = dict(anchor_page._facts(anchors(steps={"normalize": "l1"})))
    assert stepped["Preprocessing"] == [("normalize", "l1")]
    assert len(stepped["Result"]) == 4
