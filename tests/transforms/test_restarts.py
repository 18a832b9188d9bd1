"""Restarts: as if each were alone, the best kept, methods initialized from each other."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.data import gaussian_composite
from tests.transforms.cases import composite_frames

from nonneg import joint_diagonalize, learn_transform
from nonneg._threads import threads
from nonneg.transforms import LoopOptions, frame_covariances
from nonneg.transforms.initialization import initial_state
from nonneg.transforms.loop import ARRAY_STEPS, batch_step
from nonneg.transforms.options import method_options
from nonneg.transforms.restarts import cross_init
from nonneg.transforms.rotations.group import orthogonality_error, random_orthogonal
from nonneg.transforms.state import part_of

Y = composite_frames(1, 25, 6, 2)
DATA = frame_covariances(Y)


@pytest.mark.parametrize("method", ["tl", "jd"])
def test_a_batch_is_as_many_single_runs(method: str) -> None:
    options = method_options(method, eps0=1e-4)
    together = initial_state(DATA, 2, init=None, n_init=4, rng=0)
    singles = [part_of(together, slice(i, i + 1)) for i in range(4)]
    advance = batch_step(method, DATA, options)
    array_batch, array_singles = together, list(singles)
    for _ in range(12):
        together, measures = advance(together)
        singles = [advance(single)[0] for single in singles]
        array_batch, _ = ARRAY_STEPS[method](array_batch, DATA, options)
        array_singles = [ARRAY_STEPS[method](single, DATA, options)[0] for single in array_singles]
    assert measures["loss"].shape == (4,)
    for i in range(4):
        # NumPy advances one restart at a time: the same bytes.
        assert np.array_equal(together.transform[i], singles[i].transform[0])
        # One computation with a batch axis and masks: the same up to rounding.
        assert np.allclose(array_batch.transform[i], array_singles[i].transform[0], atol=1e-9)
        assert np.allclose(array_batch.transform[i], together.transform[i], atol=1e-7)


def test_restarts_do_not_depend_on_their_number_or_on_threads() -> None:
    options = {"eps0": 1e-4, "max_iter": 15, "tol": 0, "rng": 3}
    one = learn_transform(Y, 2, n_init=1, **options)
    many = learn_transform(Y, 2, n_init=5, n_jobs=1, **options)
    assert many.restarts is not None
    assert one.restarts is None
    assert many.restarts.objective[0] == pytest.approx(one.objective, rel=1e-12)
    assert many.objective == pytest.approx(many.restarts.objective.min(), rel=1e-12)
    assert many.restarts.objective[many.restarts.best] == many.restarts.objective.min()
    assert many.history.loss[-1] == pytest.approx(many.objective, rel=1e-12)
    threaded = learn_transform(Y, 2, n_init=5, n_jobs=2, **options)
    assert np.array_equal(many.transform, threaded.transform)
    assert np.array_equal(many.restarts.objective, threaded.restarts.objective)


def test_both_methods_are_initialized_from_each_other() -> None:
    loop = LoopOptions(40)
    options = {"tl_options": method_options("tl", eps0=1e-4), "jd_options": method_options("jd", eps0=1e-4)}
    with threads(1):
        both = cross_init(DATA, 2, n_init=3, loop=loop, rng=0, **options)
    assert both.tl.restarts.n_init == both.jd.restarts.n_init == 3
    assert len(both.tl.restarts.objective) == len(both.jd.restarts.likelihood) == 6
    settings = {"eps0": 1e-4, "max_iter": 40, "tol": 0, "rng": 0, "n_init": 3}
    alone = {method: learn_transform(Y, 2, method=method, **settings) for method in ("tl", "jd")}
    assert both.tl.objective <= alone["tl"].objective + 1e-9
    assert both.jd.likelihood <= alone["jd"].likelihood + 1e-9
    # (27) and (28) at the best solutions that were found.
    assert both.tl.objective <= both.jd.objective
    assert both.jd.likelihood <= both.tl.likelihood
    crossed = learn_transform(Y, 2, cross_initialize=True, **settings)
    assert crossed.objective == pytest.approx(both.tl.objective, rel=1e-12)


def stack(seed: int, n: int = 15, m: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Q = random_orthogonal(m, rng)
    return np.einsum("ia,na,ja->nij", Q, rng.random((n, m)) + 0.05, Q), Q


def test_a_joint_diagonalizer_is_found() -> None:
    matrices, Q = stack(0)
    result = joint_diagonalize(matrices, rng=1)
    assert (result.W, result.H, result.divergence) == (None, None, None)
    assert np.abs(result.transform @ Q).max(axis=1).min() > 1 - 1e-9
    turned = result.transform @ matrices @ result.transform.T
    assert np.allclose(np.diagonal(turned, axis1=1, axis2=2), result.variances, rtol=1e-10)
    assert np.abs(turned - np.eye(6) * turned).max() < 1e-6
    assert result.certificate["skew-gradient"].holds
    assert result.objective == result.likelihood
    # Pham's criterion is zero for matrices that are diagonalized.
    pham = np.log(result.variances).sum() - np.linalg.slogdet(matrices)[1].sum()
    assert abs(pham) < 1e-8


def test_noisy_matrices_and_many_restarts() -> None:
    matrices, _ = stack(1)
    noise = np.random.default_rng(2).standard_normal((15, 6, 12)) * 0.1
    result = joint_diagonalize(matrices + noise @ np.swapaxes(noise, 1, 2), n_init=4, rng=0)
    assert orthogonality_error(result.transform) < 1e-12
    assert result.restarts.likelihood.min() == pytest.approx(result.likelihood, rel=1e-10)
    assert result.certificate["descent"].holds


def test_theorem_4_is_stated_where_it_says_something() -> None:
    few = learn_transform(composite_frames(20, 10, 3, 1), 1, method="jd", eps0=1e-6, rng=0)
    assert "gaussian-bound" not in few.certificate
    many = learn_transform(composite_frames(2000, 10, 3, 1), 1, method="jd", eps0=1e-6, rng=0)
    bound = many.certificate["gaussian-bound"]
    assert bound.holds
    assert bound.number == pytest.approx(many.divergence)
    assert bound.quantities["probability"] == pytest.approx(0.95)


@pytest.mark.parametrize("seed", [2, 3])
def test_tl_goes_on_from_an_answer_of_jd_that_is_better(seed: int) -> None:
    data = frame_covariances(gaussian_composite(2, 12, 5, 2, rng=seed).Y)
    both = cross_init(
        data,
        2,
        n_init=2,
        tl_options=method_options("tl", eps0=1e-8, n_nmf_updates=2),
        jd_options=method_options("jd", eps0=1e-8, n_nmf_updates=2),
        loop=LoopOptions(12),
        rng=seed,
    )
    assert both.tl.restarts.best == 4
    assert both.tl.objective < both.jd.objective < both.tl.restarts.objective[:4].min()
