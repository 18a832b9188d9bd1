"""The solvers of the registry with the losses they minimize, and small problems for them."""

from __future__ import annotations

import os
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from tests.references.containers import container_of, plain

from nonneg import factorize
from nonneg.solvers.hals import hals
from nonneg.solvers.registry import SOLVERS, Solver

accelerated_hals = partial(hals, momentum=0.0)
plain_hals = partial(hals, momentum=0.0, passes=(1, 1))
VARIANTS = {
    "hals-accelerated": Solver(accelerated_hals, "several inner passes", (2.0, 2.0), missing=(2.0, 2.0)),
    "hals-plain": Solver(plain_hals, "one inner pass", (2.0, 2.0), missing=(2.0, 2.0)),
}
"""The algorithms that `hals` builds on, which users cannot choose."""

ALL = {**SOLVERS, **VARIANTS}
BETAS = (2.0, 1.0, 0.0, 1.5, 0.5, 3.0, -1.0)
FEW = (2.0, 1.0, 0.0, 1.5)
"""Losses whose cases are not slow: those with a name, and one for all others."""

CASES = [
    pytest.param(name, beta, id=f"{name}, beta {beta:g}", marks=() if beta in FEW else pytest.mark.slow)
    for name, solver in ALL.items()
    for beta in BETAS
    if solver.minimizes(beta)
]
"""Every solver with every loss it minimizes."""

EVERY = [pytest.param(*case.values, id=case.id) for case in CASES]
"""The same, and no case is slow."""

BRANCHES = [case for case in CASES if case.values[1] in (2.0, 1.0, 0.0, 1.5, 3.0)]
"""Every solver with one loss per branch of the update, for options that no loss treats in its own way."""

MAIN_CASES = [case for case in CASES if case.values[1] in (2.0, 1.0, 0.0)]
"""Every solver with the losses that have a name, for what costs more."""

MISSING_CASES = [case for case in CASES if ALL[case.values[0]].takes_missing(case.values[1])]
PENALTIES = {"alpha_W": 0.003, "alpha_H": 0.002, "l1_ratio": 0.6}
K = 3
SHAPE_ON_GPU = (7, 5) if os.environ.get("TRITON_INTERPRET") == "1" else (24, 15)
"""Shape of data for a GPU; smaller where Triton's interpreter takes its place."""
N_ITER = {"strict": 5, "dask-columns": 8, "dask-sparse": 8}
"""Iterations by form of the data where not 20: array-api-strict takes a while to check every operation, Dask
to plan every pass."""

SETTLED = 25
"""Iterations in which the loss of a run that has ended does not fall."""


def with_forms(cases, forms):
    """Pair the cases with the forms of data that the solver takes."""
    return [
        pytest.param(
            *case.values, word, id=f"{case.id}, {word}", marks=[*case.marks, *getattr(form, "marks", ())]
        )
        for case in cases
        for form in forms
        for word in getattr(form, "values", (form,))
        if ALL[case.values[0]].takes(container_of(word), case.values[1])
    ]


def entries(beta, shape=(24, 15), seed=0, dtype=np.float64):
    """Data near rank 3; with zeros wherever the loss allows them."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(shape[0], K)) @ rng.gamma(1.0, size=(K, shape[1]))
    X *= 0.9 + 0.2 * rng.random(shape)
    if beta >= 1:
        X = np.where(rng.random(shape) < 0.3, 0.0, X)
    return X.astype(dtype)


def steady(beta):
    """Float32 data on which rounding hardly grows within 20 iterations of any solver.

    NumPy's factors in float32 and in float64, dense and CSR, differ by at most 2e-6 here, losses by 4e-7,
    also if the data change in their last digits or sums take another order. On other data of these kinds
    factors differ by up to 1e-3: the last digits of a loss decide whether an extrapolated step is accepted.
    """
    seeds = {2.0: 3, 1.0: 56, 0.0: 31, 1.5: 14, 0.5: 16, 3.0: 18, -1.0: 13}
    rng = np.random.default_rng(seeds[beta])
    if beta == 2.0:
        X = np.where(rng.random((24, 15)) < 0.3, 0.0, rng.random((24, 15)))
    elif beta < 1:
        mean = rng.gamma(0.5, size=(24, K)) @ rng.gamma(0.5, size=(K, 40)) + 0.02
        X = mean * rng.gamma(20, 1 / 20, size=mean.shape)
    else:
        X = rng.gamma(1.0, size=(24, K)) @ rng.gamma(1.0, size=(K, 15)) * rng.gamma(2.0, 0.5, size=(24, 15))
        X = np.where(rng.random(X.shape) < 0.3, 0.0, X)
    return X.astype(np.float32)


def initial(shape=(24, 15), seed=1, k=K):
    """Positive factors."""
    rng = np.random.default_rng(seed)
    return {"W": rng.random((shape[0], k)) + 0.2, "H": rng.random((k, shape[1])) + 0.2}


def close_in_float32(found, expected):
    """Compare results: products, and factors but for scales, which the loss does not determine."""
    assert "float32" in str(found.W.dtype)
    assert "float32" in str(found.H.dtype)
    assert found.loss == pytest.approx(expected.loss, rel=1e-6)
    (W, H), (W_wanted, H_wanted) = ((plain(each.W), plain(each.H)) for each in (found, expected))
    close(W @ H, W_wanted @ H_wanted, 1e-5)
    for factor, wanted in ((W, W_wanted), (H.T, H_wanted.T)):
        scale, scale_wanted = (np.where(each.any(axis=0), each.sum(axis=0), 1) for each in (factor, wanted))
        close(factor / scale, wanted / scale_wanted, 1e-5)


def run(X, name, beta, *, k=K, max_iter=12, tol=0.0, rng=0, **options):
    """Run a solver for `max_iter` iterations."""
    with patch.dict(SOLVERS, {name: ALL[name]}):
        return factorize(X, k, solver=name, beta_loss=beta, max_iter=max_iter, tol=tol, rng=rng, **options)


def run_until_settled(X, name, beta, *, max_iter, **options):
    """Run a solver until its loss no longer decreases, or for `max_iter` iterations."""

    def settled(progress):
        losses = progress.history.loss
        return len(losses) > SETTLED and losses[-SETTLED] - losses[-1] <= 1e-12 * losses[-1]

    return run(X, name, beta, max_iter=max_iter, callback=settled, **options)


def close(found, expected, rel):
    """Compare two factors on the scale of the largest entry."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=rel * np.abs(expected).max())
