"""One answer from NumPy, memory-mapped files, Zarr, HDF5, AnnData, 10x Genomics and Parquet."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.contracts.cases import close, entries
from tests.references.stored import FORMATS, write

from nonneg import NMF, open_matrix
from nonneg.data.door import wrap

pytestmark = pytest.mark.usefixtures("sound_hdf5")

X = entries(2.0, shape=(60, 15))
# One that asks for products with the blocks, and one that maps a function over them.
OPTIONS = {"hals": {"solver": "hals"}, "mu": {"solver": "mu", "beta_loss": "kullback-leibler"}}


@cache
def from_memory(solver):
    """The model of the array, and its encoding."""
    model = NMF(3, max_iter=2, tol=0, **OPTIONS[solver]).fit(X)
    return model, model.transform(X)


@pytest.mark.covering(1)
@pytest.mark.parametrize("solver", OPTIONS)
@pytest.mark.parametrize("form", FORMATS)
def test_files_give_the_answer_of_numpy(form, solver, tmp_path):
    path, variable = write(X, form, tmp_path)
    data = wrap(open_matrix(path, variable=variable, memory=3000))
    assert data.container == "streamed"
    expected, W = from_memory(solver)
    found = NMF(3, max_iter=2, tol=0, **OPTIONS[solver]).fit(data)
    close(found.components_, expected.components_, 1e-8)
    assert found.reconstruction_err_ == pytest.approx(expected.reconstruction_err_, rel=1e-8)
    close(found.transform(data), W, 1e-6)


def test_a_memory_mapped_array_larger_than_the_budget_is_streamed(tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    expected = NMF(3, max_iter=6, tol=0).fit(mapped)
    monkeypatch.setattr("nonneg.io.memory.memory_limit", lambda: 6000)
    data = wrap(mapped)
    assert data.container == "streamed"
    close(NMF(3, max_iter=6, tol=0).fit(data).components_, expected.components_, 1e-8)
