"""Clustering and rank-one NMF as one function: the checked case, bounds, seeds, and bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import cone_rank_one, datasets, factorize
from nonneg.exceptions import InvalidParameterError, NegativeDataError, NonFiniteDataError

CHECKED = Path(__file__).parent / "data" / "cr1_N100.npz"


@pytest.fixture(scope="module")
def checked():
    """The case that the paper's authors' code was run on, one point a row."""
    with np.load(CHECKED) as file:
        case = {name: file[name] for name in file.files}
    case["X"] = np.ascontiguousarray(case.pop("V").T)
    return case


@pytest.fixture
def cones():
    """Six cones that satisfy the paper's assumption, with a row of zeros."""
    planted = datasets.circular_cones(150, 40, 6, size_angle=0.15, rng=4)
    planted.X[3] = 0.0
    return planted


def error_of(X, W, H):
    """Relative error, computed from the product."""
    return np.linalg.norm(X - W @ H) / np.linalg.norm(X)


def test_the_checked_case(checked):
    found = cone_rank_one(checked["X"], 40, first=int(checked["first"]))
    np.testing.assert_array_equal(found.labels, checked["labels"])
    # The paper's W is our H transposed and the other way round; both have its scaling.
    for ours, theirs in ((found.H, checked["W"].T), (found.W, checked["H"].T)):
        assert np.linalg.norm(ours - theirs) <= 1e-8 * np.linalg.norm(theirs)
    assert found.relative_error == pytest.approx(float(checked["relerr"]), rel=1e-12)
    assert found.relative_error == pytest.approx(error_of(checked["X"], found.W, found.H), rel=1e-12)


def test_the_checked_case_is_exact_beyond_the_vectors(checked):
    # The vectors come from a power iteration and differ from the SVD by 2e-8 in some entries; ours do not.
    found = cone_rank_one(checked["X"], 40, first=int(checked["first"]))
    for cluster in range(40):
        own = np.flatnonzero(found.labels == cluster)
        U, s, V = np.linalg.svd(checked["X"][own], full_matrices=False)
        np.testing.assert_allclose(found.H[cluster], np.abs(V[0]), atol=1e-11)
        np.testing.assert_allclose(found.W[own, cluster], s[0] * np.abs(U[:, 0]), rtol=1e-11)


@pytest.mark.parametrize("to_container", [np.asarray, sp.csr_array, "torch", "dask"])
def test_factors_on_every_container(to_container, cones):
    if to_container == "torch":
        to_container = pytest.importorskip("torch").asarray
    elif to_container == "dask":
        dask_array = pytest.importorskip("dask.array")

        def to_container(X):
            return dask_array.from_array(X, chunks=(40, -1))

    found = cone_rank_one(to_container(cones.X), 6)
    W, labels = (np.asarray(a.compute() if hasattr(a, "compute") else a) for a in (found.W, found.labels))
    H = np.asarray(found.H)
    assert type(found.W).__module__.split(".")[0] == type(to_container(cones.X)).__module__.split(".")[
        0
    ].replace("scipy", "numpy")
    np.testing.assert_allclose(np.linalg.norm(H, axis=1), 1.0)
    assert labels.shape == (150,)
    assert labels[3] == -1
    assert not W[3].any()
    assert ((W > 0).sum(axis=1) == (labels >= 0)).all()
    assert (W >= 0).all()
    assert (H >= 0).all()
    assert found.relative_error == pytest.approx(error_of(cones.X, W, H), rel=1e-10)
    assert found.squared_singular_values == pytest.approx((W**2).sum(axis=0), rel=1e-10)
    assert found.size_angles.shape == (6,)


def test_bounds_lie_above_the_error_in_every_draw():
    for draw in range(30):
        X = datasets.circular_cones(80, 30, 4, size_angle=0.15, rng=draw).X
        found = cone_rank_one(X, 4, rng=draw)
        assert found.relative_error <= found.bounds["cluster"] <= found.bounds["largest-angle"] + 1e-12
        # The cones about points that were drawn from cones of angle 0.15.
        assert (found.size_angles <= 0.15 + 1e-9).all()
        statement = found.certificate["cluster-bound"]
        assert statement.holds
        assert statement.threshold == pytest.approx(found.bounds["cluster"])


