"""Draws of the synthetic data of Liu & Tan (2017)."""

from __future__ import annotations

import numpy as np
from reproduction.cr1.cone_draws import FULL, draw_cones, n_mixed_clusters


def test_a_draw_depends_on_its_number_and_angle_alone():
    small = FULL | {"n_drawn": 20, "n_features": 100, "n_cones": 3}
    X, cones, _ = draw_cones({"alpha": 0.2, "draw": 1} | small)
    again, same, _ = draw_cones({"draw": 1, "alpha": 0.2, "panel": "right"} | small)
    np.testing.assert_array_equal(again, X)
    np.testing.assert_array_equal(same, cones)
    assert not np.array_equal(draw_cones({"alpha": 0.2, "draw": 2} | small)[0], X)
    assert not np.array_equal(draw_cones({"alpha": 0.3, "draw": 1} | small)[0], X)


def test_a_mixed_cluster_is_found_and_a_split_cone_is_none():
    cones = np.array([0, 0, 1, 1, 2])
    assert n_mixed_clusters(np.array([0, 3, 1, 1, 2]), cones) == 0
    assert n_mixed_clusters(np.array([0, 0, 0, 1, 1]), cones) == 2
    assert n_mixed_clusters(np.array([-1, 0, -1, 1, 2]), cones) == 0  # rows of zeros belong to no cluster
