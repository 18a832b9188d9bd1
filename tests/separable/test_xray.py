"""XRAY: its picks are those of the algorithm by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from tests.references.containers import MAIN_FORMS, as_container

from nonneg.data import as_data_matrix
from nonneg.datasets import separable_dirichlet
from nonneg.separable.xray import xray


def residual(point, rays):
    """What a nonnegative combination of rays leaves of a point."""
    return point - scipy.optimize.nnls(rays.T, point)[0] @ rays if len(rays) else point


def by_hand(X, k):
    """Return the picks of Algorithm 1 with the rule "max"."""
    picks = []
    for _ in range(k):
        left = np.stack([residual(point, X[picks]) for point in X])
        worst = np.argmax(np.sum(left**2, axis=1))
        picks.append(int(np.argmax(X @ left[worst] / X.sum(axis=1))))
    return picks


def points(seed):
    """Return points whose rays and worst explained points differ: mixtures of any length, with noise."""
    rng = np.random.default_rng(seed)
    X = np.abs(separable_dirichlet(70, 12, 6, snr=12, rng=seed).X)
    return X * rng.uniform(0.2, 5, size=(70, 1))


@pytest.mark.covering(1)
@pytest.mark.parametrize("form", MAIN_FORMS)
@pytest.mark.parametrize("seed", [0, 3])
def test_picks_are_those_by_hand(form, seed):
    X = points(seed)
    found = xray(as_data_matrix(as_container(X, form)), 6)
    assert found.anchors.tolist() == by_hand(X, 6)
