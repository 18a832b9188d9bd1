"""`.h5ad` files on the command line: layers, highly variable genes, and results in a copy of the file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.references.annotated import HIGHLY_VARIABLE, K
from tests.references.annotated import annotated_counts as make

from nonneg import IntegrativeNMF
from nonneg.cli import main
from nonneg.integrations.anndata import matrix

anndata = pytest.importorskip("anndata")
pytestmark = pytest.mark.usefixtures("sound_hdf5")


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    adata = make()
    adata.X = adata.X.toarray() - 1
    adata.write_h5ad("cells.h5ad")
    return tmp_path / "cells.h5ad"


def run(capsys, *words):
    code = main([str(word) for word in words])
    return code, " ".join(capsys.readouterr().err.split())


def test_a_fit_and_its_transform_write_copies_of_the_file(file, capsys):
    before = file.read_bytes()
    chosen = ["--layer", "counts", "--highly-variable"]
    code, _ = run(capsys, "fit", file, *chosen, "-k", K, "-o", "out", "--write-h5ad", "fit.h5ad")
    assert code == 0
    fitted = anndata.read_h5ad("fit.h5ad")
    np.testing.assert_array_equal(fitted.obsm["X_nmf"], np.load("out/W.npy"))
    np.testing.assert_array_equal(fitted.varm["NMF"][HIGHLY_VARIABLE], np.load("out/H.npy").T)
    assert not fitted.varm["NMF"][~HIGHLY_VARIABLE].any()
    assert fitted.uns["nmf"]["params"]["layer"] == "counts"
    # All genes are in the file; the model takes its own.
    words = ["transform", "out", file, "--layer", "counts", "-o", "w", "--write-h5ad", "new.h5ad"]
    code, said = run(capsys, *words)
    assert code == 0
    assert "uses 8 of the 15 columns" in said
    np.testing.assert_array_equal(anndata.read_h5ad("new.h5ad").obsm["X_nmf"], fitted.obsm["X_nmf"])
    assert file.read_bytes() == before


def test_an_integrative_model_takes_cells_of_a_new_data_set(file, capsys):
    adata = make()
    donor = ["a", "b"] * 20
    model = IntegrativeNMF(K, max_iter=300).fit(matrix(adata, layer="counts"), batch=donor)
    model.save("model.npz")
    code, _ = run(
        capsys, "transform", "model.npz", file, "--layer", "counts", "-o", "w", "--write-h5ad", "x.h5ad"
    )
    assert code == 0
    found = anndata.read_h5ad("x.h5ad")
    np.testing.assert_allclose(found.obsm["X_nmf"], model.transform(matrix(adata, layer="counts")), atol=1e-5)
    assert found.uns["nmf"]["estimator"] == "IntegrativeNMF"
    # Its components are in units of scaled data sets, so that no error in units of the file is stated.
    assert json.loads(Path("w/result.json").read_text())["result"]["relative_error"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "scanpy.pp.scale. Choose counts or log-normalized values with --layer"),
        (["--layer", "count"], "It contains: X, layers/counts"),
        (["--layer", "counts", "--variable", "X"], "give one of the two"),
        (["--layer", "counts", "--write-h5ad", "cells.h5ad"], "never overwritten"),
        (["--layer", "counts", "--write-h5ad", "out.h5ad", "--transpose"], "--transpose cannot be combined"),
    ],
)
def test_mistakes_are_named(file, capsys, words, message):
    code, said = run(capsys, "fit", file, "-k", K, "-o", "out", *words)
    assert code == 2
    assert message in said


def test_options_of_annotated_files_are_refused_elsewhere(file, capsys):
    np.save("table.npy", np.eye(4))
    for words, message in (
        (["--layer", "counts"], "--layer names a layer of an .h5ad file"),
        (["--highly-variable"], "is for AnnData files"),
        (["--write-h5ad", "out.h5ad"], "table.npy does not end in .h5ad"),
    ):
        code, said = run(capsys, "fit", "table.npy", "-k", 2, "-o", "out", *words)
        assert code == 2
        assert message in said
    adata = make()
    del adata.var["highly_variable"]
    adata.write_h5ad("plain.h5ad")
    code, said = run(capsys, "fit", "plain.h5ad", "--highly-variable", "-k", K, "-o", "out")
    assert code == 2
    assert "no column 'highly_variable'" in said
