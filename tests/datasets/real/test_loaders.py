"""Loaders on made-up files of the stored layout: orientation, scale, classes, names and companions."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import scipy.sparse

from nonneg import datasets
from nonneg.datasets import catalog, store
from nonneg.exceptions import UnknownNameError


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Write a file of the store, and make its checksum the known one."""

    def write(file: str, content=None, **arrays) -> None:
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        if content is not None:
            scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(content))
        else:
            np.savez(path, **arrays)
        assert file in catalog.CHECKSUMS
        monkeypatch.setitem(catalog.CHECKSUMS, file, hashlib.sha256(path.read_bytes()).hexdigest())

    return write


@pytest.mark.parametrize(
    ("load", "folder", "side", "upright", "scale", "n_classes", "last"),
    [
        (datasets.load_olivetti, "olivetti_64x64", 64, False, 255, 40, "person 39"),
        (datasets.load_orl, "orl_32x32", 32, False, 255, 40, "person 39"),
        (datasets.load_yale_b, "yaleB_32x32", 32, False, 255, 38, "person 37"),
        (datasets.load_coil20, "coil20", 32, False, 255, 20, "object 19"),
        (datasets.load_ck_plus, "ckplus48", 48, True, 255, 7, None),
        (datasets.load_cbcl_faces, "cbcl_faces", 19, False, 1, 0, None),
    ],
)
def test_pictures_are_upright_and_scaled(put, tmp_path, load, folder, side, upright, scale, n_classes, last):
    stored = (np.arange(2 * side * side) % 251).reshape(2, side, side).astype(np.uint8)
    labeled = folder != "cbcl_faces"
    content = stored if upright else stored.reshape(2, -1)
    put(f"{folder}/data.npz", X=content, **({"y": np.array([1, 0], np.uint8)} if labeled else {}))
    faces = load(tmp_path, dtype=np.float32)
    assert faces.X.dtype == np.float32
    assert faces.feature_shape == (side, side)
    expected = stored[1] if upright else stored[1].T
    np.testing.assert_allclose(faces.X[1].reshape(side, side), expected / scale, rtol=1e-6)
    np.testing.assert_array_equal(faces.y, [1, 0] if labeled else [-1, -1])
    assert len(faces.names) == n_classes
    assert last is None or (faces.names[0], faces.names[-1]) == (f"{last.split()[0]} 0", last)


def test_swimmers_are_stored_by_pixels(put, tmp_path):
    stored = np.arange(1024 * 3).reshape(1024, 3).astype(np.uint16)
    put("swimmer/data.npz", X=stored)
    swimmers = datasets.load_swimmer(tmp_path)
    assert swimmers.X.shape == (3, 1024)
    np.testing.assert_array_equal(swimmers.X[2].reshape(32, 32), stored[:, 2].reshape(32, 32).T)


def test_pixels_of_an_unmixing_scene_keep_their_place(put, tmp_path):
    rng = np.random.default_rng(0)
    cube, abundances = rng.random((4, 3, 5)), rng.dirichlet(np.ones(3), size=(4, 3))
    spectra = rng.random((5, 3))
    columns_first = cube.transpose(1, 0, 2).reshape(12, 5).T
    put("moffett/data.npz", Y=columns_first, M=spectra, A_img=abundances)
    scene = datasets.load_moffett(tmp_path)
    assert scene.sample_shape == (4, 3)
    np.testing.assert_array_equal(scene.X.reshape(4, 3, 5), cube)
    np.testing.assert_array_equal(scene.extras["abundances"].reshape(4, 3, 3), abundances)
    np.testing.assert_array_equal(scene.extras["endmembers"], spectra.T)
    np.testing.assert_array_equal(scene.y.reshape(4, 3), abundances.argmax(axis=2))
    flat = abundances.transpose(1, 0, 2).reshape(12, 3).T
    put(
        "samson/data.npz",
        Y=columns_first,
        A=flat,
        M=spectra,
        names=np.array(["1", "2", "3"]),
        nrow_ncol=np.array([4, 3], np.uint8),
    )
    samson = datasets.load_samson(tmp_path, dtype=np.float32)
    np.testing.assert_allclose(samson.X.reshape(4, 3, 5), cube, rtol=1e-6)
    np.testing.assert_allclose(samson.extras["abundances"].reshape(4, 3, 3), abundances, rtol=1e-6)
    assert samson.X.dtype == samson.extras["endmembers"].dtype == np.float32


