"""Which of the searches of the initialization is taken."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.minvol import initialization
from nonneg.minvol.initialization import AGREE, REFLECTED, TIED, Reduced, best
from nonneg.minvol.noise import NoiseLevel


@pytest.fixture
def searches(monkeypatch, rng):
    """Return a function that runs `best` with given losses of its descents, and what these began with."""

    def run(losses, k=3):
        H = rng.random((k, k - 1)) + np.vstack([np.zeros((1, k - 1)), np.eye(k - 1)])
        points = rng.dirichlet(np.ones(k), 50) @ H
        begun, ends = [], iter(losses)
        monkeypatch.setattr(initialization, "anchors", lambda reduced: H)
        monkeypatch.setattr(
            initialization, "dual_from", lambda reduced, H, regular=True: H + (1.0 if regular else 2.0)
        )

        def descended(problem, start):
            begun.append(start)
            return next(ends) * problem.lam, start + 10.0 * len(begun)

        monkeypatch.setattr(initialization, "_descended", descended)
        noise = NoiseLevel.__new__(NoiseLevel)
        reduced = Reduced(points, np.eye(k - 1), k, noise, "sum-to-one")
        monkeypatch.setattr(Reduced, "problem", lambda self: type("P", (), {"lam": 2.0})())
        return best(reduced), begun, H

    return run


def test_two_searches_that_agree_need_no_third_but_the_reflection(searches):
    found, begun, H = searches([1.0, 1.0 + 0.9 * AGREE, 5.0])
    assert len(begun) == 3
    np.testing.assert_allclose(begun[0], H)
    np.testing.assert_allclose(begun[1], H + 1.0)
    first = H + 10.0
    np.testing.assert_allclose(begun[2], 2.0 * first.mean(axis=0) - first)
    np.testing.assert_allclose(found, first)


def test_searches_that_disagree_are_followed_by_one_from_the_first(searches):
    found, begun, H = searches([1.0, 1.0 + 1.1 * AGREE, 0.5, 5.0])
    np.testing.assert_allclose(begun[2], H + 10.0 + 2.0)
    assert len(begun) == 4
    np.testing.assert_allclose(found, begun[2] + 30.0)


def test_the_first_of_tied_searches_is_taken(searches):
    found, begun, _ = searches([1.0, 1.0 - 0.9 * TIED, 5.0])
    np.testing.assert_allclose(found, begun[0] + 10.0)
    found, begun, _ = searches([1.0, 1.0 - 1.1 * TIED, 5.0])
    np.testing.assert_allclose(found, begun[1] + 20.0)


@pytest.mark.parametrize(("k", "n_runs"), [(REFLECTED, 3), (REFLECTED + 1, 2)])
def test_few_components_are_also_reflected(k, n_runs, searches):
    _, begun, _ = searches([1.0, 1.0, 1.0], k)
    assert len(begun) == n_runs
