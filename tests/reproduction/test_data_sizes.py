"""The real sets, where they are on this machine, have the sizes and classes that their sources state."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction import data as datasets
from reproduction.data import store

# Folder, loader, shape, nonzeros (sparse) or None, classes.
SETS = {
    "bbc": (datasets.load_bbc, (2225, 9635), 286774, 5),
    "brca_sbs96_wgs": (datasets.load_brca_sbs96, (793, 96), None, 4),
    "cbcl_faces": (datasets.load_cbcl_faces, (2429, 361), None, 0),
    "ckplus48": (datasets.load_ck_plus, (981, 2304), None, 7),
    "coil20": (datasets.load_coil20, (1440, 1024), None, 20),
    "dblp1": (lambda: datasets.load_dblp("dblp1"), (30566, 30566), 272124, 6),
    "dblp2": (lambda: datasets.load_dblp("dblp2"), (16817, 16817), 128304, 3),
    "dblp4": (lambda: datasets.load_dblp("dblp4"), (25481, 25481), 133652, 3),
    "facebook_ego": (lambda: datasets.load_facebook_ego("0"), (342, 342), None, 0),
    "football": (datasets.load_football, (115, 115), 1226, 12),
    "hitech_bmme": (datasets.load_hitech, (2301, 10080), 331373, 6),
    "indian_pines": (datasets.load_indian_pines, (21025, 200), None, 16),
    "karate": (datasets.load_karate, (34, 34), 156, 2),
    "leukemia_all_aml": (datasets.load_leukemia, (38, 5000), None, 3),
    "moffett": (datasets.load_moffett, (2500, 184), None, 3),
    "olivetti_64x64": (datasets.load_olivetti, (400, 4096), None, 40),
    "orl_32x32": (datasets.load_orl, (400, 1024), None, 40),
    "paviaU_sub50": (datasets.load_pavia_u_crop, (2500, 103), None, 0),
    "pbmc3k": (datasets.load_pbmc3k, (2700, 13714), 2282976, 9),
    "reuters21578": (datasets.load_reuters21578, (8293, 18933), 389455, 65),
    "samson": (datasets.load_samson, (9025, 156), None, 3),
    "swimmer": (datasets.load_swimmer, (256, 1024), None, 0),
    "tdt2": (datasets.load_tdt2, (9394, 36771), 1224135, 30),
    "yaleB_32x32": (datasets.load_yale_b, (2414, 1024), None, 38),
    "cluto_classic": (lambda: datasets.load_cluto("classic"), (7094, 41681), 223839, 4),
    "cluto_fbis": (lambda: datasets.load_cluto("fbis"), (2463, 2000), 393386, 17),
    "cluto_k1a": (lambda: datasets.load_cluto("k1a"), (2340, 21839), 349792, 20),
    "cluto_la1": (lambda: datasets.load_cluto("la1"), (3204, 31472), 484024, 6),
    "cluto_re0": (lambda: datasets.load_cluto("re0"), (1504, 2886), 77808, 13),
    "cluto_tr11": (lambda: datasets.load_cluto("tr11"), (414, 6429), 116613, 9),
    "cluto_tr12": (lambda: datasets.load_cluto("tr12"), (313, 5804), 85640, 8),
    "cluto_tr23": (lambda: datasets.load_cluto("tr23"), (204, 5832), 78609, 6),
    "cluto_tr41": (lambda: datasets.load_cluto("tr41"), (878, 7454), 171509, 10),
}
WITHOUT_A_KNOWN_SIZE = {"dblp3", "dblp5", "mag1", "mag2"}
WITHOUT_A_MATRIX = {"paviaU_gt", "audio_armstrong", "audio_nonstationary440"}


def need(name: str) -> None:
    if not store.is_available(name):
        pytest.skip(f"{name} is not on this machine")


def test_every_set_of_the_store_has_a_loader():
    assert set(store.SOURCES) == set(SETS) | WITHOUT_A_MATRIX | WITHOUT_A_KNOWN_SIZE


@pytest.mark.parametrize("name", SETS)
def test_the_real_set_has_its_published_size(name):
    need(name)
    load, shape, nonzeros, n_classes = SETS[name]
    found = load()
    assert found.X.shape == shape
    assert found.X.dtype == np.float64
    assert found.X.min() >= 0
    assert nonzeros is None or found.X.nnz == nonzeros
    known = set(found.y.tolist()) - {-1}
    assert known == set(range(n_classes))
    assert not found.names or len(found.names) == n_classes
    assert found.y.shape == (shape[0],)
    for names, size in ((found.sample_names, shape[0]), (found.feature_names, shape[1])):
        assert len(names) in (0, size)
    for grid, size in ((found.sample_shape, shape[0]), (found.feature_shape, shape[1])):
        assert grid is None or np.prod(grid) == size


def test_the_classes_of_pavia():
    need("paviaU_gt")
    classes = datasets.load_pavia_u_classes()
    assert classes.shape == (610, 340)
    assert set(np.unique(classes)) == set(range(-1, 9))


@pytest.mark.parametrize("name", ["olivetti_64x64", "orl_32x32", "yaleB_32x32", "cbcl_faces", "ckplus48"])
def test_real_faces_are_upright(name):
    """The left half of a face mirrors its right half far better than the upper half the lower."""
    need(name)
    faces = SETS[name][0]()
    mean = faces.X.mean(axis=0).reshape(faces.feature_shape)
    sides = np.corrcoef(mean.ravel(), mean[:, ::-1].ravel())[0, 1]
    ends = np.corrcoef(mean.ravel(), mean[::-1].ravel())[0, 1]
    assert sides > ends + 0.2


def test_the_abundances_of_a_scene_lie_where_its_pixels_lie():
    need("moffett")
    scene = datasets.load_moffett()
    model = scene.extras["abundances"] @ scene.extras["endmembers"]
    assert np.linalg.norm(scene.X - model) < 0.06 * np.linalg.norm(scene.X)


def test_the_abundances_of_samson_point_at_its_pixels():
    need("samson")
    scene = datasets.load_samson()
    model = scene.extras["abundances"] @ scene.extras["endmembers"]
    cosines = np.sum(scene.X * model, axis=1) / (
        np.linalg.norm(scene.X, axis=1) * np.linalg.norm(model, axis=1)
    )
    assert np.degrees(np.arccos(np.median(cosines))) < 3


def test_recordings():
    need("audio_armstrong")
    song = datasets.load_armstrong()
    assert song.signals.shape == (1, 1191735)
    assert song.rate == 11025
    need("audio_nonstationary440/sim1.npz")
    mixtures = datasets.load_nonstationary440()
    assert mixtures.signals.shape == (10, 15000)
    np.testing.assert_allclose(mixtures.sources.sum(axis=0), mixtures.signals, atol=1e-12)
