from __future__ import annotations

import hashlib

import numpy as np
import pytest
import scipy.sparse

from nonneg import datasets
from nonneg.datasets import catalog, store
from nonneg.datasets.content import sparse_arrays
from nonneg.exceptions import FileFormatError, NonnegError, UnknownNameError


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data home with small stand-ins for the three sets, whose checksums are made the known ones."""
    monkeypatch.delenv(store.ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pixels = np.arange(3 * 64 * 64, dtype=np.uint16).reshape(3, -1) % 256
    scene = np.arange(2 * 3 * 4, dtype=np.uint16).reshape(2, 3, 4)
    counts = scipy.sparse.csr_matrix(np.array([[2, 0, 1], [0, 0, 3]], dtype=np.uint8))
    for folder in ("olivetti_64x64", "indian_pines", "tdt2"):
        (tmp_path / folder).mkdir()
    np.savez(tmp_path / "olivetti_64x64/data.npz", X=pixels.astype(np.uint8), y=np.array([0, 0, 1], np.uint8))
    np.savez(tmp_path / "indian_pines/data.npz", X=scene, gt=np.array([[0, 1, 2], [3, 16, 0]], np.uint8))
    scipy.sparse.save_npz(tmp_path / "tdt2/X.npz", counts)
    np.savez(tmp_path / "tdt2/labels.npz", y=np.array([4, 0], np.uint8))
    np.savez(tmp_path / "tdt2/class_subsets.npz", k2=np.array([[4, 0]], np.uint8))
    for path in tmp_path.glob("*/*.npz"):
        file = path.relative_to(tmp_path).as_posix()
        monkeypatch.setitem(catalog.CHECKSUMS, file, hashlib.sha256(path.read_bytes()).hexdigest())
    return tmp_path


def test_faces_are_upright_and_scaled(home):
    faces = datasets.load_olivetti(home, dtype=np.float32)
    with np.load(home / "olivetti_64x64/data.npz") as file:
        stored = file["X"][1].reshape(64, 64)
    assert faces.X.dtype == np.float32
    np.testing.assert_allclose(faces.X[1].reshape(faces.feature_shape), stored.T / 255, rtol=1e-6)
    np.testing.assert_array_equal(faces.y, [0, 0, 1])


def test_pixels_of_the_scene_are_rows_and_unlabeled_ones_are_marked(home):
    scene = datasets.load_indian_pines(home)
    assert scene.X.shape == (6, 4)
    assert scene.sample_shape == (2, 3)
    np.testing.assert_array_equal(scene.X[4], [16, 17, 18, 19])
    np.testing.assert_array_equal(scene.y, [-1, 0, 1, 2, 15, -1])
    assert scene.names[scene.y[4]] == "Stone-Steel-Towers"


@pytest.mark.parametrize("weighting", ["counts", "tfidf"])
def test_articles_stay_sparse(home, weighting):
    articles = datasets.load_tdt2(home, weighting=weighting, dtype=np.float32)
    assert articles.X.format == "csr"
    assert articles.X.dtype == np.float32
    assert articles.X.shape == (2, 3)
    expected = np.array([[2, 0, 1], [0, 0, 3]]) if weighting == "counts" else None
    if expected is not None:
        np.testing.assert_array_equal(articles.X.toarray(), expected)
    else:
        np.testing.assert_allclose(np.linalg.norm(articles.X.toarray(), axis=1), 1, rtol=1e-6)


def test_unknown_weighting_is_named(home):
    with pytest.raises(UnknownNameError, match=r"weighting='tf-idf'.*Did you mean 'tfidf'"):
        datasets.load_tdt2(home, weighting="tf-idf")


def test_the_environment_variable_names_the_home(home, monkeypatch):
    monkeypatch.setenv(store.ENVIRONMENT_VARIABLE, str(home))
    assert store.is_available("tdt2")
    assert datasets.load_tdt2().X.shape == (2, 3)


def test_without_a_home_the_error_says_what_to_put_where(monkeypatch, tmp_path):
    monkeypatch.delenv(store.ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr(catalog, "user_cache", lambda: tmp_path)
    assert not store.is_available("tdt2")
    with pytest.raises(
        datasets.DatasetNotFoundError, match=r"FOLDER/tdt2/X\.npz.*NONNEG_DATA=FOLDER"
    ) as caught:
        datasets.load_tdt2()
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, NonnegError)


def test_a_missing_file_is_named_with_its_checksum(home):
    (home / "tdt2/labels.npz").unlink()
    assert not store.is_available("tdt2", home)
    with pytest.raises(datasets.DatasetNotFoundError, match=catalog.CHECKSUMS["tdt2/labels.npz"]):
        datasets.load_tdt2(home)


def test_a_changed_file_is_refused(home):
    path = home / "olivetti_64x64/data.npz"
    contents = bytearray(path.read_bytes())
    contents[-1] ^= 1
    path.write_bytes(contents)
    with pytest.raises(FileFormatError, match="is not the expected file: its sha256 is"):
        datasets.load_olivetti(home)


def test_a_file_that_is_no_archive_of_arrays_is_refused(home, monkeypatch):
    path = home / "tdt2/labels.npz"
    path.write_bytes(b"not an archive")
    monkeypatch.setitem(catalog.CHECKSUMS, "tdt2/labels.npz", hashlib.sha256(b"not an archive").hexdigest())
    with pytest.raises(FileFormatError, match=r"cannot be read as an \.npz file"):
        store.read_arrays("tdt2/labels.npz", home)


@pytest.mark.parametrize("ask", [lambda: store.is_available("tdt3"), lambda: store.find("tdt2/Y.npz")])
def test_names_outside_the_store_are_refused_with_the_near_ones(ask):
    with pytest.raises(UnknownNameError, match="Did you mean 'tdt2"):
        ask()


def test_a_set_of_several_files_may_be_there_in_part(home):
    (home / "tdt2/class_subsets.npz").unlink()
    assert not store.is_available("tdt2", home)
    assert store.is_available("tdt2/X.npz", home)


def test_the_table_of_sources_is_complete():
    for name, entry in store.SOURCES.items():
        assert entry["license"], name
        assert entry["files"], name
        for source in entry["sources"]:
            assert source["host"] in {"github", "pypi"}
            assert source["repository"]
            assert source["revision"]
            assert source["paths"]
        # Of networks that were never seen here nothing is known.
        facts_known = name not in {"dblp3", "dblp5", "mag1", "mag2"}
        for file, facts in entry["files"].items():
            assert (facts == {}) is not facts_known
            if facts_known:
                assert facts["bytes"] > 0
                assert len(bytes.fromhex(facts["sha256"])) == 32
                assert bool(catalog.known_arrays(f"{name}/{file}")) is (
                    file.endswith(".npz") and file not in {"sim3.npz", "sim4.npz", "sim5.npz"}
                )


def test_a_sparse_matrix_is_not_changed_by_looking_at_its_arrays():
    matrix = scipy.sparse.csr_array(([1.0, 0.0, 2.0], [2, 0, 1], [0, 2, 3]), shape=(2, 3))
    found = sparse_arrays(matrix)
    assert found["data"].tolist() == [1.0, 2.0]
    assert (matrix.data.tolist(), matrix.indices.tolist()) == ([1.0, 0.0, 2.0], [2, 0, 1])
