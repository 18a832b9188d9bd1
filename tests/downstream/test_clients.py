"""Other people's programs with nonneg inside, in an environment of their own: `make downstream`."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import types

import numpy as np
import pytest

import nonneg
from nonneg import NMF


def planted(n_rows, n_columns, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, size=(n_rows, k)) @ rng.gamma(1.0, size=(k, n_columns))


# The first of all, because torch cannot be imported into this process any more after the test of cNMF.
def test_bertopic_groups_documents_by_our_weights():
    bertopic = pytest.importorskip("bertopic")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from umap import UMAP

    rng = np.random.default_rng(0)
    words = [[f"{subject}{at}" for at in range(12)] for subject in ("sun", "sea", "car", "cat")]
    texts = [" ".join(rng.choice(words[at % 4], 12)) for at in range(200)]
    weights = make_pipeline(TfidfVectorizer(), NMF(4))
    model = bertopic.BERTopic(embedding_model=weights, umap_model=UMAP(metric="cosine", random_state=0))
    topics, _ = model.fit_transform(texts)
    assert len(set(topics)) == 4
    assert all(len(set(topics[at::4])) == 1 for at in range(4))


def test_librosa_decomposes_a_spectrogram():
    librosa = pytest.importorskip("librosa")
    S = planted(40, 60)
    model = NMF(3, tol=1e-8, max_iter=2000)
    components, activations = librosa.decompose.decompose(S, transformer=model, sort=True)
    np.testing.assert_allclose(components @ activations, S, rtol=0.05, atol=0.05 * S.max())


@pytest.mark.parametrize("lazy", [False, True])
def test_hyperspy_decomposes_a_signal(lazy):
    hyperspy = pytest.importorskip("hyperspy.api")
    X = planted(300, 50)
    signal = hyperspy.signals.Signal1D(X.reshape(20, 15, 50))
    # A lazy signal gives its chunks to `partial_fit`, one after the other.
    signal = signal.as_lazy() if lazy else signal
    signal.decomposition(algorithm=NMF(3, random_state=0), output_dimension=3)
    factors, loadings = signal.get_decomposition_factors().data, signal.get_decomposition_loadings().data
    fitted = np.asarray(loadings).reshape(3, -1).T @ np.asarray(factors)
    assert np.linalg.norm(fitted - X) < 0.02 * np.linalg.norm(X)


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


def test_pyliger_normalizes_our_weights(monkeypatch):
    # Only pyliger's own clustering calls it, and it is not installed (Makefile); the import asks for it.
    monkeypatch.setitem(sys.modules, "louvain", types.ModuleType("louvain"))
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


def test_mne_filters_the_power_of_epochs():
    decoding = pytest.importorskip("mne.decoding")
    power = planted(20 * 50, 12).reshape(20, 50, 12).transpose(0, 2, 1)
    spatial = decoding.UnsupervisedSpatialFilter(NMF(3, tol=1e-8, max_iter=2000))
    filtered = spatial.fit_transform(power)
    np.testing.assert_allclose(spatial.inverse_transform(filtered), power, rtol=1e-3, atol=1e-3 * power.max())


# Why some of scikit-learn's tests of `NMF` and `MiniBatchNMF` do not hold with ours in the place of both.
DIFFERENT = {
    "test_convergence_warning": "a matrix of ones is at its optimum after one iteration",
    "test_parameter_checking": "solver='cd' takes beta_loss=1",
    "test_non_negative_factorization_consistency": "the class estimates n_components",
    "test_mbnmf_inverse_transform": "the same",
    "test_nmf_n_components_auto[": "a private attribute",
    "test_minibatch_nmf_partial_fit": "`fit` does not go by mini-batches, so there is no n_steps_",
    "test_nmf_minibatchnmf_equivalence": "the same; forget_factor is positive",
    "test_non_negative_factorization_checking": "other words",
    "test_nmf_negative_beta_loss": "other words",
    "test_minibatch_nmf_negative_beta_loss": "other words",
    "test_nmf_custom_init_shape_error": "other words",
    "test_nmf_custom_init_dtype_error": "initial factors take the dtype of X",
}


def test_scikit_learns_own_tests_pass_in_our_hands(tmp_path):
    theirs = inspect.getsource(pytest.importorskip("sklearn.decomposition.tests.test_nmf"))
    line = "from sklearn.decomposition import NMF, MiniBatchNMF, non_negative_factorization"
    assert theirs.count(line) == theirs.count("for _ in range(30):") == 1
    ours = theirs.replace(line, "from nonneg import NMF, non_negative_factorization\nMiniBatchNMF = NMF")
    (tmp_path / "test_nmf.py").write_text(ours.replace("for _ in range(30):", "for _ in range(8):"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "test_nmf.py"]
    # Each is repeated with sparse arrays, with another solver, and with 32 bits.
    command += ["--assert=plain", "-k", "not (_matrix or NMF-solver2 or int64)"]
    ended = subprocess.run(
        [*command, *(f"--deselect=test_nmf.py::{name}" for name in DIFFERENT)],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-4000:]
