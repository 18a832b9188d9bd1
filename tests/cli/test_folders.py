"""Folders of results: named after the data, kept when the report fails, and what `main` returns."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.cli import main
from nonneg.exceptions import OutputError


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
def test_results_are_kept_when_the_report_is_not_drawn(
    failure, code, said, array_file, tmp_path, monkeypatch, capsys
):
    """A fit may have taken hours."""

    def fail(*words, **more):
        raise failure

    monkeypatch.setattr("nonneg.report.page.build_page", fail)
    out = tmp_path / "out"
    assert main(["fit", str(array_file), "-k", "2", "-o", str(out), "-q"]) == code
    assert sorted(entry.name for entry in out.iterdir()) == ["H.npy", "W.npy", "model.npz", "result.json"]
    assert np.load(out / "W.npy").shape == (12, 2)
    told = capsys.readouterr().err
    assert said in told
    assert f"the results were written to {out}, but without a report" in told
