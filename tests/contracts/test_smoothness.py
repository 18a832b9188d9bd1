"""Factors that are smooth along a graph of the samples or of the features."""

from __future__ import annotations

import functools
from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment, nnls
from scipy.sparse import csgraph
from sklearn.base import clone
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.neighbors import kneighbors_graph

import nonneg
from nonneg import NMF, estimate_errors, factorize, laplacian
from nonneg.exceptions import (
    DataTypeError,
    FileFormatError,
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
    UnsupportedError,
)

N, M, K = 20, 8, 3
GRID = grid_to_graph(5, 4)
CHAIN = sp.diags_array([np.ones(M - 1), np.ones(M - 1)], offsets=[-1, 1])
OF_W = laplacian(GRID, strength=0.7)
OF_H = laplacian(CHAIN, strength=0.3, normalized=True)
GRAPHS = {OF_W: GRID, OF_H: CHAIN}
SMOOTH = {
    "W": {"penalty_W": OF_W},
    "H": {"penalty_H": OF_H},
    "both": {"penalty_W": OF_W, "penalty_H": OF_H},
    "both, shrunk": {
        "penalty_W": OF_W,
        "penalty_H": OF_H,
        "alpha_W": 0.01,
        "alpha_H": 0.02,
        "l1_ratio": 0.3,
    },
}


@pytest.fixture
def X():
    return np.random.default_rng(0).random((N, M))


@functools.cache
def settled(name=None):
    """A fit of X, smooth or not, after more iterations than its last digits need."""
    X = np.random.default_rng(0).random((N, M))
    return factorize(X, K, rng=0, tol=0, max_iter=300, **SMOOTH.get(name, {}))


def matrix(penalty):
    """L from SciPy, times the strength."""
    graph = sp.csr_array(GRAPHS[penalty], dtype=float)
    return penalty.strength * csgraph.laplacian(graph, normed=penalty.normalized).toarray()


def systems(X, W, H, options, weights=None):
    """The Hessians and linear terms of W and of H' in the objective, one row after another."""
    weights = np.ones(len(X)) if weights is None else weights
    of_W, of_H = (
        matrix(options[name]) if name in options else np.zeros((n, n))
        for name, n in (("penalty_W", N), ("penalty_H", M))
    )
    ratio = options.get("l1_ratio", 0.0)
    alpha_W, alpha_H = options.get("alpha_W", 0.0) * M, options.get("alpha_H", 0.0) * weights.sum()
    weighted = weights[:, None] * W
    result = []
    for gram, rows, cross, L, ridge, alpha in (
        (H @ H.T, np.diag(weights), weights[:, None] * (X @ H.T), of_W, np.diag(H @ of_H @ H.T), alpha_W),
        (W.T @ weighted, np.eye(M), X.T @ weighted, of_H, np.diag(W.T @ of_W @ W), alpha_H),
    ):
        own = np.kron(rows, gram + np.diag(ridge + alpha * (1 - ratio)))
        linear = cross - alpha * ratio * rows.diagonal()[:, None]
        result.append((own + np.kron(L, np.diag(np.diag(gram))), linear.ravel()))
    return result