def test_the_crop_of_pavia_has_no_classes(put, tmp_path):
    cube = np.arange(2 * 3 * 4, dtype=np.uint16).reshape(2, 3, 4)
    put("paviaU_sub50/data.npz", X=cube)
    put("paviaU_gt/data.npz", gt=np.array([[0, 9]], np.uint8))
    crop = datasets.load_pavia_u_crop(tmp_path)
    np.testing.assert_array_equal(crop.X[4], cube[1, 1])
    np.testing.assert_array_equal(crop.y, [-1] * 6)
    np.testing.assert_array_equal(datasets.load_pavia_u_classes(tmp_path), [[-1, 8]])


COUNTS = np.array([[2, 0, 1], [0, 0, 3], [0, 0, 0]], np.uint8)


@pytest.mark.parametrize("weighting", ["counts", "tfidf"])
@pytest.mark.parametrize("name", ["tr11", "bbc", "hitech", "reuters21578"])
def test_documents_stay_sparse(put, tmp_path, name, weighting):
    folder = {"tr11": "cluto_tr11", "hitech": "hitech_bmme"}.get(name, name)
    put(f"{folder}/X.npz", COUNTS)
    labels = {"y": np.array([2, 0, 2], np.uint8)}
    if name == "reuters21578":
        labels |= {"train_idx": np.array([0, 2], np.uint16), "test_idx": np.array([1], np.uint16)}
        put(f"{folder}/class_subsets.npz", k2=np.array([[2, 0]], np.uint8))
    put(f"{folder}/labels.npz", **labels)
    put("bbc/vocab.npz", vocab=np.array(["ad", "sale", "boost"]))
    load = datasets.load_cluto if name == "tr11" else getattr(datasets, f"load_{name}")
    texts = load(*(["tr11"] if name == "tr11" else []), tmp_path, weighting=weighting, dtype=np.float32)
    assert texts.X.format == "csr"
    assert texts.X.dtype == np.float32
    np.testing.assert_array_equal(texts.y, [2, 0, 2])
    if weighting == "counts":
        np.testing.assert_array_equal(texts.X.toarray(), COUNTS)
    else:
        np.testing.assert_allclose(np.linalg.norm(texts.X.toarray(), axis=1), [1, 1, 0], rtol=1e-6)
        assert "TF-IDF" in texts.description
    if name == "bbc":
        assert texts.feature_names == ("ad", "sale", "boost")
        assert texts.names[2] == "politics"
    if name == "reuters21578":
        np.testing.assert_array_equal(texts.extras["class_subsets"][2], [[2, 0]])
        np.testing.assert_array_equal(texts.extras["train"], [0, 2])


def test_graphs(put, tmp_path):
    edges = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], np.uint8)
    put("dblp2/A.npz", edges)
    put("dblp2/theta.npz", np.array([[0.2, 0.8], [1.0, 0.0], [0.6, 0.4]]))
    network = datasets.load_dblp("dblp2", tmp_path)
    np.testing.assert_array_equal(network.X.toarray(), edges)
    np.testing.assert_array_equal(network.y, [1, 0, 0])
    np.testing.assert_allclose(network.extras["memberships"].toarray()[0], [0.2, 0.8])

    put("facebook_ego/A_107.npz", edges)
    put("facebook_ego/circles_107.npz", np.array([[1, 1], [0, 1], [0, 0]], np.uint8))
    put("facebook_ego/ids_107.npz", node_id=np.array([900, 8, 77], np.uint16))
    friends = datasets.load_facebook_ego(107, tmp_path)
    assert friends.sample_names == ("900", "8", "77")
    np.testing.assert_array_equal(friends.extras["circles"].sum(axis=1), [2, 1, 0])
    np.testing.assert_array_equal(friends.y, [-1, -1, -1])

    put("football/A.npz", edges)
    put("football/labels.npz", y=np.array([7, 0, 7], np.uint8), names=np.array(["A", "B", "C"]))
    football = datasets.load_football(tmp_path)
    assert football.sample_names == ("A", "B", "C")
    put("karate/A.npz", edges)
    put("karate/labels.npz", y=np.array([0, 1, 0], np.uint8))
    np.testing.assert_array_equal(datasets.load_karate(tmp_path).y, [0, 1, 0])


