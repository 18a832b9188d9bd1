"""MERIT: what it minimizes, on which data, when it ends, and what it says of its answer."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references import self_dictionary as reference
from tests.references.containers import TORCH, as_container

from nonneg import select_anchors
from nonneg._threads import threads
from nonneg.data import as_data_matrix
from nonneg.datasets import separable_dirichlet
from nonneg.exceptions import InvalidParameterError
from nonneg.iteration import StopReason
from nonneg.separable.merit import merit as merit_module
from nonneg.separable.merit.merit import NumberEstimate, merit

STEPS = ["open-loop", "line-search", "away", "pairwise"]


@pytest.fixture(scope="module")
def data():
    """70 points of 15 features between 6 anchors at 15 dB."""
    return separable_dirichlet(70, 15, 6, snr=15, rng=5)


def open_loop(X, n_components, *, method_params=None, **options):
    """Run the published steps."""
    params = {"steps": "open-loop"} | (method_params or {})
    return select_anchors(X, n_components, method_params=params, **options)


@pytest.mark.parametrize("mu", [1e-300, 1e-5, 1e-2, 1.0, 1e3])
def test_equals_the_paper_for_any_smoothing(mu, data):
    found = open_loop(data.X, 6, method_params={"lam": 0.4, "mu": mu}, max_iter=30, tol=0.0)
    X, C = data.X.T, found.coefficients.toarray()
    expected = reference.frank_wolfe(X, 0.4, max(mu, 1e-12), 30)
    assert np.abs(C - expected).max() <= 1e-12
    if mu >= 1e-5:
        assert found.objective == pytest.approx(reference.objective(X, C, 0.4, mu), rel=1e-9)
        assert found.gap == pytest.approx(reference.gap(X, C, 0.4, mu), rel=1e-9)


@pytest.mark.parametrize("steps", ["open-loop", "fully-corrective"])
@pytest.mark.parametrize("container", ["csr", pytest.param("strict", marks=pytest.mark.slow), TORCH, "dask"])
def test_holders_agree(container, steps, data):
    X = np.where(data.X < 0.3, 0.0, data.X)
    # array-api-strict takes a while to check every operation.
    options = {"method_params": {"steps": steps}, "max_iter": 2 if container == "strict" else 20}
    dense = select_anchors(X, 6, **options)
    reduced = {"reduce": 15} if container == "dask" else {}
    other = select_anchors(as_container(X, container), 6, **options, **reduced)
    assert np.array_equal(dense.anchors, other.anchors)
    assert abs(dense.coefficients - other.coefficients).max() <= 1e-8
    assert other.gap == pytest.approx(dense.gap, rel=1e-8)


def test_float32_points_give_float32_coefficients(data):
    whole = open_loop(data.X, 6, method_params={"lam": 0.3}, max_iter=20)
    half = open_loop(data.X.astype(np.float32), 6, method_params={"lam": 0.3}, max_iter=20)
    assert half.coefficients.dtype == np.float32
    assert abs(whole.coefficients - half.coefficients).max() <= 1e-6


def test_threads_do_not_change_the_answer():
    X = separable_dirichlet(700, 12, 5, snr=20, rng=1).X
    found = [select_anchors(X, 5, max_iter=8, n_jobs=n) for n in (1, 2)]
    assert abs(found[0].coefficients - found[1].coefficients).max() == 0
    assert found[0].history["gap"] == found[1].history["gap"]


def test_of_equal_points_the_first_is_used(data):
    X = np.concatenate([data.X, data.X, data.X[:7]])
    found = select_anchors(X, 6, method_params={"lam": 0.0}, max_iter=25)
    assert found.coefficients.tocoo().row.max() < 70
    whole = select_anchors(data.X, 6, method_params={"lam": 0.0}, max_iter=25)
    assert np.array_equal(found.anchors, whole.anchors)
    assert abs(found.coefficients[:70, :70] - whole.coefficients).max() <= 1e-12


def test_equal_points_are_not_two_anchors(data):
    # The penalty spreads the weight over twins.
    X = np.repeat(data.X[data.anchors], 5, axis=0)
    found = select_anchors(X, 6, method_params={"lam": 0.3}, max_iter=50)
    assert len(np.unique(found.anchors // 5)) == 6
    with pytest.raises(InvalidParameterError, match="found 6 anchors, fewer than n_components=7"):
        select_anchors(X, 7, method_params={"lam": 0.3}, max_iter=50)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_unit_of_the_data_does_not_matter(scale, data):
    found = open_loop(data.X, 6, method_params={"lam": 0.3}, max_iter=20, tol=0.0)
    other = open_loop(data.X * scale, 6, method_params={"lam": 0.3 * scale**2}, max_iter=20, tol=0.0)
    assert abs(found.coefficients - other.coefficients).max() == 0


def test_the_gap_bounds_the_distance_from_the_optimum():
    data = separable_dirichlet(40, 10, 4, snr=12, rng=2)
    params = {"lam": 0.05, "mu": 0.1, "recovery": False}
    best = select_anchors(data.X, 4, method_params=params | {"steps": "pairwise"}, max_iter=60, tol=1e-3)
    assert best.gap <= 1e-3
    for steps in STEPS:
        for n_iter in (1, 5, 25):
            found = select_anchors(
                data.X, 4, method_params=params | {"steps": steps}, max_iter=n_iter, tol=0.0
            )
            # The reference itself is no better than the minimum.
            assert found.objective - found.gap <= best.objective + 1e-12
            assert found.gap >= found.objective - best.objective
            C = found.coefficients.toarray()
            assert found.gap == pytest.approx(reference.gap(data.X.T, C, 0.05, 0.1), rel=1e-8)


# Every weight and every smoothing with every rule.
@pytest.mark.covering(1)
@pytest.mark.parametrize(("lam", "mu"), [(0.0, 0.1), (0.1, 1e-5), ("auto", 0.1)])
@pytest.mark.parametrize("steps", STEPS[1:])
def test_the_objective_never_rises_with_a_line_search(steps, mu, lam, data):
    found = select_anchors(
        data.X, 6, method_params={"lam": lam, "mu": mu, "steps": steps}, max_iter=25, tol=1e-12
    )
    losses = np.array(found.history.loss)
    assert np.all(np.diff(losses) <= 1e-12 * losses[0])
    sums = np.asarray(found.coefficients.sum(axis=0))
    assert np.allclose(sums, 1.0, rtol=0, atol=1e-12)
    X, C = data.X.T, found.coefficients.toarray()
    assert found.objective == pytest.approx(reference.objective(X, C, found.lam, mu), rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_pairwise_steps_make_the_certificate_tight():
    data = separable_dirichlet(100, 50, 40, snr=15, rng=4)
    plain = open_loop(data.X, 40, max_iter=30)
    tight = select_anchors(data.X, 40, method_params={"steps": "pairwise"}, max_iter=30)
    assert tight.gap <= 5e-3 * min(plain.gap, tight.objective)
    assert tight.objective < plain.objective
    assert set(tight.anchors) == set(plain.anchors) == set(data.anchors)


def test_skipped_columns_are_looked_at_again(data):
    found = select_anchors(
        data.X, 6, method_params={"lam": 0.0, "steps": "away", "skip_converged": True}, tol=0.5, max_iter=200
    )
    assert found.stop_reason is StopReason.CONVERGED
    C = found.coefficients.toarray()
    assert found.gap <= 0.5
    assert found.gap == pytest.approx(reference.gap(data.X.T, C, 0.0, 1e-5), rel=1e-7, abs=1e-9)
    gaps = np.array(found.history["gap"])
    assert np.isnan(gaps).any(), "no column was ever skipped"
    assert not np.isnan(gaps[-1])
    cut = select_anchors(data.X, 6, method_params={"lam": 0.2, "skip_converged": True}, tol=5.0, max_iter=3)
    assert cut.gap == pytest.approx(reference.gap(data.X.T, cut.coefficients.toarray(), 0.2, 1e-5), rel=1e-8)


def test_merit_without_penalty(data):
    found = select_anchors(data.X, 6, method_params={"lam": 0.0}, max_iter=20, tol=0.0)
    assert found.lam == 0.0
    assert (
        np.abs(found.coefficients.toarray() - reference.frank_wolfe(data.X.T, 0.0, 1e-5, 20)).max() <= 1e-12
    )


def test_recovers_where_successive_projections_fail():
    found, greedy = 0, 0
    for seed in range(4):
        data = separable_dirichlet(200, 50, 40, snr=10, rng=seed)
        found += set(select_anchors(data.X, 40, method_params={"recovery": False}).anchors) == set(
            data.anchors
        )
        greedy += set(select_anchors(data.X, 40, method="spa").anchors) == set(data.anchors)
    assert found == 4
    assert greedy < 4


@pytest.mark.covering(0)
@pytest.mark.parametrize(("n_points", "k", "snr"), [(200, 40, 15), (150, 10, 20), (120, 5, 40)])
def test_the_number_of_anchors_is_found(n_points, k, snr):
    data = separable_dirichlet(n_points, 50, k, snr=snr, rng=7)
    found = select_anchors(data.X, None, method_params={"recovery": False})
    assert set(found.anchors) == set(data.anchors)
    assert np.all(np.diff(found.curve) <= 0)
    assert found.curve[k - 1] - found.curve[k] == pytest.approx(found.margin)


def test_signed_points(noisy):
    centered = noisy.X - noisy.X.mean(axis=0)
    assert set(select_anchors(centered, 6).anchors) == set(noisy.anchors)


def test_inputs_are_not_changed(data):
    X, C0 = data.X.copy(), np.eye(70)
    select_anchors(X, 6, init=C0, max_iter=5)
    assert np.array_equal(X, data.X)
    assert np.array_equal(C0, np.eye(70))


def test_n_jobs_inside_a_thread_block(data):
    with threads(1):
        assert merit(as_data_matrix(data.X), 6, max_iter=3).n_iter == 3


def test_a_tolerance_that_the_start_meets_is_refused():
    X = 0.01 * np.random.default_rng(0).random((50, 4))
    with pytest.raises(InvalidParameterError, match=r"tol=0.25 is reached before the first step"):
        select_anchors(X, 3, method="merit", tol=0.25, method_params={"lam": 0.0})


def test_a_penalty_that_outweighs_the_first_step_is_no_end(data):
    found = open_loop(data.X, 6, method_params={"lam": 1e6}, max_iter=3)
    assert found.n_iter == 3
    assert len(found.anchors)


def test_an_iteration_to_go_on_from_needs_a_start(data):
    with pytest.raises(InvalidParameterError, match=r"t_init=5 is the iteration .* there is no warm start"):
        select_anchors(data.X, 6, method_params={"t_init": 5})


@pytest.mark.parametrize("n_components", [6, None])
def test_without_a_number_of_anchors_twice_the_estimated_number_are_candidates(
    data, n_components, monkeypatch
):
    seen = []

    def run(points, problem, warm, first, settings):
        seen.append(settings.most)
        return fully_corrective(points, problem, warm, first, settings)

    fully_corrective = merit_module.run_fully_corrective
    monkeypatch.setattr(merit_module, "run_fully_corrective", run)
    monkeypatch.setattr(merit_module, "estimated_number", lambda _: NumberEstimate(6, 6))
    merit(as_data_matrix(data.X), n_components)
    assert seen == [70 if n_components else 12]
