"""MinVolNMF: components beyond the samples, with a weight from the noise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.references.checks import parametrize_with_options
from tests.references.containers import as_container, plain
from tests.references.mixtures import mixtures

import nonneg
from nonneg import MinVolNMF, SeparableNMF
from nonneg.exceptions import InvalidDataError, InvalidParameterError, ShapeError, UnknownNameError
from nonneg.metrics import spectral_angles


@parametrize_with_options(MinVolNMF(2, max_iter=3))
def test_follows_the_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.fixture(scope="module")
def planted():
    return mixtures(400, 30, 4, purity=0.7, snr=30.0, rng=0)


@pytest.fixture(scope="module")
def model(planted):
    return MinVolNMF(4).fit(planted.X)


def error(model, planted):
    """Largest angle in degrees between a true component and the nearest that was found."""
    return spectral_angles(np.asarray(model.components_, dtype=float), planted.H).min(axis=0).max()


@pytest.mark.covering(1)
@pytest.mark.parametrize("snr", [20.0, 40.0])
@pytest.mark.parametrize("purity", [0.6, 0.8])
def test_finds_components_that_no_sample_equals(purity, snr):
    scene = mixtures(400, 30, 4, purity=purity, snr=snr, rng=1)
    found = error(MinVolNMF(4).fit(scene.X), scene)
    assert found < (2.5 if snr == 40 else 6.0)
    assert found < 0.3 * error(SeparableNMF(4, method="spa").fit(scene.X), scene)


def test_certificate(model):
    certificate = model.certificate_
    assert certificate["stationarity"].holds
    assert certificate["noise-fit"].holds
    scattered = certificate["sufficiently-scattered"]
    assert scattered.verdict == "not verifiable"
    assert scattered.number == pytest.approx(0.7, abs=0.05)
    assert np.all(np.diff(model.history_.loss) < 0)


def test_weights_below_the_necessary_purity_are_called_so():
    # Of three components, none above 0.6 < 2/3 in any sample: a smaller triangle holds them all.
    scene = mixtures(400, 20, 3, purity=0.6, snr=50.0, rng=2)
    model = MinVolNMF(3, init=scene.H, max_iter=0, lam=1e-9).fit(scene.X)
    assert model.certificate_["sufficiently-scattered"].verdict == "fails"


def test_a_collapsed_simplex_does_not_fit_the_noise(planted):
    model = MinVolNMF(4, lam=1e4 * 0.25 * 400 * planted.sigma**2, max_iter=500).fit(planted.X)
    assert model.certificate_["noise-fit"].verdict == "fails"


@pytest.mark.covering(0)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_the_data_changes_the_unit_of_the_components_alone(model, planted, unit):
    other = MinVolNMF(4).fit(unit * planted.X)
    # The last digits of the samples change the path, and the iterations stop at a tolerance.
    largest = model.components_.max()
    np.testing.assert_allclose(other.components_ / unit, model.components_, rtol=0, atol=1e-3 * largest)
    assert other.lam_ == pytest.approx(unit**2 * model.lam_)


def test_fit_transform_equals_transform(model, planted):
    W = MinVolNMF(4).fit_transform(planted.X)
    np.testing.assert_allclose(W, model.transform(planted.X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(W.sum(axis=1), 1.0)
    error = np.linalg.norm(planted.X - W @ model.components_)
    assert model.reconstruction_err_ == pytest.approx(error)


def test_at_most_one_leaves_room_for_shade(planted):
    dark = planted.X * np.random.default_rng(0).uniform(0.3, 1.0, (400, 1))
    model = MinVolNMF(4, constraint="at-most-one").fit(dark)
    sums = model.transform(dark).sum(axis=1)
    assert sums.max() <= 1 + 1e-9
    assert sums.min() < 0.6
    assert error(model, planted) < 5.0


def test_signed_data_are_refused(planted):
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        MinVolNMF(4).fit(planted.X - planted.X.mean(axis=0))


@pytest.mark.slow
def test_dask_agrees(model, planted):
    other = MinVolNMF(4).fit(as_container(planted.X, "dask-one-chunk"))
    np.testing.assert_allclose(plain(other.components_), model.components_, rtol=1e-6)


def test_interrupted_run_resumes(model, planted, tmp_path):
    def stop(progress):
        return progress.n_iter >= 3

    short = MinVolNMF(4, callback=stop, checkpoint=tmp_path).fit(planted.X)
    assert short.n_iter_ == 3
    rest = MinVolNMF(4, checkpoint=tmp_path).fit(planted.X)
    assert rest.n_iter_ == model.n_iter_
    np.testing.assert_allclose(rest.components_, model.components_, rtol=1e-9)


def test_save_and_load(model, planted, tmp_path):
    model.save(tmp_path / "m.npz")
    again = nonneg.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.transform(planted.X), model.transform(planted.X))
    np.testing.assert_array_equal(again.purity_, model.purity_)
    assert (again.lam_, again.noise_level_) == (model.lam_, model.noise_level_)
    assert again.certificate_ == model.certificate_


def test_the_number_of_components_can_be_estimated(planted):
    model = MinVolNMF(max_iter=5).fit(planted.X[:100])
    assert model.n_components_ == model.rank_estimate_.rank


def test_it_says_that_it_has_not_converged(planted):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        MinVolNMF(4, init=planted.X[:4], max_iter=2).fit(planted.X)


def test_numbers_at_the_end_of_the_range_end_in_an_answer_or_an_error_of_the_package(planted):
    for seed in range(5):
        X = planted.X[:20] * 10.0 ** np.random.default_rng(seed).integers(-90, 90, (20, 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = MinVolNMF(3, max_iter=5).fit(X)
        assert np.isfinite(model.components_).all()
        assert "nan" not in str(model.certificate_)
    for options in ({"noise": 1e300}, {"lam": 1e300}):
        with pytest.raises(InvalidDataError, match=r"products of its squares overflow"):
            MinVolNMF(3, **options).fit(planted.X)
    with pytest.raises(InvalidDataError, match=r"The largest entry of X is .*e\+150"):
        MinVolNMF(3).fit(planted.X * np.where(np.arange(400) % 2, 1e-150, 1e150)[:, None])


def test_wrong_parameters_are_named(planted):
    with pytest.raises(UnknownNameError, match="init"):
        MinVolNMF(4, init="spca").fit(planted.X)
    with pytest.raises(ShapeError, match="init"):
        MinVolNMF(4, init=planted.H[:3]).fit(planted.X)
    with pytest.raises(InvalidDataError, match="init"):
        MinVolNMF(4, init=-planted.H).fit(planted.X)
    with pytest.raises(InvalidParameterError, match="n_components"):
        MinVolNMF(9).fit(planted.X[:8])
    with pytest.raises(ValueError, match="constraint"):
        MinVolNMF(4, constraint="sum").fit(planted.X)
