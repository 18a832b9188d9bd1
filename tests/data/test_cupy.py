"""AnnData objects in the memory of a GPU, as rapids-singlecell keeps them: CuPy arrays, or views of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import nonneg
from nonneg.integrations import scanpy
from nonneg.integrations.anndata import matrix

anndata = pytest.importorskip("anndata")
cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
cupy_sparse = pytest.importorskip("cupyx.scipy.sparse")
pytest.importorskip("torch", reason="arrays of CuPy go to kernels of PyTorch and Triton")
if not cupy.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

LAYOUTS = ("dense", "csr", "csc")


def counts() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.poisson(rng.gamma(0.5, 2.0, (90, 4)) @ rng.gamma(0.5, 1.0, (4, 30))).astype(np.float64)


def cells(layout: str, *, on_gpu: bool):
    """Return cells with counts in X and in a layer, in host memory or as `anndata_to_GPU` moves them."""
    X = counts() if layout == "dense" else getattr(sp, f"{layout}_matrix")(counts())
    if on_gpu:
        X = cupy.asarray(X) if layout == "dense" else getattr(cupy_sparse, f"{layout}_matrix")(X)
    adata = anndata.AnnData(X, layers={"counts": X.copy()})
    adata.var["highly_variable"] = counts().var(axis=0) > np.median(counts().var(axis=0))
    return adata


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("options", [{}, {"layer": "counts"}, {"use_highly_variable": True}])
@pytest.mark.parametrize(("loss", "solver"), [("frobenius", "hals"), ("kullback-leibler", "newton")])
def test_programs_in_gpu_memory_are_those_in_host_memory(layout, view, options, loss, solver):
    results = []
    for on_gpu in (False, True):
        adata = cells(layout, on_gpu=on_gpu)
        adata = adata[10:80] if view else adata
        adata = scanpy.nmf(adata, 3, beta_loss=loss, solver=solver, max_iter=20, tol=0, copy=True, **options)
        results.append((adata.obsm["X_nmf"], adata.varm["NMF"]))
    for expected, result in zip(*results, strict=True):
        assert isinstance(result, np.ndarray)  # what AnnData writes to a file
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("view", [False, True])
def test_a_fit_stays_in_gpu_memory_and_transforms_new_cells(layout, view):
    adata = cells(layout, on_gpu=True)
    adata = adata[:60] if view else adata
    model = nonneg.NMF(3, max_iter=20, random_state=0)
    W = model.fit_transform(matrix(adata, layer="counts"))
    assert not isinstance(W, np.ndarray)
    new = model.transform(cells(layout, on_gpu=True)[60:])
    assert new.shape == (30, 3)
    assert not isinstance(new, np.ndarray)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("view", [False, True])
def test_consensus_of_cells_in_gpu_memory(layout, view):
    adata = cells(layout, on_gpu=True)
    model = nonneg.ConsensusNMF(3, n_init=5, random_state=0).fit(adata[:60] if view else adata)
    assert model.components_.shape == (3, 30)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_was_added_can_be_written_once_the_counts_are_back_in_host_memory(layout, tmp_path):
    adata = cells(layout, on_gpu=True)
    scanpy.nmf(adata, 3, max_iter=5, tol=0)
    adata.X, adata.layers["counts"] = adata.X.get(), adata.layers["counts"].get()
    adata.obs_names, adata.var_names = (list(map(str, names)) for names in (adata.obs_names, adata.var_names))
    adata.write_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(
        anndata.read_h5ad(tmp_path / "cells.h5ad").obsm["X_nmf"], adata.obsm["X_nmf"]
    )
