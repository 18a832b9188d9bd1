"""Code written for scikit-learn's NMF keeps working when only the import changes."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from sklearn import decomposition
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from nonneg import NMF


def fitted(cls, X, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return cls(random_state=0, **parameters).fit(X)


@pytest.mark.parametrize(
    "parameters",
    [
        {"solver": "cd", "max_iter": 50},
        {"solver": "cd", "max_iter": 50, "init": "nndsvd"},
        {"solver": "cd", "max_iter": 50, "alpha_W": 0.01, "l1_ratio": 0.5, "tol": 1e-6},
        {"solver": "mu", "max_iter": 100},
        {"solver": "mu", "max_iter": 60, "beta_loss": "kullback-leibler"},
        {"solver": "mu", "max_iter": 60, "beta_loss": 1.5},
    ],
    ids=str,
)
def test_error_is_not_above_scikit_learns(parameters, digits):
    X = digits[:600]
    ours = fitted(NMF, X, n_components=8, **parameters)
    theirs = fitted(decomposition.NMF, X, n_components=8, **parameters)
    if parameters.get("alpha_W"):
        assert penalized(ours, X) <= penalized(theirs, X) * 1.005
    else:
        assert ours.reconstruction_err_ <= theirs.reconstruction_err_ * 1.005
    if parameters["solver"] == "cd":
        assert ours.n_iter_ <= theirs.n_iter_


def penalized(model, X):
    W, H = model.transform(X), model.components_
    alpha, ratio = model.alpha_W, model.l1_ratio
    n, m = X.shape
    return 0.5 * np.sum((X - W @ H) ** 2) + alpha * (
        m * (ratio * W.sum() + 0.5 * (1 - ratio) * (W**2).sum())
        + n * (ratio * H.sum() + 0.5 * (1 - ratio) * (H**2).sum())
    )


def test_every_keyword_and_method_of_scikit_learns_is_there():
    ours = inspect.signature(NMF).parameters
    for theirs in (decomposition.NMF, decomposition.MiniBatchNMF):
        for name, parameter in inspect.signature(theirs).parameters.items():
            assert name in ours
            if name != "solver":  # "auto" chooses among more of them
                assert ours[name].default == parameter.default
                assert ours[name].kind == parameter.kind
        methods = {name for name in dir(theirs) if not name.startswith("_")}
        assert methods <= set(dir(NMF))


def test_fitted_attributes_have_the_same_names_and_forms(digits):
    X = digits[:200]
    ours, theirs = fitted(NMF, X, n_components=4), fitted(decomposition.NMF, X, n_components=4)
    names = [name for name in vars(theirs) if name.endswith("_")]
    assert "components_" in names
    for name in names:
        assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name))
        assert np.asarray(getattr(ours, name)).dtype == np.asarray(getattr(theirs, name)).dtype
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())


@pytest.mark.parametrize("beta_loss", ["frobenius", "kullback-leibler", "itakura-saito", 0.5, 1.5, 3.0])
def test_reconstruction_error_means_the_same(beta_loss, low_rank):
    from sklearn.decomposition._nmf import _beta_divergence

    model = fitted(NMF, low_rank, n_components=4, beta_loss=beta_loss, solver="mu", max_iter=30)
    W, H = model.transform(low_rank), model.components_
    beta = {"frobenius": 2, "kullback-leibler": 1, "itakura-saito": 0}.get(beta_loss, beta_loss)
    expected = _beta_divergence(low_rank, W, H, beta, square_root=True)
    assert model.reconstruction_err_ == pytest.approx(expected, rel=1e-6)


def test_penalties_are_not_in_the_reconstruction_error(low_rank):
    model = fitted(NMF, low_rank, n_components=4, alpha_W=0.05, l1_ratio=0.3)
    residual = np.linalg.norm(low_rank - model.transform(low_rank) @ model.components_)
    assert model.reconstruction_err_ == pytest.approx(residual, rel=1e-9)
    assert model.result_.loss > 0.5 * residual**2


def test_a_tiny_reconstruction_error_keeps_its_digits():
    rng = np.random.default_rng(0)
    X = rng.random((30, 2)) @ rng.random((2, 20))
    model = fitted(NMF, X, n_components=2, tol=1e-14, max_iter=3000)
    residual = np.linalg.norm(X - model.transform(X) @ model.components_)
    assert residual < 1e-6
    assert model.reconstruction_err_ == pytest.approx(residual, rel=1e-3)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_fit_transform_is_fit_and_transform(loss, low_rank):
    model = NMF(4, beta_loss=loss, alpha_W=0.01, random_state=0, max_iter=2000)
    W = model.fit_transform(low_rank)
    np.testing.assert_allclose(W, model.transform(low_rank), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(W, clone(model).fit(low_rank).transform(low_rank), rtol=1e-9, atol=1e-12)
    # No row depends on its neighbors.
    np.testing.assert_allclose(model.transform(low_rank[7:8]), W[7:8], rtol=1e-6, atol=1e-9)


def test_custom_start_with_both_factors(low_rank, rng):
    W, H = rng.random((60, 4)), rng.random((4, 40))
    before = W.copy(), H.copy()
    model = NMF(4, init="custom", tol=0, max_iter=1)
    model.fit_transform(low_rank, W=W, H=H)
    positional = NMF(4, init="custom", tol=0, max_iter=1)
    positional.fit_transform(low_rank, None, W, H)
    np.testing.assert_array_equal(model.components_, positional.components_)
    np.testing.assert_array_equal(W, before[0])
    np.testing.assert_array_equal(H, before[1])
    exact = NMF("auto", init="custom", max_iter=3, tol=0).fit(W @ H, W=W, H=H)
    assert exact.n_components_ == 4
    assert exact.reconstruction_err_ < 1e-6 * np.linalg.norm(W @ H)


def test_one_given_factor_is_enough(low_rank, rng):
    model = NMF(init="custom", max_iter=500).fit(low_rank, H=rng.random((4, 40)))
    assert model.n_components_ == 4
    assert model.reconstruction_err_ < 0.02 * np.linalg.norm(low_rank)
    assert NMF(max_iter=500).fit(low_rank, W=rng.random((60, 3))).n_components_ == 3


def test_factors_are_ignored_with_another_start(low_rank, rng):
    model = NMF(3, init="nndsvda", max_iter=500)
    with pytest.warns(RuntimeWarning, match="When init!='custom', provided W or H are ignored"):
        model.fit(low_rank, H=rng.random((3, 40)))
    np.testing.assert_array_equal(
        model.components_, NMF(3, init="nndsvda", max_iter=500).fit(low_rank).components_
    )


def test_zeros_in_the_start_of_multiplicative_updates_are_warned_of(low_rank):
    with pytest.warns(UserWarning, match="cannot update zeros present in the initialization"):
        NMF(3, solver="mu", init="nndsvd", max_iter=500, tol=1e-3).fit(low_rank)


def test_max_iter_reached_before_tol_warns_in_the_same_situations(low_rank):
    said = r"Maximum number of iterations 2 reached.*Raise max_iter \(now 2\)"
    with pytest.warns(ConvergenceWarning, match=said):
        NMF(3, max_iter=2, tol=1e-10).fit(low_rank)
    NMF(3, max_iter=2, tol=0).fit(low_rank)  # an error if it warned
    NMF(3, max_iter=2, tol=1e6).fit(low_rank)


def test_number_of_components(low_rank):
    assert NMF(max_iter=500).fit(low_rank).n_components_ == 4  # planted
    assert NMF(None, max_iter=5, tol=0).fit(low_rank).n_components_ == 40
    assert NMF(50, max_iter=5, tol=0).fit(low_rank).n_components_ == 50  # between the two sides


def test_the_tolerance_ends_a_fit_where_it_ends_scikit_learns(low_rank):
    # From scikit-learn's initialization the first violation of large numbers is huge.
    large = 1e4 * low_rank / low_rank.mean()
    theirs = decomposition.NMF(4, random_state=0).fit(large)
    same = NMF(4, init="nndsvda").fit(large)
    assert same.n_iter_ == theirs.n_iter_ == 2
    assert same.reconstruction_err_ < theirs.reconstruction_err_
    ours = NMF(4).fit(large)
    assert ours.n_iter_ == NMF(4).fit(low_rank / low_rank.mean()).n_iter_ > 2
    assert ours.reconstruction_err_ < 0.5 * same.reconstruction_err_


def test_transform_takes_another_precision_than_fit(low_rank):
    # scikit-learn's raises here.
    model = fitted(NMF, low_rank, n_components=3)
    single = model.transform(low_rank.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, model.transform(low_rank), rtol=1e-3, atol=1e-3)


def test_inverse_transform(low_rank):
    from scipy import sparse

    model = fitted(NMF, low_rank, n_components=4)
    W = model.transform(low_rank)
    np.testing.assert_array_equal(model.inverse_transform(W), W @ model.components_)
    np.testing.assert_allclose(model.inverse_transform(sparse.csr_array(W)), W @ model.components_)
    assert model.inverse_transform([[1.0, 0, 0, 0]]).shape == (1, 40)


def test_in_a_pipeline_and_a_search(digits):
    X = digits[:150]
    pipeline = make_pipeline(MinMaxScaler(clip=True), NMF(4, max_iter=300, tol=1e-3))
    assert pipeline.fit_transform(X).shape == (150, 4)
    assert list(pipeline.get_feature_names_out()) == ["nmf0", "nmf1", "nmf2", "nmf3"]

    def error(model, X, y=None):
        return -np.linalg.norm(X - model.inverse_transform(model.transform(X)))

    search = GridSearchCV(
        NMF(max_iter=300, tol=1e-3), {"n_components": [2, 6]}, scoring=error, cv=2, error_score="raise"
    )
    assert search.fit(X).best_params_ == {"n_components": 6}
