"""Folders of results are named after the data, and what `main` returns."""

from __future__ import annotations

import signal
from contextlib import contextmanager

import pytest

import nonneg.cli
from nonneg.cli import build_parser, main
from nonneg.cli.consensus import restart_parameters
from nonneg.exceptions import InvalidParameterError


class Checked(Exception):
    """The folder that was checked."""


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        (["fit", "a/x.b.npy"], "x-nmf"),
        (["rank", "a/x.b.npy"], "x-rank"),
        (["anchors", "a/x.b.npy"], "x-anchors"),
        (["consensus", "a/x.h5ad"], "x-consensus"),
        (["signatures", "a/x.tsv.gz"], "x-signatures"),
        (["separate", "a/x.wav", "b/y.wav"], "x-sources"),
        (["unmix", "a/x.hdr"], "x-unmixed"),
        (["unmix", "--example"], "example-unmixed"),
        (["topics", "a/x.csv", "b/y.csv"], "x-topics"),
        (["topics", "--stdlib"], "stdlib-topics"),
        (["communities", "a/x.csv.gz", "-k", "2"], "x-communities"),
        (["communities", "--example", "karate", "-k", "2"], "karate-communities"),
    ],
)
def test_folders_are_named_after_the_data(words, folder, monkeypatch):
    def check(place):
        raise Checked(str(place))

    monkeypatch.setattr("nonneg.report.folder.check_output_folder", check)
    for more, expected in (([], folder), (["-o", "there"], "there")):
        parser, _ = build_parser(words)
        options = parser.parse_args([*words, *more])
        with pytest.raises(Checked) as checked:
            options.run(options)
        assert checked.value.args == (expected,)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["topics"], "Give either files of documents or --stdlib"),
        (["topics", "x.csv", "--stdlib"], "Give either files of documents or --stdlib"),
        (["communities", "-k", "2"], "Give either a file of edges or --example"),
        (
            ["communities", "x.csv", "--example", "karate", "-k", "2"],
            "Give either a file of edges or --example",
        ),
        (["communities", "x.csv", "--nodes", "y.csv", "-k", "2"], "name the column to compare with --labels"),
    ],
)
def test_either_files_or_an_example(words, said):
    parser, _ = build_parser(words)
    options = parser.parse_args(words)
    with pytest.raises(InvalidParameterError, match=said):
        options.run(options)


def test_commands_without_results_say_nothing_of_them(capsys):
    assert main(["completion", "bash"]) == 0
    said = capsys.readouterr()
    assert '"files"' not in said.out
    assert said.err == ""


@pytest.mark.parametrize(
    ("code", "interrupted", "expected"), [(0, False, 0), (3, False, 3), (0, True, 130), (3, True, 3)]
)
def test_an_interruption_is_seen_in_the_exit_code(code, interrupted, expected, monkeypatch):
    @contextmanager
    def received():
        yield [signal.SIGTERM] if interrupted else []

    monkeypatch.setattr(nonneg.cli, "_interruptions", received)
    monkeypatch.setattr(nonneg.cli, "_run", lambda words: code)
    assert main(["fit"]) == expected


@pytest.mark.parametrize("quiet", [True, False])
def test_restarts_are_as_many_as_asked_for(quiet):
    words = ["--restarts", "7", "--max-iter", "5", "--tol", "0.5", "--seed", "3", "--n-jobs", "2"]
    for command in ("consensus", "signatures"):
        parser, _ = build_parser([command])
        plain = restart_parameters(parser.parse_args([command, "x.tsv"]))
        assert plain == {
            "n_init": 100, "max_iter": 1000, "tol": 1e-4, "random_state": 0, "device": None, "n_jobs": None,
            "verbose": 1, "checkpoint": None,
        }  # fmt: skip
        said = parser.parse_args([command, "x.tsv", *words, *(["-q"] if quiet else [])])
        assert restart_parameters(said) == {
            "n_init": 7, "max_iter": 5, "tol": 0.5, "random_state": 3, "device": None, "n_jobs": 2,
            "verbose": 0 if quiet else 1, "checkpoint": None,
        }  # fmt: skip
