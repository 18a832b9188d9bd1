"""A seed keeps its data from one version to the next: records of experiments name only the seed."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from reproduction import data as datasets

CELLS = {"n_cells": 40, "n_genes": 50, "n_programs": 5}
MIXED = {"n_nodes": 60, "n_communities": 3, "mean_degree": 6.0}
PURE = {"n_samples": 30, "n_features": 12, "n_components": 5}
FRAMES = {"n_frames": 12, "frame_length": 6, "n_components": 3}
CONES = {"n_samples": 30, "n_features": 12, "n_cones": 3}
SCENE = {"height": 9, "width": 7, "n_bands": 20, "n_materials": 4}
SOUND = {"seconds": 2.0, "rate": 8000}

# Generator, options, and the weighted mean of every array that it draws with the seed 7.
DRAWN: list[tuple[str, dict[str, Any], list[float]]] = [
    ("single_cells", CELLS, [19.702171, 0.019389019, 0.20166353, 1.1331277, 0, 0.019389019]),
    (
        "single_cells",
        CELLS | {"n_batches": 2, "program_effect": 0.5, "dispersion": 0.0},
        [26.721118, 0.019389019, 0.21503113, 0.97845109, 0.50479878, 0.019925951],
    ),
    ("mixed_membership_graph", MIXED, [0.092538986, 0.33269276, 0.10145216, 9.9853967]),
    (
        "mixed_membership_graph",
        MIXED | {"alpha": 2.0, "between": 0.3, "n_pure": 3},
        [0.10012996, 0.33741598, 0.10545388, 33.225381],
    ),
    (
        "mixed_membership_graph",
        MIXED | {"degree_parameters": np.linspace(0.5, 2.0, 60)},
        [0.093095459, 0.33269276, 0.064792362, 9.9853967],
    ),
    ("equiangular_directions", {"n_directions": 4, "n_features": 9, "angle": 0.7}, [0.29685743]),
    ("circular_cones", CONES, [0.26869371, 0.25389708, 1.0531241]),
    (
        "faces_like",
        {"n_subjects": 4, "n_images": 3, "side": 12, "n_parts": 30},
        [0.078522065, 0.097818197, 0.098289237, 1.3558268],
    ),
    ("gaussian_composite_model", FRAMES, [0.28093354, 21.634765, 0.17379862]),
    (
        "gaussian_composite",
        FRAMES | {"n_realizations": 2, "shape": 2.0, "scale": 0.5},
        [0.60475519, 0.28093354, 4.2075194, 0.17563705],
    ),
    ("low_rank_plus_noise", PURE, [2.6770603, 0.78781312, 0.70107783]),
    ("low_rank_plus_noise", PURE | {"noise": "gamma", "level": 0.3}, [2.6023311, 0.78781312, 0.70107783]),
    ("low_rank_plus_noise", PURE | {"noise": "poisson", "level": 0.3}, [9.5215417, 2.7499866, 0.70107783]),
    (
        "music_notes",
        {"n_realizations": 2},
        [0.00038178347, 0.076868852, 0.045826759, 4.4064873, 7500],
    ),
    ("purification_data", PURE, [0.22856346, 0.089033011, 0.55742353]),
    (
        "purification_data",
        PURE | {"features": "signed", "noise": "adversarial", "noise_level": 0.1},
        [0.07554641, 0.050083812, 0.57275389],
    ),
    (
        "purification_data",
        PURE | {"features": "uniform", "weights": "uniform", "noise": "unbiased", "noise_level": 0.1},
        [0.11177465, 0.083963533, 0.27704634],
    ),
    (
        "purification_model",
        {"n_features": 12, "n_components": 5, "noise": "correlated"},
        [0.089033011, 0.56883116, 0, 0.66632249],
    ),
    ("scene_like", SCENE, [2627.127, 2565.2737, 0.25987163, 1.385386]),
    (
        "scene_like",
        SCENE | {"purity": 0.8, "snr": 30.0},
        [2613.8454, 2565.2737, 0.25886324, 1.385386],
    ),
    ("separable_dirichlet", PURE, [0.4918566, 0.49516018, 0.19827135, 17.134684]),
    (
        "separable_dirichlet",
        PURE | {"snr": 20.0, "alpha": 0.5},
        [0.49049951, 0.49516018, 0.19994161, 17.134684],
    ),
    (
        "middle_points",
        {"n_features": 12, "n_components": 4, "snr": 20.0},
        [0.083060689, 0.082739413, 0.2691649, 3.5851041],
    ),
    (
        "text_like",
        {"n_documents": 20, "n_words": 60, "n_topics": 3, "mean_length": 30.0},
        [0.24809549, 0.017544047, 5.4798969, 1.0721412],
    ),
    ("instrument_sound", SOUND | {"instrument": "piano"}, [0.044393101]),
    ("instrument_sound", SOUND | {"instrument": "plucked", "tempo": 100.0}, [0.027747907]),
    ("instrument_sound", SOUND | {"instrument": "marimba"}, [0.044079443]),
    ("instrument_sound", SOUND | {"instrument": "violin"}, [0.049480707]),
    ("instrument_sound", SOUND | {"instrument": "flute"}, [0.043884479]),
    ("instrument_sound", SOUND | {"instrument": "brass", "tempo": 90.0}, [0.030482365]),
    ("instrument_sound", SOUND | {"instrument": "organ"}, [0.053359687]),
    ("instrument_sound", SOUND | {"instrument": "bass"}, [0.05299738]),
    ("instrument_sound", SOUND | {"instrument": "drums", "tempo": 120.0}, [0.032776891]),
    ("instrument_sound", SOUND | {"instrument": "congas"}, [0.036173583]),
    ("instrument_sound", SOUND | {"instrument": "speech"}, [0.045762743]),
]


def weighted_means(drawn: Any) -> list[float]:
    """Return a weighted mean of each array, which depends on the order and the signs of its entries."""
    parts = [getattr(drawn, field.name) for field in fields(drawn)] if is_dataclass(drawn) else [drawn]
    arrays = [part.toarray() if scipy.sparse.issparse(part) else np.asarray(part) for part in parts]
    numbers = [array.ravel().astype(float) for array in arrays if array.dtype.kind in "fiub" and array.size]
    sizes = [np.where(array > 0, array, -0.3 * array) for array in numbers]  # nothing cancels
    return [float(np.mean(array * (1.0 + 0.5 * np.cos(np.arange(array.size))))) for array in sizes]


@pytest.mark.parametrize(("generator", "options", "expected"), DRAWN)
def test_a_seed_keeps_its_data(generator, options, expected):
    found = weighted_means(getattr(datasets, generator)(**options, rng=7))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_node_numbers_take_four_bytes():
    adjacency = datasets.mixed_membership_graph(100, 2, rng=0).adjacency
    assert adjacency.indices.dtype == np.int32