def test_cohorts_are_joined_by_the_names_of_the_mutations(put, tmp_path):
    types = np.array(["A[C>A]A", "A[C>A]C"])
    for offset, cohort in enumerate(("EU", "FR", "UK", "US")):
        turned = cohort == "UK"
        table = np.array([[1, 2, 3], [10, 20, 30]], np.uint16) + 100 * offset
        put(
            f"brca_sbs96_wgs/BRCA-{cohort}.npz",
            V=table[::-1] if turned else table,
            types=types[::-1] if turned else types,
            samples=np.array([f"{cohort}{i}" for i in range(3)]),
        )
    everyone = datasets.load_brca_sbs96(tmp_path)
    assert everyone.X.shape == (12, 2)
    np.testing.assert_array_equal(everyone.X[7], [202, 220])
    np.testing.assert_array_equal(everyone.y, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    assert everyone.sample_names[7] == "UK1"
    one = datasets.load_brca_sbs96(tmp_path, cohort="US")
    assert one.X.shape == (3, 2)
    assert one.names[one.y[0]] == "US"


def test_cells_and_patients_are_rows(put, tmp_path):
    put("pbmc3k/X.npz", COUNTS)
    put("pbmc3k/labels.npz", y=np.array([1, -1, 0], np.int16), classes=np.array(["B", "NK"]))
    cells = datasets.load_pbmc3k(tmp_path)
    assert cells.names == ("B", "NK")
    np.testing.assert_array_equal(cells.y, [1, -1, 0])
    put(
        "leukemia_all_aml/data.npz",
        V=np.array([[1, 2], [3, 4], [5, 6]], np.uint16),
        y=np.array([0, 2], np.uint8),
        samples=np.array(["one", "two"]),
    )
    patients = datasets.load_leukemia(tmp_path)
    np.testing.assert_array_equal(patients.X, [[1, 3, 5], [2, 4, 6]])
    assert patients.names[patients.y[1]] == "AML"
    assert patients.sample_names == ("one", "two")


def test_recordings(put, tmp_path, monkeypatch):
    from scipy.io import wavfile

    parts = np.arange(2 * 2 * 3.0).reshape(2, 2, 3)
    put(
        "audio_nonstationary440/sim2.npz",
        fs=np.array([[5000]], np.uint16),
        ys=parts.sum(axis=0),
        ys1=parts[0],
        ys2=parts[1],
    )
    mixtures = datasets.load_nonstationary440(tmp_path, simulation=2, dtype=np.float32)
    assert mixtures.rate == 5000
    assert mixtures.signals.dtype == np.float32
    np.testing.assert_array_equal(mixtures.sources.sum(axis=0), mixtures.signals)
    path = tmp_path / "audio_armstrong/armstrong.wav"
    path.parent.mkdir()
    wavfile.write(path, 11025, np.array([0, 16384, -32768], np.int16))
    monkeypatch.setitem(
        catalog.CHECKSUMS, "audio_armstrong/armstrong.wav", hashlib.sha256(path.read_bytes()).hexdigest()
    )
    song = datasets.load_armstrong(tmp_path)
    np.testing.assert_array_equal(song.signals, [[0, 0.5, -1]])
    assert (song.rate, song.sources) == (11025, None)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: datasets.load_cluto("tr13"), "name='tr13'.*Did you mean 'tr"),
        (lambda: datasets.load_dblp("dblp9"), "Did you mean 'dblp"),
        (lambda: datasets.load_facebook_ego(1685), "Did you mean '1684'"),
        (lambda: datasets.load_brca_sbs96(cohort="CN"), "cohort='CN'.*'EU'"),
        (lambda: datasets.load_nonstationary440(simulation=6), "simulation=6.*'5'"),
        (lambda: datasets.load_bbc(weighting="tf"), "weighting='tf'"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(tmp_path, monkeypatch, ask, message):
    monkeypatch.setenv(store.ENVIRONMENT_VARIABLE, str(tmp_path))
    with pytest.raises(UnknownNameError, match=message):
        ask()
