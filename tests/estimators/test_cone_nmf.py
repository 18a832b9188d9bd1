"""ConeNMF finds the cones, says what is known of them, and gives the same on every kind of data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

import nonneg
from nonneg import ConeNMF, cone_rank_one
from nonneg.datasets import circular_cones
from nonneg.exceptions import FileFormatError, InvalidParameterError, NonFiniteDataError


@pytest.fixture(scope="module")
def planted():
    return circular_cones(240, 60, 5, size_angle=0.18, rng=0)


@pytest.fixture(scope="module")
def model(planted):
    return ConeNMF(5).fit(planted.X)


def numbers(array):
    return np.asarray(array.compute() if hasattr(array, "compute") else array)


def test_cones_are_found(planted, model):
    assert adjusted_rand_score(planted.labels, model.labels_) == 1.0
    assert model.n_components_ == 5
    assert model.certificate_["geometric-assumption"].holds
    assert model.certificate_["cluster-bound"].holds
    assert model.size_angles_.max() <= 0.18
    for cone in range(5):
        samples = planted.X[model.labels_ == cone]
        cosines = samples @ model.basis_[cone] / np.linalg.norm(samples, axis=1)
        assert np.arccos(cosines.min()) == pytest.approx(model.size_angles_[cone], abs=1e-6)
        direction = np.linalg.svd(samples)[2][0]
        np.testing.assert_allclose(model.components_[cone], np.abs(direction), atol=1e-8)


def test_it_is_the_function(planted, model):
    result = cone_rank_one(planted.X, 5)
    np.testing.assert_array_equal(model.labels_, result.labels)
    np.testing.assert_array_equal(model.components_, result.H)
    np.testing.assert_array_equal(model.centroid_indices_, result.centroid_indices)
    np.testing.assert_array_equal(model.size_angles_, result.size_angles)
    norm = np.linalg.norm(planted.X)
    assert model.reconstruction_err_ == pytest.approx(result.relative_error * norm, rel=1e-10)
    assert model.result_.data is None


def test_coefficients_are_projections_on_the_own_cone(planted, model):
    W = model.transform(planted.X)
    np.testing.assert_array_equal(W, ConeNMF(5).fit_transform(planted.X))
    np.testing.assert_array_equal(np.count_nonzero(W, axis=1), 1)
    np.testing.assert_array_equal(W.argmax(axis=1), model.labels_)
    own = np.sum(planted.X * model.components_[model.labels_], axis=1)
    np.testing.assert_allclose(W.max(axis=1), own)
    left = np.linalg.norm(planted.X - model.inverse_transform(W))
    assert left == pytest.approx(model.reconstruction_err_, rel=1e-10)


def test_predict_gives_the_labels_again(planted, model, digits):
    np.testing.assert_array_equal(model.predict(planted.X), model.labels_)
    real = ConeNMF(12, bounds=False).fit(digits)
    np.testing.assert_array_equal(real.predict(digits), real.labels_)
    # A centroid is its own; the length of a sample does not matter.
    np.testing.assert_array_equal(model.predict(7 * planted.X[model.centroid_indices_]), range(5))


def test_samples_of_zeros_have_no_cone(planted):
    X = planted.X.copy()
    X[[3, 77]] = 0
    model = ConeNMF(5).fit(X)
    np.testing.assert_array_equal(np.flatnonzero(model.labels_ == -1), [3, 77])
    np.testing.assert_array_equal(model.predict(np.zeros((1, 60))), [-1])
    np.testing.assert_array_equal(model.transform(X)[[3, 77]], 0)


def test_initializations(digits):
    # Without a random initialization the seed changes nothing, and more of them never give a larger error.
    plain = ConeNMF(4, bounds=False).fit(digits)
    seeded = ConeNMF(4, bounds=False, random_state=5).fit(digits)
    np.testing.assert_array_equal(plain.labels_, seeded.labels_)
    errors = [
        ConeNMF(4, n_init=n, random_state=5, bounds=False).fit(digits).reconstruction_err_ for n in (1, 3, 6)
    ]
    assert errors[0] >= errors[1] >= errors[2]
    assert errors[0] == plain.reconstruction_err_ > errors[2]
    other = ConeNMF(4, seeding="plus-plus", random_state=0, bounds=False).fit(digits)
    assert not np.array_equal(other.centroid_indices_, plain.centroid_indices_)


def test_the_number_of_cones_is_estimated(rng):
    X = circular_cones(600, 40, 4, size_angle=0.1, rng=rng).X
    assert ConeNMF().fit(X).n_components_ == nonneg.estimate_rank(X).rank


def test_bounds_may_be_left_out(planted, model):
    quick = ConeNMF(5, bounds=False).fit(planted.X)
    assert not hasattr(quick, "size_angles_")
    assert set(quick.certificate_.names) == {"stationarity"}
    certificate = model.certify(planted.X)
    assert certificate is model.certificate_
    assert {"cluster-bound", "eckart-young-bound"} <= set(certificate.names)
    with pytest.raises(ValueError, match="features"):
        model.certify(planted.X[:, :-1])
    # A new fit forgets what was said of the old one.
    assert not hasattr(clone(model).fit(planted.X).set_params(bounds=False).fit(planted.X), "basis_")


def test_other_namespaces(xp, planted, model):
    X = xp.asarray(planted.X)
    found = ConeNMF(5).fit(X)
    assert type(found.components_) is type(found.labels_) is type(found.transform(X)) is type(X)
    np.testing.assert_array_equal(numbers(found.labels_), model.labels_)
    np.testing.assert_array_equal(numbers(found.predict(X)), model.labels_)
    np.testing.assert_allclose(numbers(found.components_), model.components_, atol=1e-9)
    # Learned on one kind, used on another.
    np.testing.assert_array_equal(found.predict(planted.X), model.labels_)
    np.testing.assert_array_equal(numbers(model.predict(X)), model.labels_)
    np.testing.assert_allclose(numbers(found.inverse_transform(found.transform(X))).shape, (240, 60))
    found.partial_fit(X)
    assert type(found.components_) is type(X)


def test_data_frames(planted):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(planted.X).rename(columns=lambda at: f"f{at}")
    model = ConeNMF(5).set_output(transform="pandas").fit(frame)
    assert list(model.transform(frame).columns) == [f"conenmf{cone}" for cone in range(5)]
    assert list(model.get_feature_names_out()) == [f"conenmf{cone}" for cone in range(5)]
    assert list(model.feature_names_in_) == list(frame.columns)


def test_weights_are_repetitions(planted, rng):
    weights = rng.integers(0, 4, 240)
    weighted = ConeNMF(5).fit(planted.X, sample_weight=weights)
    repeated = ConeNMF(5).fit(np.repeat(planted.X, weights, axis=0))
    order = np.argmax(weighted.components_ @ repeated.components_.T, axis=1)
    np.testing.assert_allclose(weighted.components_, repeated.components_[order], atol=1e-8)
    assert weighted.reconstruction_err_ == pytest.approx(repeated.reconstruction_err_)


def test_copies_are_complete_and_light(model, planted):
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 -- its own
    np.testing.assert_array_equal(again.predict(planted.X), model.labels_)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "components_")


def test_saving(planted, tmp_path):
    model = ConeNMF(5, seeding="plus-plus", random_state=1).fit(planted.X[:200])
    model.save(tmp_path / "cones.npz")
    again = nonneg.load(tmp_path / "cones.npz")
    assert type(again) is ConeNMF
    assert again.get_params() == model.get_params()
    for name in ("components_", "centroids_", "labels_", "centroid_indices_", "basis_", "size_angles_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.certificate_ == model.certificate_
    np.testing.assert_array_equal(again.transform(planted.X), model.transform(planted.X))
    for one in (again, model):
        one.partial_fit(planted.X[200:])
    np.testing.assert_array_equal(again.components_, model.components_)
    again.save(tmp_path / "cones.npz")
    np.testing.assert_array_equal(nonneg.load(tmp_path / "cones.npz").size_angles_, model.size_angles_)
    ConeNMF(5, bounds=False).fit(planted.X).save(tmp_path / "cones.npz")
    assert not hasattr(nonneg.load(tmp_path / "cones.npz"), "basis_")


@pytest.mark.parametrize(
    ("name", "array", "said"),
    [
        ("centroids_", np.ones((5, 3)), "expected centroids_ of shape.*damaged"),
        ("labels_", np.ones(240), "expected labels_ of shape.*damaged"),
        ("_stream.sketches", np.ones((5, 99, 60)), "more than 8 rows"),
        ("anything", np.ones(1), r"arrays that ConeNMF does not have: \['anything'\]"),
    ],
)
def test_a_changed_file_is_refused(name, array, said, model, tmp_path):
    path = tmp_path / "cones.npz"
    model.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **arrays | {name: array})
    with pytest.raises(FileFormatError, match=said):
        nonneg.load(path)


def test_bad_input(planted):
    same = np.outer(np.arange(1.0, 8.0), [1.0, 2.0, 3.0])
    with pytest.raises(InvalidParameterError, match="distinct directions, but the samples have 1"):
        ConeNMF(2).fit(same)
    with pytest.raises(InvalidParameterError, match="clusters cannot be made of 7 samples"):
        ConeNMF(9).fit(same)
    with pytest.raises(InvalidParameterError, match="'n_components' parameter of ConeNMF"):
        ConeNMF(0).fit(same)
    with pytest.raises(InvalidParameterError, match="'seeding' parameter"):
        ConeNMF(1, seeding="nearest").fit(same)
    with pytest.raises(NonFiniteDataError, match="entry"):
        ConeNMF(2).fit(np.where(planted.X > 1, np.nan, planted.X))
    with pytest.raises(NotFittedError):
        ConeNMF().predict(same)


def test_partial_fit_gives_the_cones_in_any_order(planted, model, rng):
    order = rng.permutation(240)
    X = planted.X[order]
    streamed = ConeNMF(5)
    for start in range(0, 240, 37):
        streamed.partial_fit(X[start : start + 37])
    assert streamed.n_steps_ == 7
    assert adjusted_rand_score(planted.labels, streamed.predict(planted.X)) == 1.0
    np.testing.assert_array_equal(streamed.labels_, streamed.predict(X[222:]))
    error = np.linalg.norm(planted.X - streamed.inverse_transform(streamed.transform(planted.X)))
    assert model.reconstruction_err_ <= error * (1 + 1e-12)
    assert error <= streamed.reconstruction_err_ <= np.sqrt(9 / 8) * model.reconstruction_err_
    np.testing.assert_allclose(unit(X[streamed.centroid_indices_]), streamed.centroids_, atol=1e-12)
    assert not hasattr(streamed, "result_")
    assert streamed.certificate_["streamed-error"].number == pytest.approx(
        streamed.reconstruction_err_ / np.linalg.norm(X)
    )


def test_partial_fit_goes_on_after_a_fit(planted):
    model = ConeNMF(5).fit(planted.X[:120])
    model.partial_fit(planted.X[120:])
    assert not hasattr(model, "result_")
    assert adjusted_rand_score(planted.labels, model.predict(planted.X)) == 1.0
    best = cone_rank_one(planted.X, 5).relative_error * np.linalg.norm(planted.X)
    error = np.linalg.norm(planted.X - model.inverse_transform(model.transform(planted.X)))
    assert error <= model.reconstruction_err_ <= np.sqrt(17 / 8) * best
    angles = np.arccos(
        np.clip(np.sum(unit(planted.X) * model.basis_[model.predict(planted.X)], axis=1), -1, 1)
    )
    assert np.all(angles <= model.size_angles_[model.predict(planted.X)] + 1e-7)


def test_partial_fit_on_small_batches_and_sparse_rows(counts):
    counts = counts[:30]
    model = ConeNMF(6).partial_fit(counts[:2])
    assert model.components_.shape == (6, 50)
    np.testing.assert_array_equal(model.components_[2:], 0)
    np.testing.assert_array_equal(model.centroid_indices_[2:], -1)
    assert set(model.predict(counts)) <= {0, 1}
    for row in range(2, 30):
        model.partial_fit(counts[[row]])
    assert set(model.centroid_indices_) <= set(range(30))
    dense = ConeNMF(6)
    for row in range(30):
        dense.partial_fit(counts[[row]].toarray())
    np.testing.assert_array_equal(dense.centroid_indices_ >= 0, True)
    assert model.certificate_["streamed-radius"].holds
    W = model.transform(counts)
    assert np.linalg.norm(counts.toarray() - W @ model.components_) < np.linalg.norm(counts.toarray())


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)
