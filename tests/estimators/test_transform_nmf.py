"""TransformNMF: what is learned, encoding of new frames, averages, errors, and saved models."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
from reproduction.data import gaussian_composite
from tests.references.objectives import beta_divergence

import nonneg
from nonneg import TransformNMF, learn_transform, metrics
from nonneg.exceptions import (
    DataTypeError,
    FileFormatError,
    InvalidDataError,
    InvalidParameterError,
    NonFiniteDataError,
    ShapeError,
)
from nonneg.transforms.encoding import averaged_frames, coefficient_variances


@pytest.fixture(scope="module")
def data():
    return gaussian_composite(200, frame_length=8, n_frames=30, n_components=2, rng=0)


@pytest.fixture(scope="module")
def model(data):
    return TransformNMF(2, method="tl", eps0=1e-8, max_iter=150, random_state=0).fit(data.Y)


@pytest.mark.parametrize("method", ["tl", "jd"])
def test_the_planted_transform_is_found(data, method):
    model = TransformNMF(2, method=method, eps0=1e-8, init="jd", max_iter=150, random_state=0).fit(data.Y)
    cosines = np.abs(model.transform_ @ data.transform.T)
    assert cosines.max(axis=1).min() > 0.99
    order = cosines.argmax(axis=0)
    matched = metrics.match_components(data.H, model.components_[:, order])
    assert matched.cosines.min() > 0.99
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0)
    assert model.certificate_["orthogonality"].holds
    assert len(model.history_) == model.n_iter_


def test_it_is_the_function(data, model):
    result = learn_transform(data.Y, 2, eps0=1e-8, max_iter=150, rng=0)
    np.testing.assert_array_equal(model.transform_, result.transform)
    np.testing.assert_array_equal(model.activations_, result.W)
    np.testing.assert_array_equal(model.components_, result.H)
    assert model.reconstruction_err_ == pytest.approx(np.sqrt(2 * result.divergence))
    assert model.result_.objective == result.objective


def test_encoding_is_that_of_the_fit_and_of_each_frame_alone(data, model):
    W = model.transform(data.Y)
    # The fit stops before it is at rest: encoding goes on to the minimum of every frame.
    np.testing.assert_allclose(W, model.activations_, rtol=0.02, atol=0.02 * W.max())
    np.testing.assert_allclose(model.transform(data.Y[:, 7:9])[0], W[7], rtol=1e-6)
    np.testing.assert_allclose(model.fit_transform(data.Y), W, rtol=1e-9)
    V = coefficient_variances(data.Y, model.transform_)
    for rows in (W * 1.01, W * 0.99, W + 0.01 * W.max()):
        better = beta_divergence(V, W @ model.components_, 0).sum()
        assert better <= beta_divergence(V, rows @ model.components_, 0).sum()
    np.testing.assert_array_equal(model.inverse_transform(W), W @ model.components_)


def test_frames_come_back_from_their_coefficients(data, model):
    coefficients = model.analyze(data.Y)
    assert coefficients.shape == data.Y.shape
    np.testing.assert_allclose(model.synthesize(coefficients), data.Y, atol=1e-12)
    np.testing.assert_allclose(model.synthesize(np.asarray(coefficients).tolist()), data.Y, atol=1e-12)
    np.testing.assert_array_equal(model.analyze(data.Y[3]), coefficients[3])
    with pytest.raises(ShapeError, match="one for each atom"):
        model.synthesize(np.ones((3, 7)))


def test_the_cosine_transform_is_kept_for_comparison(data):
    model = TransformNMF(2, method="dct", eps0=1e-8, max_iter=50, random_state=0).fit(data.Y)
    np.testing.assert_allclose(model.transform_, scipy.fft.dct(np.eye(8), norm="ortho", axis=0), atol=1e-12)
    divergences = model.history_["I"]
    assert divergences[-1] < divergences[0]
    # The generator's transform is this one, so that the variances are those of the model.
    assert divergences[-1] < 30 * 8 * 1.5 / 200


def test_initializations(data, model):
    given = TransformNMF(
        2,
        method="tl",
        eps0=1e-8,
        init=(model.transform_, model.components_, model.activations_),
        max_iter=1,
    ).fit(data.Y)
    assert given.result_.objective <= model.result_.objective + 1e-6
    several = TransformNMF(2, method="tl", eps0=1e-8, n_init=3, max_iter=10, random_state=0).fit(data.Y)
    assert several.result_.objective == pytest.approx(several.result_.restarts.objective.min())
    assert len(several.result_.restarts.objective) == 3


def test_a_run_is_taken_up_again(data, tmp_path):
    def fitted(max_iter, **more):
        return TransformNMF(2, method="tl", max_iter=max_iter, tol=0, random_state=0, **more).fit(data.Y)

    fitted(6, checkpoint=tmp_path / "run")
    resumed = fitted(12, checkpoint=tmp_path / "run")
    np.testing.assert_allclose(resumed.transform_, fitted(12).transform_, atol=1e-12)
    assert resumed.n_iter_ == 12


def test_eps0_follows_the_scale_of_the_frames(data):
    small, large = (
        TransformNMF(2, method="tl", max_iter=5, random_state=0).fit(scale * data.Y) for scale in (1, 8)
    )
    assert small.eps0_ == pytest.approx(0.1 * np.square(data.Y).mean())
    assert large.eps0_ == pytest.approx(64 * small.eps0_)


def test_neighbors_stand_in_for_realizations():
    # Activations that are constant over blocks of ten frames, one realization.
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    H, blocks = rng.gamma(0.5, size=(2, 6)), rng.gamma(0.5, size=(60, 2))
    Y = rng.standard_normal((600, 6)) * np.sqrt(np.repeat(blocks, 10, axis=0) @ H) @ Q

    def found(**options):
        model = TransformNMF(2, eps0=1e-8, method="jd", max_iter=60, random_state=0, **options).fit(Y)
        return np.abs(model.transform_ @ Q.T).max(axis=1).min(), model

    alone, _ = found()
    moving, smooth = found(average_frames=10)
    assert alone < 0.9 < moving
    assert smooth.activations_.shape == (600, 2)
    assert (smooth.transform(Y)[10] != smooth.transform(Y)[11]).any()


def test_averages_are_of_the_frames_around():
    Y = np.arange(7.0).reshape(1, 7, 1)
    assert averaged_frames(Y, 3)[:, :, 0].T.tolist() == [
        [0, 1, 2], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6], [4, 5, 6],
    ]  # fmt: skip
    with pytest.raises(InvalidParameterError, match="average_frames=8 is more than the number of frames 7"):
        averaged_frames(Y, 8)


def test_single_precision_and_tensors_stay(data, torch):
    Y = data.Y[:20].astype(np.float32)
    model = TransformNMF(2, max_iter=5, random_state=0).fit(Y)
    assert {model.transform_.dtype, model.components_.dtype, model.activations_.dtype} == {
        np.dtype("float32")
    }
    tensor = torch.asarray(data.Y)
    there = TransformNMF(2, eps0=1e-8, max_iter=20, random_state=0)
    W = there.fit_transform(tensor)
    assert type(W) is type(there.transform_) is torch.Tensor
    here = TransformNMF(2, eps0=1e-8, max_iter=20, random_state=0)
    np.testing.assert_allclose(here.fit_transform(data.Y), W.numpy(), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(there.transform(data.Y), W.numpy(), rtol=1e-5, atol=1e-8)


def test_saved_and_read_again(model, data, tmp_path):
    path = tmp_path / "model.npz"
    model.save(path)
    again = nonneg.load(path)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.transform_, model.transform_)
    np.testing.assert_array_equal(again.activations_, model.activations_)
    np.testing.assert_array_equal(again.transform(data.Y), model.transform(data.Y))
    assert again.certificate_ == model.certificate_
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    arrays["transform_"] = arrays["transform_"] * 2
    np.savez(path, **arrays)
    with pytest.raises(FileFormatError, match="expected an orthogonal transform of 8 atoms"):
        nonneg.load(path)


def test_what_is_refused(data, model):
    good = data.Y[:2]
    with pytest.raises(InvalidDataError, match="at least one realization"):
        TransformNMF().fit(good[:0])
    with pytest.raises(InvalidDataError, match="frames of at least two samples, got n_features=1"):
        TransformNMF().fit(good[:, :, :1])
    with pytest.raises(InvalidDataError, match="at least 2 frames, got n_samples=1"):
        TransformNMF().fit(good[:, :1])
    with pytest.raises(InvalidDataError, match="silent"):
        TransformNMF().fit(0 * good)
    with pytest.raises(InvalidDataError, match="constant"):
        TransformNMF().fit(0 * good + 1)
    bad = good.copy()
    bad[1, 4, 2] = np.nan
    with pytest.raises(NonFiniteDataError, match="realization 1, frame 4, sample 2"):
        TransformNMF().fit(bad)
    with pytest.raises(ShapeError, match="Expected frames of shape"):
        TransformNMF().fit(good[None, None])
    with pytest.raises(DataTypeError, match="Complex data not supported by TransformNMF"):
        TransformNMF().fit(good * 1j)
    with pytest.raises(ShapeError, match="X has 7 features, but TransformNMF is expecting 8"):
        model.transform(good[:, :, :7])
    with pytest.raises(InvalidParameterError, match="'method' parameter of TransformNMF"):
        TransformNMF(method="fft").fit(good)


def test_the_published_protocol_is_one_word_away(data):
    model = TransformNMF(3, method="tl", cross_initialize=True, n_init=2, max_iter=15, random_state=0)
    model.set_params(eps0=1e-3, init="random").fit(data.Y)
    options = {"eps0": 1e-3, "n_init": 2, "init": "random", "max_iter": 15, "rng": 0}
    same = learn_transform(data.Y, 3, method="tl", cross_initialize=True, **options)
    assert model.result_.objective == same.objective
    alone = learn_transform(data.Y, 3, method="tl", **options)
    # Restarts from the solutions of JD+NMF are further ones: never worse.
    assert len(model.result_.restarts.objective) > len(alone.restarts.objective)
    assert model.result_.objective <= alone.objective
