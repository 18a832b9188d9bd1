"""Where results go in an AnnData object: keys, loadings of variables, and files that may be written."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.exceptions import InvalidParameterError, OutputError, ShapeError
from nonneg.integrations.anndata import _result, check_target, store

pd = pytest.importorskip("pandas")
GENES = pd.Index(["g0", "g1", "g2", "g3"])
H = np.arange(1.0, 9.0).reshape(2, 4)


def fitted(components=H, **facts):
    return SimpleNamespace(components_=components, get_params=lambda deep: {"k": 2}, **facts)


@pytest.mark.parametrize(
    ("key", "keys"), [(None, ("X_nmf", "NMF", "nmf")), ("mine", ("mine", "mine", "mine"))]
)
def test_keys_are_those_of_scanpy_or_the_given_one(key, keys):
    W = np.ones((3, 2))
    found = _result(fitted(n_iter_=7), W, GENES, key, {"layer": "raw"})
    assert (found["obsm"][0], found["varm"][0], found["uns"][0]) == keys
    np.testing.assert_array_equal(found["obsm"][1], W)
    np.testing.assert_array_equal(found["varm"][1], H.T)
    assert found["uns"][1]["params"] == {"k": 2, "layer": "raw"}
    assert found["uns"][1]["n_iter"] == 7
    with pytest.raises(InvalidParameterError, match="use / for folders"):
        _result(fitted(), W, GENES, "a/b", None)


def test_loadings_belong_to_the_variables_of_the_fit():
    W = np.ones((3, 2))
    few = fitted(H[:, :2], feature_names_in_=np.array(["g3", "g1"]))
    loadings = _result(few, W, GENES, None, None)["varm"][1]
    expected = np.zeros((4, 2))
    expected[[3, 1]] = H[:, :2].T
    np.testing.assert_array_equal(loadings, expected)
    named = _result(fitted(H[:, :1]), W, GENES, None, None, ["g2"])["varm"][1]
    np.testing.assert_array_equal(named[2], H[:, 0])
    assert not named[[0, 1, 3]].any()
    with pytest.raises(ShapeError, match="Some variables of the fit are not in the object"):
        _result(fitted(H[:, :2]), W, GENES, None, None, ["g2", "x"])
    with pytest.raises(ShapeError, match="The components have 3 variables without names, but there are 4"):
        _result(fitted(H[:, :3]), W, GENES, None, None)


@pytest.mark.parametrize("n_rows", [3, 4])
def test_weights_have_a_row_for_every_observation(n_rows):
    cells = SimpleNamespace(var_names=GENES, n_obs=3, obsm={}, varm={}, uns={})
    if n_rows == 3:
        store(cells, fitted(), np.ones((3, 2)), key_added="x")
        assert [*cells.obsm, *cells.varm, *cells.uns] == ["x"] * 3
        return
    with pytest.raises(ShapeError, match="W has 4 rows, but adata has 3 observations"):
        store(cells, fitted(), np.ones((4, 2)))
    assert not cells.obsm


def test_a_copy_is_another_h5ad_file_in_a_folder(tmp_path):
    source, target = tmp_path / "a.h5ad", tmp_path / "b.h5ad"
    source.touch()
    check_target(source, target)
    target.touch()
    check_target(source, target)  # it is replaced
    with pytest.raises(OutputError, match="is the input, which is never overwritten"):
        check_target(source, source)
    table = tmp_path / "a.csv"
    table.touch()
    for wrong in ((table, target), (source, tmp_path / "b.csv")):
        with pytest.raises(InvalidParameterError, match=r"[ab]\.csv does not end in \.h5ad"):
            check_target(*wrong)
    with pytest.raises(OutputError, match="there is no folder"):
        check_target(source, tmp_path / "gone" / "b.h5ad")
