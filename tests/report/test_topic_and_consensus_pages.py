"""What pages of topics and of a consensus say, for records that are written by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
from nonneg.report import consensus_page, topic_page, wording

percent, number, seconds = wording.percent, wording.number, wording.seconds


@pytest.fixture(autouse=True)
def as_called(page_contexts):
    """Let drawings be the arguments they were called with, and pages their contexts."""


def topic(at, proportion, words, **more):
    entry = {
        "topic": at,
        "name": "",
        "proportion": proportion,
        "words": words,
        "n_documents": 1200,
        "few_documents": False,
        "npmi": 0.1234,
        "anchor": None,
        "examples": [],
    }
    return entry | more


TOPICS = {
    "title": "t",
    "hierarchy": [[0, 1, 0.5, 2], [2, 3, 0.7, 3]],
    "edits": [],
    "over_time": None,
    "certificate": [],
    "topics": [
        topic(0, 0.2, [("a", 4.0), ("b", 1.0), ("c", 0.5), ("d", 0.2)]),
        topic(1, 0.5, [("a", 3.0), ("d", 3.0)], name="news"),
        topic(2, 0.3, [("e", 0.0)]),
    ],
    "shared_words": [[20, 2, 1], [2, 20, 2], [1, 2, 20]],
    "data": {
        "n_documents": 3000,
        "n_empty": 0,
        "n_copies": 0,
        "n_set_aside": 0,
        "kind": "texts",
        "source": "s",
        "n_used": 40,
        "n_words": 5000,
    },
    "result": {
        "n_topics": 3,
        "method": "nmf",
        "seconds": 2.0,
        "npmi": 0.25,
        "similarity_count": 4,
        "none": None,
    },
    "parameters": {"n_topics": 3},
}


def test_the_page_of_topics():
    template, found = topic_page.build_topic_page(TOPICS)
    assert template == "topics.html"
    assert (
        found["answer"]
        == f"3 topics in {number(3000)} documents; the largest (news) makes up {percent(0.5)}."
    )
    called, (shown, what, names), more = found["shared"]
    np.testing.assert_array_equal(shown, [[0, 2, 1], [2, 0, 2], [1, 2, 0]])
    assert (called, what, names, more) == (
        "heat_map",
        "topic",
        ["0", "1", "2"],
        {"line": "topic", "largest": 10.0},
    )
    assert found["darkest"] == "10"
    assert found["pairs"] == [
        {"one": 0, "other": 1, "count": 2, "words": "a, d"},
        {"one": 1, "other": 2, "count": 2, "words": ""},
        {"one": 0, "other": 2, "count": 1, "words": ""},
    ]
    assert found["tree"][1] == (TOPICS["hierarchy"], ["a, b, c  0", "news  1", "e  2"])
    assert (found["anchored"], found["selection"], found["over_time"]) == (False, None, None)
    assert [dict(group) for _, group in found["facts"]][2] == {"n_topics": "3"}
    assert len(dict(found["facts"])["Result"]) == 5
    alike = TOPICS | {"shared_words": [[20, 13, 0], [13, 20, 0], [0, 0, 20]], "hierarchy": [[0, 1, 0.5, 2]]}
    alike["topics"] = [*TOPICS["topics"][:2], TOPICS["topics"][2] | {"anchor": "e"}]
    _, found = topic_page.build_topic_page(alike)
    assert (found["darkest"], found["shared"][2]["largest"], found["anchored"]) == ("13", 13.0, True)
    assert found["tree"] is None
    _, found = topic_page.build_topic_page(TOPICS | {"shared_words": np.diag([20, 20, 20]).tolist()})
    assert (found["shared"], found["pairs"]) == (None, [])


def test_words_of_a_topic_are_in_percent_of_the_heaviest():
    example = {"name": "d", "proportion": 0.25, "text": "x"}
    found = topic_page._topic(topic(7, 0.2, [(f"w{at}", 16.0 - at) for at in range(16)], examples=[example]))
    assert found["words"] == [(f"w{at}", round(100 * (16 - at) / 16)) for at in range(15)]
    assert (found["number"], found["proportion"], found["documents"]) == (7, percent(0.2), number(1200))
    assert found["npmi"] == "0.12"
    assert found["examples"] == [{"name": "d", "proportion": percent(0.25), "text": "x"}]
    assert topic_page._topic(topic(7, 0.2, [("a", 0.0)]))["words"] == [("a", 0)]


def test_one_topic_and_the_outcome():
    one = TOPICS | {"topics": TOPICS["topics"][:1], "result": TOPICS["result"] | {"n_topics": 1}}
    assert topic_page.topic_sentence(one).startswith("1 topic in ")
    start = f"{number(3000)} documents (texts) from s, 40 of {number(5000)} words used."
    end = f" Topics by {wording.method('nmf')}, in {seconds(2.0)}."
    assert topic_page._outcome(TOPICS) == start + end
    data = TOPICS["data"] | {"n_empty": 3, "n_copies": 4, "n_set_aside": 5}
    assert (
        topic_page._outcome(TOPICS | {"data": data})
        == start
        + (
            " 3 documents contain no topic words. 4 copies of other documents took no part in the search. 5 "
            "documents are in groups too small for a topic."
        )
        + end
    )
    assert topic_page._tiles(TOPICS) == [
        ("topics", "3"),
        ("documents", number(3000)),
        ("mean NPMI", "0.25"),
        ("shared top words", "4"),
        ("time", seconds(2.0)),
    ]


@pytest.mark.parametrize("bandwidth", [2.5, None])
def test_topics_over_time(bandwidth):
    over = {
        "counts": [1, 2],
        "periods": ["2001", "2002"],
        "unit": "year",
        "n_missing": 0,
        "unreadable": [],
        "n_empty": 0,
        "bandwidth": bandwidth,
        "proportions": [[0.1, None, 0.3], [0.2, 0.4, 0.3]],
        "smoothed": [[0.1, None, 0.3], [0.2, 0.4, 0.3]],
    }
    found = topic_page._over_time(TOPICS | {"over_time": over})
    assert found["sentences"][0] == "3 documents by year, from 2001 to 2002."
    said = (
        "(Gaussian kernel of 2.5 periods, chosen by leave-one-out)."
        if bandwidth
        else "Too few periods to smooth."
    )
    assert found["sentences"][1].endswith(said)
    assert len(found["sentences"]) == 2
    # The first of equal peaks.
    expected = [f"{percent(0.2)} in 2002", f"{percent(0.4)} in 2002", f"{percent(0.3)} in 2001"]
    assert [course["peak"] for course in found["courses"]] == expected
    assert [course["label"] for course in found["courses"]] == ["a, b, c", "news", "e"]
    assert found["courses"][1]["figure"][1] == (["2001", "2002"], [1, 2], [None, 0.4], [None, 0.4], "topic 1")
    over |= {"n_missing": 2, "unreadable": [("d7", "x" * 50)], "n_empty": 1}
    said = topic_page._over_time(TOPICS | {"over_time": over})["sentences"]
    assert said[1] == (
        "2 documents without a date left out, 1 of them with an entry that is not a date (d7: “"
        + "x" * 40
        + "”)."
    )
    assert said[2] == "1 document without a topic left out."


def test_changes_of_topics_are_told():
    entry = {
        "merged": [[0, 2], [3, 4]],
        "split": [(1, 2)],
        "renamed": [(0, "news"), (1, "")],
        "mapping": [[0], [1, 2], [0], [4], [3]],
    }
    assert topic_page._edit(entry) == {
        "sentence": "topics 0 and 2 merged, topics 3 and 4 merged, topic 1 split into 2, topic 0 called "
        "news, the name of topic 1 removed",
        "numbers": "1 → 1 and 2, 2 → 0, 3 → 4, 4 → 3",
    }


def test_what_chose_the_number_of_topics():
    found = topic_page._selection(
        {
            "n_topics": 3,
            "candidates": [2, 3],
            "stability": [1, 2],
            "stability_spread": [0.1, 0.2],
            "npmi": [3, 4],
            "reason": "r",
        }
    )
    assert found["curves"] == [
        ("candidate_curve", ([2, 3], [1, 2], [0.1, 0.2], 3, "Stability"), {"what": "topics"}),
        ("candidate_curve", ([2, 3], [3, 4], [0.0, 0.0], 3, "NPMI"), {"what": "topics"}),
    ]
    many = np.full((6, 6), 3.0)
    assert len(topic_page._pairs(many, [topic(at, 0.1, [("a", 1.0)]) for at in range(6)])) == 10


def program(at, **more):
    entry = {
        "number": at,
        "stability": 0.876,
        "stable": True,
        "usage": 0.25,
        "recurrence": 0.5,
        "top": [("g", 4.0)],
    }
    return entry | more


CONSENSUS = {
    "command": "consensus",
    "title": "t",
    "groups": None,
    "certificate": [],
    "tables": {"a": 1},
    "parameters": {},
    "ranks": [
        {
            "n_components": k,
            "stability": 0.91239,
            "least_stable": 0.5,
            "error": 2.0,
            "cophenetic": 0.98765,
            "n_restarts": 10,
            "n_outliers": 1200,
        }
        for k in (2, 3)
    ],
    "result": {
        "n_components": 3,
        "n_stable": 3,
        "stability": 0.876,
        "n_restarts": 20,
        "seconds": 2.0,
        "reason": "r",
        "n_outliers": 1,
        "error": 2.5,
        "converged": 0.75,
    },
    "clustergram": {"distances": [[0.0]], "labels": [0]},
    "density": {"values": [0.1], "threshold": 0.5},
    "programs": [program(0)],
    "data": {"shape": [1200, 7], "source": "s", "dtype": "float64"},
}


def consensus(**changes):
    return CONSENSUS | {"result": CONSENSUS["result"] | changes}


def test_the_page_of_a_consensus():
    template, found = consensus_page.build_consensus_page(CONSENSUS)
    assert template == "consensus.html"
    assert found["answer"] == "3 programs are recommended, all of them stable."
    assert found["tiles"] == [
        ("programs", "3"),
        ("mean stability", "0.88"),
        ("restarts", "20"),
        ("time", seconds(2.0)),
    ]
    assert [each[2] for each in found["rank_plots"]] == [{"narrow": False}, {"narrow": True}]
    assert [row["chosen"] for row in found["ranks"]] == [False, True]
    assert found["ranks"][0] | {"chosen": None} == {
        "n_components": 2,
        "chosen": None,
        "stability": "0.912",
        "least_stable": "0.500",
        "error": number(2.0),
        "cophenetic": "0.988",
        "n_restarts": "10",
        "n_outliers": number(1200),
    }
    assert found["density_plot"] == ("density_plot", ([0.1], 0.5, 1), {})
    assert (found["usage_plot"], found["usage_heading"]) == (None, None)
    assert found["outcome"] == (
        f"{wording.counted(1200, 'sample')} with 7 features from s; 20 restarts took {seconds(2.0)}."
    )
    assert dict(found["facts"])["Result"] == [
        ("error", "2.5"),
        ("outliers", "1"),
        ("restarts that reached tol", percent(0.75)),
    ]
    grouped = consensus(seconds=None) | {"groups": {"by": "sample", "entries": [1]}}
    _, found = consensus_page.build_consensus_page(grouped)
    assert len(found["tiles"]) == 3
    assert (found["usage_plot"], found["usage_heading"]) == (
        ("usage_bars", ([1], "program"), {}),
        "Usage by sample",
    )


@pytest.mark.parametrize(
    ("changes", "n_ranks", "sentence"),
    [
        ({"n_stable": 2}, 2, "3 programs are recommended, 2 of them stable."),
        ({"n_components": 1, "n_stable": 1}, 2, "1 program is recommended, all of them stable."),
        ({}, 1, "3 programs, all of them stable."),
    ],
)
def test_the_sentence_of_a_consensus(changes, n_ranks, sentence):
    record = consensus(**changes) | {"ranks": CONSENSUS["ranks"][:n_ranks]}
    assert consensus_page.consensus_sentence(record) == sentence


def test_the_outcome_of_a_consensus():
    assert "7 features (5 of them, the most variable, were factorized) from s; " in consensus_page._outcome(
        consensus(n_genes=5)
    )
    assert "(" not in consensus_page._outcome(consensus(n_genes=7))
    assert consensus_page._outcome(consensus(seconds=None)).endswith("; 20 restarts.")
    for shape in ([96, 30], [30, 96]):
        record = consensus() | {"command": "signatures", "data": CONSENSUS["data"] | {"shape": shape}}
        assert consensus_page._outcome(record).startswith(
            "30 tumors with 96 mutation types from s; 20 restarts"
        )


def test_programs_have_notes_and_drawings():
    plain = consensus_page._program(program(2, top=[("g", 4.0), ("h", 1.0), ("i", -1.0)]), ())
    assert plain["top"] == [("g", 100), ("h", 25), ("i", 0)]
    assert plain["note"] == f"{percent(0.25)} of the usage; {percent(0.5)} of the restarts."
    assert (plain["stability"], plain["match"], plain["drawings"]) == ("0.88", None, None)
    match = {
        "name": "m",
        "nearest": "S1",
        "cosine": 0.98765,
        "second": "S2",
        "second_cosine": 0.5,
        "chance": 0.75,
    }
    found = consensus_page._program(program(2, match=match, spectrum=[1.0], top=[]), ["c"])
    assert found["note"].endswith(
        "; nearest known signature S1 (cosine 0.988, next S2 0.500, by chance 0.750)."
    )
    assert found["match"] == "m"
    assert found["drawings"] == [
        ("signature_bars", ([1.0], ["c"], "Signature 2"), {"narrow": narrow}) for narrow in (False, True)
    ]
