"""Sentences of reports say what the records hold."""

from __future__ import annotations

import pytest
from tests.report.conftest import make_record

from nonneg.report import wording
from nonneg.report.community_page import _outcome


def test_facts_of_the_data_have_their_shares():
    record = make_record(50, 8, 3)
    assert [name for name, _ in wording.facts(record)[0][1]] == ["source", "shape", "entries"]
    record["data"] |= {"n_stored": 40, "n_missing": 8}
    facts = dict(wording.facts(record)[0][1])
    assert facts["shape"] == "50 \N{MULTIPLICATION SIGN} 8"
    assert facts["nonzeros"] == "40 (10.0%)"
    assert facts["missing"] == "8 (2.0%)"


def test_facts_of_the_result():
    record = make_record(50, 8, 3)
    _, (_, result), (_, parameters) = wording.facts(record)
    facts = dict(result)
    assert facts["columns divided by"] == "nothing"
    assert facts["relative error"] == "0.2167"
    assert facts["stopped because"] == "the loss decreased by less than tol"
    assert "number of components" not in facts
    assert dict(parameters) == {"n_components": "3", "tol": "0.0001", "init": "\N{EN DASH}"}
    record["result"] |= {"scale": "std", "rank_reason": "as good as the best"}
    facts = dict(wording.facts(record)[1][1])
    assert facts["columns divided by"] == "standard deviation"
    assert facts["number of components"] == "3: as good as the best"


@pytest.mark.parametrize(
    ("columns", "answer", "hint"),
    [
        (["b"], "one column, b, accounts for 90.0% of it.", "b outweighs the other 7 columns"),
        (["b", "c"], "b and c account for 90.0% of it.", "b and c outweigh the other 6 columns"),
        (["b", "c", "d"], "b, c and d account for 90.0% of it.", "b, c and d outweigh the other 5 columns"),
    ],
)
def test_columns_that_outweigh_the_others_are_named(columns, answer, hint):
    record = make_record(50, 8, 3)
    assert wording.hints(record) == []
    record["result"]["dominance"] = {"columns": columns, "share": 0.9, "n_columns": 8}
    assert wording.answer(record).endswith(f"95.3% of the squared norm of the data; {answer}")
    (found,) = wording.hints(record)
    assert found.startswith(hint)
    assert found.endswith("leaves it out." if len(columns) == 1 else "leaves them out.")


def test_the_answer_names_its_measure():
    record = make_record(50, 8, 3)
    record["result"] |= {"loss_name": "kullback-leibler", "scale": "max", "explained": 0.25}
    assert wording.answer(record) == (
        "3 components explain 25.0% of the Kullback-Leibler divergence of the data, columns scaled "
        "from their column means."
    )
    assert dict(wording.tiles(record)) == {
        "components": "3", "divergence": "1.5", "iterations": "3", "time": "250 ms",
    }  # fmt: skip
    assert ("relative error", "0.2167") in wording.tiles(make_record(50, 8, 3))
    record["result"]["explained"] = None
    assert wording.answer(record) == "3 components with a Kullback-Leibler divergence of 1.5."
    record["result"]["explained"] = 0.0
    assert wording.answer(record).startswith("3 components explain 0.0% of")


def test_classes_are_a_table_of_shares():
    record = make_record(50, 8, 2)
    assert (wording.label_rows(record), wording.label_sentence(record), wording.label_table(record)) == (
        [],
        "",
        "",
    )
    record["result"]["labels"] = {
        "name": "kind", "classes": ["a", "b"], "counts": [20, 30], "shares": [[0.9, 0.1], [0.2, 0.8]],
        "purity": 0.75, "nmi": 0.5,
    }  # fmt: skip
    assert wording.label_rows(record)[1] == {
        "class": "b", "count": 30, "component 0": "20.0%", "component 1": "80.0%",
    }  # fmt: skip
    lines = wording.label_table(record).split("\n")
    assert lines[0] == (
        "The strongest component of a sample against its kind: purity 0.750, "
        "normalized mutual information 0.500."
    )
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]
    assert cells[0] == ["kind", "samples", "component 0", "component 1"]
    assert cells[2:] == [["a", "20", "90.0%", "10.0%"], ["b", "30", "20.0%", "80.0%"]]


def test_durations_and_runs_of_numbers():
    assert [wording.seconds(value) for value in (0.9994, 1.0, 119.9, 120.0)] == [
        "999 ms",
        "1.0 s",
        "119.9 s",
        "2.0 min",
    ]
    assert wording.ranges([5, 1, 2, 3, 9, 8]) == "1-3, 5, 8, 9"
    assert wording.ranges([]) == ""
    assert [wording.number(value) for value in (None, True, 12345, 0.123456)] == [
        "\N{EN DASH}",
        "True",
        "12\u202f345",
        "0.1235",
    ]


def test_what_failed_is_told_with_what_to_do():
    record = make_record(50, 8, 3)
    record["certificate"] = [
        {"name": "stationarity", "sentence": "Not there yet.", "verdict": "fails", "quantities": {}},
        {"name": "eckart-young-bound", "sentence": "Far.", "verdict": "holds", "threshold": 0.5},
    ]
    (failure,) = wording.failures(record)
    assert "Not there yet." in failure
    first, second = map(wording.statement, record["certificate"])
    assert (first["verdict"], second["verdict"]) == ("fails", "holds")
    assert first["advice"]
    assert not second["advice"]
    assert (second["name"], second["threshold"], second["number"]) == (
        "Eckart-Young lower bound",
        "0.5",
        None,
    )
    assert wording.failures(make_record(1, 1, 1) | {"certificate": []}) == []


@pytest.mark.parametrize(
    ("kind", "said"),
    [("undirected", []), ("directed", ["by sending and by receiving"]), ("bipartite", ["span both sides"])],
)
def test_the_outcome_of_communities(kind, said):
    record = {
        "data": {"n_nodes": 100, "n_edges": 1, "source": "a.csv", "n_isolated": 2, "kind": kind},
        "result": {"method": "spa", "n_kept": 98, "seconds": 3.0, "n_unreached": 0},
    }
    words = _outcome(record)
    assert words.startswith("100 nodes and 1 edge from a.csv. Communities by SPA; it took 3.0 s in all.")
    assert "2 nodes have no edges and no membership." in words
    assert "not reached" not in words
    assert [text for text in ("by sending and by receiving", "span both sides") if text in words] == said
    record["result"] |= {"n_kept": 97, "n_unreached": 4}
    record["data"]["n_isolated"] = 0
    words = _outcome(record)
    assert "pure nodes among the 97 with the largest rows" in words
    assert "4 nodes are not reached" in words
    assert "no edges" not in words
