"""`score`: minus the mean deviance of an entry, on every container, and in scikit-learn's searches."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reproduction.data import gaussian_composite
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance, mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from nonneg import NMF, ConeNMF, MinVolNMF, PurificationNMF, SeparableNMF, TransformNMF
from nonneg.datasets import circular_cones, purification_data
from nonneg.exceptions import InvalidParameterError, NegativeDataError, ShapeError

X = circular_cones(90, 20, 3, size_angle=0.2, rng=0).X
MODELS = {
    "NMF": NMF(3, random_state=0, max_iter=50, tol=1e-3),
    "MinVolNMF": MinVolNMF(3),
    "SeparableNMF": SeparableNMF(3, method="spa"),
    "ConeNMF": ConeNMF(3),
    "PurificationNMF": PurificationNMF(3, init="cone", max_iter=10),
}


def fitted(name, data=X):
    return MODELS[name].__class__(**MODELS[name].get_params()).fit(data)


@pytest.mark.parametrize("name", MODELS)
def test_it_is_minus_the_mean_squared_error(name):
    model = fitted(name)
    assert model.score(X) == pytest.approx(-(model.reconstruction_err_**2) / X.size, rel=1e-9)
    new = circular_cones(40, 20, 3, size_angle=0.2, rng=1).X
    back = model.inverse_transform(model.transform(new))
    assert model.score(new) == pytest.approx(-mean_squared_error(new, back), rel=1e-9)
    assert model.score(new, np.zeros(40)) == model.score(new)


@pytest.mark.parametrize("name", MODELS)
def test_every_container_gives_the_same(name):
    model = fitted(name)
    wanted = model.score(X)
    assert isinstance(wanted, float)
    assert model.score(sp.csr_array(X)) == pytest.approx(wanted, rel=1e-7)
    assert model.score(X.astype(np.float32)) == pytest.approx(wanted, rel=1e-3)
    chunks = pytest.importorskip("dask.array").from_array(X, chunks=(40, -1))
    assert model.score(chunks) == pytest.approx(wanted, rel=1e-7)
    tensor = pytest.importorskip("torch").asarray(X)
    assert model.score(tensor) == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_weights_count_like_repetitions(name):
    model = fitted(name)
    weights = np.random.default_rng(2).integers(0, 3, size=len(X))
    repeated = model.score(np.repeat(X, weights, axis=0))
    assert model.score(X, sample_weight=weights) == pytest.approx(repeated, rel=1e-9)
    with pytest.raises(ShapeError, match="one weight per sample"):
        model.score(X, sample_weight=np.ones(3))


@pytest.mark.parametrize(
    ("loss", "deviance"),
    [("kullback-leibler", mean_poisson_deviance), ("itakura-saito", mean_gamma_deviance)],
)
def test_other_losses_are_deviances(loss, deviance):
    positive = X + 0.1
    model = NMF(2, beta_loss=loss, random_state=0, tol=1e-2).fit(positive)
    back = model.inverse_transform(model.transform(positive))
    assert model.score(positive) == pytest.approx(-deviance(positive.ravel(), back.ravel()), rel=1e-9)
    assert model.score(positive) == pytest.approx(-(model.reconstruction_err_**2) / X.size, rel=1e-9)


def test_missing_entries_and_penalties_do_not_count():
    holes = X.copy()
    holes[::3, 2] = np.nan
    model = NMF(2, missing="mask", alpha_W=0.01, random_state=0, max_iter=30, tol=1e-3).fit(holes)
    seen = ~np.isnan(holes)
    back = model.inverse_transform(model.transform(holes))
    assert model.score(holes) == pytest.approx(-np.mean((holes - back)[seen] ** 2), rel=1e-9)


def test_data_frames_may_come_out_of_transform():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"c{i}" for i in range(20)])
    model = ConeNMF(3).set_output(transform="pandas").fit(frame)
    assert model.score(frame) == pytest.approx(fitted("ConeNMF").score(X), rel=1e-9)


def test_bad_input_is_refused():
    with pytest.raises(NegativeDataError):
        fitted("ConeNMF").score(-X)
    with pytest.raises(InvalidParameterError, match="weights must be finite"):
        fitted("ConeNMF").score(X, sample_weight=np.full(90, -1.0))


def test_an_exact_fit_scores_nothing():
    exact = np.outer(np.arange(1.0, 9.0), np.arange(4.0))
    assert -1e-25 < ConeNMF(1).fit(exact).score(exact) <= 0.0


def test_frames_are_judged_by_their_likelihood():
    frames = gaussian_composite(8, 20, 6, 2, rng=0).Y
    model = TransformNMF(2, eps0=1e-3, max_iter=20, random_state=0).fit(frames)
    V = np.mean((frames @ model.transform_.T) ** 2, axis=0) + 1e-3
    WH = model.transform(frames) @ model.components_ + 1e-3
    rows = (V / WH + np.log(WH)).mean(axis=1)
    assert model.score(frames) == pytest.approx(-rows.mean(), rel=1e-9)
    # The activations of the fit minimize the same.
    assert model.score(frames) == pytest.approx(-model.result_.objective / V.size, abs=0.01)
    weights = np.arange(20)
    assert model.score(frames, sample_weight=weights) == pytest.approx(-np.average(rows, weights=weights))


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (NMF(2, random_state=0, max_iter=20, tol=1e-2), {"alpha_W": [0.0, 10.0]}),
        (SeparableNMF(3), {"method": ["spa", "snpa"]}),
        (ConeNMF(3), {"n_components": [1, 3], "seeding": ["farthest"]}),
        (PurificationNMF(3, max_iter=5), {"init": ["cone", "anchors"]}),
        (TransformNMF(2, max_iter=5, random_state=0, eps0=0.1), {"method": ["tl", "dct"]}),
    ],
    ids=lambda given: type(given).__name__ if hasattr(given, "fit") else "",
)
def test_grid_search_takes_the_best(model, grid):
    search = GridSearchCV(model, grid, cv=KFold(3, shuffle=True, random_state=0), error_score="raise").fit(X)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert search.best_score_ == scores.max()
    assert search.score(X) == search.best_estimator_.score(X)


def test_searches_find_what_was_planted():
    three = GridSearchCV(ConeNMF(), {"n_components": [1, 2, 3]}, cv=3).fit(X)
    assert three.best_params_ == {"n_components": 3}
    data = purification_data(600, 30, 4, rng=0)
    updates = {"update": ["covariance", "regression"]}
    found = GridSearchCV(PurificationNMF(4, init=data.H, max_iter=20), updates, cv=3).fit(data.X)
    # On so few samples the published update has a floor.
    assert found.best_params_ == {"update": "regression"}
    assert found.best_score_ > -1e-20


def test_folds_of_different_sizes_compare():
    folds = [
        (np.arange(30, 90), np.arange(30)),
        (np.arange(60), np.arange(60, 90)),
        (np.arange(85), [85, 89]),
    ]
    scores = cross_val_score(ConeNMF(3), X, cv=folds)
    assert scores.max() / scores.min() > 0.2
