"""Records and tables of commands, from models that are written by hand."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.cli import anchors, communities, consensus, consensus_results, fit_results, rank, topics
from nonneg.cli.topics_over_time import over_time_record, over_time_table
from nonneg.exceptions import FileFormatError
from nonneg.io.table import Table


def anchor_model(**changes):
    result = {
        "method": "merit", "anchors": np.array([3, 1]), "row_maxima": np.array([0.1, 0.8, 0.3, 0.9]),
        "scores": None, "best_left": None, "facts": {"merge": {"labels": [0, 0], "n": 3}, "other": {}},
        "lam": 0.5, "objective": 1.5, "stop_reason": None,
    }  # fmt: skip
    return SimpleNamespace(
        result_=SimpleNamespace(**(result | changes)), n_components=None, n_components_=2,
        anchor_indices_=np.array([3, 1]), components_=np.array([[1.0, 0.0], [0.0, 2.0]]), duality_gap_=0.1,
        sum_to_one_=True, reconstruction_err_=0.2, n_iter_=7, certificate_=[], history_=None,
        get_params=lambda deep=False: {},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "values"),
    [
        ({}, [0.9, 0.8, 0.3, 0.1]),
        ({"row_maxima": None, "scores": [5.0, 4.0], "best_left": 1.0}, [5.0, 4.0, 1.0]),
        ({"row_maxima": None, "scores": [5.0, 4.0]}, [5.0, 4.0]),
    ],
)
def test_anchors_come_before_the_best_of_the_others(changes, values):
    np.testing.assert_allclose(anchors._ranked(anchor_model(**changes)), values)


@pytest.fixture
def facts(monkeypatch):
    """Let a record be what is handed to it."""

    def record(command, title, **parts):
        return {"command": command, "title": title, **parts}

    for module in (anchors, communities, topics):
        assert not hasattr(module, "run_record")  # imported where it is used
    monkeypatch.setattr("nonneg.report.records.run_record", record)
    monkeypatch.setattr("nonneg.report.records.stop_facts", lambda result: None)
    monkeypatch.setattr(consensus_results, "run_record", record)
    monkeypatch.setattr(fit_results, "run_record", record)
    monkeypatch.setattr(fit_results, "stop_facts", lambda result: None)


@pytest.mark.parametrize("named", [True, False])
def test_margins_are_to_the_best_sample_that_was_left(named, facts):
    X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 2.0], [3.0, 0.0]])
    W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    table = Table(X, tuple("abcd") if named else None, None, "folder/x.csv", "csv")
    record = anchors.anchor_record(anchor_model(), W, table, 1.5)
    assert record["title"] == "Anchors of x.csv"
    first, second = record["anchors"]
    assert (first["component"], first["row"], first["name"]) == (0, 3, "d" if named else None)
    assert (second["component"], second["row"], second["name"]) == (1, 1, "b" if named else None)
    assert [entry["value"] for entry in record["anchors"]] == [0.9, 0.8]
    np.testing.assert_allclose([entry["margin"] for entry in record["anchors"]], [0.6, 0.5])
    assert [entry["mean_weight"] for entry in record["anchors"]] == [1.0, 0.5]
    result = record["result"]
    assert (result["margin"], result["measure"], result["unknown_rank"]) == (0.5, "row maximum", True)
    assert result["relative_error"] == pytest.approx(np.sqrt(1.0 / 19.0))
    assert result["explained"] == pytest.approx(1 - 1.0 / 19.0)
    assert result["steps"] == {"merge": {"n": 3}}
    np.testing.assert_allclose(record["values"], [0.9, 0.8, 0.3, 0.1])
    heading = anchors._table(record).splitlines()[0]
    assert ("sample" in heading) is named
    assert "row maximum" in heading
    greedy = anchor_model(row_maxima=None, scores=[5.0, 4.0])
    record = anchors.anchor_record(greedy, W, table, 1.5)
    assert [entry["margin"] for entry in record["anchors"]] == [None, None]
    assert (record["result"]["margin"], record["result"]["measure"]) == (None, "score")


@pytest.mark.parametrize(
    ("method", "quiet", "verbose"),
    [
        (None, False, 1),
        ("merit", True, None),
        ("fast-gradient", False, 1),
        ("css-nmf", False, 1),
        ("spa", False, None),
    ],
)
def test_searches_that_take_long_show_progress(method, quiet, verbose):
    names = ("lam", "mu", "steps", "max_iter", "tol", "init", "sum_to_one", "energy", "normalize", "reduce",
             "merge", "n_jobs", "checkpoint")  # fmt: skip
    given = dict.fromkeys(names) | {"anchors": "auto", "seed": 0, "centered": False}
    found = anchors._parameters(argparse.Namespace(method=method, quiet=quiet, **given))
    assert found.get("verbose") == verbose
    assert found.get("method") == method
    assert found["random_state"] == 0
    assert "centered" not in found


def topic(**changes):
    entry = {
        "topic": 0, "name": None, "proportion": 0.25, "n_documents": 3, "few_documents": False, "npmi": 0.123,
        "anchor": None, "words": [(f"w{at}", 1.0) for at in range(10)],
    }  # fmt: skip
    return entry | changes


@pytest.mark.parametrize(
    ("entries", "columns"),
    [
        ([topic(), topic()], ["topic", "proportion", "documents", "NPMI", "words"]),
        ([topic(name="sea"), topic()], ["topic", "name", "proportion", "documents", "NPMI", "words"]),
        ([topic(), topic(anchor="w")], ["topic", "proportion", "documents", "NPMI", "anchor", "words"]),
    ],
)
def test_topics_have_columns_for_names_and_anchors_where_there_are_any(entries, columns):
    lines = topics._table({"topics": entries}).splitlines()
    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == columns
    assert "25.0%" in lines[2]
    assert "0.12" in lines[2]
    assert lines[2].rstrip(" |").endswith("w0 w1 w2 w3 w4 w5 w6 w7")
    assert "(few)" not in lines[2]
    assert "3 (few)" in topics._table({"topics": [topic(few_documents=True)]})


def test_topics_over_time_are_a_row_per_period(capsys):
    found = SimpleNamespace(
        unit="year", periods=["1990", "1991"], counts=[2, 0], proportions=[[0.25, 0.75], [None, None]],
        smoothed=[[0.3, 0.7], [0.4, 0.6]], bandwidth=1.0, n_missing=2, unreadable=[(1, "soon")], n_empty=1,
    )  # fmt: skip
    model = SimpleNamespace(over_time=lambda contents, times, proportions: found)
    documents = SimpleNamespace(times=["1990"], contents=["x"], names=["a", "b"])
    record = over_time_record(model, [0, 0, 0], documents)
    said = capsys.readouterr().err
    assert "note: 2 of 3 documents have no date" in said
    assert "; not a date: 'soon' (b)" in said
    assert record["unreadable"] == [["b", "soon"]]
    heading, rows = over_time_table(record)
    assert heading == ["period", "documents", "topic_0", "topic_1", "smoothed_0", "smoothed_1"]
    assert list(rows) == [["1990", 2, "0.25", "0.75", "0.3", "0.7"], ["1991", 0, "", "", "0.4", "0.6"]]
    found.n_missing, found.unreadable = 1, []  # an empty cell
    over_time_record(model, [0, 0, 0], documents)
    assert "not a date" not in capsys.readouterr().err
    found.n_missing = 0
    over_time_record(model, [0, 0, 0], documents)
    assert capsys.readouterr().err == ""
    documents.times = None
    assert over_time_record(model, [0], documents) is None


def consensus_model(n_shown=5):
    rng = np.random.default_rng(0)
    found = SimpleNamespace(
        n_components=2, distances=rng.random((n_shown, n_shown)), distance_labels=np.arange(n_shown),
        density=np.linspace(0.0, 3.0, n_shown), silhouette=0.9, stability=np.array([0.95, 0.5]),
        recurrence=np.array([1.0, 0.6]), usage=np.array([0.7, 0.3]), n_outliers=1, error=0.25,
        row=lambda: {"n_components": 2, "error": 0.25},
    )  # fmt: skip
    other = SimpleNamespace(n_components=3, row=lambda: {"n_components": 3, "error": 0.2})

    class Restarts:
        n_components, number, seed = np.array([2, 2, 3]), np.array([0, 1, 0]), np.array([5, 6, 7])
        loss, n_iter = np.array([1.0, 1.5, 0.5]), np.array([10, 20, 30])
        converged = np.array([True, False, True])

        def of(self, k):
            return self.n_components == k

        def __len__(self):
            return 3

    return SimpleNamespace(
        ranks_=[other, found], n_components_=2, restarts_=Restarts(), rank_reason_="why",
        density_threshold=0.5,
    ), found  # fmt: skip


@pytest.mark.parametrize("n_shown", [1, 5, 400])
def test_records_of_restarts(n_shown, facts, monkeypatch):
    monkeypatch.setattr(consensus_results, "table_facts", lambda table: "facts")
    monkeypatch.setattr(consensus_results, "are_stable", lambda found: found.stability > 0.8)
    model, found = consensus_model(n_shown)
    record = consensus_results.consensus_record(
        "consensus", "title", None, model, seconds=1.0, programs=[{"number": 0}], groups=None,
        tables={"a": "b"}, parameters={"n_init": 3}, result={"n_genes": 9},
    )  # fmt: skip
    result = record["result"]
    assert (result["n_stable"], result["n_restarts"], result["converged"]) == (1, 3, 0.5)
    assert (result["n_genes"], result["reason"], result["stability"]) == (9, "why", 0.9)
    assert [row["n_components"] for row in record["ranks"]] == [3, 2]
    # No more than 120 components, evenly spaced from the first to the last.
    labels = record["clustergram"]["labels"]
    assert (len(labels), labels[0], labels[-1]) == (min(n_shown, 120), 0, n_shown - 1)
    np.testing.assert_allclose(
        record["clustergram"]["distances"], found.distances[np.ix_(labels, labels)], atol=5.1e-4
    )
    np.testing.assert_allclose(record["density"]["values"], np.minimum(found.density, 2.0), atol=5.1e-5)
    assert record["density"]["threshold"] == 0.5


def test_programs_and_their_genes(monkeypatch, tmp_path):
    monkeypatch.setattr(consensus_results, "are_stable", lambda found: found.stability > 0.8)
    model, _ = consensus_model()
    scores = np.stack([np.arange(30.0), -np.arange(30.0)])
    first, second = consensus_results.scored_programs(model, scores, [f"g{at}" for at in range(30)])
    assert (first["number"], first["stable"], first["stability"], first["usage"]) == (0, True, 0.95, 0.7)
    assert (second["number"], second["stable"], second["recurrence"]) == (1, False, 0.6)
    assert len(first["top"]) == 20
    assert (first["top"][0], second["top"][0]) == (("g29", 29.0), ("g0", 0.0))
    consensus_results.write_ranks(tmp_path, model)
    assert (tmp_path / "ranks.tsv").read_text() == "n_components\terror\n3\t0.2\n2\t0.25\n"
    lines = (tmp_path / "restarts.tsv").read_text().splitlines()
    assert lines[0] == "n_components\trestart\tseed\tloss\tn_iter\tconverged"
    assert lines[2] == "2\t1\t6\t1.5\t20\tFalse"
    consensus_results.write_tsv(tmp_path / "a.tsv", ("x", "y"), [["a", 1 / 3], ["b", 2]])
    assert (tmp_path / "a.tsv").read_text() == "x\ty\na\t0.333333\nb\t2\n"
    shown = consensus._top_table([first, second]).splitlines()
    assert "| 0.95 " in shown[2]
    assert "70.0%" in shown[2]
    assert "g29, g28, g27, g26, g25, g24, g23, g22 " in shown[2] + " "
    assert "g21" not in shown[2]
    assert consensus._columns([["a", "b"], ["c", "d"]]) == [[1, "a", "c"], [2, "b", "d"]]


def test_usage_by_group_is_a_mean_of_shares():
    W = np.array([[1.0, 3.0], [0.0, 0.0], [2.0, 2.0], [0.2, 0.0]])
    found = consensus_results.usage_by_group(W, [1, "b", 1, "b"], "kind")
    assert found["by"] == "kind"
    one, two = found["entries"]
    assert (one["name"], one["n"], two["name"], two["n"]) == ("1", 2, "b", 2)
    np.testing.assert_allclose(one["usage"], [0.375, 0.625])
    np.testing.assert_allclose(two["usage"], [0.5, 0.0])
    assert consensus_results.usage_by_group(W, None, "kind") is None


def test_cells_of_nodes():
    assert communities._cells(np.array([True, False])) == [1, 0]
    assert communities._cells([0.5, np.nan, 1 / 3]) == ["0.5", "", repr(1 / 3)]
    assert communities._cells(["a", "b"]) == ["a", "b"]
    assert communities._cells([1, 2]) == [1, 2]


def test_edges_without_weights_count_as_one():
    graph = sp.csr_array(np.array([[0.0, 2.5], [0.1, 0.0]]))
    np.testing.assert_array_equal(communities._unweighted(graph).toarray(), [[0, 1], [1, 0]])
    assert graph.max() == 2.5
    other = SimpleNamespace(is_directed=lambda: False)
    assert communities._unweighted(other) is other


def test_communities_are_told_with_four_of_their_members():
    entry = {"community": 1, "pure_node": "a", "size": 2.5, "top": [(name, 0.5) for name in "abcde"]}
    shown = communities._table({"communities": [entry]}).splitlines()
    assert "a 50%, b 50%, c 50%, d 50% |" in shown[2]
    assert communities._agreement({"result": {"labels": None}}) == ""
    compared = {"name": "club", "accuracy": 0.9375, "nmi": 0.5, "ari": 0.25}
    assert communities._agreement({"result": {"labels": compared}}) == (
        "\nAgreement with club: 93.8% of the nodes, normalized mutual information 0.500, adjusted Rand index "
        "0.250."
    )


def test_ranks_are_told_under_the_headings_of_their_methods(monkeypatch):
    monkeypatch.setattr(
        "nonneg.report.rank_page.rank_rows", lambda record: [{"k": 2, "chosen": "x", "b": 1.0}]
    )
    monkeypatch.setattr("nonneg.report.rank_page.HEADINGS", {"a": "first", "b": "second"})
    shown = rank._table({}).splitlines()
    assert [cell.strip() for cell in shown[0].strip("|").split("|")] == ["k", "second", "chosen by"]
    assert rank._capital("it is") == "It is"
    assert rank._capital("") == ""
    options = argparse.Namespace(a=1, b=None, c=0)
    assert rank._given(options, "a", "b", "c") == {"a": 1, "c": 0}


@pytest.mark.parametrize(("n_rows", "expected"), [
    (8, list(range(8))), (3, [0, 1, 2]), (1, [0]), (15, [0, 2, 4, 6, 8, 10, 12, 14]),
])  # fmt: skip
def test_examples_of_images_are_evenly_spaced(n_rows, expected):
    table = Table(np.ones((n_rows, 6)), None, None, "x.npy", "npy")
    fitted = fit_results.FittedModel(None, None, table, 0.0, "title", (2, 3))
    assert fit_results._example_rows(fitted) == expected
    plain = fit_results.FittedModel(None, None, table, 0.0, "title")
    assert fit_results._example_rows(plain) is None


def fitted_model(W, H, X, loss="frobenius", **changes):
    result = SimpleNamespace(loss_name=loss, solver="hals", loss=1.0)
    model = SimpleNamespace(
        components_=H, result_=result, reconstruction_err_=2.0, n_iter_=3,
        get_params=lambda: {"scale": "max", "beta_loss": loss}, **changes,
    )  # fmt: skip
    table = Table(X, None, ("a", "b"), "x.csv", "csv", labels=("u", "v", "v"), label_name="kind")
    return fit_results.FittedModel(model, W, table, 0.5, "title")


@pytest.mark.parametrize("scale", [None, np.array([2.0, 4.0])])
def test_the_error_of_a_fit_is_that_of_the_scaled_columns(scale, facts):
    rng = np.random.default_rng(0)
    W, H = rng.random((3, 2)) + 0.1, rng.random((2, 2)) + 0.1
    X = W @ H + 0.1 * rng.random((3, 2))
    changes = {} if scale is None else {"column_scale_": scale}
    result = fit_results._record(fitted_model(W, H, X, **changes))["result"]
    divisor = 1.0 if scale is None else scale
    error = np.linalg.norm((X - W @ H) / divisor) / np.linalg.norm(X / divisor)
    assert result["relative_error"] == pytest.approx(error)
    assert result["explained"] == pytest.approx(1 - error**2)
    assert (result["n_components"], result["scale"], result["rank_reason"]) == (2, "max", None)
    assert result["labels"]["classes"] == ["u", "v"]
    # Of another loss, the share of the divergence from the means that 2^2 / 2 leaves.
    result = fit_results._record(fitted_model(W, H, X, "kullback-leibler", **changes))["result"]
    means = X.mean(axis=0)
    total = np.sum((X * np.log(X / means) - X + means) / divisor)
    assert result["explained"] == pytest.approx(1 - 2.0 / total)


def test_names_beside_factors_are_as_many_as_these(tmp_path):
    assert fit_results.read_names(tmp_path, (2, 3)) == (None, None)
    place = tmp_path / "names.json"
    place.write_text('{"rows": ["a", "b"], "columns": null}')
    assert fit_results.read_names(tmp_path, (2, 3)) == (["a", "b"], None)
    for text, said in (
        ('{"rows": ["a"], "columns": null}', "names of 2 samples"),
        ('{"rows": null, "columns": ["a"]}', "names of 3 features"),
        ('{"rows": "ab", "columns": null}', "names of 2 samples"),
    ):
        place.write_text(text)
        with pytest.raises(FileFormatError, match=said):
            fit_results.read_names(tmp_path, (2, 3))


@pytest.mark.parametrize(("rows", "columns", "shape"), [(4, 6, [4, 5]), (4, 6, [3, 6])])
def test_factors_of_other_data_are_refused(rows, columns, shape, tmp_path):
    np.save(tmp_path / "W.npy", np.ones((rows, 2)))
    np.save(tmp_path / "H.npy", np.ones((2, columns)))
    record = {"data": {"shape": shape}, "examples": None}
    with pytest.raises(FileFormatError, match="do not belong to the data"):
        fit_results.read_fit(tmp_path, record)
    record["data"]["shape"] = [rows, columns]
    fit = fit_results.read_fit(Path(tmp_path), record)
    assert (fit.W.shape, fit.H.shape, fit.examples) == ((rows, 2), (2, columns), None)
    np.save(tmp_path / "H.npy", np.ones((3, columns)))
    with pytest.raises(FileFormatError, match="do not belong to the data"):
        fit_results.read_fit(tmp_path, record)
