"""The race of initializations, on its small case."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import cone_init
from benchmarks.cases import SMALL_CONES
from benchmarks.race import Settings


@pytest.fixture(scope="module")
def records():
    """What the quick run finds."""
    return list(cone_init.run(Settings(threads=1, dtypes=("float64",), repeats=1, quick=True)))


@pytest.mark.slow
def test_every_contender_is_timed_and_the_fit_reaches_the_target(records):
    inits = [record for record in records if record["race"] == "initializations"]
    assert [record["contender"] for record in inits] == [f"init: {name}" for name in cone_init.CONTENDERS]
    assert all(record["seconds"] > 0 for record in inits)
    assert inits[0]["ratio"] == 1.0
    (fit,) = [record for record in records if record["race"] == "fits"]
    assert fit["reached"]
    assert fit["case"] == SMALL_CONES.name


def test_contenders_do_what_they_say():
    X = SMALL_CONES.load(np.dtype("float64"))[0]
    W, H = cone_init.CONTENDERS[cone_init.OURS](X, 20, 1)
    # A rank-one factorization of each cluster: without what is added to all coefficients, it explains X.
    alone = (W - W.min(axis=0)) @ H
    assert np.linalg.norm(X - alone) < 0.2 * np.linalg.norm(X)
    W, H = cone_init.CONTENDERS["scikit-learn nndsvd"](X, 20, 1)
    assert np.linalg.norm(X - W @ H) < 0.5 * np.linalg.norm(X)
    for name in ("spherical k-means, 10 passes, nonneg", "spherical k-means, 10 passes, plain"):
        centers = cone_init.CONTENDERS[name](X, 20, 1)
        centers = centers if centers.shape[0] == 20 else centers.T
        np.testing.assert_allclose(np.linalg.norm(centers, axis=1), 1.0)
