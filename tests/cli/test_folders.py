"""Folders of results: named after the data, kept when the report fails, and what `main` returns."""

from __future__ import annotations

import signal
from contextlib import contextmanager

import numpy as np
import pytest

import nonneg.cli
from nonneg.cli import build_parser, main
from nonneg.exceptions import InvalidParameterError, OutputError


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        (["fit", "data/table.csv.gz"], "table-nmf"),
        (["rank", "data/table.csv"], "table-rank"),
        (["anchors", "data/table.npy"], "table-anchors"),
        (["consensus", "cells.h5ad", "-k", "3"], "cells-consensus"),
        (["signatures", "catalog.tsv", "-k", "3"], "catalog-signatures"),
        (["topics", "data", "-k", "3"], "data-topics"),
        (["topics", "--stdlib", "-k", "3"], "stdlib-topics"),
        (["communities", "edges.txt", "-k", "3"], "edges-communities"),
        (["communities", "--example", "karate", "-k", "2"], "karate-communities"),
        (["separate", "song.wav", "-k", "2"], "song-sources"),
        (["unmix", "scene.hdr"], "scene-unmixed"),
        (["unmix", "--example"], "example-unmixed"),
        (["demo"], "nonneg-demo"),
    ],
    ids=str,
)
def test_results_are_named_after_the_data(words, folder, tmp_path, monkeypatch, capsys):
    """A file in the place of the folder is refused by name, before anything is read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / folder).write_text("in the way")
    assert main(words) == 2
    assert f"{folder} is a file; expected a folder for the results" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (OutputError("The picture\nis broken."), 2, "nonneg: error: The picture is broken."),
        (KeyboardInterrupt(), 130, "interrupted; the results were written"),
    ],
    ids=["failed", "interrupted"],
)
@pytest.mark.usefixtures("fake")
def test_results_are_kept_when_the_report_is_not_drawn(
    failure, code, said, array_file, tmp_path, monkeypatch, capsys
):
    """A fit may have taken hours."""

    def fail(*words, **more):
        raise failure

    monkeypatch.setattr("nonneg.report.pages.build_page", fail)
    out = tmp_path / "out"
    assert main(["fit", str(array_file), "-k", "2", "-o", str(out), "-q"]) == code
    assert sorted(entry.name for entry in out.iterdir()) == ["H.npy", "W.npy", "model.npz", "result.json"]
    assert np.load(out / "W.npy").shape == (12, 2)
    told = capsys.readouterr().err
    assert said in told
    assert f"the results were written to {out}, but without a report" in told


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