def objective(X, W, H, options, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    (Q, c), _ = systems(X, W, H, options, weights)
    ratio, alpha_H = options.get("l1_ratio", 0.0), options.get("alpha_H", 0.0) * weights.sum()
    other = alpha_H * (ratio * H.sum() + (1 - ratio) / 2 * np.sum(H**2))
    return 0.5 * weights @ np.sum(X**2, axis=1) + 0.5 * W.ravel() @ Q @ W.ravel() - c @ W.ravel() + other


def brute_force(Q, c):
    """Minimize 0.5 v Q v - c v over v >= 0 by active sets."""
    R = np.linalg.cholesky(Q).T
    return nnls(R, np.linalg.solve(R.T, c))[0]


@pytest.mark.parametrize("name", SMOOTH)
def test_the_loss_is_the_objective_and_never_increases(name, X):
    result = factorize(X, K, rng=0, tol=0, max_iter=40, **SMOOTH[name])
    assert result.loss == pytest.approx(objective(X, result.W, result.H, SMOOTH[name]), rel=1e-12)
    loss = np.array(result.history.loss)
    assert (np.diff(loss) <= 1e-12 * loss[0]).all()
    assert loss[-1] < 0.99 * loss[0]
    model = NMF(K, random_state=0, max_iter=40, tol=0, init=None, **SMOOTH[name]).fit(X)
    error = np.linalg.norm(X - model.result_.W @ model.components_)
    assert model.reconstruction_err_ == pytest.approx(error, rel=1e-10)


@pytest.mark.parametrize("name", SMOOTH)
def test_each_factor_is_the_minimizer_given_the_other(name, X):
    result = settled(name)
    of_W, of_H = systems(X, result.W, result.H, SMOOTH[name])
    np.testing.assert_allclose(result.W.ravel(), brute_force(*of_W), rtol=0, atol=1e-8)
    np.testing.assert_allclose(result.H.T.ravel(), brute_force(*of_H), rtol=0, atol=1e-8)


@pytest.mark.parametrize("normalized", [pytest.param(False, marks=pytest.mark.slow), True])
def test_W_alone_has_one_minimum(normalized, X, rng):
    """With all of H frozen the problem is convex, on a graph of any weights."""
    weights = np.triu(rng.random((N, N)) * (rng.random((N, N)) < 0.3), 1)
    penalty = laplacian(weights + weights.T, strength=5.0, normalized=normalized)
    GRAPHS[penalty] = weights + weights.T
    H = rng.random((K, M))
    options = {"penalty_W": penalty, "H": H, "frozen_components": range(K), "tol": 0, "max_iter": 250}
    result = factorize(X, K, init="random", rng=0, **options)
    np.testing.assert_array_equal(result.H, H)
    expected = brute_force(*systems(X, result.W, H, {"penalty_W": penalty})[0])
    np.testing.assert_allclose(result.W.ravel(), expected, rtol=0, atol=1e-8)
    other = factorize(X, K, init="random", rng=1, **options)
    np.testing.assert_allclose(other.W, result.W, rtol=0, atol=1e-8)


def test_sample_weights_repeat_samples_where_features_are_smooth(X):
    weights = np.where(np.arange(N) < 10, 2.0, 1.0)
    rng = np.random.default_rng(1)
    W, H = rng.random((N, K)), rng.random((K, M))
    options = {"penalty_H": OF_H, "init": "custom", "tol": 0, "max_iter": 20}
    weighted = factorize(X, K, W=W, H=H, sample_weight=weights, **options)
    twice = np.repeat(np.arange(N), weights.astype(int))
    repeated = factorize(X[twice], K, W=W[twice], H=H, **options)
    np.testing.assert_allclose(weighted.H, repeated.H, rtol=1e-8)
    expected = objective(X, weighted.W, weighted.H, {"penalty_H": OF_H}, weights)
    assert weighted.loss == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("without", [laplacian(GRID, strength=0), laplacian(sp.csr_array((N, N)))])
def test_no_strength_and_no_edges_change_nothing(without, X):
    plain = NMF(K, random_state=0).fit(X)
    same = NMF(K, random_state=0, penalty_W=without).fit(X)
    for name in ("W", "H", "loss"):
        np.testing.assert_array_equal(getattr(same.result_, name), getattr(plain.result_, name))


@pytest.mark.parametrize("name", SMOOTH)
def test_the_certificate_is_of_the_smooth_problem(name, X):
    options = {"init": "custom", "max_iter": 0, **SMOOTH[name]}
    result, plain = settled(name), settled()
    assert result.certificate["stationarity"].holds
    if "penalty_W" in options:  # otherwise max_iter=0 returns the best W for H
        found = factorize(X, K, W=result.W, H=result.H, **options).certificate["stationarity"]
        assert found.holds
        W = result.W * (1 + 0.1 * np.random.default_rng(0).random(result.W.shape))
        moved = factorize(X, K, W=W, H=result.H, **options).certificate["stationarity"]
        assert not moved.holds
        assert not factorize(X, K, W=plain.W, H=plain.H, **options).certificate["stationarity"].holds
        (Q, c), of_H = systems(X, W, result.H, SMOOTH[name])
        for factor, (Q, c), which in ((W, (Q, c), "W"), (result.H.T, of_H, "H")):  # noqa: B020
            curvature, entries = np.diag(Q), factor.ravel()
            step = np.minimum(entries, (Q @ entries - c) / curvature)
            expected = np.sqrt(np.sum(curvature * step**2) / np.sum(X**2))
            assert moved.quantities[f"residual_{which}"] == pytest.approx(expected, rel=1e-8)
    else:
        assert not factorize(X, K, H=plain.H, **options).certificate["stationarity"].holds


def blobs(rng, side=30):
    """Three smooth maps on a grid, and noisy mixtures of three spectra there."""
    x, y = np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side))
    centers = ((0.25, 0.3), (0.7, 0.25), (0.5, 0.75))
    maps = np.stack([np.exp(-((x - a) ** 2 + (y - b) ** 2) / 0.06).ravel() for a, b in centers], axis=1)
    spectra = rng.gamma(0.5, size=(3, 40))
    clean = maps @ spectra
    return maps, clean + 3 * clean.std() * rng.standard_normal(clean.shape)


def map_error(found, maps):
    """The relative error of the maps of length one, matched."""
    found, maps = (factor / np.linalg.norm(factor, axis=0) for factor in (found, maps))
    rows, columns = linear_sum_assignment(-(found.T @ maps))
    return np.linalg.norm(found[:, rows] - maps[:, columns]) / np.linalg.norm(maps)


