"""Folders of results are named after the data, and what `main` returns."""

from __future__ import annotations

import signal
from contextlib import contextmanager

import pytest

import nonneg.cli
from nonneg.cli import build_parser, main
from nonneg.exceptions import InvalidParameterError


class Checked(Exception):
    """The folder that was checked."""


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