@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-8, 1e-6, 1e-3])
@pytest.mark.parametrize("container", ["dense", "float32", "sparse", "dask", "weighted"])
def test_small_errors_have_all_their_digits(container, noise):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, size=90)
    directions = rng.random((3, 30)) * (rng.random((3, 30)) < 0.5)
    X = (rng.random((90, 1)) + 0.1) * directions[labels]
    X = np.abs(X * (1 + noise * rng.standard_normal(X.shape)))
    weights, given = None, X
    if container == "float32":
        given = X.astype(np.float32)
        X = given.astype(np.float64)
    elif container == "sparse":
        given = sp.csr_array(X)
    elif container == "dask":
        given = pytest.importorskip("dask.array").from_array(X, chunks=(40, -1))
    elif container == "weighted":
        weights = rng.integers(1, 4, size=90)
        X = np.repeat(X, weights, axis=0)
    found = cone_rank_one(given, 3, sample_weight=weights)
    labels = np.asarray(found.labels)
    labels = labels if weights is None else np.repeat(labels, weights)
    left = [np.linalg.svd(X[labels == cone], compute_uv=False)[1:] for cone in range(3)]
    best = np.linalg.norm(np.concatenate(left)) / np.linalg.norm(X)
    rounding = 1e-15 if container != "float32" else 2e-7
    assert found.relative_error == pytest.approx(best, rel=1e-5, abs=rounding)
    assert found.relative_error <= found.bounds["cluster"] + rounding
    assert found.bounds["cluster"] <= found.bounds["largest-angle"] + rounding
    assert found.certificate["cluster-bound"].holds
    assert found.certificate["largest-angle-bound"].holds


def test_what_is_said_about_the_cones(cones):
    found = cone_rank_one(cones.X, 6)
    assert found.basis.shape == (6, 40)
    points = np.delete(cones.X, 3, axis=0)
    labels = np.delete(np.asarray(found.labels), 3)
    cosines = (points * found.basis[labels]).sum(axis=1) / np.linalg.norm(points, axis=1)
    for cluster in range(6):
        widest = np.arccos(cosines[labels == cluster].min())
        assert found.size_angles[cluster] == pytest.approx(widest, abs=1e-7)
    assert found.certificate["geometric-assumption"].holds
    assert "ConeResult(relative_error=" in repr(found)
    assert found.cones is found.cones


def test_without_bounds_the_data_are_not_kept(cones):
    found = cone_rank_one(cones.X, 6, bounds=False)
    assert found.data is None
    with pytest.raises(InvalidParameterError, match="bounds=True"):
        _ = found.size_angles


def test_integer_weights_count_like_repetitions(cones, rng):
    weights = rng.integers(1, 4, size=150)
    one = cone_rank_one(cones.X, 6, sample_weight=weights)
    many = cone_rank_one(np.repeat(cones.X, weights, axis=0), 6)
    np.testing.assert_allclose(many.H, one.H, atol=1e-9)
    np.testing.assert_array_equal(many.labels, np.repeat(one.labels, weights))
    assert many.relative_error == pytest.approx(one.relative_error, rel=1e-9)
    np.testing.assert_allclose(many.size_angles, one.size_angles, atol=1e-9)


def test_seeds_give_the_same_answer_again(digits):
    X = digits[:300]
    first, again = cone_rank_one(X, 8, rng=1), cone_rank_one(X, 8, rng=1)
    np.testing.assert_array_equal(first.centroid_indices, again.centroid_indices)
    np.testing.assert_array_equal(first.W, again.W)
    others = {cone_rank_one(X, 8, rng=seed).centroid_indices[0] for seed in range(6)}
    assert len(others) > 3
    assert cone_rank_one(X, 8).centroid_indices[0] == cone_rank_one(X, 8).centroid_indices[0]


@pytest.mark.parametrize("seeding", ["farthest", "plus-plus"])
def test_more_starts_are_never_worse(seeding, digits):
    X = digits[:400]
    errors = [
        cone_rank_one(X, 8, rng=2, seeding=seeding, n_init=n_init).relative_error for n_init in (1, 3, 6)
    ]
    assert errors[0] >= errors[1] >= errors[2]
    assert errors[0] > errors[2]
    found = cone_rank_one(X, 8, rng=2, seeding=seeding, n_init=6)
    assert found.relative_error == pytest.approx(error_of(X, found.W, found.H), rel=1e-9)


