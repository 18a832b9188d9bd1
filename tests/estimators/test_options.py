"""Options beyond those of scikit-learn's NMF: missing entries, weights, frozen components, long runs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from nonneg import NMF
from nonneg.exceptions import InterruptedFitWarning, InvalidDataError
from nonneg.iteration import StopReason


@pytest.fixture
def planted(rng):
    """A 100 x 60 matrix of rank 3, and the same with a fifth of its entries missing."""
    X = rng.gamma(1.0, size=(100, 3)) @ rng.gamma(1.0, size=(3, 60))
    holes = X.copy()
    holes[rng.random(X.shape) < 0.2] = np.nan
    return X, holes


def held_out_error(X, holes, model, W):
    lost = np.isnan(holes)
    found = np.asarray(model.inverse_transform(W))
    return np.linalg.norm((found - X)[lost]) / np.linalg.norm(X[lost])


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_missing_entries_are_recovered(loss, planted):
    X, holes = planted
    before = holes.copy()
    model = NMF(3, missing="mask", beta_loss=loss, max_iter=3000, tol=1e-6)
    W = model.fit_transform(holes)
    assert held_out_error(X, holes, model, W) < 0.02
    np.testing.assert_array_equal(holes, before)
    np.testing.assert_allclose(model.transform(holes), W, rtol=1e-6, atol=1e-9)
    residual = (X - W @ model.components_)[~np.isnan(holes)]
    if loss == "frobenius":
        assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(residual), rel=1e-6)


def test_missing_entries_in_other_holders(xp, planted):
    X, holes = planted
    model = NMF(3, missing="mask", max_iter=30, tol=0)
    W = model.fit_transform(xp.asarray(holes))
    assert held_out_error(X, holes, model, np.asarray(W)) < 0.1


def test_something_was_observed(planted):
    X, _ = planted
    with pytest.raises(InvalidDataError, match="All entries of X are missing"):
        NMF(3, missing="mask").fit(X * np.nan)
    with pytest.raises(InvalidDataError, match="All entries of X are missing"):
        NMF(3).fit(X, mask=np.zeros(X.shape))
    row = NMF(3, missing="mask", random_state=0).fit(X).transform(X[:1] * np.nan)
    np.testing.assert_array_equal(row, 0.0)


def test_given_components_have_the_features_of_the_data(planted):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(planted[0]).add_prefix("f")
    H = X.iloc[:3].reset_index(drop=True)
    model = NMF(3, random_state=0).fit(X, H=H, frozen_components=[0])
    np.testing.assert_array_equal(model.components_[0], H.iloc[0])
    with pytest.raises(InvalidDataError, match="columns of H are not those of X"):
        NMF(3).fit(X, H=H.iloc[:, ::-1], frozen_components=[0])


def test_a_mask_says_the_same_as_nan(planted):
    X, holes = planted
    seen = ~np.isnan(holes)
    settings = {"n_components": 3, "max_iter": 30, "tol": 0}
    nan = NMF(missing="mask", **settings)
    W = nan.fit_transform(holes)
    wrong_where_unseen = np.where(seen, X, 1e6)
    for mask in (seen, scipy.sparse.csr_array(seen)):
        given = NMF(**settings)
        np.testing.assert_allclose(given.fit_transform(wrong_where_unseen, mask=mask), W, rtol=1e-8)
        np.testing.assert_allclose(given.transform(wrong_where_unseen, mask=mask), W, rtol=1e-8)
        assert given.reconstruction_err_ == pytest.approx(nan.reconstruction_err_, rel=1e-8)
    assert nan.certify(holes)["eckart-young-bound"].verdict == "not verifiable"


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
@pytest.mark.parametrize("init", ["nndsvda", "random"])
@pytest.mark.parametrize("solver", ["auto", "mu"])
def test_integer_weights_are_repetitions(loss, init, solver, low_rank, rng):
    weights = rng.integers(0, 4, 60)
    settings = {"n_components": 3, "beta_loss": loss, "init": init, "random_state": 0, "solver": solver}
    settings |= {"alpha_W": 0.01, "l1_ratio": 0.5, "max_iter": 25, "tol": 0}
    weighted = NMF(**settings).fit(low_rank, sample_weight=weights)
    repeated = NMF(**settings).fit(low_rank.repeat(weights, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-8)
    assert weighted.reconstruction_err_ == pytest.approx(repeated.reconstruction_err_, rel=1e-7)
    assert weighted.result_.loss == pytest.approx(repeated.result_.loss, rel=1e-7)


@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
@pytest.mark.parametrize("init", [None, "custom", "nndsvda", "random"])
def test_frozen_components_do_not_change(solver, init, low_rank, rng):
    H = rng.random((4, 40))
    given = H.copy()
    model = NMF(4, solver=solver, init=init, random_state=0, max_iter=20, tol=0)
    W = model.fit_transform(low_rank, H=H, frozen_components=[1, 3])
    np.testing.assert_array_equal(model.components_[[1, 3]], given[[1, 3]])
    assert not np.allclose(model.components_[[0, 2]], given[[0, 2]])
    np.testing.assert_array_equal(H, given)
    np.testing.assert_allclose(W, model.transform(low_rank), rtol=1e-9)


def test_frozen_components_of_another_loss(low_rank, rng):
    H = rng.random((4, 40)) + 0.1
    model = NMF(4, beta_loss="kullback-leibler", max_iter=20, tol=0)
    model.fit(low_rank, H=H, frozen_components=[0])
    np.testing.assert_array_equal(model.components_[0], H[0])


def test_penalties_make_the_factors_sparser(digits):
    def zeros(l1):
        model = NMF(8, alpha_W=l1, l1_ratio=1.0, max_iter=300, tol=1e-3).fit(digits[:300])
        return np.mean(model.transform(digits[:300]) == 0)

    assert zeros(0.3) > zeros(0.0)


def test_the_callback_sees_the_run_and_stops_it(low_rank):
    seen = []

    def third(progress):
        seen.append((progress.n_iter, progress.history.loss[-1]))
        return progress.n_iter == 3

    model = NMF(3, callback=third).fit(low_rank)  # stopped on request: no warning
    assert model.n_iter_ == len(seen) == 3
    assert model.result_.stop_reason is StopReason.CALLBACK
    assert model.history_.loss == [loss for _, loss in seen]


def test_control_c_returns_the_best_so_far(low_rank):
    def interrupt(progress):
        if progress.n_iter == 4:
            raise KeyboardInterrupt

    model = NMF(3, callback=interrupt)
    with pytest.warns(InterruptedFitWarning, match="Interrupted after 4 iterations"):
        W = model.fit_transform(low_rank)
    assert model.result_.stop_reason is StopReason.INTERRUPTED
    assert np.linalg.norm(low_rank - W @ model.components_) == pytest.approx(model.reconstruction_err_)


@pytest.mark.parametrize("parameters", [{}, {"beta_loss": "kullback-leibler"}, {"solver": "anls"}], ids=str)
def test_a_resumed_run_equals_the_uninterrupted_one(parameters, low_rank, tmp_path):
    settings = {"n_components": 3, "tol": 0, "random_state": 0, "init": "random"} | parameters
    whole = NMF(max_iter=20, **settings).fit(low_rank)
    folder = tmp_path / "run"
    first = NMF(max_iter=20, checkpoint=folder, callback=lambda now: now.n_iter == 8, **settings)
    assert first.fit(low_rank).n_iter_ == 8
    resumed = NMF(max_iter=20, checkpoint=str(folder), **settings).fit(low_rank)
    assert resumed.n_iter_ == 20
    np.testing.assert_allclose(resumed.components_, whole.components_, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(resumed.history_.loss, whole.history_.loss, rtol=1e-12)
    # A run of other data is not taken up.
    other = NMF(max_iter=20, checkpoint=folder, **settings).fit(2 * low_rank)
    fresh = NMF(max_iter=20, **settings).fit(2 * low_rank)
    np.testing.assert_array_equal(other.components_, fresh.components_)


def test_history_and_certificate_come_with_a_fit(low_rank):
    model = NMF(4, max_iter=5000, tol=1e-9).fit(low_rank)
    losses = np.asarray(model.history_.loss)
    assert len(losses) == model.n_iter_
    assert np.all(np.diff(losses) <= 1e-12 * np.sum(low_rank**2))
    assert model.certificate_["stationarity"].holds
    assert "eckart-young-bound" not in model.certificate_
    bound = model.certify(low_rank)["eckart-young-bound"]
    assert model.certificate_["eckart-young-bound"] is bound
    error = np.linalg.norm(low_rank - model.transform(low_rank) @ model.components_)
    assert bound.quantities["relative_error"] == pytest.approx(error / np.linalg.norm(low_rank))
    assert bound.number >= 1


def test_the_lower_bound_is_not_claimed_for_other_losses(low_rank):
    model = NMF(3, beta_loss="kullback-leibler", tol=0, max_iter=5).fit(low_rank)
    assert model.certify(low_rank)["eckart-young-bound"].verdict == "not verifiable"


def test_verbose_writes_to_standard_error(low_rank, capsys):
    NMF(3, verbose=1, max_iter=3, tol=0).fit(low_rank)
    shown = capsys.readouterr()
    assert "NMF: iteration" in shown.err
    assert shown.out == ""


def test_number_of_threads_does_not_change_the_answer(low_rank):
    one, two = (NMF(3, n_jobs=n, max_iter=15, tol=0).fit(low_rank).components_ for n in (1, 2))
    np.testing.assert_allclose(one, two, rtol=1e-10)


def test_shuffled_components(low_rank):
    fits = [
        NMF(4, solver="cd", shuffle=True, random_state=s, max_iter=4, tol=0).fit(low_rank) for s in (0, 0, 1)
    ]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)
    assert not np.array_equal(fits[0].components_, fits[2].components_)


def test_weights_are_routed_through_a_pipeline(low_rank):
    from sklearn import config_context
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    weights = np.arange(60.0)
    with config_context(enable_metadata_routing=True):
        model = NMF(3, max_iter=10, tol=0).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(MaxAbsScaler(), model).fit(low_rank, sample_weight=weights)
    direct = NMF(3, max_iter=10, tol=0).fit(MaxAbsScaler().fit_transform(low_rank), sample_weight=weights)
    np.testing.assert_array_equal(pipeline[-1].components_, direct.components_)


def test_no_frozen_component_is_like_none(low_rank, rng):
    model = NMF(3, init="nndsvda", max_iter=5, tol=0)
    with pytest.warns(RuntimeWarning, match="provided W or H are ignored"):
        model.fit(low_rank, H=rng.random((3, 40)), frozen_components=[])
