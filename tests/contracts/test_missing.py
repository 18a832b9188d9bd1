"""Every solver that takes missing entries: what is missing does not matter, what is observed does."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.contracts.cases import (
    CASES,
    MAIN_CASES,
    MISSING_CASES,
    N_ITER,
    PENALTIES,
    close,
    entries,
    initial,
    run,
    with_forms,
)
from tests.references.containers import TORCH, as_container, plain
from tests.references.factorizations import plain_hals
from tests.references.objectives import objective

from nonneg.exceptions import UnsupportedError

MASK = np.random.default_rng(11).random((24, 15)) < 0.75
MASK[3], MASK[:, 4] = False, False
FEW = np.random.default_rng(12).random((24, 15)) < 0.3


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta"), MISSING_CASES)
@pytest.mark.parametrize("mask", [MASK, FEW], ids=["few missing", "few observed"])
def test_values_under_the_mask_do_not_matter(name, beta, mask):
    X = entries(beta)
    expected = run(X, name, beta, mask=mask, **initial())
    for other in (np.nan, 0.0, 1e6, -1.0):
        result = run(np.where(mask, X, other), name, beta, mask=mask, **initial())
        np.testing.assert_array_equal(result.W, expected.W)
        np.testing.assert_array_equal(result.H, expected.H)
    holed = run(np.where(mask, X, np.nan), name, beta, missing="mask", **initial())
    np.testing.assert_array_equal(holed.W, expected.W)


@pytest.mark.parametrize(("name", "beta"), MISSING_CASES)
def test_observed_values_do_matter(name, beta):
    X = entries(beta)
    changed = X.copy()
    changed[tuple(np.argwhere(MASK)[5])] += 1.0
    first, second = (run(data, name, beta, mask=MASK, max_iter=3, **initial()) for data in (X, changed))
    assert not np.allclose(first.H, second.H)


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta"), MISSING_CASES)
@pytest.mark.parametrize("penalties", [{}, PENALTIES], ids=["plain", "penalized"])
def test_the_loss_is_that_of_the_observed_entries_and_never_increases(name, beta, penalties):
    X = entries(beta)
    weights = np.arange(24) % 3 + 0.5
    result = run(X, name, beta, mask=MASK, sample_weight=weights, max_iter=40, **initial(), **penalties)
    expected = objective(X, result.W, result.H, beta=beta, mask=MASK, weights=weights, **penalties)
    assert result.loss == pytest.approx(expected, rel=1e-9)
    losses = np.array(result.history.loss)
    assert np.diff(losses).max() <= 1e-12 * max(0.5 * float((X**2).sum()), losses[0])


@pytest.mark.parametrize(("name", "beta"), MISSING_CASES)
def test_a_full_mask_is_no_mask(name, beta):
    X = entries(beta)
    expected = run(X, name, beta, **initial())
    result = run(X, name, beta, mask=np.ones(X.shape, dtype=bool), **initial())
    close(result.W, expected.W, 1e-8)
    close(result.H, expected.H, 1e-8)


@cache
def masked_run(name, beta, max_iter, few, form="dense"):
    """Run on a form of the data; that on NumPy arrays once for all forms."""
    return run(
        as_container(entries(beta), form),
        name,
        beta,
        max_iter=max_iter,
        mask=FEW if few else MASK,
        sample_weight=np.arange(24) % 4 + 0.5,
        **initial(),
        **PENALTIES,
    )


def check_container(name, beta, form, mask):
    settings = name, beta, N_ITER.get(form, 20), mask is FEW
    expected, result = masked_run(*settings), masked_run.__wrapped__(*settings, form)
    close(plain(result.W), expected.W, 1e-8)
    close(plain(result.H), expected.H, 1e-8)


# Lists of entries and masks are different code for sparse data; for other arrays they are the same.
@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta", "form"), with_forms(MISSING_CASES, ["csr", "strict", TORCH]))
def test_every_container_agrees_with_dense(name, beta, form):
    for mask in (MASK, FEW) if form == "csr" else (MASK,):
        check_container(name, beta, form, mask)


# Passes over blocks are the same whatever the loss, and each kind of block has one of the masks.
@pytest.mark.covering(1)
@pytest.mark.parametrize(
    ("name", "beta", "form"),
    with_forms([case for case in MISSING_CASES if case in MAIN_CASES], ["dask-columns", "dask-sparse"]),
)
def test_blocks_agree_with_dense(name, beta, form):
    check_container(name, beta, form, MASK if form == "dask-columns" else FEW)


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta"), MISSING_CASES)
@pytest.mark.parametrize(
    ("dtype", "mask"),
    [(np.float32, MASK), (np.float64, FEW)],
    ids=["float32, few missing", "float64, few observed"],
)
def test_long_runs_stay_finite_though_rows_and_columns_are_unobserved(name, beta, dtype, mask):
    mask = mask.copy()
    mask[3], mask[:, 4], mask[7] = False, False, False
    mask[7, 2] = True
    X = entries(beta, dtype=dtype)
    result = run(np.where(mask, X, np.nan), name, beta, missing="mask", max_iter=80, init="random", rng=0)
    assert result.W.dtype == dtype
    for factor in (result.W, result.H):
        assert np.isfinite(factor).all()
        assert factor.max() <= 1e6
    losses = np.array(result.history.loss)
    slack = 1e-5 if dtype == np.float32 else 1e-12
    assert np.diff(losses).max() <= slack * max(0.5 * float((X.astype(float) ** 2).sum()), losses[0])


@pytest.mark.parametrize("penalized", [False, True])
@pytest.mark.parametrize("mask", [None, MASK, FEW], ids=["complete", "few missing", "few observed"])
def test_plain_hals_takes_the_steps_of_the_slow_version(mask, penalized):
    X, given = entries(2.0), initial()
    weights = np.arange(24) % 3 + 0.5
    penalties = PENALTIES if penalized else {}
    result = run(X, "hals-plain", 2.0, mask=mask, sample_weight=weights, max_iter=6, **given, **penalties)
    alpha = np.array([0.003 * 15, 0.002 * weights.sum()]) if penalized else np.zeros(2)
    W, Ht = plain_hals(
        X,
        given["W"],
        given["H"].T,
        n_iter=6,
        mask=mask,
        weights=weights,
        l1=tuple(0.6 * alpha),
        l2=tuple(0.4 * alpha),
    )
    close(result.W, W, 1e-10)
    close(result.H, Ht.T, 1e-10)


# The data are of low rank up to a constant, which negative betas fit before all else.
@pytest.mark.covering(1)
@pytest.mark.parametrize(("name", "beta"), [case for case in MISSING_CASES if case.values[1] >= 0])
def test_missing_entries_of_low_rank_data_are_found_again(name, beta):
    rng = np.random.default_rng(5)
    truth = rng.gamma(1.0, size=(40, 2)) @ rng.gamma(1.0, size=(2, 30)) + 0.01
    mask = rng.random(truth.shape) < 0.7
    max_iter = 100 if name == "newton" else 400
    result = run(np.where(mask, truth, np.nan), name, beta, k=2, missing="mask", max_iter=max_iter)
    error = np.linalg.norm((result.W @ result.H - truth)[~mask]) / np.linalg.norm(truth[~mask])
    assert error < 0.02


@pytest.mark.parametrize(("name", "beta"), [case for case in CASES if case not in MISSING_CASES])
def test_the_others_refuse_and_name_those_that_can(name, beta):
    words = "does not take missing entries.*(Solvers that do|need)"
    with pytest.raises(UnsupportedError, match=words) as caught:
        run(entries(beta), name, beta, mask=MASK)
    if beta == 2.0:
        assert "hals" in str(caught.value)
