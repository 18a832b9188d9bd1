from __future__ import annotations

import numpy as np
import pytest

from nonneg.datasets import faces_like, scene_like, text_like


def relative_singular_values(X):
    squared = np.linalg.eigvalsh(X @ X.T if X.shape[0] < X.shape[1] else X.T @ X)[::-1]
    return np.sqrt(np.maximum(squared, 0) / squared[0])


def test_faces_have_the_shape_and_the_slow_spectrum_of_the_real_ones():
    faces = faces_like(rng=0)
    assert faces.X.shape == (400, 4096)
    assert 0 <= faces.X.min() < faces.X.max() <= 1
    np.testing.assert_array_equal(np.bincount(faces.labels), np.full(40, 10))
    # The real set has 0.094, 0.031 and 0.013.
    second, tenth, fortieth = relative_singular_values(faces.X)[[1, 10, 40]]
    assert 0.05 < second < 0.2
    assert 0.015 < tenth < 0.06
    assert 0.006 < fortieth < 0.025


def test_faces_are_the_stated_mixture():
    faces = faces_like(5, 4, 16, n_parts=30, rng=1)
    product = faces.W @ faces.H
    seen = (product > 0.05) & (product < 0.95)
    assert np.abs(faces.X - product)[seen].max() < 0.06


def test_pictures_of_one_subject_are_alike():
    faces = faces_like(10, 6, 16, rng=2)
    logs = np.log(faces.W)
    within = np.mean([logs[faces.labels == s].std(axis=0).mean() for s in range(10)])
    assert within < 0.8 * logs.std(axis=0).mean()


def test_scene_has_the_shape_and_the_spectrum_of_the_real_one():
    scene = scene_like(rng=0)
    assert scene.X.shape == (21025, 200)
    assert scene.X.min() > 100
    assert scene.X.max() < 15_000
    # The real scene has 0.119, 0.0078 and 0.0017.
    second, tenth, fiftieth = relative_singular_values(scene.X)[[1, 10, 50]]
    assert 0.05 < second < 0.2
    assert 0.003 < tenth < 0.02
    assert 0.0005 < fiftieth < 0.005


def test_spectra_are_smooth_and_shares_are_those_of_the_labels():
    scene = scene_like(20, 30, 60, 4, rng=1)
    assert np.abs(np.diff(np.log(scene.H), axis=1)).max() < 0.2
    np.testing.assert_array_equal(scene.W.argmax(axis=1), scene.labels)
    error = np.linalg.norm(scene.X - scene.W @ scene.H) / np.linalg.norm(scene.X)
    assert 0.03 < error < 0.05


def test_text_has_the_shape_and_the_counts_of_the_real_one():
    text = text_like(rng=0)
    assert text.X.shape == (9394, 36771)
    assert text.X.format == "csr"
    assert text.X.nnz == pytest.approx(1_224_135, rel=0.15)
    assert text.X.sum() == pytest.approx(9394 * 184, rel=0.05)
    frequencies = np.sort(np.bincount(text.X.indices, minlength=36771))[::-1]
    assert frequencies[0] > 20 * frequencies[1000] > 20 * 3 * frequencies[5000]


def test_counts_are_those_of_the_topics():
    text = text_like(2000, 50, 3, mean_length=200, rng=1)
    np.testing.assert_allclose(text.H.sum(axis=1), 1)
    expected = text.W @ text.H
    left = text.X.toarray() - expected
    assert np.mean(left**2 / expected) == pytest.approx(1, abs=0.1)
    np.testing.assert_array_equal(text.X.data, np.rint(text.X.data))
    assert text.X.has_canonical_format


@pytest.mark.parametrize(
    "draw",
    [
        lambda dtype: faces_like(4, 3, 12, n_parts=10, rng=5, dtype=dtype),
        lambda dtype: scene_like(10, 12, 20, 3, rng=5, dtype=dtype),
        lambda dtype: text_like(30, 40, 3, mean_length=20, rng=5, dtype=dtype),
    ],
    ids=["faces", "scene", "text"],
)
def test_type_and_seed_are_kept(draw):
    single, again, double = draw(np.float32), draw(np.float32), draw(np.float64)
    assert single.X.dtype == single.H.dtype == single.W.dtype == np.float32
    assert (single.X != again.X).sum() == 0
    assert abs(single.X - double.X).max() <= 1e-6 * abs(double.X).max()