def test_without_a_seed_the_deterministic_start_is_among_several(digits):
    X = digits[:200]
    several = cone_rank_one(X, 6, n_init=3).relative_error
    assert several <= cone_rank_one(X, 6).relative_error + 1e-12


def test_the_pair_is_a_fixed_point_of_multiplicative_updates(cones):
    # Lemma 15, with the update as it is printed and with our solver.
    X = np.delete(cones.X, 3, axis=0)
    found = cone_rank_one(X, 6)
    W, H = found.W, found.H
    next_W = W * (X @ H.T) / np.where(W > 0, W @ (H @ H.T), 1.0)
    np.testing.assert_allclose(next_W, W, rtol=1e-8)
    next_H = H * (W.T @ X) / ((W.T @ W) @ H)
    np.testing.assert_allclose(next_H, H, rtol=1e-6, atol=1e-10)
    after = factorize(X, 6, W=W, H=H, solver="mu", max_iter=25, tol=0)
    np.testing.assert_allclose(after.W @ after.H, W @ H, atol=1e-7)
    # The pair is not stationary, and more of these updates would not help: they are not advised.
    statement = after.certificate["stationarity"]
    assert not statement.holds
    assert (after.loss, "max_iter" in str(statement)) == (
        pytest.approx(after.history.loss[0], rel=1e-9),
        False,
    )
    # From the start of that name, whose zeros are filled, the same solver goes on.
    onward = factorize(X, 6, init="cr1", solver="mu", max_iter=25, tol=0)
    assert error_of(X, onward.W, onward.H) < 0.99 * found.relative_error


def test_duplicates_are_one_direction(rng):
    points = rng.random((4, 7))
    X = np.concatenate([points, 2 * points, points[:2], np.zeros((1, 7))])
    found = cone_rank_one(X, 4)
    assert found.relative_error < 1e-15
    np.testing.assert_array_equal(found.labels[:4], found.labels[4:8])
    message = r"n_components=5 clusters need .* the samples have 4 \(.*Use n_components=4 or fewer"
    with pytest.raises(InvalidParameterError, match=message):
        cone_rank_one(X, 5)


@pytest.mark.parametrize(
    ("X", "options", "error", "message"),
    [
        (np.ones((3, 2)), {"n_components": 4}, InvalidParameterError, "cannot be made of 3 samples"),
        (np.ones((3, 2)), {"n_components": 0}, InvalidParameterError, "integer of at least 1, got 0"),
        (np.ones((3, 2)), {"n_components": 1, "n_init": 0}, InvalidParameterError, "n_init must be"),
        (np.zeros((3, 2)), {"n_components": 1}, InvalidParameterError, "all samples are zeros"),
        (-np.ones((3, 2)), {"n_components": 1}, NegativeDataError, "Negative values in data passed to cone"),
        (np.full((3, 2), np.nan), {"n_components": 1}, NonFiniteDataError, "contains NaN"),
        (np.eye(3), {"n_components": 1, "first": 5}, InvalidParameterError, "index of a row"),
        (np.eye(3), {"n_components": 2, "first": 1, "n_init": 2}, InvalidParameterError, "fixes the clus"),
        (np.eye(3), {"n_components": 2, "tol": np.nan}, InvalidParameterError, "tol must be a finite number"),
        (np.eye(3), {"n_components": 2, "tol": "x"}, InvalidParameterError, "tol must be a finite number"),
        (np.eye(3), {"n_components": 2, "max_iter": 0}, InvalidParameterError, "max_iter must be"),
    ],
)
def test_bad_input_is_refused_with_a_reason(X, options, error, message):
    with pytest.raises(error, match=message):
        cone_rank_one(X, **options)


def test_as_many_clusters_as_samples(rng):
    X = rng.random((3, 5))
    found = cone_rank_one(X, 3)
    assert sorted(found.labels) == [0, 1, 2]
    assert found.relative_error < 1e-7
    with pytest.raises(InvalidParameterError, match="n_components=4 clusters cannot be made of 3 samples"):
        cone_rank_one(X, 4)
