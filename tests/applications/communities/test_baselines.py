"""GeoNMF and SPOC on expected adjacency matrices, where they are exact."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.communities.geonmf import _nearly_pure, geonmf
from nonneg.applications.communities.spoc import connectivity, spoc


@pytest.fixture
def expected(rng):
    """Memberships, and the leading eigenpairs of the expected adjacency of unequal communities."""
    memberships = rng.dirichlet([0.3, 0.3, 0.3], 150)
    memberships[:30] = np.repeat(np.eye(3), 10, axis=0)
    adjacency = memberships @ np.diag([0.9, 0.5, 0.25]) @ memberships.T
    values, vectors = np.linalg.eigh(adjacency)
    return memberships, adjacency, values[-3:][::-1], vectors[:, -3:][:, ::-1]


def matched(found, memberships, pure):
    """Return the memberships in the order of the communities that were found."""
    assert sorted(np.argmax(memberships[pure], axis=1)) == [0, 1, 2]
    return found[:, np.argsort(np.argmax(memberships[pure], axis=1))]


def test_geonmf_is_exact_without_noise(expected):
    memberships, adjacency, values, vectors = expected
    found = geonmf(values, vectors, adjacency.sum(axis=1), rng=0)
    answer = matched(found.memberships.values, memberships, found.pure)
    np.testing.assert_allclose(answer, memberships, atol=1e-8)


def test_spoc_is_exact_without_noise_and_divides_what_it_does_not_reach(expected):
    memberships, _, values, vectors = expected
    vectors = np.vstack([vectors, np.zeros((1, 3))])
    selection, found = spoc(vectors, 3)
    answer = matched(found.values[:-1], memberships, selection.anchors)
    np.testing.assert_allclose(answer, memberships, atol=1e-8)
    np.testing.assert_allclose(found.values[-1], 1 / 3)
    assert found.reached[:-1].all()
    assert not found.reached[-1]
    ties = connectivity(values, vectors[selection.anchors])
    np.testing.assert_allclose(np.sort(np.diag(ties)), [0.25, 0.5, 0.9], atol=1e-8)
    np.testing.assert_allclose(ties - np.diag(np.diag(ties)), 0.0, atol=1e-8)


def test_nearly_pure_nodes_are_no_more_than_needed():
    lengths = np.array([1.0, 0.97, 0.51, 0.1])
    slack, near = _nearly_pure(lengths, 0.05, 2)
    assert (slack, near.tolist()) == (0.05, [0, 1])
    slack, near = _nearly_pure(lengths, 0.05, 3)
    assert near.tolist() == [0, 1, 2]
    assert slack == pytest.approx(0.5)
