"""Other people's programs with nonneg inside, in an environment of their own: `make downstream`."""

from __future__ import annotations

import numpy as np
import pytest

import nonneg
from nonneg import NMF


def planted(n_rows, n_columns, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, size=(n_rows, k)) @ rng.gamma(1.0, size=(k, n_columns))


def test_librosa_decomposes_a_spectrogram():
    librosa = pytest.importorskip("librosa")
    S = planted(40, 60)
    components, activations = librosa.decompose.decompose(
        S, transformer=NMF(3, tol=1e-8, max_iter=2000), sort=True
    )
    assert components.shape == (40, 3)
    np.testing.assert_allclose(components @ activations, S, rtol=0.05, atol=0.05 * S.max())


def test_hyperspy_decomposes_a_signal():
    hyperspy = pytest.importorskip("hyperspy.api")  # its lazy signals take its own algorithms only, by name
    signal = hyperspy.signals.Signal1D(planted(30, 50).reshape(5, 6, 50))
    signal.decomposition(algorithm=NMF(3, tol=1e-8, max_iter=2000), output_dimension=3)
    factors, loadings = signal.get_decomposition_factors().data, signal.get_decomposition_loadings().data
    fitted = loadings.reshape(3, -1).T @ factors
    np.testing.assert_allclose(fitted, signal.data.reshape(30, 50), rtol=0.1, atol=0.02 * signal.data.max())


def test_cnmf_runs_with_the_function_of_scikit_learn_replaced(tmp_path, monkeypatch):
    package = pytest.importorskip("cnmf")
    pandas = pytest.importorskip("pandas")
    module = package.cnmf
    rng = np.random.default_rng(0)
    counts = rng.poisson(20 * planted(120, 60))
    names = [f"gene{at}" for at in range(60)]
    frame = pandas.DataFrame(counts, index=[f"cell{at}" for at in range(120)], columns=names)
    frame.to_csv(tmp_path / "counts.tsv", sep="\t")
    monkeypatch.setattr(module, "non_negative_factorization", nonneg.non_negative_factorization)
    run = package.cNMF(output_dir=str(tmp_path), name="run")
    run.prepare(str(tmp_path / "counts.tsv"), components=[3], n_iter=5, seed=1, num_highvar_genes=50)
    run.factorize(worker_i=0, total_workers=1)
    run.combine()
    run.consensus(3, density_threshold=2.0, show_clustering=False)
    usage = pandas.read_csv(tmp_path / "run" / "run.usages.k_3.dt_2_0.consensus.txt", sep="\t", index_col=0)
    assert usage.shape == (120, 3)
    assert np.isfinite(usage.to_numpy()).all()


def test_scanpy_finds_the_results_in_their_places():
    scanpy = pytest.importorskip("scanpy")
    from nonneg.integrations.scanpy import nmf

    rng = np.random.default_rng(0)
    adata = scanpy.AnnData(rng.poisson(5 * planted(80, 40)).astype(np.float32))
    nmf(adata, 3, use_highly_variable=False)
    assert adata.obsm["X_nmf"].shape == (80, 3)
    scanpy.pp.neighbors(adata, use_rep="X_nmf", n_neighbors=5)
    assert "neighbors" in adata.uns


def test_cdlib_scores_our_communities():
    cdlib = pytest.importorskip("cdlib")
    networkx = pytest.importorskip("networkx")
    from cdlib import evaluation

    from nonneg.applications import MixedMembership

    graph = networkx.karate_club_graph()
    model = MixedMembership(2, random_state=0).fit(graph)
    memberships = np.asarray(model.memberships_)
    nodes = list(graph)
    groups = [
        [node for node, row in zip(nodes, memberships, strict=True) if row[at] > 0.3] for at in range(2)
    ]
    found = cdlib.NodeClustering(groups, graph, "nonneg", overlap=True)
    sides = [[node for node in nodes if graph.nodes[node]["club"] == club] for club in ("Mr. Hi", "Officer")]
    truth = cdlib.NodeClustering(sides, graph, "clubs", overlap=True)
    assert evaluation.overlapping_normalized_mutual_information_LFK(found, truth).score > 0.5


def test_pyliger_normalizes_our_weights():
    pyliger = pytest.importorskip("pyliger")
    anndata = pytest.importorskip("anndata")
    from nonneg import IntegrativeNMF

    rng = np.random.default_rng(0)
    counts = rng.poisson(4 * planted(240, 60)).astype(np.float64)
    parts = [
        anndata.AnnData(part, uns={"sample_name": name})
        for part, name in zip((counts[:120], counts[120:]), "ab", strict=True)
    ]
    for part in parts:
        part.obs_names = [f"{part.uns['sample_name']}{at}" for at in range(120)]
        part.obs.index.name, part.var.index.name = "barcodes", "genes"
    liger = pyliger.create_liger(parts)
    pyliger.normalize(liger)
    pyliger.select_genes(liger, var_thresh=0.0)
    pyliger.scale_not_center(liger)
    sets = [each.layers["scale_data"] for each in liger.adata_list]
    weights = IntegrativeNMF(3, lam=5.0, scale=False).fit_transform(sets)
    for each, W in zip(liger.adata_list, weights, strict=True):
        each.obsm["H"] = W
    pyliger.quantile_norm(liger)
    assert all(np.isfinite(each.obsm["H_norm"]).all() for each in liger.adata_list)
