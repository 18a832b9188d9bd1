"""Small files in MATLAB's format, converted as the real ones are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from nonneg.datasets.content import described
from nonneg.datasets.conversion import matlab
from nonneg.exceptions import FileFormatError


def written(folder, name, **variables):
    scipy.io.savemat(folder / name, variables)
    return folder / name


def cell(*texts):
    found = np.empty((len(texts), 1), dtype=object)
    for at, text in enumerate(texts):
        found[at, 0] = text
    return found


def test_a_scene_with_the_names_of_its_endmembers(tmp_path, rng):
    Y, A, M = rng.random((5, 9)), rng.random((3, 9)), rng.random((5, 3))
    names = np.array(["rock", "", "water"])
    known = {name: described(array) for name, array in {"Y": Y, "A": A, "M": M, "names": names}.items()}
    known["nrow_ncol"] = described(np.array([3, 3], dtype=np.uint8))
    paths = {
        "scene": written(tmp_path, "scene.mat", V=Y),
        "truth": written(tmp_path, "truth.mat", A=A, M=M, cood=cell("rock", "", "water"), other=cell("x")),
    }
    found = matlab.samson(paths, {"data.npz": known})["data.npz"]
    assert list(found) == ["Y", "A", "M", "names", "nrow_ncol"]
    np.testing.assert_array_equal(found["Y"], Y)
    np.testing.assert_array_equal(found["A"], A)
    np.testing.assert_array_equal(found["M"], M)
    assert found["names"].tolist() == ["rock", "", "water"]
    assert found["nrow_ncol"].tolist() == [3, 3]
    paths["truth"] = written(tmp_path, "truth.mat", A=A, M=M)
    with pytest.raises(FileFormatError, match="names of the endmembers"):
        matlab.samson(paths, {"data.npz": known})


def test_faces_come_ten_by_ten(tmp_path, rng):
    X = rng.integers(255, size=(21, 4)).astype(np.uint8)
    path = written(tmp_path, "faces.mat", faces=X.T)
    found = matlab.olivetti({"a": path}, {"data.npz": {"X": described(X)}})["data.npz"]
    np.testing.assert_array_equal(found["X"], X)
    assert found["y"].tolist() == [0] * 10 + [1] * 10 + [2]


def test_variables_inside_structures_and_sparse_ones(tmp_path):
    path = written(
        tmp_path,
        "a.mat",
        s={"x": np.arange(3.0), "t": {"y": np.eye(2)}},
        text="no",
        S=sp.csc_array(np.eye(3)),
    )
    found = matlab.variables_of(path)
    assert sorted(found) == ["S", "s.t.y", "s.x"]
    np.testing.assert_array_equal(np.ravel(found["s.x"]), [0, 1, 2])
    np.testing.assert_array_equal(found["s.t.y"], np.eye(2))
    assert sp.issparse(found["S"])


def test_draws_of_classes(tmp_path):
    classes = np.array([4, 4, 7, 9, 9], dtype=np.uint8)
    np.savez(tmp_path / "labels.npz", y=classes)
    draws = np.array([[4, 9], [7, 9]], dtype=np.uint8)
    paths = {"labels.npz": tmp_path / "labels.npz"}
    for number, rows in ((1, [1, 2, 4, 5]), (2, [3, 4, 5])):
        paths[f"2Class/{number}.mat"] = written(tmp_path, f"{number}.mat", sampleIdx=np.array(rows))
    found = matlab.class_subsets(paths, {"class_subsets.npz": {"k2": described(draws)}})
    np.testing.assert_array_equal(found["class_subsets.npz"]["k2"], draws)
    paths["2Class/2.mat"] = written(tmp_path, "2.mat", sampleIdx=np.array([3]))
    with pytest.raises(FileFormatError, match=r"Expected documents of 2 classes in 2.mat, found 1"):
        matlab.class_subsets(paths, {"class_subsets.npz": {"k2": described(draws)}})
    paths["2Class/2.mat"] = written(tmp_path, "2.mat", rows=np.array([3]))
    with pytest.raises(FileFormatError, match=r"variable sampleIdx in 2.mat, found rows"):
        matlab.class_subsets(paths, {"class_subsets.npz": {"k2": described(draws)}})
