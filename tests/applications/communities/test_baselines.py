"""GeoNMF and SPOC on expected adjacency matrices, where they are exact, and step by step."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.applications.communities.eigenvectors import leading_eigenvectors
from nonneg.applications.communities.geonmf import GeoNMFOptions, _corners, _nearly_pure, geonmf
from nonneg.applications.communities.spoc import connectivity, spoc
from nonneg.exceptions import InvalidDataError, InvalidParameterError

geonmf_module = sys.modules[geonmf.__module__]  # the package has a function of that name


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


@pytest.mark.parametrize(
    "wrong",
    [{"slack": 0.0}, {"slack": 0.96}, {"quantile": 0.0}, {"quantile": 1.01}, {"n_init": 0}],
)
def test_options_of_geonmf_have_a_range(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        GeoNMFOptions(**wrong)
    assert GeoNMFOptions(slack=0.95, quantile=1.0, n_init=1).quantile == 1.0


def test_a_corner_is_the_weakest_node_above_the_quantile(rng):
    points = np.concatenate([rng.normal(0.0, 0.01, (10, 2)), rng.normal(5.0, 0.01, (10, 2))])
    strengths = np.concatenate([np.arange(10.0), np.arange(10.0)[::-1]])
    # MATLAB's quantile of ten values at 0.65 is the seventh smallest.
    assert _corners(points, strengths, 2, 0.65, 3, 0).tolist() == [6, 13]
    assert _corners(points, strengths, 2, 1.0, 3, 0).tolist() == [9, 10]
    assert _corners(points, strengths, 2, 0.04, 3, 0).tolist() == [0, 19]
    assert _corners(np.repeat(points[:2], 5, axis=0), strengths[:10], 3, 0.9, 1, 0) is None
    lengths = np.array([1.0, 0.5, 0.09])
    slack, near = _nearly_pure(lengths, 0.5, 1)
    assert (slack, near.tolist()) == (0.5, [0])  # the half is not above it
    slack, near = _nearly_pure(lengths, 0.9, 3)
    assert near.tolist() == [0, 1, 2]
    assert slack == pytest.approx(0.925)
    slack, near = _nearly_pure(np.array([1.0, 0.0]), 0.9, 2)
    assert (len(near), slack) == (1, pytest.approx(0.95))


def test_geonmf_reports_its_last_round():
    A = sp.csr_array(sp.block_diag([sp.coo_array(np.ones((5, 5)))] * 3))
    pairs = leading_eigenvectors(A, 3, spectrum="algebraic")
    found = geonmf(pairs.values, pairs.vectors, A.sum(axis=1), rng=0)
    # All nodes have the same length: all are pure at once.
    assert (found.n_rounds, found.n_nearly_pure) == (1, 15)
    assert found.condition == pytest.approx(1.0)
    assert (np.diff(found.pure) > 0).all()
    assert found.memberships.clipped == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(found.memberships.values.sum(axis=1), 1.0)
    lost = np.vstack([pairs.vectors, np.zeros((1, 3))])
    found = geonmf(pairs.values, lost, np.append(A.sum(axis=1), 1.0), rng=0)
    assert found.memberships.reached.tolist() == [True] * 15 + [False]
    assert not found.memberships.values[15].any()
    with pytest.raises(InvalidParameterError, match="needs 3 eigenvalues above 0"):
        geonmf(np.array([3.0, 1.0, 0.0]), pairs.vectors, A.sum(axis=1))
    with pytest.raises(InvalidDataError, match="fewer than 3 clusters"):
        geonmf(pairs.values, np.full((15, 3), 0.2), A.sum(axis=1), rng=0)


@pytest.mark.parametrize(("degree", "lowest"), [(1.0, 0.7), (300.0, 0.8)])
def test_geonmf_looks_further_until_the_corners_are_well_conditioned(degree, lowest, monkeypatch):
    vectors = np.concatenate([np.eye(2), [[0.9, 0.4], [0.8, 0.1]]])
    asked = []

    def corners(points, strengths, k, quantile, n_init, seed):
        asked.append((quantile, len(points), n_init))
        return answer

    monkeypatch.setattr(geonmf_module, "_corners", corners)
    degrees = np.full(4, degree)
    answer = np.array([0, 1])
    found = geonmf(np.ones(2), vectors, degrees, rng=0)
    assert (found.n_rounds, found.pure.tolist(), asked[0][0]) == (1, [0, 1], 0.95)
    asked.clear()
    answer = np.array([0, 2])  # of condition 5
    found = geonmf(np.ones(2), vectors, degrees, options=GeoNMFOptions(n_init=4), rng=0)
    quantiles = np.array([each[0] for each in asked])
    assert found.n_rounds == len(asked)
    assert {each[2] for each in asked} == {4}
    # Steps of 0.025 from 0.25 to 0.4 with the quantile as it is, then of 0.01 in the quantile.
    np.testing.assert_allclose(quantiles[:7], 0.95)
    np.testing.assert_allclose(np.diff(quantiles[8:]), -0.01)
    assert lowest < quantiles.min() + 1e-9
    assert found.n_rounds in ((28, 29, 30) if lowest == 0.7 else (21, 22, 23))
    answer = None
    with pytest.raises(InvalidDataError, match="fewer than 2 clusters"):
        geonmf(np.ones(2), vectors, degrees, rng=0)
    answer = np.array([0, 0])  # the same node twice has no inverse
    with pytest.raises(InvalidDataError, match="fewer than 2 clusters"):
        geonmf(np.ones(2), vectors, degrees, rng=0)
