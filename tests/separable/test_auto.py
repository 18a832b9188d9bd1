"""The default: several methods propose, the residual of the samples decides."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reproduction.data import middle_points
from scipy.optimize import nnls

from nonneg import select_anchors
from nonneg.datasets import separable_dirichlet
from nonneg.exceptions import FileFormatError, UnsupportedError
from nonneg.separable.auto import Judge

PROPOSING = ("spa", "snpa", "smoothed-spa", "merit-exact", "merit")


def residual(X, anchors):
    """The root mean square distance from the hull, by another solver."""
    vertices = X[anchors]
    heavy = 1e4 * np.linalg.norm(vertices)
    A = np.vstack([vertices.T, np.full(len(vertices), heavy)])
    return math.sqrt(np.mean([nnls(A, np.append(x, heavy))[1] ** 2 for x in X]))


@pytest.mark.parametrize("seed", range(2))
def test_the_proposal_with_the_smallest_residual_is_returned(seed):
    X = separable_dirichlet(90, 20, 8, snr=6, rng=seed).X
    found = select_anchors(X, 8)
    statement = found.certificate["candidates"]
    sizes = {name: residual(X, select_anchors(X, 8, method=name).anchors) for name in PROPOSING}
    for name, size in sizes.items():
        assert statement.quantities[name] == pytest.approx(size, rel=1e-5)
        assert name in statement.sentence
    assert residual(X, found.anchors) <= min(sizes.values()) * (1 + 1e-6)
    assert found.method == statement.quantities["chosen"]
    assert found.components is None


def test_the_papers_own_data_and_gaussian_noise_are_both_answered():
    # Midpoints that noise pushed outward: MERIT as published alone is right. With Gaussian noise it is wrong.
    outward = [middle_points(50, 10, snr=12, rng=seed) for seed in range(2)]
    for draw in outward:
        assert set(select_anchors(draw.X, 10).anchors) == set(draw.anchors)
        assert set(select_anchors(draw.X, 10, method="spa").anchors) != set(draw.anchors)
    for seed in range(2):
        draw = separable_dirichlet(200, 50, 40, snr=9, rng=seed)
        assert set(select_anchors(draw.X, 40).anchors) == set(draw.anchors)


def test_options_reach_the_convex_methods(tmp_path):
    draw = middle_points(50, 10, snr=12, rng=0)
    seen = []
    select_anchors(draw.X, 10, max_iter=3, tol=0.0, callback=lambda now: seen.append(now.n_iter))
    assert seen == [1, 2, 3, 1, 2, 3]
    first, again = (select_anchors(draw.X, 10, checkpoint=tmp_path) for _ in range(2))
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["merit", "merit-exact"]
    assert set(first.anchors) == set(again.anchors) == set(draw.anchors)
    next(tmp_path.glob("merit/*")).write_bytes(b"no checkpoint")
    with pytest.raises(FileFormatError, match="cannot be read"):
        select_anchors(draw.X, 10, checkpoint=tmp_path)
    with pytest.raises(UnsupportedError, match="method='auto' does not accept init; only"):
        select_anchors(draw.X, 10, init="spa")


def test_without_noise_the_cheapest_is_enough(clean):
    found = select_anchors(clean.X, 6)
    assert found.method == "spa"
    assert set(found.anchors) == set(clean.anchors)
    assert "no other method was asked" in found.certificate["candidates"].sentence


def test_of_equal_proposals_the_cheapest_is_returned(noisy):
    found = select_anchors(noisy.X, 6)
    assert (found.method, set(found.anchors)) == ("spa", set(noisy.anchors))


@pytest.mark.parametrize(("n_samples", "as_good"), [(200, False), (100_000, True)])
def test_a_difference_counts_beyond_the_error_of_the_sample(n_samples, as_good, rng):
    # Where all samples are judged there is no sampling error.
    judge = Judge(None, n_samples, 0.0)
    best = rng.chisquare(10, size=200)
    excess = rng.standard_normal(200)
    excess += 0.05 - excess.mean()
    assert judge.as_good(best + excess, best) is as_good
    assert not judge.as_good(best + excess + 0.5, best)


def test_beyond_a_few_thousand_samples_a_sample_is_judged(rng, monkeypatch):
    monkeypatch.setattr("nonneg.separable.auto.MANY", 1_000)
    W = rng.random((4, 8))
    X = np.vstack([rng.dirichlet(np.ones(4), 1_596) @ W, W]) + 0.02 * rng.standard_normal((1_600, 8))
    found = select_anchors(X, 4)
    statement = found.certificate["candidates"]
    assert statement.quantities["n_judged"] == 800
    assert "evenly spaced" in statement.sentence
    assert "merit" not in statement.quantities
    rows = np.arange(0, 1_600, 2)
    assert statement.number == pytest.approx(
        math.sqrt(
            np.mean([residual(X[[row, *found.anchors]], np.arange(1, 5)) ** 2 * 5 for row in rows[:200]])
        ),
        rel=0.2,
    )


@pytest.mark.parametrize("k", [2, 4, 7])
def test_the_number_of_anchors_without_noise_is_proved(k, rng):
    W = rng.random((k, 12))
    X = np.vstack([rng.dirichlet(np.ones(k), 60) @ W, W])
    found = select_anchors(X)
    statement = found.certificate["number-of-anchors"]
    assert (found.n_components, statement.verdict) == (k, "holds")
    assert "up to rounding" in statement.sentence


def test_the_number_of_anchors_under_noise_is_not_called_proved(rng):
    W = 3 * np.eye(4, 12)
    X = np.vstack([rng.dirichlet(np.full(4, 0.4), 200) @ W, W]) + 0.01 * rng.standard_normal((204, 12))
    statement = select_anchors(X, method="spa").certificate["number-of-anchors"]
    assert statement.quantities["k"] == 4
    assert statement.verdict == "not verifiable"
    assert "does not prove" in statement.sentence
