"""Words and numbers of reports at the ends of their ranges."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.data.streamed import StreamedMatrix
from nonneg.exceptions import FileFormatError, InvalidDataError
from nonneg.io.stored_sparse import CompressedRows
from nonneg.report import quality, records, tables, wording
from nonneg.report.rank_page import rank_rows, rank_sentence


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.0%"),
        (0.5, "50.0%"),
        (1.0, "100.0%"),
        (1.5, "150.0%"),
        (0.9994, "99.9%"),
        (0.9996, "99.96%"),
        (0.99996, "99.996%"),
        (0.999996, "99.9996%"),
        (0.9999999, "more than 99.9999%"),
    ],
)
def test_shares_are_never_all_but_for_rounding(share, text):
    assert wording.percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 ms"),
        (0.9994, "999 ms"),
        (1.0, "1.0 s"),
        (119.9, "119.9 s"),
        (120.0, "2.0 min"),
        (3600.0, "60.0 min"),
    ],
)
def test_durations(value, text):
    assert wording.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\N{EN DASH}"),
        (True, "True"),
        ("x", "x"),
        (0, "0"),
        (999, "999"),
        (1000, "1\u202f000"),
        (1234567, "1\u202f234\u202f567"),
        (1 / 3, "0.3333"),
        (12345.678, "1.235e+04"),
    ],
)
def test_numbers_for_a_person(value, text):
    assert wording.number(value) == text
    assert wording.number(1 / 3, digits=2) == "0.33"
    assert [wording.counted(count, "word") for count in (0, 1, 2)] == ["0 words", "1 word", "2 words"]
    assert wording.fact("n_iter", 3) == ("iterations", "3")
    assert wording.fact("n_some_words", 1 / 3) == ("some words", "0.33333333")
    assert wording.fact("seconds", 2.0) == ("time", "2.0 s")


def record(**result):
    usual = {
        "n_components": 3, "loss_name": "frobenius", "loss": 2.5, "explained": 0.5, "relative_error": 0.25,
        "n_iter": 7, "seconds": 2.0,
    }  # fmt: skip
    return {"data": {}, "result": usual | result}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({}, "3 components explain 50.0% of the squared norm of the data."),
        ({"n_components": 1}, "1 component explains 50.0% of the squared norm of the data."),
        ({"explained": 0.0}, "3 components explain 0.0% of the squared norm of the data."),
        ({"explained": None}, "3 components with a squared error of 2.5."),
        ({"explained": -0.1, "n_components": 1}, "1 component with a squared error of 2.5."),
        (
            {"explained": None, "loss_name": "itakura-saito"},
            "3 components with an Itakura-Saito divergence of 2.5.",
        ),
        ({"scale": "max"}, "3 components explain 50.0% of the squared norm of the data, columns scaled."),
        (
            {"loss_name": "kullback-leibler"},
            "3 components explain 50.0% of the Kullback-Leibler divergence of the data from their column "
            "means.",
        ),
        (
            {"dominance": {"columns": ["a"], "share": 0.9, "n_columns": 4}},
            "3 components explain 50.0% of the squared norm of the data; one column, a, accounts for 90.0% "
            "of it.",
        ),
        (
            {"dominance": {"columns": ["a", "b", "c"], "share": 0.9, "n_columns": 4}},
            "3 components explain 50.0% of the squared norm of the data; a, b and c account for 90.0% of it.",
        ),
    ],
)
def test_the_answer_of_a_fit(result, text):
    assert wording.answer(record(**result)) == text
    missing = record() | {"data": {"n_missing": 1}}
    assert "of the squared norm of the observed entries." in wording.answer(missing)
    assert wording.loss_words(record(loss_name="1.5")) == "beta divergence (1.5)"


def test_tiles_have_the_measure_of_the_loss():
    assert wording.tiles(record()) == [
        ("components", "3"), ("relative error", "0.25"), ("iterations", "7"), ("time", "2.0 s"),
    ]  # fmt: skip
    assert wording.tiles(record(loss_name="kullback-leibler"))[1] == ("divergence", "2.5")


@pytest.mark.parametrize(
    ("count", "text"), [(1, "A 0."), (4, "A 0, A 1, A 2, A 3."), (5, "A 0, A 1, A 2, A 3, ....")]
)
def test_cautions_are_listed_up_to_four(count, text, monkeypatch):
    entries = [{"headline": "", "name": f"A {at}", "grade": "caution"} for at in range(count)]
    monkeypatch.setattr(wording, "statement", lambda entry: entry)
    assert wording.failures({"certificate": entries}) == [f"Cautions in the certificate: {text}"]
    problem = {"headline": "Bad.", "sentence": "It is.", "advice": "Run.", "grade": "problem"}
    assert wording.failures({"certificate": [problem]}) == ["Bad. It is. Run."]
    assert wording.failures({}) == []


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([3], "3"),
        ([2, 1], "1, 2"),
        ([3, 1, 2], "1-3"),
        ([1, 3, 4, 5, 9, 10], "1, 3-5, 9, 10"),
    ],
)
def test_runs_of_numbers(numbers, text):
    assert wording.ranges(numbers) == text


X = np.random.default_rng(0).random((12, 4)) + 0.1
MEANS = X.mean(axis=0)
DIVERGENCE = float(np.sum(X * np.log(X / MEANS) - X + MEANS))


def stored(matrix):
    csr = sp.csr_array(matrix)
    return StreamedMatrix(CompressedRows(csr.data, csr.indices, csr.indptr, csr.shape, "arrays", 200))


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array, stored])
def test_what_a_divergence_explains_is_relative_to_the_column_means(wrap):
    found = quality.explained_divergence(wrap(X), 0.25 * DIVERGENCE, "kullback-leibler")
    assert found == pytest.approx(0.75)
    np.testing.assert_allclose(quality._column_means(wrap(X)), MEANS)


def test_means_leave_missing_entries_out():
    holes = X.copy()
    holes[0, 0] = holes[3, 2] = np.nan
    np.testing.assert_allclose(quality._column_means(holes), np.nanmean(holes, axis=0))
    assert (
        quality.explained_divergence(np.ones((3, 2)), 0.0, "kullback-leibler") is None
    )  # nothing to explain
    scale = np.array([1.0, 2.0, 4.0, 0.5])
    total = float(np.sum((X * np.log(X / MEANS) - X + MEANS) / scale))
    assert quality.explained_divergence(X, total / 2, "kullback-leibler", scale) == pytest.approx(0.5)


def test_classes_beside_components():
    W = np.array([[1.0, 0.0], [3.0, 1.0], [0.0, 2.0], [0.0, 0.0]])
    H = np.array([[3.0, 4.0], [0.0, 10.0]])  # of norms 5 and 10
    found = quality.label_summary(W, H, ["10", "9", "b", "b"], "kind")
    assert found["classes"] == ["9", "10", "b"]  # numbers by value, before words
    assert found["counts"].tolist() == [1, 1, 2]
    np.testing.assert_allclose(found["shares"], [[0.6, 0.4], [1.0, 0.0], [0.0, 0.5]])
    assert found["purity"] == pytest.approx(0.5)
    for labels, refused in ((range(50), False), (range(51), True), (None, False)):
        if refused:
            with pytest.raises(InvalidDataError, match="--label-column kind has 51 different labels"):
                quality.check_labels([str(at) for at in labels], "kind")
        else:
            quality.check_labels(None if labels is None else [str(at) for at in labels], "kind")


def test_columns_divided_by_their_scale():
    scale = np.array([1.0, 2.0, 4.0, 0.5])
    assert quality.divided(X, None) is X
    np.testing.assert_allclose(quality.divided(X, scale), X / scale)
    np.testing.assert_allclose(quality.divided(sp.csr_array(X), scale).toarray(), X / scale)


@pytest.mark.parametrize(("names", "expected"), [(None, ["2"]), (["a", "b", "c", "d"], ["c"])])
def test_a_column_that_accounts_for_nearly_all_of_the_loss_is_named(names, expected):
    large = X * np.array([1.0, 1.0, 1e4, 1.0])
    found = quality.dominance(large, "frobenius", names)
    assert found["columns"] == expected
    assert 0.9 < found["share"] <= 1.0
    assert found["n_columns"] == 4
    assert quality.dominance(X, "frobenius", names) is None


def test_strengths_are_norms_of_rank_one_parts():
    W, H = np.array([[3.0, 1.0], [4.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])
    np.testing.assert_allclose(quality.component_strengths(W, H), [5 / 7, 2 / 7])
    assert quality.observed_relative_error(np.zeros((2, 2)), np.zeros((2, 1)), np.ones((1, 2))) == 0.0
    assert quality.observed_relative_error(sp.csr_array((2, 2)), W, H) == np.inf


def test_tables_are_aligned_with_three_signs_at_least():
    found = tables.markdown_table([{"a": 1, "b": "x|y"}, {"a": None, "b": True}], {"a": "A", "b": "B"})
    assert found == "|   A | B    |\n|----:|------|\n|   1 | x\\|y |\n|   - | True |\n"
    assert tables.markdown_table([], []) == ""
    assert tables.markdown_table([{"a": "1"}], ["a"], right=["a"]).splitlines()[1] == "|----:|"
    assert tables.format_cell(1 / 3) == "0.3333"
    assert tables.format_cell(1 / 3, digits=2) == "0.33"
    assert tables.format_cell("a\nb") == "a b"


def test_ranks_that_several_methods_choose():
    result = {
        "rank": 2, "estimates": {"stability": {"rank": 2}, "cross-validation": {"rank": 2},
                                 "singular-value-ratio": {"rank": 1}},
        "table": [{"k": 1, "ratio": 0.5}, {"k": 3},
                  {"k": 2, "ratio": None, "agreement": 1 / 3, "agreement_spread": 0.125}],
    }  # fmt: skip
    assert rank_rows({"result": result}) == [
        {"k": 1, "ratio": "0.5", "chosen": "singular-value ratio"},
        {"k": 3, "chosen": ""},
        {"k": 2, "ratio": None, "agreement": "0.3333 \N{PLUS-MINUS SIGN} 0.12",
         "chosen": "recommended, stability over restarts, cross-validation"},
    ]  # fmt: skip
    assert rank_sentence({"result": {"rank": 1}}) == "1 component is recommended."
    assert rank_sentence({"result": {"rank": 2}}) == "2 components are recommended."


def test_records_of_runs_that_are_refused(tmp_path):
    path = tmp_path / "result.json"
    whole = records.run_record("rank", "title", data={}, result={}, parameters={"callback": 1, "k": 2})
    assert whole["parameters"] == {"k": 2}
    assert (whole["history"], whole["certificate"]) == ({}, [])
    path.write_text(records.as_json(whole))
    assert records.read_run(path) == whole
    for changes, said in (
        ({"command": "sing"}, "names no command"),
        ({"format": 1}, "has the format 1; expected 2. Run `nonneg rank` again"),
    ):
        path.write_text(records.as_json(whole | changes))
        with pytest.raises(FileFormatError, match=said):
            records.read_run(path)
    path.write_text(
        records.as_json({name: value for name, value in whole.items() if name not in ("data", "title")})
    )
    with pytest.raises(FileFormatError, match="lacks title, data"):
        records.read_run(path)
    with pytest.raises(KeyError, match="rank has the sections"):
        records.run_record("rank", "title", data={}, result={}, more=1)


def test_a_table_is_described_with_what_it_lacks():
    from nonneg.io.table import Table

    holes = X.copy()
    holes[0, 0] = np.nan
    found = records.table_facts(Table(holes, None, None, "folder/x.csv", "csv"))
    assert found == {
        "source": "x.csv",
        "shape": (12, 4),
        "dtype": "float64",
        "n_stored": None,
        "n_missing": 1,
    }
    found = records.table_facts(Table(sp.csr_array(np.eye(3)), None, None, "x.npz", "npz"))
    assert (found["n_stored"], found["n_missing"]) == (3, 0)
    whole = records.table_facts(Table(np.ones((2, 2), dtype=int), None, None, "x.npy", "npy"))
    assert (whole["n_stored"], whole["n_missing"]) == (None, 0)
