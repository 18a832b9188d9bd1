"""Consensus NMF: planted programs, seeds, resumption, backends, and what is refused."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import time
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from tests.consensus.planted import planted
from tests.references.checks import parametrize_with_options

import nonneg
from nonneg import NMF, ConsensusNMF
from nonneg.exceptions import InvalidDataError, InvalidParameterError, NegativeDataError, NonnegWarning
from nonneg.metrics import match_components


@parametrize_with_options(ConsensusNMF(2, n_init=3, max_iter=20))
def test_follows_the_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.fixture(scope="module")
def planted_counts():
    return planted()[0]


@pytest.fixture(scope="module")
def model():
    X, _ = planted()
    return ConsensusNMF(range(2, 7), n_init=8, random_state=0).fit(X)


def test_ranks_two_to_ten_are_compared_by_default():
    assert ConsensusNMF().n_components == tuple(range(2, 11))


def test_planted_programs_and_their_number_are_found(model):
    _, H = planted()
    assert model.n_components_ == 4
    assert match_components(H, model.components_).cosines.min() > 0.95
    assert "4" in model.rank_reason_
    assert [found.n_components for found in model.ranks_] == [2, 3, 4, 5, 6]
    errors = [found.error for found in model.ranks_]
    assert errors == sorted(errors, reverse=True)
    assert model.reconstruction_err_ == errors[2]
    assert model.stability_.min() > 0.9
    np.testing.assert_allclose((model.components_ / model.column_scale_).sum(axis=1), 1.0)


def test_the_certificate_states_the_stability_of_each_component(model):
    statement = model.certificate_["stability"]
    assert statement.holds
    assert statement.quantities["least_silhouette"] == model.stability_.min()
    assert model.certificate_["consensus-error"].holds
    other = ConsensusNMF(range(2, 7), n_init=8, random_state=0).fit(planted()[0]).use_rank(6)
    assert other.certificate_["stability"].quantities["unstable"]
    assert other.n_components_ == len(other.stability_) == len(other.components_) == 6
    for wrong in (9, [3], "3", 3.5, None):
        with pytest.raises(InvalidParameterError, match=r"was not among the candidates \[2, 3, 4, 5, 6\]"):
            other.use_rank(wrong)


def test_a_rank_chosen_by_hand_says_what_is_recommended(model):
    chosen = copy.copy(model).use_rank(3)
    assert chosen.rank_reason_ == f"3 components were chosen by hand. Recommended: {model.rank_reason_}"
    assert chosen.n_components_ == 3
    np.testing.assert_array_equal(chosen.stability_, model.ranks_[1].stability)
    assert chosen.reconstruction_err_ == model.ranks_[1].error
    assert chosen.n_iter_ == model.restarts_.n_iter[model.restarts_.of(3)].max()


def test_a_restart_is_an_nmf_with_its_seed(model, planted_counts):
    table = model.restarts_
    assert len(np.unique(table.seed)) == len(table) == 40
    at = table.of(3)[2]
    single = NMF(3, init="random", random_state=int(table.seed[at]), max_iter=1000, tol=1e-6, n_jobs=1)
    single.fit(planted_counts / model.column_scale_)
    assert single.result_.history.loss[-1] == pytest.approx(table.loss[at], rel=1e-9)
    assert single.n_iter_ == table.n_iter[at]


@pytest.mark.parametrize("resample", [None, "poisson", "bootstrap"])
def test_a_restart_under_kullback_leibler_is_an_nmf_of_its_data_with_its_seed(planted_counts, resample):
    options = {"beta_loss": "kullback-leibler", "max_iter": 1000, "tol": 1e-6}
    # Two restarts may end in different minima: then too few components are near one another.
    every = {"density_threshold": 2.0, "n_init": 2, "random_state": 0}
    model = ConsensusNMF(3, resample=resample, **every, **options).fit(planted_counts)
    table = model.restarts_
    X, weight = planted_counts, None
    seed = int(table.seed[1])
    drawn = np.random.default_rng([seed, 1])
    if resample == "poisson":
        X = drawn.poisson(X).astype(float)
    elif resample == "bootstrap":
        weight = drawn.multinomial(len(X), np.full(len(X), 1 / len(X))).astype(float)
    single = NMF(3, init="random", random_state=seed, n_jobs=1, **options).fit(X, sample_weight=weight)
    assert single.result_.history.loss[-1] == pytest.approx(table.loss[1], rel=1e-12)
    assert single.n_iter_ == table.n_iter[1]


def test_usages_are_the_exact_encoding(model, planted_counts):
    W = model.transform(planted_counts)
    np.testing.assert_array_equal(
        W, ConsensusNMF(range(2, 7), n_init=8, random_state=0).fit_transform(planted_counts)
    )
    residual = planted_counts / model.column_scale_ - W @ (model.components_ / model.column_scale_)
    assert np.linalg.norm(residual) == pytest.approx(model.reconstruction_err_, rel=1e-10)
    gradient = -residual @ (model.components_ / model.column_scale_).T
    assert np.abs(np.minimum(W, gradient)).max() < 1e-8 * np.abs(gradient).max()


def test_ranks_jobs_and_number_of_restarts_do_not_change_a_restart(model, planted_counts):
    other = ConsensusNMF([4], n_init=5, random_state=0, n_jobs=1).fit(planted_counts)
    np.testing.assert_array_equal(other.restarts_.loss, model.restarts_.loss[model.restarts_.of(4)][:5])


@pytest.mark.parametrize(
    "options", [{"resample": "bootstrap"}, {"resample": "poisson"}, {"clustering": "matched"}]
)
def test_resampling_and_matched_clusters_find_the_programs(options):
    X, H = planted()
    model = ConsensusNMF(4, n_init=8, random_state=0, **options).fit(sp.csr_array(X))
    assert match_components(H, model.components_).cosines.min() > 0.95
    dense = ConsensusNMF(4, n_init=8, random_state=0, **options).fit(X)
    if "clustering" in options:
        np.testing.assert_allclose(dense.components_, model.components_, atol=1e-8)
    else:
        # Each restart has other data, so that losses differ between restarts.
        assert np.ptp(model.restarts_.loss) > 1e-3 * model.restarts_.loss.mean()


@pytest.mark.parametrize("loss", ["kullback-leibler", 1.5])
def test_other_losses(loss):
    X, H = planted()
    model = ConsensusNMF(4, n_init=5, beta_loss=loss, random_state=0).fit(X)
    np.testing.assert_array_equal(model.column_scale_, 1.0)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0)
    assert match_components(H, model.components_).cosines.min() > 0.95


def test_density_threshold_removes_outliers(planted_counts):
    loose = ConsensusNMF(6, n_init=8, random_state=0, density_threshold=2.0).fit(planted_counts)
    strict = ConsensusNMF(6, n_init=8, random_state=0, density_threshold=0.2).fit(planted_counts)
    assert loose.ranks_[0].n_outliers == 0
    assert strict.ranks_[0].n_outliers == np.sum(strict.ranks_[0].density >= 0.2) > 0
    np.testing.assert_array_equal(strict.ranks_[0].labels < 0, strict.ranks_[0].density >= 0.2)
    with pytest.warns(NonnegWarning, match="no outliers were removed"):
        ConsensusNMF(6, n_init=4, random_state=0, density_threshold=1e-9).fit(planted_counts)


@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_processes_and_a_cluster_give_the_same(model, planted_counts, backend):
    if backend == "dask":
        distributed = pytest.importorskip("distributed")
        cluster = distributed.Client(
            processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"
        )
    else:
        cluster = joblib.parallel_config("threading")
    with cluster, joblib.parallel_config(backend=backend, n_jobs=2):
        other = ConsensusNMF([4], n_init=8, random_state=0).fit(planted_counts)
    np.testing.assert_array_equal(other.restarts_.loss, model.restarts_.loss[model.restarts_.of(4)])
    np.testing.assert_array_equal(other.components_, model.components_)


KILLED = """
import sys, numpy as np
from nonneg import ConsensusNMF
from tests.consensus.planted import planted
X, _ = planted()
ConsensusNMF([3, 4], n_init=200, random_state=3, checkpoint=sys.argv[1], n_jobs=1, max_iter=300).fit(X)
"""


@pytest.mark.slow
def test_a_killed_run_continues_and_equals_an_uninterrupted_one(planted_counts, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)])
    deadline = time.monotonic() + 60
    while len(list(tmp_path.rglob("*.npz"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    n_stored = len(list(tmp_path.rglob("*.npz")))
    assert n_stored >= 4
    done = []
    options = {"n_init": 10, "random_state": 3, "max_iter": 300}
    resumed = ConsensusNMF([3, 4], checkpoint=tmp_path, callback=lambda at: done.append(at.n_iter), **options)
    resumed.fit(planted_counts)
    assert len(done) == max(0, 20 - n_stored) or n_stored > 20
    whole = ConsensusNMF([3, 4], **options).fit(planted_counts)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    for name in ("seed", "loss", "n_iter", "converged"):
        np.testing.assert_array_equal(getattr(resumed.restarts_, name), getattr(whole.restarts_, name))
    assert str(resumed.certificate_) == str(whole.certificate_)


def test_without_a_seed_a_stored_run_goes_on_and_a_damaged_restart_is_computed_again(
    planted_counts, tmp_path
):
    first = ConsensusNMF(3, n_init=3, checkpoint=tmp_path).fit(planted_counts)
    (stored := sorted(tmp_path.rglob("*.npz")))[0].write_bytes(b"damaged")
    assert len(stored) == 3
    again = ConsensusNMF(3, n_init=3, checkpoint=tmp_path).fit(planted_counts)
    np.testing.assert_array_equal(again.components_, first.components_)
    # Other data are another run.
    other = ConsensusNMF(3, n_init=3, checkpoint=tmp_path).fit(planted_counts + 1)
    assert not np.array_equal(other.restarts_.seed, first.restarts_.seed)


def test_callback_sees_each_restart_and_may_end_the_fit(planted_counts):
    seen = []
    model = ConsensusNMF([2, 3], n_init=20, callback=lambda at: seen.append(at) or at.n_iter == 7, n_jobs=1)
    model.fit(planted_counts)
    assert [at.n_iter for at in seen] == list(range(1, 8))
    assert len(seen[-1].history) == 7
    assert len(model.restarts_) == 7
    with pytest.raises(InvalidParameterError, match="two restarts"):
        ConsensusNMF(2, n_init=20, callback=lambda at: True).fit(planted_counts)


def test_verbose_tells_how_many_restarts_are_done(planted_counts, capsys):
    ConsensusNMF(2, n_init=3, verbose=1, random_state=0).fit(planted_counts)
    text = capsys.readouterr().err
    assert "3 of 3" in text
    assert "s left" not in text.splitlines()[-1]


def test_gene_spectra_cover_genes_outside_of_the_fit(planted_counts):
    model = ConsensusNMF(4, n_init=4, random_state=0)
    W = model.fit_transform(planted_counts[:, :40])
    scores = model.gene_spectra(planted_counts, W)
    tpm = model.gene_spectra(planted_counts, W, units="tpm")
    assert scores.shape == tpm.shape == (4, planted_counts.shape[1])
    assert tpm.min() >= 0 > scores.min()
    assert match_components(planted()[1], tpm).cosines.min() > 0.9
    with pytest.raises(ValueError, match="z-score"):
        model.gene_spectra(planted_counts, W, units="zscore")


def test_saved_models_keep_every_rank(model, planted_counts, tmp_path):
    model.save(tmp_path / "m.npz")
    again = nonneg.load(tmp_path / "m.npz")
    assert again.n_components == list(range(2, 7))
    np.testing.assert_array_equal(again.transform(planted_counts), model.transform(planted_counts))
    assert again.certificate_ == model.certificate_
    for one, other in zip(again.ranks_, model.ranks_, strict=True):
        assert one.row() == other.row()
        np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(again.restarts_.seed, model.restarts_.seed)
    assert len(again.use_rank(5).components_) == 5


def test_float32_and_weights(planted_counts):
    model = ConsensusNMF(3, n_init=3, random_state=0).fit(planted_counts.astype(np.float32))
    assert model.components_.dtype == np.float32
    assert model.transform(planted_counts.astype(np.float32)).dtype == np.float32
    twice = ConsensusNMF(3, n_init=3, random_state=0, max_iter=3000, tol=1e-7)
    twice.fit(np.vstack([planted_counts, planted_counts[:50]]))
    weights = np.where(np.arange(len(planted_counts)) < 50, 2.0, 1.0)
    weighted = ConsensusNMF(3, n_init=3, random_state=1, max_iter=3000, tol=1e-7)
    weighted.fit(planted_counts, sample_weight=weights)
    assert match_components(twice.components_, weighted.components_).cosines.min() > 1 - 1e-4


def test_input_that_is_no_counts_is_refused(planted_counts):
    logged = np.log1p(planted_counts / planted_counts.sum(axis=1, keepdims=True) * 1e4)
    scaled = (logged - logged.mean(axis=0)) / logged.std(axis=0)
    with pytest.raises(NegativeDataError, match=r"centered or scaled.*layers\['counts'\]"):
        ConsensusNMF(2).fit(scaled)
    with pytest.raises(NegativeDataError, match=r"entry \[0, 0\].*such as counts"):
        ConsensusNMF(2).fit(np.where(np.eye(*planted_counts.shape) > 0, -1.0, planted_counts))
    empty = planted_counts.copy()
    empty[:, 5] = 0
    with pytest.raises(
        InvalidDataError, match=r"1 of \d+ features are zero in all samples \(5\).*Leave them out"
    ):
        ConsensusNMF(2).fit(empty)
    with pytest.raises(InvalidParameterError, match=r"n_components=200 is larger than the smaller side"):
        ConsensusNMF([2, 200]).fit(planted_counts)
    with pytest.raises(InvalidDataError, match=r"needs counts.*bootstrap"):
        ConsensusNMF(2, resample="poisson").fit(planted_counts + 0.5)
    with pytest.raises(InvalidParameterError, match="n_components"):
        ConsensusNMF([2.5, 3]).fit(planted_counts)
    with pytest.raises(InvalidParameterError, match="n_init"):
        ConsensusNMF(2, n_init=1).fit(planted_counts)


def test_warns_when_restarts_do_not_converge(planted_counts):
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        ConsensusNMF(5, n_init=3, max_iter=2, density_threshold=2).fit(planted_counts)


def test_restarts_that_share_products_do_not_depend_on_each_other(planted_counts):
    X = sp.csr_array(planted_counts)
    some = ConsensusNMF(4, n_init=3, random_state=0).fit(X).restarts_
    more = ConsensusNMF([3, 4], n_init=8, random_state=0).fit(X).restarts_
    np.testing.assert_array_equal(more.loss[more.of(4)][:3], some.loss)
    np.testing.assert_array_equal(more.n_iter[more.of(4)][:3], some.n_iter)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_restarts_in_single_precision_find_the_same(planted_counts, monkeypatch, loss):
    X = sp.csr_array(planted_counts) if loss == "frobenius" else planted_counts
    options = {"n_init": 4, "beta_loss": loss, "random_state": 0}
    double = ConsensusNMF(4, **options).fit(X)
    monkeypatch.setattr("nonneg.consensus.restarts.SINGLE_PRECISION", 100)
    monkeypatch.setattr("nonneg.consensus.restarts.SINGLE_PRECISION_KL", 100)
    single = ConsensusNMF(4, **options).fit(X)
    assert single.components_.dtype == np.float64
    assert single.reconstruction_err_ == pytest.approx(double.reconstruction_err_, rel=1e-4)
    assert match_components(double.components_, single.components_).cosines.min() > 0.9999


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_keeps_the_restarts_so_far(planted_counts, n_jobs):
    def interrupt(progress):
        if progress.n_iter == 5:
            raise KeyboardInterrupt

    model = ConsensusNMF(2, n_init=20, callback=interrupt, n_jobs=n_jobs, random_state=0)
    with pytest.warns(NonnegWarning, match="Interrupted after 5 of 20 restarts") as caught:
        model.fit(planted_counts)
    assert len(model.restarts_) == 5
    # Those that other threads were at say nothing, and have ended.
    assert sum("Interrupted" in str(one.message) for one in caught) == 1
