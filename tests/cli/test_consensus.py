"""`nonneg consensus` and `nonneg signatures`: files, report, groups, resumption, and mistakes in one line."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import scipy.sparse as sp
from tests.consensus.planted import planted

import nonneg
from nonneg.cli import main

QUICK = ["--restarts", "4", "--quiet"]


@pytest.fixture
def h5ad(tmp_path, sound_hdf5):
    anndata = pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    X, _ = planted(3, n=80, m=40)
    kind = pandas.Categorical(["a" if at % 2 else "b" for at in range(len(X))])
    data = anndata.AnnData(
        sp.csr_matrix(np.column_stack([X, np.zeros(len(X))])),
        obs=pandas.DataFrame({"kind": kind}, index=[f"c{at}" for at in range(len(X))]),
        var=pandas.DataFrame(index=[f"G{at}" for at in range(X.shape[1] + 1)]),
    )
    path = tmp_path / "cells.h5ad"
    data.write_h5ad(path)
    return path


def rows_of(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


@pytest.mark.usefixtures("drawn")
def test_the_whole_job(h5ad, tmp_path, capsys):
    folder, kept = tmp_path / "out", tmp_path / "kept"
    words = ["consensus", str(h5ad), "-k", "2:5", "--restarts", "8", "--quiet", "--genes", "30"]
    words += ["--group-by", "kind"]
    assert main([*words, "-o", str(folder), "--checkpoint", str(kept)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("3 programs are recommended, all of them stable.")
    assert "1 gene without counts left out" in said.err
    n_genes = len(rows_of(folder / "gene_scores.tsv"))
    assert n_genes == len(rows_of(folder / "gene_tpm.tsv")) > 30
    assert len(rows_of(folder / "spectra.tsv")) == 30
    assert [row["n_components"] for row in rows_of(folder / "ranks.tsv")] == ["2", "3", "4", "5"]
    assert len(rows_of(folder / "restarts.tsv")) == 32
    usages = rows_of(folder / "usages.tsv")
    assert usages[0]["sample"] == "c0"
    groups = rows_of(folder / "usage_by_group.tsv")
    assert [(row["kind"], row["samples"]) for row in groups] == [("a", "40"), ("b", "40")]
    top = rows_of(folder / "top_genes.tsv")
    assert top[0]["program_0"].startswith("G")
    record = json.loads((folder / "result.json").read_text())
    assert record["result"]["n_components"] == 3
    page = (folder / "report.html").read_text()
    for text in ("Which number of programs", "Programs by kind"):
        assert text in page
    assert nonneg.load(folder / "model.npz").n_components_ == 3
    # The same command goes on from the kept restarts; the report is drawn again from the record.
    stored = {path: path.stat().st_mtime_ns for path in kept.rglob("*.npz")}
    assert len(stored) == 32
    copy = tmp_path / "programs.h5ad"
    again = ["-o", str(tmp_path / "again"), "--checkpoint", str(kept), "--write-h5ad", str(copy)]
    assert main([*words, *again]) == 0
    assert {path: path.stat().st_mtime_ns for path in kept.rglob("*.npz")} == stored
    assert (tmp_path / "again" / "usages.tsv").read_bytes() == (folder / "usages.tsv").read_bytes()
    cells = pytest.importorskip("anndata").read_h5ad(copy)
    assert cells.obsm["X_nmf"].shape == (80, 3)
    assert np.sum(cells.varm["NMF"].any(axis=1)) == 30  # genes outside of the fit are zeros
    assert main([*words, "--write-h5ad", str(h5ad)]) != 0
    assert "never overwritten" in capsys.readouterr().err
    (folder / "report.html").unlink()
    assert main(["report", str(folder)]) == 0
    assert (folder / "report.html").read_text() == page


def test_a_text_table_and_its_group_column(tmp_path, capsys):
    X, _ = planted(2, n=40, m=20)
    path = tmp_path / "table.tsv"
    names = [f"g{at}" for at in range(X.shape[1])]
    lines = ["\t".join(["id", "group", *names])]
    lines += ["\t".join([f"s{i}", "xy"[i % 2], *map(str, row.astype(int))]) for i, row in enumerate(X)]
    path.write_text("\n".join(lines) + "\n")
    folder = tmp_path / "out"
    assert main(["consensus", str(path), "-k", "2", *QUICK, "--group-by", "group", "-o", str(folder)]) == 0
    assert [row["group"] for row in rows_of(folder / "usage_by_group.tsv")] == ["x", "y"]
    assert capsys.readouterr().out.startswith("2 programs, all of them stable.")


def test_mistakes_are_named(h5ad, tmp_path, capsys):
    out = ["-o", str(tmp_path / "o"), *QUICK]
    assert main(["consensus", str(h5ad), "-k", "2", "--group-by", "species", *out]) != 0
    assert "no column 'species' of cells" in capsys.readouterr().err
    assert main(["consensus", str(h5ad), "-k", "2", "--group-by", "kind", "--transpose", *out]) != 0
    assert "--group-by needs samples in rows" in capsys.readouterr().err
    assert main(["consensus", str(h5ad), "-k", "99", *out]) != 0
    assert "n_components=99 is larger than the smaller side" in capsys.readouterr().err
    scaled = tmp_path / "scaled.csv"
    values = np.random.default_rng(0).normal(size=(30, 4))
    rows = (values - values.mean(axis=0)).round(3).tolist()
    scaled.write_text("\n".join([",".join("abcd"), *(",".join(map(str, row)) for row in rows)]))
    assert main(["consensus", str(scaled), "-k", "2", *out]) != 0
    assert "undo centering" in capsys.readouterr().err
    assert main(["consensus", str(scaled), "-k", "2", "--group-by", "species", *out]) != 0
    said = capsys.readouterr().err
    assert "column='species' is not known" in said
    assert "label-column" not in said
    assert main(["consensus", str(h5ad), "-k", "7:3", *out]) == 2
    assert "a range such as 5:15" in capsys.readouterr().err


def test_known_signatures_are_assigned(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    from nonneg.applications.signatures import CHANNELS

    rng = np.random.default_rng(0)
    known = rng.dirichlet(np.full(96, 0.15), size=6)
    counts = rng.poisson(rng.uniform(300, 900, size=(8, 2)) @ known[:2])
    pandas.DataFrame(counts.T, index=CHANNELS, columns=[f"T{at}" for at in range(8)]).to_csv(
        tmp_path / "catalog.csv", sep=";"
    )
    table = pandas.DataFrame(known.T, index=CHANNELS, columns=[f"S{at}" for at in range(6)])
    table.to_csv(tmp_path / "known.txt", sep="\t")  # as COSMIC names its tables
    words = ["signatures", str(tmp_path / "catalog.csv"), "--assign", "-o", str(tmp_path / "out")]
    assert main([*words, "--reference", str(tmp_path / "known.txt"), "--n-bootstrap", "5"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 of 6 known signatures are active in 8 tumors.")
    exposures = pandas.read_csv(tmp_path / "out" / "exposures.tsv", sep="\t", index_col=0)
    assert list(exposures.columns) == ["S0", "S1"]
    np.testing.assert_allclose(exposures.sum(axis=1), counts.sum(axis=1), rtol=1e-4)
    assert len(pandas.read_csv(tmp_path / "out" / "exposure_intervals.tsv", sep="\t")) == 16
    for more, told in (
        ([], "--assign needs --reference"),
        (["--reference", "x"], "x: No such file"),
        (["-k", "3", "--reference", str(tmp_path / "known.txt")], "Leave out -k"),
    ):
        assert main([*words, *more]) == 2
        assert told in capsys.readouterr().err


@pytest.mark.usefixtures("drawn")
def test_signatures(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    from nonneg.applications.signatures import CHANNELS

    rng = np.random.default_rng(0)
    true = rng.dirichlet(np.full(96, 0.15), size=2)
    counts = rng.poisson(rng.gamma(0.7, 800.0, (30, 2)) @ true)
    pandas.DataFrame(counts.T, index=list(CHANNELS), columns=[f"T{at}" for at in range(30)]).to_csv(
        tmp_path / "catalog.tsv", sep="\t", index_label="Type"
    )
    known = np.vstack([true[:1], rng.dirichlet(np.full(96, 0.2), size=9)])
    pandas.DataFrame(known.T, index=list(CHANNELS), columns=[f"SBS{at}" for at in range(10)]).to_csv(
        tmp_path / "known.csv", index_label="Type"
    )
    folder = tmp_path / "out"
    words = ["signatures", str(tmp_path / "catalog.tsv"), "-k", "2:3", *QUICK, "-o", str(folder)]
    assert main([*words, "--reference", str(tmp_path / "known.csv"), "--n-bootstrap", "5"]) == 0
    assert capsys.readouterr().out.startswith("2 signatures are recommended, all of them stable.")
    rows = rows_of(folder / "signatures.tsv")
    assert [row["type"] for row in rows] == list(CHANNELS)
    assert sum(float(row["signature_0"]) for row in rows) == pytest.approx(1.0, abs=1e-3)
    assert sorted(row["name"] for row in rows_of(folder / "matches.tsv")) == ["", "SBS0"]
    assert len(rows_of(folder / "exposures.tsv")) == 30
    for row in rows_of(folder / "exposure_intervals.tsv"):
        assert float(row["low"]) <= float(row["high"])
    page = (folder / "report.html").read_text()
    for text in ("Signature 0", "C&gt;A", "#e32926", "Which number of signatures"):
        assert text in page
    assert main(["report", str(folder)]) == 0


def test_logarithms_are_noticed_and_the_layer_of_counts_is_named(h5ad, tmp_path, capsys):
    anndata = pytest.importorskip("anndata")
    cells = anndata.read_h5ad(h5ad)
    cells.layers["raw_counts"] = cells.X.copy()
    cells.X = cells.X.log1p()
    cells.write_h5ad(tmp_path / "logged.h5ad")
    words = ["consensus", str(tmp_path / "logged.h5ad"), "-k", "2", "--restarts", "2", "--quiet"]
    assert main([*words, "-o", str(tmp_path / "logs")]) == 0
    assert "not in logarithms: pass --layer raw_counts." in capsys.readouterr().err
    assert not (tmp_path / "logs" / "gene_tpm.tsv").exists()
    assert main([*words, "--layer", "raw_counts", "-o", str(tmp_path / "counts")]) == 0
    assert "logarithms" not in capsys.readouterr().err
    assert (tmp_path / "counts" / "gene_tpm.tsv").exists()
    cells.raw = cells.copy()
    del cells.layers["raw_counts"]
    cells.write_h5ad(tmp_path / "logged.h5ad")
    assert main([*words, "-o", str(tmp_path / "logs")]) == 0
    assert "not in logarithms: pass --variable raw/X." in capsys.readouterr().err
    assert main([*words, "--variable", "raw/X", "-o", str(tmp_path / "logs")]) == 0  # logarithms, too
    assert "not in logarithms: pass the counts." in capsys.readouterr().err