def test_maps_of_a_noisy_grid_are_recovered_better():
    errors = []
    for seed in range(3):
        maps, X = blobs(np.random.default_rng(seed))
        options = {"negative": "keep", "random_state": 0, "max_iter": 500}
        smooth = NMF(3, penalty_W=laplacian(grid_to_graph(30, 30), strength=1.0), **options)
        errors.append([map_error(model.fit_transform(X), maps) for model in (smooth, NMF(3, **options))])
        assert smooth.certificate_["stationarity"].holds
    errors = np.array(errors)
    assert (errors[:, 0] < 0.6 * errors[:, 1]).all()


def test_the_result_does_not_depend_on_the_units_of_X(X):
    options = {"rng": 0, "tol": 0, "max_iter": 30, **SMOOTH["both"]}
    one, other = factorize(X, K, **options), factorize(1024.0 * X, K, **options)
    np.testing.assert_allclose(other.W @ other.H, 1024 * one.W @ one.H, rtol=1e-10)


def test_containers_agree(X):
    X = np.where(X < 0.3, 0.0, X)
    options = {"rng": 0, "tol": 0, "max_iter": 20, **SMOOTH["both"]}
    expected = factorize(X, K, **options)
    for other, bound in ((sp.csr_array(X), 1e-8), (X.astype(np.float32), 1e-3)):
        result = factorize(other, K, **options)
        assert result.W.dtype == result.H.dtype == other.dtype
        np.testing.assert_allclose(result.H, expected.H, rtol=bound, atol=bound)


def test_restarts_and_checkpoints(X, tmp_path):
    options = {"random_state": 0, "tol": 0, "max_iter": 10, **SMOOTH["both"]}
    best = NMF(K, n_init=3, **options).fit(X)
    assert best.result_.loss <= NMF(K, init="random", **options | {"max_iter": 5}).fit(X).result_.loss
    kept = {"init": "random", "checkpoint": tmp_path}
    NMF(K, **options | kept).fit(X)
    resumed = NMF(K, **options | kept | {"max_iter": 15}).fit(X)
    whole = NMF(K, **options | {"max_iter": 15, "init": "random"}).fit(X)
    np.testing.assert_allclose(resumed.components_, whole.components_, rtol=1e-10)
    # Another graph is another run.
    other = options | {"penalty_W": laplacian(abs(GRID - 0.5 * GRID), strength=0.7)}
    fresh = NMF(K, **other | {"init": "random"}).fit(X)
    np.testing.assert_array_equal(NMF(K, **other | kept).fit(X).components_, fresh.components_)


