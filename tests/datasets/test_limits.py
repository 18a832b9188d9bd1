"""Generated data at the limits of their parameters."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.data import low_rank_plus_noise, text_like

from nonneg.datasets import mixed_membership_graph, scene_like, single_cells
from nonneg.exceptions import InvalidParameterError, ShapeError

SCENE = {"height": 6, "width": 5, "n_bands": 8, "n_materials": 4, "rng": 0}


@pytest.mark.parametrize(("purity", "good"), [(0.25, False), (0.26, True), (1.0, True), (1.01, False)])
def test_the_purity_of_pixels_is_above_that_of_an_even_mixture(purity, good):
    if not good:
        with pytest.raises(InvalidParameterError, match=r"above 1 / n_materials = 0\.25 and at most 1"):
            scene_like(**SCENE, purity=purity)
        return
    scene = scene_like(**SCENE, purity=purity, brightness=0.0)
    np.testing.assert_allclose(scene.W.sum(axis=1), 1.0)
    assert scene.W.max() <= purity + 1e-12
    assert scene.W.min() >= 0
    assert scene_like(**(SCENE | {"n_materials": 1}), purity=purity).H.shape == (1, 8)


def test_noise_of_a_scene_has_the_signal_to_noise_ratio():
    clean, noisy = (scene_like(60, 50, 20, 3, snr=snr, rng=0) for snr in (300.0, 20.0))
    np.testing.assert_allclose(clean.X, clean.W @ clean.H, rtol=1e-9)
    noise = noisy.X - clean.X
    assert 10 * np.log10(np.mean(clean.X**2) / np.mean(noise**2)) == pytest.approx(20.0, abs=0.2)
    assert abs(np.corrcoef(noise[:, :-1].ravel(), noise[:, 1:].ravel())[0, 1]) < 0.05  # white
    plain = scene_like(60, 50, 20, 3, noise=0.05, rng=0)
    noise = (plain.X - clean.X) / clean.X.mean(axis=0)
    assert noise.std() == pytest.approx(0.05, rel=0.1)
    neighbors = np.mean(noise[:, :-1] * noise[:, 1:]) / np.mean(noise**2)
    assert neighbors == pytest.approx(0.97 * 0.9, abs=0.03)


def test_noise_of_low_rank_has_its_level():
    shape = {"n_samples": 300, "n_features": 200, "n_components": 3, "rng": 0}
    for noise in ("gaussian", "gamma"):
        exact = low_rank_plus_noise(**shape, noise=noise, level=0.0)
        np.testing.assert_allclose(exact.X, exact.W @ exact.H)
        drawn = low_rank_plus_noise(**shape, noise=noise, level=0.2)
        left = drawn.X - drawn.W @ drawn.H
        if noise == "gaussian":
            untouched = drawn.X > 0
            size = np.sqrt(np.mean(left[untouched] ** 2) / np.mean((drawn.W @ drawn.H) ** 2))
        else:
            size = np.std(left / (drawn.W @ drawn.H))
        assert size == pytest.approx(0.2, rel=0.1)
    counts = low_rank_plus_noise(**shape, noise="poisson", level=0.5)
    assert counts.X.mean() == pytest.approx(1 / 0.5**2, rel=0.02)
    for noise, level in (("poisson", 0.0), ("gaussian", -0.1)):
        with pytest.raises(InvalidParameterError, match=f"level={level} with"):
            low_rank_plus_noise(**shape, noise=noise, level=level)


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({"n_activities": 0}, True), ({"n_activities": 2}, True), ({"n_activities": 3}, False),
        ({"n_activities": -1}, False), ({"n_batches": 0}, False), ({"dispersion": 0.0}, True),
        ({"batch_effect": 0.0}, True), ({"batch_effect": -0.1}, False), ({"library_size": 0.0}, False),
    ],
)  # fmt: skip
def test_numbers_of_cells(changes, good):
    if not good:
        with pytest.raises(InvalidParameterError):
            single_cells(20, 30, 3, rng=0, **changes)
        return
    cells = single_cells(20, 30, 3, rng=0, **changes)
    assert (cells.X.shape, cells.H.shape, cells.W.shape) == ((20, 30), (3, 30), (20, 3))
    n_types = 3 - changes.get("n_activities", 2)
    assert cells.labels.max() < n_types
    assert np.all(cells.W[np.arange(20), cells.labels] > 0)
    assert cells.gene_names[0] == "gene_0"
    assert len(cells.gene_names) == 30


@pytest.mark.parametrize(
    ("options", "good"),
    [
        ({"n_nodes": 4, "n_communities": 2, "n_pure": 2}, True),
        ({"n_nodes": 3, "n_communities": 2, "n_pure": 2}, False),
        ({"n_nodes": 2, "n_communities": 1, "n_pure": 0}, True),
        ({"n_nodes": 1, "n_communities": 1, "n_pure": 0}, False),
        ({"n_nodes": 9, "n_communities": 0}, False),
        ({"n_nodes": 9, "n_communities": 2, "n_pure": -1}, False),
        ({"n_nodes": 9, "n_communities": 2, "mean_degree": 0.0}, False),
        ({"n_nodes": 9, "n_communities": 2, "mean_degree": 8.9}, True),
        ({"n_nodes": 9, "n_communities": 2, "mean_degree": 9.0}, False),
        ({"n_nodes": 9, "n_communities": 2, "alpha": 0.0}, False),
        ({"n_nodes": 9, "n_communities": 2, "between": 0.0}, True),
        ({"n_nodes": 9, "n_communities": 2, "between": -0.1}, False),
        ({"n_nodes": 9, "n_communities": 2, "degree_parameters": np.r_[np.inf, np.ones(8)]}, False),
    ],
)
def test_numbers_of_graphs(options, good):
    options = {"mean_degree": 1.0} | options
    if not good:
        with pytest.raises((InvalidParameterError, ShapeError)):
            mixed_membership_graph(rng=0, **options)
        return
    graph = mixed_membership_graph(rng=0, **options)
    n_pure = options.get("n_pure", 1) * options["n_communities"]
    assert len(graph.pure_nodes) >= n_pure
    sizes = graph.memberships.sum(axis=0)
    assert sizes @ graph.connectivity @ sizes == pytest.approx(options["mean_degree"] * options["n_nodes"])


def test_documents_have_a_word_at_least():
    text = text_like(50, 30, 2, mean_length=0.01, rng=0)
    np.testing.assert_array_equal(text.X.sum(axis=1), 1.0)
    np.testing.assert_allclose(text.W.sum(axis=1), 1.0)
    assert np.all(text.W[np.arange(50), text.labels] >= 0.6)
    long = text_like(2000, 30, 2, mean_length=50.0, rng=0)
    assert long.X.sum() / 2000 == pytest.approx(50.0, rel=0.1)
