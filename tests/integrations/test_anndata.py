"""AnnData objects in, results in their places out; every mistake is named with what to do about it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from tests.references.annotated import HIGHLY_VARIABLE, N_CELLS, N_GENES, K
from tests.references.annotated import annotated_counts as make

import nonneg
from nonneg import NMF
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonnegWarning,
    OutputError,
    ShapeError,
)
from nonneg.integrations import anndata as annotated
from nonneg.integrations.scanpy import nmf
from nonneg.io.stored import StoredMatrix

anndata = pytest.importorskip("anndata")
pandas = pytest.importorskip("pandas")


@pytest.fixture
def adata():
    return make()


def test_an_estimator_takes_x_with_the_names_of_the_variables(adata):
    model = NMF(K).fit(adata)
    np.testing.assert_array_equal(model.components_, NMF(K).fit(adata.X).components_)
    assert list(model.feature_names_in_) == list(adata.var_names)
    assert model.components_.dtype == np.float32
    assert list(model.get_feature_names_out()) == ["nmf0", "nmf1", "nmf2"]
    np.testing.assert_array_equal(model.fit_transform(adata), model.transform(adata))
    assert model.score(adata) == pytest.approx(NMF(K).fit(adata.X).score(adata.X))


@pytest.mark.parametrize(
    "estimator", [NMF(K), nonneg.ConsensusNMF(K, n_init=2, density_threshold=2.0), nonneg.ConeNMF(K)]
)
@pytest.mark.filterwarnings("ignore:adata.X has entries")
def test_data_frames_keep_the_names_of_components_and_variables(adata, estimator):
    model = clone(estimator).set_output(transform="pandas")
    chosen = annotated.matrix(adata, layer="counts", use_highly_variable=True)
    W = model.fit_transform(chosen)
    assert isinstance(W, pandas.DataFrame)
    assert list(W.columns) == list(model.get_feature_names_out())
    pandas.testing.assert_frame_equal(model.transform(chosen), W)
    assert list(model.inverse_transform(W).columns) == list(model.feature_names_in_)
    assert model.score(chosen) < 0
    plain = model.set_output(transform="default").transform(chosen)
    np.testing.assert_array_equal(plain, W)
    annotated.fit(model.set_output(transform="pandas"), adata)
    np.testing.assert_array_equal(adata.obsm["X_nmf"], model.transform(adata))


def test_layer_and_highly_variable_genes_are_chosen(adata):
    chosen = annotated.matrix(adata, layer="counts", use_highly_variable=True)
    assert chosen.shape == (N_CELLS, HIGHLY_VARIABLE.sum())
    model = NMF(K).fit(chosen)
    expected = NMF(K).fit(adata.layers["counts"][:, HIGHLY_VARIABLE])
    np.testing.assert_array_equal(model.components_, expected.components_)
    assert list(model.feature_names_in_) == list(adata.var_names[HIGHLY_VARIABLE])
    # Functions take the same object.
    found = nonneg.factorize(annotated.matrix(adata, layer="counts", use_highly_variable=False), K)
    assert found.H.shape == (K, N_GENES)


def test_new_data_are_matched_by_name(adata):
    model = NMF(K).fit(adata[:, HIGHLY_VARIABLE])
    expected = model.transform(adata[:, HIGHLY_VARIABLE])
    np.testing.assert_array_equal(model.transform(adata[:, ::-1]), expected)
    with pytest.raises(
        ShapeError, match=r"NMF was fitted to 8 variables, but adata lacks 6 of them \('gene4'"
    ):
        model.transform(adata[:, :4])
    doubled = adata[:, [0, 0, 2, 4, 6, 8, 10, 12, 14]]
    with pytest.raises(ShapeError, match="var_names_make_unique"):
        model.transform(doubled)


def test_scaled_cells_and_genes_without_counts_are_refused_by_consensus(adata):
    scaled = adata.copy()
    scaled.X = (lambda X: (X - X.mean(axis=0)) / X.std(axis=0))(adata.X.toarray())
    with pytest.raises(NegativeDataError, match=r"scanpy.pp.scale .*Layers: 'counts'"):
        nonneg.ConsensusNMF(K).fit(scaled)
    empty = adata.copy()
    empty.X = adata.X.toarray() * (np.arange(N_GENES) != 4)
    with pytest.raises(InvalidDataError, match=r"1 of 15 features are zero in all samples \(gene4\)"):
        nonneg.ConsensusNMF(K).fit(empty)
    model = nonneg.ConsensusNMF(K, n_init=3, random_state=0)
    counts = annotated.matrix(adata, layer="counts", use_highly_variable=False)
    W = model.fit_transform(counts)
    np.testing.assert_array_equal(*(model.gene_spectra(one, W) for one in (counts, adata.layers["counts"])))


def test_batches_of_an_annotated_object(adata):
    model = NMF(K, random_state=0)
    for rows in (slice(0, 20), slice(20, 40)):
        model.partial_fit(adata[rows])
    assert model.n_steps_ == 2
    assert list(model.feature_names_in_) == list(adata.var_names)


def test_results_go_where_scanpy_looks_and_into_a_file(adata, tmp_path):
    before = adata.X.copy()
    assert nmf(adata, K, layer="counts", beta_loss="kullback-leibler", max_iter=50) is None
    model = NMF(K, beta_loss="kullback-leibler", max_iter=50, random_state=0)
    W = model.fit_transform(adata.layers["counts"][:, HIGHLY_VARIABLE])
    np.testing.assert_array_equal(adata.obsm["X_nmf"], W)
    np.testing.assert_array_equal(adata.varm["NMF"][HIGHLY_VARIABLE], model.components_.T)
    assert not adata.varm["NMF"][~HIGHLY_VARIABLE].any()
    assert (before != adata.X).nnz == 0
    adata.write_h5ad(tmp_path / "out.h5ad")
    stored = anndata.read_h5ad(tmp_path / "out.h5ad").uns["nmf"]
    assert stored["version"] == nonneg.__version__
    assert stored["params"]["layer"] == "counts"
    assert stored["params"]["beta_loss"] == "kullback-leibler"
    assert stored["params"]["use_highly_variable"]
    (statement,) = model.certificate_
    assert stored["certificate"]["stationarity"]["sentence"] == statement.sentence
    assert stored["certificate"]["stationarity"]["number"] == statement.number
    assert stored["n_iter"] == model.n_iter_


def test_a_copy_leaves_the_object_alone_and_a_key_names_everything(adata):
    other = nmf(adata, K, key_added="programs", copy=True, use_highly_variable=False)
    assert not adata.obsm.keys()
    assert not adata.uns
    assert set(other.obsm) == set(other.varm) == set(other.uns) == {"programs"}
    with pytest.raises(InvalidParameterError, match="/"):
        nmf(adata, K, key_added="a/b")


@pytest.mark.parametrize(
    "model",
    [
        nonneg.SeparableNMF(K, method="spa"),
        nonneg.ConeNMF(K, random_state=0),
        NMF(K, random_state=np.random.default_rng(0), callback=lambda progress: None),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_result_can_be_written(adata, model, tmp_path):
    fitted = annotated.fit(model, adata)
    assert fitted is model
    new = make(1)
    annotated.transform(model, new, layer="counts")
    np.testing.assert_array_equal(new.obsm["X_nmf"], model.transform(annotated.matrix(new, layer="counts")))
    new.write_h5ad(tmp_path / "new.h5ad")
    assert anndata.read_h5ad(tmp_path / "new.h5ad").uns["nmf"]["estimator"] == type(model).__name__


def test_a_saved_model_knows_its_variables(adata, tmp_path):
    NMF(K).fit(adata).save(tmp_path / "model.npz")
    loaded = nonneg.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.transform(adata[:, ::-1]), NMF(K).fit(adata).transform(adata))


def test_scaled_data_are_refused_with_the_layers_to_choose_from(adata):
    adata.X = adata.X.toarray() - 1
    with pytest.raises(NegativeDataError, match=r"row 'cell0'.*scanpy\.pp\.scale.*Layers: 'counts'"):
        NMF(K).fit(adata)
    with pytest.raises(NegativeDataError, match=r"adata\.X looks like"):
        nmf(adata, K)
    nmf(adata, K, layer="counts")


def test_missing_places_are_named_with_what_there_is(adata):
    with pytest.raises(InvalidParameterError, match=r"layer='count' is not known.*\['counts'\].*'counts'\?"):
        nmf(adata, K, layer="count")
    bare = anndata.AnnData(adata.X, var=pandas.DataFrame({"mt": True}, index=adata.var_names))
    with pytest.raises(InvalidParameterError, match=r"no column 'highly_variable' \(columns: 'mt'\)"):
        nmf(bare, K, use_highly_variable=True)
    nmf(bare, K)
    assert bare.varm["NMF"].all(axis=1).any()
    bare.var["highly_variable"] = False
    with pytest.raises(InvalidDataError, match="True for none of 15"):
        nmf(bare, K)
    empty = anndata.AnnData(None, obs=adata.obs, var=adata.var, layers={"counts": adata.layers["counts"]})
    with pytest.raises(InvalidDataError, match=r"adata\.X is None\. Layers: 'counts'"):
        NMF(K).fit(empty)
    with pytest.raises(DataTypeError, match="Expected an AnnData object, got ndarray"):
        nmf(np.eye(3), 2)
    with pytest.raises(DataTypeError, match="AnnData"):
        nonneg.TransformNMF(2).fit(adata)


def test_results_of_another_object_are_refused(adata):
    model = NMF(K).fit(adata.X.toarray())
    W = model.transform(adata.X.toarray())
    with pytest.raises(ShapeError, match="40 rows, but there are 10"):
        annotated.store(adata[:10].copy(), model, W)
    with pytest.raises(ShapeError, match="without names"):
        annotated.store(adata[:, :5].copy(), model, W)
    named = NMF(K).fit(adata)
    with pytest.raises(ShapeError, match="not in the object"):
        annotated.store(adata[:, :5].copy(), named, W)


@pytest.mark.parametrize("layout", ["csr", "dense"])
def test_a_backed_object_is_read_block_by_block(tmp_path, monkeypatch, layout):
    adata = make(dtype=np.float64)
    adata.X = adata.layers["counts"] if layout == "csr" else adata.layers["counts"].toarray()
    del adata.layers["counts"]
    adata.write_h5ad(tmp_path / "cells.h5ad")
    expected = nmf(adata, K, copy=True)
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    monkeypatch.setattr("nonneg.io.memory.memory_limit", lambda: 8000)
    monkeypatch.setattr(StoredMatrix, "read_all", lambda self: pytest.fail("X was read whole"))
    most = []
    read_rows = StoredMatrix.read_rows

    def watched(self, start, stop):
        most.append(stop - start)
        return read_rows(self, start, stop)

    monkeypatch.setattr(StoredMatrix, "read_rows", watched)
    nmf(backed, K)
    assert max(most) < N_CELLS
    for slot, key in (("obsm", "X_nmf"), ("varm", "NMF")):
        found, wanted = (np.asarray(getattr(one, slot)[key]) for one in (backed, expected))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * wanted.max())
    # The genes of a fit in another order are found by name.
    model = NMF(K).fit(adata[:, ::-1])
    np.testing.assert_allclose(model.transform(backed), model.transform(adata), atol=1e-8)
    backed.file.close()


def test_results_are_written_into_a_copy_of_a_file_and_never_over_it(adata, tmp_path):
    source, target = tmp_path / "in.h5ad", tmp_path / "out.h5ad"
    adata.write_h5ad(source)
    before = source.read_bytes()
    model = NMF(K)
    W = model.fit_transform(adata)
    annotated.write_h5ad(source, target, model, W, params={"layer": None})
    annotated.write_h5ad(source, target, model, W)  # replaces the first
    found = anndata.read_h5ad(target)
    np.testing.assert_array_equal(found.obsm["X_nmf"], W)
    np.testing.assert_array_equal(found.varm["NMF"], model.components_.T)
    assert (found.layers["counts"] != adata.layers["counts"]).nnz == 0
    link = tmp_path / "link.h5ad"
    link.symlink_to(source)
    for place in (source, link):
        with pytest.raises(OutputError, match="never overwritten"):
            annotated.write_h5ad(source, place, model, W)
    with pytest.raises(InvalidParameterError, match=r"out\.csv does not end in"):
        annotated.write_h5ad(source, tmp_path / "out.csv", model, W)
    with pytest.raises(OutputError, match="no folder"):
        annotated.write_h5ad(source, tmp_path / "missing" / "out.h5ad", model, W)
    with pytest.raises(ShapeError, match="30 rows, but"):
        annotated.write_h5ad(source, tmp_path / "short.h5ad", model, W[:30])
    assert source.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.h5ad", "link.h5ad", "out.h5ad"]


def test_a_full_disk_that_hdf5_finds_is_named(adata, tmp_path, monkeypatch):
    adata.write_h5ad(tmp_path / "in.h5ad")
    model = NMF(K)
    W = model.fit_transform(adata)

    def full(*_):
        raise RuntimeError("Can't decrement id ref count (file write failed: ... 'File too large')")

    monkeypatch.setattr("anndata.io.write_elem", full)
    with pytest.raises(
        OutputError, match=r"out\.h5ad could not be written.*too large.*in\.h5ad is unchanged"
    ):
        annotated.write_h5ad(tmp_path / "in.h5ad", tmp_path / "out.h5ad", model, W)
    assert [path.name for path in tmp_path.iterdir()] == ["in.h5ad"]


def test_log_normalized_values_are_noticed_and_the_counts_are_named(adata):
    model = nonneg.ConsensusNMF(K, n_init=2, density_threshold=2.0, random_state=0)
    adata.uns["log1p"] = {"base": None}
    with pytest.warns(NonnegWarning, match=r"adata\.X .* scanpy\.pp\.log1p, .*matrix.adata, layer='counts'"):
        model.fit(adata)
    model.fit(annotated.matrix(adata, layer="counts"))  # without a word
    adata.raw = adata
    del adata.layers["counts"]
    with pytest.warns(NonnegWarning, match=r"Pass adata\.raw\.X\."):
        model.fit(adata)


def test_weights_are_a_frame_with_the_names_of_cells_and_components(adata):
    model = annotated.fit(NMF(K), adata, key_added="programs")
    frame = annotated.weights(adata, key_added="programs")
    assert list(frame.columns) == ["programs0", "programs1", "programs2"]
    assert list(frame.index) == list(adata.obs_names)
    np.testing.assert_array_equal(frame, model.transform(adata))
    with pytest.raises(InvalidParameterError, match=r"no obsm\['X_nmf'\]"):
        annotated.weights(adata)
