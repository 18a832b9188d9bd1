"""Results in an AnnData object: keys, loadings of variables, and files that may be written."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.exceptions import InvalidParameterError, OutputError, ShapeError
from nonneg.integrations.anndata import check_target, store

pd = pytest.importorskip("pandas")
GENES = pd.Index(["g0", "g1", "g2", "g3"])
H = np.arange(1.0, 9.0).reshape(2, 4)


def fitted(components=H, **facts):
    return SimpleNamespace(components_=components, get_params=lambda deep: {"k": 2}, **facts)


def stored(model, W, genes=GENES, **options):
    """Store a result in an object without cells and return it."""
    cells = SimpleNamespace(var_names=genes, n_obs=3, obsm={}, varm={}, uns={})
    store(cells, model, W, **options)
    return cells


@pytest.mark.parametrize(
    ("key", "keys"), [(None, ("X_nmf", "NMF", "nmf")), ("mine", ("mine", "mine", "mine"))]
)
def test_keys_are_those_of_scanpy_or_the_given_one(key, keys):
    W = np.ones((3, 2))
    cells = stored(fitted(n_iter_=7), W, key_added=key, params={"layer": "raw"})
    assert (*cells.obsm, *cells.varm, *cells.uns) == keys
    np.testing.assert_array_equal(cells.obsm[keys[0]], W)
    np.testing.assert_array_equal(cells.varm[keys[1]], H.T)
    assert cells.uns[keys[2]]["params"] == {"k": 2, "layer": "raw"}
    assert cells.uns[keys[2]]["n_iter"] == 7
    with pytest.raises(InvalidParameterError, match="use / for folders"):
        stored(fitted(), W, key_added="a/b")


def test_loadings_belong_to_the_variables_of_the_fit():
    W = np.ones((3, 2))
    few = fitted(H[:, :2], feature_names_in_=np.array(["g3", "g1"]))
    expected = np.zeros((4, 2))
    expected[[3, 1]] = H[:, :2].T
    np.testing.assert_array_equal(stored(few, W).varm["NMF"], expected)
    with pytest.raises(ShapeError, match="Some variables of the fit are not in the object"):
        stored(fitted(H[:, :2], feature_names_in_=np.array(["g2", "x"])), W)
    with pytest.raises(ShapeError, match="The components have 3 variables without names, but there are 4"):
        stored(fitted(H[:, :3]), W)
    with pytest.raises(ShapeError, match="W has 4 rows, but there are 3 observations"):
        stored(fitted(), np.ones((4, 2)))


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
