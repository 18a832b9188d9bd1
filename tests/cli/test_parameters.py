"""What commands pass on: by default nothing but seed and progress, and every option under its name."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.applications.audio.grouping import GROUPINGS
from nonneg.applications.audio.methods import METHODS
from nonneg.cli import anchors, arguments, build_parser, communities, fit, main, rank, separate, topics
from nonneg.cli.consensus import restart_parameters

COLLECTED = {
    "anchors": (anchors._parameters, "table.csv"),
    "communities": (communities._parameters, "edges.csv -k 3"),
    "fit": (fit._model_parameters, "table.csv -k 3"),
    "rank": (rank._parameters, "table.csv"),
    "separate": (separate._parameters, "song.wav -k 2"),
    "topics": (lambda options: topics._parameters(options, COUNTS), "words.csv -k 3"),
    "consensus": (restart_parameters, "counts.csv -k 3"),
}
COUNTS = SimpleNamespace(words=None, are_texts=False)


def collected(command, words=""):
    """Return what a command makes of some words."""
    collect, given = COLLECTED[command]
    options = build_parser([command])[0].parse_args([command, *given.split(), *words.split()])
    return {name: value for name, value in collect(options).items() if value is not None}


DEFAULTS = {
    "anchors": {"random_state": 0, "verbose": 1},
    "communities": {"random_state": 0, "verbose": 1},
    "fit": {"n_components": 3, "random_state": 0, "verbose": 1},
    "rank": {"rng": 0, "verbose": 1},
    "separate": {"random_state": 0, "verbose": 1},
    "topics": {"random_state": 0, "verbose": 1},
}


@pytest.mark.parametrize("command", DEFAULTS)
def test_what_was_not_said_is_left_to_the_defaults(command):
    found = collected(command)
    assert {name: found.get(name) for name in DEFAULTS[command]} == DEFAULTS[command]
    quiet = collected(command, "--quiet")
    assert not quiet.get("verbose")
    assert {**quiet, "verbose": 1} == found


@pytest.mark.parametrize(
    ("command", "words", "expected"),
    [
        ("anchors", "-k 4", {"n_components": 4}),
        ("anchors", "--method spa", {"method": "spa", "verbose": None}),
        ("anchors", "--method css-nmf", {"method": "css-nmf", "verbose": 1}),
        ("anchors", "--lam 0.5 --mu 0.1", {"method_params": {"lam": 0.5, "mu": 0.1}}),
        ("anchors", "--centered", {"centered": True}),
        ("anchors", "--checkpoint there", {"checkpoint": "there"}),
        ("communities", "--unweighted", {"weight": None}),
        ("communities", "--lam 0.5", {"method_params": {"lam": 0.5}}),
        ("communities", "--seed 7", {"random_state": 7}),
        ("fit", "--checkpoint there", {"checkpoint": "there"}),
        ("fit", "--loss kullback-leibler", {"beta_loss": "kullback-leibler"}),
        ("rank", "--n-init 4", {"method_params": {"n_init": 4}}),
        ("rank", "--tolerance 0", {"method_params": {"tolerance": 0.0}}),
        ("rank", "--candidates 2,5", {"candidates": [2, 5]}),
        ("separate", "--checkpoint there", {"checkpoint": "there"}),
        ("topics", "--anchors", None),
        ("consensus", "--seed 5", {"random_state": 5}),
    ],
)
def test_what_was_said_is_passed_on_under_its_name(command, words, expected):
    if expected is None:
        found = collected(command, "--anchors tax,sea")
        assert found["anchors"] == ["tax", "sea"]
        return
    found = collected(command, words)
    assert {name: found.get(name) for name in expected} == expected


def test_graphs_have_weights_unless_told_otherwise():
    found = build_parser(["communities"])[0].parse_args(["communities", "edges.csv", "-k", "3"])
    assert communities._parameters(found).get("weight", "weight") == "weight"
    assert "weight" not in communities._parameters(found)
    told = build_parser(["communities"])[0].parse_args(["communities", "e.csv", "-k", "3", "--unweighted"])
    assert communities._parameters(told)["weight"] is None


def test_common_words_are_left_out_of_texts_only():
    options = build_parser(["topics"])[0].parse_args(["topics", "texts", "-k", "3"])
    texts = SimpleNamespace(words=None, are_texts=True)
    assert topics._parameters(options, texts)["max_df"] == 0.5
    assert "max_df" not in topics._parameters(options, COUNTS)
    options.max_df = 0.9
    assert topics._parameters(options, texts)["max_df"] == 0.9


def test_reports_can_be_opened_where_there_are_any():
    # Commands for developers write none.
    parser, _ = build_parser([], every=True)
    (commands,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        flags = {flag for action in command._actions for flag in action.option_strings}
        assert ("--open" in flags) == (name not in ("completion", "reproduce", "bench"))
        assert ("--json" in flags) == (name not in ("completion", "reproduce", "bench", "demo", "report"))
        assert "--debug" in flags


def test_separate_offers_every_method_and_rule_of_the_class():
    parser, _ = build_parser([], every=True)
    (commands,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    choices = {action.dest: action.choices for action in commands.choices["separate"]._actions}
    assert list(choices["method"]) == list(METHODS)
    assert tuple(choices["grouping"]) == GROUPINGS


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (arguments.count, "1", 1),
        (arguments.components, "auto", "auto"),
        (arguments.components, "1", 1),
        (arguments.positive_number, "0.5", 0.5),
        (arguments.candidates, "2:4", [2, 3, 4]),
        (arguments.candidates, "5,3", [5, 3]),
        (arguments.count_or_candidates, "3", 3),
        (arguments.image_shape, "2x3", (2, 3)),
        (arguments.image_shape, "1x1", (1, 1)),
        (arguments.number_or_name, "0.5", 0.5),
        (arguments.number_or_name, "word", "word"),
    ],
)
def test_words_become_numbers(parse, text, value):
    found = parse(text)
    assert (list(found) if isinstance(value, list) else found) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (arguments.count, "0"), (arguments.count, "-1"), (arguments.count, "x"), (arguments.components, "0"),
        (arguments.components, "most"), (arguments.positive_number, "0"), (arguments.positive_number, "-1"),
        (arguments.positive_number, "inf"), (arguments.positive_number, "nan"), (arguments.candidates, "4:2"),
        (arguments.candidates, "0:2"), (arguments.image_shape, "2"), (arguments.image_shape, "0x3"),
        (arguments.image_shape, "2x3x4"),
    ],
)  # fmt: skip
def test_words_that_are_no_numbers_are_refused(parse, text):
    with pytest.raises((argparse.ArgumentTypeError, ValueError)):
        parse(text)


def test_tables_without_names_number_their_rows_and_columns(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    np.save("counts.npy", rng.poisson(3.0, (12, 5)).astype(float))
    assert main(["consensus", "counts.npy", "-k", "2", "--restarts", "3", "-q"]) == 0
    rows = [line.split("\t") for line in Path("counts-consensus/gene_scores.tsv").read_text().splitlines()]
    assert [row[0] for row in rows] == ["gene", "0", "1", "2", "3", "4"]
    rows = [line.split("\t") for line in Path("counts-consensus/usages.tsv").read_text().splitlines()]
    assert [row[0] for row in rows] == ["sample", *map(str, range(12))]
    np.testing.assert_allclose(np.array([row[1:] for row in rows[1:]], float).sum(axis=1) > 0, True)


def test_weights_of_edges_count_unless_told_otherwise(tmp_path, monkeypatch):
    # Two pairs of nodes by heavy edges; without the weights, all nodes are alike.
    monkeypatch.chdir(tmp_path)
    edges = [(0, 1, 9), (2, 3, 9), (0, 2, 1), (1, 3, 1), (0, 3, 1), (1, 2, 1)]
    lines = ["source,target,weight", *(f"n{i},n{j},{w}" for i, j, w in edges)]
    Path("edges.csv").write_text("\n".join(lines))
    assert main(["communities", "edges.csv", "-k", "2", "-q", "-o", "weighted"]) == 0
    table = [line.split(",") for line in Path("weighted/memberships.csv").read_text().splitlines()[1:]]
    main_of = {row[0]: int(np.argmax([float(cell) for cell in row[2:4]])) for row in table}
    assert main_of["n0"] == main_of["n1"] != main_of["n2"] == main_of["n3"]
