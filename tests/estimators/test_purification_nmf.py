"""PurificationNMF: scikit-learn's contract, starts by name, streams, and saved models."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reproduction.purification.perturbation import perturbed_features
from tests.references.checks import parametrize_with_options
from tests.references.containers import FORMS, TORCH, as_container, plain

from nonneg import PurificationNMF, load, metrics, purify
from nonneg.datasets import purification_data
from nonneg.exceptions import FileFormatError, InvalidParameterError, ShapeError, UnknownNameError


@parametrize_with_options(
    PurificationNMF(1, init="anchors"),
    PurificationNMF(2, init="nmf", random_state=0, update="covariance"),
)
def test_follows_the_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return purification_data(1500, 40, 8, sparsity=1.5, weights="uniform", rng=0)


@pytest.fixture(scope="module")
def noisy():
    return purification_data(6000, 60, 8, sparsity=2, noise="unbiased", noise_level=0.3, rng=0)


@pytest.mark.parametrize("init", ["anchors", "cone", "nmf"])
def test_starts_by_name(data, noisy, init):
    model = PurificationNMF(8, init=init, random_state=0).fit(data.X)
    assert metrics.mixing(data.H, model.components_, match=True).normalized_error < 1e-8
    assert model.n_components_ == 8
    assert model.reconstruction_err_ < 1e-7
    # Negative entries, which are noise, are no obstacle; and a typical large weight is one.
    assert noisy.X.min() < 0
    model.fit(noisy.X)
    if init != "cone":  # whose clusters are those of the largest weight, not of the only one
        assert metrics.mixing(noisy.H, model.components_, match=True).normalized_error < 0.01
        W = model.transform(noisy.X)
        assert 0.8 < np.quantile(W[W > 0], 0.9) < 1.3


def test_given_features_are_refined_as_by_the_function(data):
    init = perturbed_features(data.H, 0.1, rng=1)
    model = PurificationNMF(init=init, max_iter=40, tol=0)
    W = model.fit_transform(data.X)
    result = purify(data.X, init, max_iter=40, tol=0)
    np.testing.assert_array_equal(model.components_, result.H)
    np.testing.assert_array_equal(W, result.W)
    np.testing.assert_array_equal(W, model.transform(data.X))
    np.testing.assert_allclose(model.inverse_transform(W), data.X, atol=1e-6)
    assert len(model.history_) == model.n_iter_ == 40
    assert model.certificate_["warm-start"].holds
    assert W.min() >= 0


def test_what_is_refused(data):
    init = perturbed_features(data.H, 0.1, rng=1)
    with pytest.raises(InvalidParameterError, match="init has 8 features, but n_components is 5"):
        PurificationNMF(5, init=init).fit(data.X)
    with pytest.raises(UnknownNameError, match="Did you mean 'anchors'"):
        PurificationNMF(5, init="anchor").fit(data.X)
    with pytest.raises(InvalidParameterError, match="'update' parameter of PurificationNMF"):
        PurificationNMF(5, update="other").fit(data.X)
    with pytest.raises(InvalidParameterError, match="n_components=60 is larger than the rank"):
        PurificationNMF(60).fit(data.X)
    with pytest.raises(InvalidParameterError, match="Not a warm start"):
        PurificationNMF(init=np.random.default_rng(0).random(init.shape)).fit(data.X)
    with pytest.raises(ShapeError, match="init must have shape"):
        PurificationNMF(init=init[:, :9]).fit(data.X)
    flat = np.outer(data.X[:, 0], np.ones(9)) + np.outer(data.X[:, 5], np.arange(9.0))
    for init in ("auto", "anchors"):
        with pytest.raises(InvalidParameterError, match="The data have 2 dimensions"):
            PurificationNMF(3, init=init).fit(flat)


# `tests/purification/test_samples.py` has all forms of data.
@pytest.mark.parametrize("form", ["csr", TORCH, "dask", "streamed"])
def test_every_container(data, form):
    X = as_container(data.X[:150], form)
    expected = PurificationNMF(8, max_iter=10, tol=0).fit(data.X[:150])
    model = PurificationNMF(8, max_iter=10, tol=0)
    W = model.fit_transform(X)
    np.testing.assert_allclose(plain(model.components_), expected.components_, atol=1e-8)
    np.testing.assert_allclose(plain(W), expected.transform(data.X[:150]), atol=1e-7)
    np.testing.assert_array_equal(plain(W), plain(model.transform(X)))
    assert type(W).__module__ == type(model.transform(X)).__module__
    streamed = PurificationNMF(8, batch_size=100).partial_fit(X)
    assert streamed.n_steps_ == 1
    assert plain(streamed.components_).shape == (8, 40)


def test_a_stream_of_batches_of_any_size():
    data = purification_data(30_000, 60, 8, sparsity=2, weights="uniform", rng=1)
    init = perturbed_features(data.H, 0.1, rng=2)
    large = PurificationNMF(init=init, batch_size=1000)
    for batch in np.split(data.X, 30):
        large.partial_fit(batch)
    assert large.n_steps_ == 30
    assert metrics.mixing(data.H, large.components_).e_norm < 1e-3
    assert not hasattr(large, "certificate_")
    # Small batches are counted until there are enough of them: the features are the same.
    small = PurificationNMF(init=init, batch_size=1000, method_params={"threshold": 0.2})
    larger = PurificationNMF(init=init, batch_size=1000, method_params={"threshold": 0.2})
    larger.partial_fit(data.X[:1]).partial_fit(data.X[1:1000]).partial_fit(data.X[1000:2000])
    for batch in np.split(data.X[:2000], [1, 250, 251, 1000, 1500]):
        small.partial_fit(batch)
    np.testing.assert_allclose(small.components_, larger.components_, atol=1e-12)
    W = large.transform(data.X[:50])
    np.testing.assert_allclose(large.inverse_transform(W), data.X[:50], atol=1e-3)


def test_noise_averages_out_over_a_stream():
    data = purification_data(40_000, 60, 8, sparsity=2, noise="unbiased", noise_level=1.0, rng=1)
    init = perturbed_features(data.H, 0.1, rng=2)
    errors = {}
    for forget_factor in (0.0, 0.95):
        model = PurificationNMF(init=init, batch_size=1000, forget_factor=forget_factor)
        for batch in np.split(data.X, 40):
            model.partial_fit(batch)
        errors[forget_factor] = metrics.mixing(data.H, model.components_).normalized_error
    assert errors[0.95] < 0.5 * errors[0.0]


def test_partial_fit_goes_on_from_a_fit_and_from_a_file(data, tmp_path):
    model = PurificationNMF(8, batch_size=200).fit(data.X[:700])
    model.partial_fit(data.X[700:1000]).partial_fit(data.X[1000:1100])
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert type(again) is PurificationNMF
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.transform(data.X), model.transform(data.X))
    model.partial_fit(data.X[1100:])
    again.partial_fit(data.X[1100:])
    np.testing.assert_array_equal(again.components_, model.components_)
    assert again.n_steps_ == 3
    assert metrics.mixing(data.H, model.components_, match=True).normalized_error < 1e-6


def test_a_fitted_model_is_saved_with_its_certificate(data, tmp_path):
    model = PurificationNMF(8, method_params={"pseudo_inverse": "min-infinity"}, max_iter=5).fit(data.X)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.certificate_ == model.certificate_
    assert again.history_.as_dict() == model.history_.as_dict()
    np.testing.assert_array_equal(again.transform(data.X), model.transform(data.X))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("_decoder.inverse", np.ones((2, 2)), "expected _decoder.inverse of shape"),
        ("_decoder", {"rule": "7"}, "no decoding rule '7'"),
        ("_online_state.state.bases", np.full((8, 8), 99), "_online_state.state.bases exceed"),
        ("other", np.ones(3), r"does not have: \['other'\]"),
    ],
)
def test_a_damaged_model_is_refused(data, tmp_path, name, value, said):
    path = tmp_path / "model.npz"
    PurificationNMF(8, max_iter=2).fit(data.X).save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    header = json.loads(bytes(arrays["header"]).decode())
    if name in header:
        header[name] |= value
    else:
        arrays[name] = value
    header["_online_state"]["state"]["bases"] = [8, 8] if name.endswith("bases") else None
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(FileFormatError, match=said):
        load(path)


def test_signed_features():
    signed = purification_data(3000, 40, 6, sparsity=1.5, features="signed", rng=3)
    model = PurificationNMF(6).fit(signed.X)
    assert model.components_.min() < 0
    assert model.certificate_["warm-start"].number < 1e-6
    assert metrics.mixing(signed.H, model.components_, match=True).normalized_error < 1e-10


@pytest.mark.covering(1)
@pytest.mark.parametrize(
    ("init", "form"), [*(("anchors", form) for form in FORMS[::2]), ("cone", "dense"), ("nmf", "dense")]
)
def test_integer_weights_count_like_repetitions(noisy, init, form):
    # On dask a few rows are a chunk, and every pass is a graph of all chunks.
    few = form == "dask"
    X = noisy.X[:250]
    weights = np.random.default_rng(1).integers(0, 4, size=len(X))
    options = {"init": init, "random_state": 0, "max_iter": 4 if few else 8, "tol": 0}
    one = PurificationNMF(8, **options).fit(as_container(X, form), sample_weight=weights)
    many = PurificationNMF(8, **options).fit(as_container(np.repeat(X, weights, axis=0), form))
    np.testing.assert_allclose(plain(one.components_), plain(many.components_), atol=1e-7)
    assert one.reconstruction_err_ == pytest.approx(many.reconstruction_err_, rel=1e-6)
    W = PurificationNMF(8, **options).fit_transform(as_container(X, form), sample_weight=weights)
    np.testing.assert_allclose(plain(W), plain(one.transform(as_container(X, form))), atol=1e-9)


@pytest.mark.parametrize("update", ["regression", "covariance"])
def test_weights_in_a_stream(noisy, update):
    weights = np.random.default_rng(1).integers(0, 3, size=len(noisy.X))
    init = perturbed_features(noisy.H, 0.1, rng=1)
    one, many = (PurificationNMF(init=init, update=update, batch_size=700) for _ in range(2))
    for part in np.array_split(np.arange(3000), 6):
        one.partial_fit(noisy.X[part], sample_weight=weights[part])
        many.partial_fit(np.repeat(noisy.X[part], weights[part], axis=0))
    assert one._online_state.state.iteration == many._online_state.state.iteration > 2
    np.testing.assert_allclose(one.components_, many.components_, atol=1e-9)


def test_weights_that_are_none_are_refused(data):
    for wrong, message in ((np.ones(3), "one weight per sample"), (-np.ones(1500), "not negative")):
        with pytest.raises((ShapeError, InvalidParameterError), match=message):
            PurificationNMF(8).fit(data.X, sample_weight=wrong)
        with pytest.raises((ShapeError, InvalidParameterError), match=message):
            PurificationNMF(8).partial_fit(data.X, sample_weight=wrong)


def test_samples_without_weight_do_not_count(data):
    spoiled = np.concatenate([data.X, np.random.default_rng(0).random((500, 40)) * 9])
    weights = np.r_[np.ones(1500), np.zeros(500)]
    model = PurificationNMF(8).fit(spoiled, sample_weight=weights)
    np.testing.assert_allclose(model.components_, PurificationNMF(8).fit(data.X).components_, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_dependent_weights_are_said(seed):
    # Proportions: weights that sum to one, which the theorems exclude.
    rng = np.random.default_rng(seed)
    X = rng.dirichlet(np.full(5, 0.5), size=600) @ (rng.random((5, 30)) * (rng.random((5, 30)) < 0.3))
    model = PurificationNMF(5).fit(X)
    assert np.isfinite(model.components_).all()
    statement = model.certificate_["weight-correlation"]
    assert not statement.holds
    independent = (rng.random((600, 5)) < 0.3) @ rng.random((5, 30))
    assert PurificationNMF(5, init="anchors").fit(independent).certificate_["weight-correlation"].holds


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_the_data_changes_nothing(data, unit):
    # The initialization changed at a mean of 100.
    plain, scaled = PurificationNMF(8).fit(data.X), PurificationNMF(8).fit(unit * data.X)
    np.testing.assert_allclose(scaled.components_, unit * plain.components_, rtol=1e-6, atol=1e-6 * unit)


def test_purification_as_published_is_one_word(data):
    published = PurificationNMF(8, init=data.H, update="published", max_iter=3, tol=0).fit(data.X)
    by_hand = PurificationNMF(
        8,
        init=data.H,
        update="covariance",
        method_params={"decode": "shifted", "pseudo_inverse": "min-infinity"},
        max_iter=3,
        tol=0,
    ).fit(data.X)
    np.testing.assert_array_equal(published.components_, by_hand.components_)
    assert published.result_.parameters["threshold_decay"] == 1.0


def test_a_parameter_that_purify_does_not_have_is_named(data):
    with pytest.raises(ValueError, match=r"'treshold' is not known.*'threshold'"):
        PurificationNMF(8, method_params={"treshold": 0.2}).fit(data.X)
    with pytest.raises(ValueError, match="threshold must be 'auto' or a finite number"):
        PurificationNMF(8, method_params={"threshold": "high"}).partial_fit(data.X)
