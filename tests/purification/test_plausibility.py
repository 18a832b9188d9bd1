"""Is purification plausible for the data? What is said, and what is returned where it is not."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from nonneg import NMF, PurificationNMF, metrics, purify
from nonneg.data import as_data_matrix
from nonneg.datasets import purification_data
from nonneg.exceptions import NonnegWarning
from nonneg.purification.certificate import correlation_statement
from nonneg.purification.initialization import has_nonnegative_mean
from nonneg.purification.plausibility import (
    NAME,
    explained_share,
    leading_basis,
    share_outside,
    with_fallback,
)


def cosine(true, found):
    return metrics.match_components(true, np.maximum(found, 0.0)).cosines.mean()


@pytest.fixture(scope="module")
def overlapping():
    """Dense features and binary weights in noise: what purification is for."""
    rng = np.random.default_rng(0)
    H = rng.random((6, 40)) * (rng.random((6, 40)) < 0.8)
    W = (rng.random((1500, 6)) < 0.3).astype(float)
    clean = W @ H
    return clean + rng.uniform(-1.5, 1.5, clean.shape) * clean.mean(), H


@pytest.fixture(scope="module")
def proportions():
    """Weights that sum to one, with little noise: what it is not for."""
    rng = np.random.default_rng(1)
    H = rng.random((5, 30)) * (rng.random((5, 30)) < 0.3)
    W = rng.dirichlet(np.full(5, 0.7), size=600)
    return np.maximum(W @ H + rng.normal(0, 0.002, (600, 30)), 0.0), H


def test_heavy_noise_on_overlapping_features(overlapping):
    X, H = overlapping
    model = PurificationNMF(6).fit(X)
    assert model.result_.fallback is None
    assert model.certificate_[NAME].holds
    assert cosine(H, model.components_) > cosine(H, NMF(6).fit(np.maximum(X, 0.0)).components_) + 0.005
    kept = PurificationNMF(6, fallback=None).fit(X)
    assert NAME not in kept.certificate_.names
    np.testing.assert_array_equal(model.components_, kept.components_)


def test_proportions_fall_back_to_nmf(proportions):
    X, H = proportions
    with pytest.warns(NonnegWarning, match="the features are those of NMF"):
        model = PurificationNMF(5).fit(X)
    assert model.result_.fallback == "nmf"
    statement = model.certificate_[NAME]
    assert str(statement.verdict) == "fails"
    assert statement.sentence.endswith("The features are those of NMF.")
    nmf = NMF(5).fit(X).components_
    assert metrics.match_components(nmf, model.components_).cosines.min() > 0.9999
    alone = PurificationNMF(5, fallback=None).fit(X)
    assert cosine(H, model.components_) > cosine(H, alone.components_)
    # What else is said is about the features that were returned, and the history is that of the purification.
    assert model.n_iter_ == alone.n_iter_
    W = model.transform(X)
    assert np.linalg.norm(X - W @ model.components_) < 0.1 * np.linalg.norm(X)
    np.testing.assert_allclose(
        model.reconstruction_err_, np.linalg.norm(X - W @ model.components_), rtol=1e-6
    )


def test_a_chosen_initialization_is_trusted(proportions):
    X, _ = proportions
    for init in ("nmf", NMF(5).fit(X).components_):
        assert PurificationNMF(5, init=init, random_state=0).fit(X).result_.fallback is None
    with pytest.warns(NonnegWarning, match="not plausible"):
        PurificationNMF(5, init="nmf", fallback="nmf", random_state=0).fit(X)


def test_neither_order_nor_weights_of_samples_nor_units_matter(proportions):
    X, _ = proportions
    counts = np.random.default_rng(2).integers(1, 3, len(X))
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NonnegWarning)
        for given, weight in (
            (X, counts),
            (np.repeat(X, counts, axis=0), None),
            (1e6 * X[::-1], counts[::-1]),
        ):
            found.append(PurificationNMF(5).fit(given, sample_weight=weight).certificate_[NAME])
    assert len({str(statement.verdict) for statement in found}) == 1


def test_features_of_both_signs_have_no_nmf():
    data = purification_data(1500, 40, 6, sparsity=2, features="signed", rng=0)
    assert not has_nonnegative_mean(data.X)
    model = PurificationNMF(6).fit(data.X)
    statement = model.certificate_[NAME]
    assert str(statement.verdict) == "not verifiable"
    assert statement.number is None
    assert metrics.mixing(data.H, model.components_, match=True).normalized_error < 1e-8


def test_features_that_explain_nothing_are_replaced():
    data = purification_data(800, 40, 6, sparsity=2, features="signed", rng=0)
    result = purify(data.X, data.H)
    assert explained_share(data.X, data.H) == pytest.approx(1.0)
    # Directions in which the samples have nothing.
    nothing = np.linalg.svd(data.X)[2][-6:]
    with pytest.warns(NonnegWarning, match=r"explain .*e-.* of the squared entries.*initialization"):
        kept = with_fallback(as_data_matrix(data.X), data.H, replace(result, H=nothing), {})
    assert kept.fallback == "init"
    np.testing.assert_allclose(kept.H, data.H)
    assert kept.W.shape == (800, 6)


def test_mean_samples():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(300, 20))
    assert has_nonnegative_mean(noise + 0.5)
    assert not has_nonnegative_mean(noise)
    assert not has_nonnegative_mean(noise - noise.mean(axis=0))
    assert not has_nonnegative_mean(noise + np.where(np.arange(20) < 10, 1.0, -1.0))


def test_share_outside_the_leading_directions():
    rng = np.random.default_rng(0)
    H = rng.random((3, 20))
    tall, wide = rng.random((50, 3)) @ H, rng.random((8, 3)) @ H
    for samples in (tall, wide):
        assert share_outside(leading_basis(samples, 3), H) == pytest.approx(0.0, abs=1e-10)
    away = np.linalg.svd(H)[2][3:6]
    assert share_outside(leading_basis(tall, 3), away) == pytest.approx(1.0)
    half = H / np.linalg.norm(H, axis=1, keepdims=True) + away
    assert share_outside(leading_basis(wide, 3), half) == pytest.approx(0.5)


def test_correlations_of_weights():
    rng = np.random.default_rng(0)
    independent = rng.random((4000, 8))
    assert correlation_statement(independent).number < 0.02
    assert correlation_statement(independent).holds
    dependent = independent + rng.random((4000, 1))
    statement = correlation_statement(dependent)
    # Half of the variance is common.
    assert statement.number == pytest.approx(0.5, abs=0.03)
    assert str(statement.verdict) == "fails"
    assert str(correlation_statement(independent[:, :1]).verdict) == "not verifiable"