def test_transform_is_for_samples_outside_of_the_graph(X):
    model = NMF(K, random_state=0, max_iter=3000, **SMOOTH["both"])
    W = model.fit_transform(X)
    options = {"penalty_H": OF_H}
    expected = brute_force(*systems(X, W, model.components_, options)[0])
    np.testing.assert_allclose(model.transform(X).ravel(), expected, rtol=0, atol=1e-8)
    assert model.transform(X[:5]).shape == (5, K)
    assert np.abs(W - model.transform(X)).max() > 0.01
    alone = NMF(K, random_state=0, **SMOOTH["H"])
    np.testing.assert_allclose(alone.fit_transform(X), alone.transform(X), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("normalized", [False, True])
def test_saved_cloned_and_pickled(normalized, X, tmp_path):
    penalties = {
        "penalty_W": laplacian(GRID, strength=0.25, normalized=normalized),
        "penalty_H": laplacian(CHAIN, normalized=normalized),
    }
    model = NMF(K, random_state=0, **penalties).fit(X)
    model.save(tmp_path / "model.nonneg")
    for other in (nonneg.load(tmp_path / "model.nonneg"), deepcopy(model), clone(model)):
        for name, penalty in penalties.items():
            copy = other.get_params()[name]
            assert (copy.strength, copy.normalized) == (penalty.strength, penalty.normalized)
            assert not (copy.edges != penalty.edges).nnz
            assert repr(copy) == repr(penalty)
        if hasattr(other, "components_"):
            np.testing.assert_array_equal(other.transform(X), model.transform(X))
        np.testing.assert_array_equal(other.fit(X).components_, model.components_)


def test_a_changed_file_is_refused(X, tmp_path):
    NMF(K, random_state=0, **SMOOTH["W"]).fit(X).save(tmp_path / "model.nonneg")
    with np.load(tmp_path / "model.nonneg") as stored:
        arrays = dict(stored)
    indices = next(name for name in arrays if name.endswith("penalty_W.indices"))
    for wrong in (1_000_000, -1):
        changed = arrays | {indices: np.full_like(arrays[indices], wrong)}
        with (tmp_path / "changed.nonneg").open("wb") as stream:
            np.savez(stream, **changed)
        with pytest.raises(FileFormatError):
            nonneg.load(tmp_path / "changed.nonneg")


def test_graphs_of_many_kinds(rng):
    dense = GRID.toarray()
    expected = laplacian(GRID).edges.toarray()
    for graph in (dense, dense.tolist(), dense.astype(bool), sp.csc_array(GRID), GRID + sp.eye_array(N)):
        np.testing.assert_array_equal(laplacian(graph).edges.toarray(), expected)
    places = rng.random((N, 2))
    neighbors = kneighbors_graph(places, 4)  # not symmetric: the mean of both directions counts
    penalty = laplacian(neighbors)
    np.testing.assert_array_equal(penalty.edges.toarray(), (neighbors + neighbors.T).toarray() / 2)
    assert repr(penalty).startswith(f"laplacian(<{N} nodes, ")
    networkx = pytest.importorskip("networkx")
    graph = networkx.from_scipy_sparse_array(GRID)
    np.testing.assert_array_equal(laplacian(graph).edges.toarray(), expected)


def test_the_graph_is_a_copy():
    graph = sp.csr_array(GRID, dtype=float)
    penalty = laplacian(graph)
    graph.data[:] = 7.0
    assert penalty.edges.max() == 1.0
    with pytest.raises(AttributeError):
        penalty.strength = 2.0


def changed(value):
    graph = GRID.toarray().astype(type(value))
    graph[1, 2] = graph[2, 1] = value
    return graph


@pytest.mark.parametrize(
    ("graph", "options", "error", "words"),
    [
        (GRID.toarray()[:5], {}, ShapeError, "one row and one column"),
        (np.zeros(3), {}, ShapeError, "adjacency matrix"),
        (np.zeros((0, 0)), {}, InvalidDataError, "no nodes"),
        (changed(-1.0), {}, NegativeDataError, r"laplacian .*\[1, 2\] is -1.*A\.maximum\(0\)"),
        (changed(np.nan), {}, NonFiniteDataError, "laplacian needs finite"),
        (changed(np.inf), {}, NonFiniteDataError, "laplacian needs finite"),
        (changed(1j), {}, DataTypeError, "real numbers"),
        (GRID, {"strength": -1}, InvalidParameterError, "strength"),
        (GRID, {"strength": np.nan}, InvalidParameterError, "strength"),
        (GRID, {"normalized": "yes"}, InvalidParameterError, "normalized"),
    ],
)
def test_wrong_graphs(graph, options, error, words):
    with pytest.raises(error, match=words):
        laplacian(graph, **options)


def test_what_it_does_not_take_is_said(X):
    for options, arguments, words in (
        ({"beta_loss": 1.0}, {}, "beta_loss='kullback-leibler'"),
        ({"solver": "anls"}, {}, "solver='anls'"),
        ({"signed_components": True}, {}, "signed_components"),
        ({"robust": "huber"}, {}, "robust"),
        ({}, {"mask": X > 0.1}, "missing or weighted entries"),
        ({}, {"entry_weight": X}, "missing or weighted entries"),
        ({}, {"sample_weight": np.ones(N)}, "sample_weight"),
    ):
        with pytest.raises(UnsupportedError, match=f"penalty_W does not take {words}"):
            NMF(K, penalty_W=OF_W, **options).fit(X, **arguments)
    with pytest.raises(ShapeError, match=f"{N} nodes, but X has {N - 1} samples"):
        NMF(K, penalty_W=OF_W).fit(X[1:])
    with pytest.raises(ShapeError, match="8 nodes, but X has 7 features"):
        factorize(X[:, 1:], K, penalty_H=OF_H)
    with pytest.raises(InvalidParameterError, match="penalty_W"):
        NMF(K, penalty_W=GRID).fit(X)
    with pytest.raises(InvalidParameterError, match=r"nonneg\.laplacian"):
        factorize(X, K, penalty_W=GRID)
    with pytest.raises(InvalidParameterError, match="partial_fit does not accept penalty_H"):
        NMF(K, penalty_H=OF_H).partial_fit(X)
    model = NMF(K, random_state=0, penalty_H=OF_H).fit(X)
    with pytest.raises(UnsupportedError, match="penalty_H does not take missing"):
        model.transform(X, mask=X > 0.1)
    with pytest.raises(UnsupportedError, match="penalty_H"):
        estimate_errors(model, X)


@pytest.mark.parametrize("container", ["torch", "dask"])
def test_data_elsewhere_are_refused(container, X):
    library = pytest.importorskip("torch" if container == "torch" else "dask.array")
    data = library.asarray(X)
    with pytest.raises(UnsupportedError, match=r"penalty_W does not take \w+ data"):
        factorize(data, K, penalty_W=OF_W)
