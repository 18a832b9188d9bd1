"""Recovery bounds are those of the theorems, number by number, and sentences say them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nonneg.certificates.certificate import Verdict
from nonneg.data import as_data_matrix
from nonneg.separable.certificate import bound_statement, isolated_statement, spa_bound
from nonneg.separable.result import SelectionResult

VERTICES = np.array([[4.0, 0.0, 0.0, 1.0], [0.5, 3.0, 0.0, 0.0], [0.0, 1.0, 2.0, 0.5]])


def result(method, **changes):
    return SelectionResult(anchors=np.arange(3), method=method, **changes)


def numbers(bound):
    return [bound.limit, bound.factor, bound.sigma_min, bound.longest]


def spa_numbers(vertices):
    k, sigma = len(vertices), np.linalg.svd(vertices, compute_uv=False)[-1]
    longest = np.sqrt((vertices**2).sum(axis=1)).max()
    factor = 1 + 80 * longest**2 / sigma**2
    return [sigma * min(1 / (2 * math.sqrt(max(1, k - 1))), 1 / 4) / factor, factor, sigma, longest]


@pytest.mark.parametrize("n_vertices", [1, 2, 3])
def test_successive_projections(n_vertices):
    found = spa_bound(VERTICES[:n_vertices])
    np.testing.assert_allclose(numbers(found), spa_numbers(VERTICES[:n_vertices]))


def test_many_vertices_have_a_smaller_limit():
    vertices = np.diag(np.arange(10.0, 17.0))
    np.testing.assert_allclose(numbers(spa_bound(vertices)), spa_numbers(vertices))
    assert spa_numbers(vertices)[0] == pytest.approx(10 / (2 * math.sqrt(6)) / (1 + 80 * 2.56))


@pytest.mark.parametrize("vertices", [np.ones((2, 3)), np.eye(3)[:, :2]])
def test_vertices_in_fewer_dimensions_have_no_bound(vertices):
    found = spa_bound(vertices)
    assert (found.limit, found.factor) == (0.0, math.inf)
    assert found.sigma_min == pytest.approx(0.0, abs=1e-12)
    assert found.longest == pytest.approx(np.linalg.norm(vertices, axis=1).max())


def test_averages_have_less_noise():
    points = as_data_matrix(np.ones((25, 4)))
    found = bound_statement(result("smoothed-spa", details={"noise": 0.5, "n_members": 9}), VERTICES, points)
    size = np.linalg.norm(VERTICES - VERTICES.mean(axis=0), axis=1).max()
    assert found.number == pytest.approx(0.5 * (5 + 2) / 3)
    assert found.threshold == pytest.approx(size)
    assert found.verdict is Verdict.NOT_VERIFIABLE
    assert found.quantities == {"noise": 0.5, "n_members": 9, "size": pytest.approx(size)}
    assert "an average of 9 samples, in which no noise of spectral norm 3.5 " in found.sentence
    assert "exceeds 1.167; the vertices are up to 2.954 from their mean" in found.sentence  # rounded up
    assert bound_statement(result("smoothed-spa"), VERTICES, points) is None


@pytest.mark.parametrize("n_rows", [1, 5, 6])
def test_samples_that_were_set_aside_are_named(n_rows):
    found = isolated_statement(np.arange(n_rows) + 10)
    named = {1: "(10)", 5: "(10, 11, 12, 13, 14)", 6: "(10, 11, 12, 13, 14, ...)"}[n_rows]
    assert f"{n_rows} samples far from all others were set aside {named}: " in found.sentence
    assert (found.name, found.number, found.threshold) == ("isolated-samples", n_rows, 0.0)
    assert found.verdict is Verdict.FAILS


def test_nothing_was_set_aside():
    found = isolated_statement(np.arange(0))
    assert (found.number, found.threshold, found.verdict) == (0.0, 0.0, Verdict.HOLDS)
