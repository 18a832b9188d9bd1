"""Data frames and AnnData as data: labels of both sides, chosen variables, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from nonneg import NMF, factorize
from nonneg.data.annotated import AnnDataMatrix, annotated_matrix, frame_labels, is_anndata
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    ShapeError,
    UnknownNameError,
)

pd = pytest.importorskip("pandas")


class Cells:
    """What AnnData objects have, as far as it is used."""

    obsm = varm = None

    def __init__(self, X, marks=None, layers=None, genes=None):
        self.X, self.layers = X, layers or {}
        n_cells, n_genes = (3, 4) if X is None else X.shape
        self.n_obs, self.n_vars = n_cells, n_genes
        self._obs = pd.Index([f"c{at}" for at in range(n_cells)])
        self._var = pd.Index(genes or [f"g{at}" for at in range(n_genes)])
        self.var = pd.DataFrame({} if marks is None else {"highly_variable": marks}, index=self._var)

    @property
    def obs_names(self):
        return self._obs

    @property
    def var_names(self):
        return self._var

    layers = None


X = np.arange(12.0).reshape(3, 4)


def test_what_is_anndata_and_what_is_not():
    assert is_anndata(Cells(X))
    assert not is_anndata(Cells)
    assert not any(map(is_anndata, (X, SimpleNamespace(obs_names=1), pd.DataFrame(X))))
    assert annotated_matrix(X) is None


def test_the_whole_matrix_and_its_names():
    found = annotated_matrix(Cells(X))
    assert found.entries is X
    assert list(found.row_names) == ["c0", "c1", "c2"]
    assert list(found.column_names) == ["g0", "g1", "g2", "g3"]
    assert annotated_matrix(found) is found
    assert found.source.place == "adata.X"
    assert found.source.shape == (3, 4)


@pytest.mark.parametrize(
    ("wanted", "marks", "chosen"),
    [
        (False, [True, False, True, False], [0, 1, 2, 3]),
        (True, [True, False, True, False], [0, 2]),
        (None, [False, False, True, False], [2]),  # if there is such a column
        (None, None, [0, 1, 2, 3]),
        (True, [True, np.nan, 1.0, False], [0, 2]),  # missing, as after anndata.concat
    ],
)
def test_highly_variable_genes(wanted, marks, chosen):
    matrix = AnnDataMatrix(Cells(X, marks), use_highly_variable=wanted)
    assert matrix.shape == (3, len(chosen))
    found = annotated_matrix(matrix)
    np.testing.assert_array_equal(found.entries, X[:, chosen])
    assert list(found.column_names) == [f"g{at}" for at in chosen]


def test_without_highly_variable_genes_there_is_nothing_to_choose():
    with pytest.raises(InvalidParameterError, match=r"no column 'highly_variable' \(columns: none\)"):
        AnnDataMatrix(Cells(X), use_highly_variable=True).variables()
    with pytest.raises(InvalidDataError, match="is True for none of 4 variables"):
        AnnDataMatrix(Cells(X, [False] * 4), use_highly_variable=True).variables()
    many = Cells(X)
    many.var = pd.DataFrame({f"v{at}": np.zeros(4) for at in range(7)})
    with pytest.raises(InvalidParameterError, match=r"columns: 'v0', 'v1', 'v2', 'v3', 'v4' and 2 more\)"):
        AnnDataMatrix(many, use_highly_variable=True).variables()
    many.var = many.var.iloc[:, :5]
    with pytest.raises(InvalidParameterError, match=r"'v3', 'v4'\)"):
        AnnDataMatrix(many, use_highly_variable=True).variables()


def test_layers_by_name():
    cells = Cells(X, layers={"raw": 2 * X, None: X, "log": X})
    assert annotated_matrix(AnnDataMatrix(cells, layer="raw")).entries is cells.layers["raw"]
    assert AnnDataMatrix(cells, layer="raw").place == "adata.layers['raw']"
    with pytest.raises(UnknownNameError, match=r"layer='row' is not known.*'log', 'raw'\], or None for X"):
        AnnDataMatrix(cells, layer="row").stored()
    empty = Cells(None, layers={"raw": X})
    with pytest.raises(InvalidDataError, match=r"adata.X is None. Layers: 'raw'. Pass layer='NAME'"):
        AnnDataMatrix(empty).stored()
    with pytest.raises(InvalidDataError, match="There are no layers"):
        AnnDataMatrix(Cells(None)).stored()
    assert "Layers: 'raw', 'log'." in AnnDataMatrix(cells).advice()


def test_variables_of_a_fit_are_found_by_name():
    found = annotated_matrix(Cells(X), names=["g2", "g0"], who="NMF")
    np.testing.assert_array_equal(found.entries, X[:, [2, 0]])
    same = annotated_matrix(Cells(X), names=["g0", "g1", "g2", "g3"], who="NMF")
    assert same.entries is X
    with pytest.raises(
        ShapeError, match=r"NMF was fitted to 3 variables, but adata lacks 2 of them \('x', 'y'\)"
    ):
        annotated_matrix(Cells(X), names=["g0", "x", "y"], who="NMF")
    with pytest.raises(ShapeError, match="are not unique"):
        annotated_matrix(Cells(X, genes=["a", "a", "b", "c"]), names=["b"], who="NMF")


def test_labels_of_data_frames():
    frame = pd.DataFrame(
        {"a": [1, 2], "b": ["3", "4.5"], "c": pd.Series([1, 2.0], dtype=object)}, index=["r", "s"]
    )
    rows, columns = frame_labels(frame)
    assert (list(rows), list(columns)) == (["r", "s"], ["a", "b", "c"])
    assert frame_labels(frame["a"]) is None
    assert frame_labels(X) is None
    frame["d"] = ["5", "five"]
    with pytest.raises(DataTypeError, match=r"row 's', column 'd' is 'five'.*X\.drop\(columns='d'\)"):
        frame_labels(frame)
    frame["d"] = pd.to_datetime(["2020-01-01", "2020-01-02"])
    for dates in (frame, frame.astype(object)):
        with pytest.raises(DataTypeError, match=r"Timestamp: row 'r', column 'd'.*X\.drop\(columns='d'\)"):
            frame_labels(dates)


def test_dates_and_repeated_names_are_refused_by_name():
    X = np.ones((4, 3))
    for dtype in ("datetime64[D]", "timedelta64[s]"):
        with pytest.raises(DataTypeError, match=f"{dtype[:-3]}.*not supported by NMF"):
            NMF(2).fit(np.zeros((4, 3), dtype=dtype))
    with pytest.raises(InvalidDataError, match="distinct column names, got 'a' more than once"):
        NMF(2).fit(pd.DataFrame(X, columns=["a", "a", "b"]))
    assert factorize(pd.DataFrame(X, columns=["a", "a", "b"]), 2, max_iter=2, tol=0).H.shape == (2, 3)


def test_a_view_of_an_object_with_a_dask_array():
    anndata, dask_array = pytest.importorskip("anndata"), pytest.importorskip("dask.array")
    counts = np.random.default_rng(0).random((40, 12))
    view = anndata.AnnData(dask_array.from_array(counts, chunks=(10, 12)))[:30]
    model, expected = (NMF(3, random_state=0).fit(each) for each in (view, counts[:30]))
    np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-6, atol=1e-9)
