"""The settings of the theorems, in the sizes of the tests."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.data import purification_model
from reproduction.purification.perturbation import perturbed_features


@pytest.fixture(scope="session")
def planted():
    """Data of the model with a start of mixing 0.1, by their options; made once."""
    known = {}

    def make(n_samples=4000, n_features=100, n_components=20, *, level=0.1, seed=0, **options):
        key = (n_samples, n_features, n_components, level, seed, tuple(sorted(options.items())))
        if key not in known:
            rng = np.random.default_rng(seed)
            data = purification_model(n_features, n_components, rng=rng, **options).draw(n_samples, rng)
            known[key] = data, perturbed_features(data.H, level, rng=seed + 1)
        return known[key]

    return make
