"""The unit of X does not matter: c X has the factorization of X, times c, after as many iterations.

Powers of four change no digit of a number or of its root, so that the answers must be equal; other constants
change roundings.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_wine

from nonneg import NMF, compare_ranks, factorize, non_negative_factorization
from nonneg.data.door import Request, wrap
from nonneg.exceptions import NonnegError
from nonneg.initializers.registry import INITS
from nonneg.solvers.registry import SOLVERS, choose_solver

K, MAX_ITER = 3, 12
RNG = np.random.default_rng(0)
DENSE = RNG.gamma(1.0, size=(30, K)) @ RNG.gamma(1.0, size=(K, 14)) + 0.05 * RNG.random((30, 14))
FORMS = {
    "dense": (DENSE, {}),
    "sparse": (sp.csr_array(DENSE * (RNG.random(DENSE.shape) < 0.5)), {}),
    "missing": (np.where(RNG.random(DENSE.shape) < 0.1, np.nan, DENSE), {"missing": "mask"}),
    "float32": (DENSE.astype(np.float32), {}),
}
BETAS = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0, 1.5: 1.5, 3.0: 3.0}
GIVEN = RNG.random((K, 14)) + 0.1
INVARIANT = [name for name in INITS if name not in ("nndsvda", "nndsvdar")]


def pairs(form):
    """Yield the solvers and losses that take such data."""
    for solver in SOLVERS:
        for loss, beta in BETAS.items():
            try:
                X, more = FORMS[form]
                choose_solver(solver, wrap(X, Request(missing=more.get("missing", "error"))), K, beta)
            except NonnegError:
                continue
            yield pytest.param(form, solver, loss, id=f"{form}-{solver}-{loss}")


def solved(form, init, solver, loss, unit, **options):
    X, more = FORMS[form]
    # Given factors are in the unit of factors.
    given = {"H": GIVEN * unit**0.5} if INITS[init].takes_factors else {}
    settings = {"max_iter": MAX_ITER, "tol": 1e-3, "rng": 0} | options
    return factorize(
        X * X.dtype.type(unit), K, init=init, solver=solver, beta_loss=loss, **given, **more, **settings
    )


@pytest.mark.covering(2)
@pytest.mark.parametrize(("form", "solver", "loss"), [pair for form in FORMS for pair in pairs(form)])
def test_powers_of_four_change_the_unit_of_the_answer_alone(form, solver, loss):
    exact = not isinstance(loss, float)  # powers with other exponents are rounded
    # All initializations on dense data, with one solver for each loss, which begins where they end; those of
    # the default elsewhere.
    every = form == "dense" and solver == "mu"
    for init in INVARIANT if every else ("nndsvd-scaled", "random"):
        expected = solved(form, init, solver, loss, 1.0)
        for unit in (4.0**-9, 4.0**9 if form == "float32" else 4.0**40):
            found = solved(form, init, solver, loss, unit)
            assert found.n_iter == expected.n_iter, init
            product, reference = found.W @ found.H / unit, expected.W @ expected.H
            if exact:
                np.testing.assert_array_equal(product, reference, err_msg=init)
            else:
                np.testing.assert_allclose(
                    product, reference, rtol=1e-3 if form == "float32" else 1e-6, err_msg=init
                )


@pytest.mark.covering(1)
@pytest.mark.parametrize("unit", [1e-140, 1e-6, 1e6, 1e140])
@pytest.mark.parametrize("init", ["nndsvd-scaled", "random"])
def test_any_constant_changes_roundings_alone(init, unit):
    for solver, loss in (("hals", "frobenius"), ("mu", "kullback-leibler"), ("newton", "itakura-saito")):
        expected, found = (solved("dense", init, solver, loss, c) for c in (1.0, unit))
        assert found.n_iter == expected.n_iter
        np.testing.assert_allclose(found.W @ found.H / unit, expected.W @ expected.H, rtol=1e-6)
        np.testing.assert_allclose(found.H / np.sqrt(unit), expected.H, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("init", ["nndsvd-scaled", "random"])
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler", "itakura-saito"])
def test_small_units_of_the_weights_change_the_unit_of_the_loss_alone(loss, init):
    weights = 0.5 + 0.5 * RNG.random(30)
    once, again = (
        factorize(DENSE, K, beta_loss=loss, init=init, max_iter=50, rng=0, sample_weight=weights * unit)
        for unit in (1.0, 4.0**-50)
    )
    np.testing.assert_allclose(again.loss * 4.0**50, once.loss, rtol=1e-6)
    np.testing.assert_allclose(again.W @ again.H, once.W @ once.H, rtol=1e-3, atol=1e-3)


def test_weights_of_entries_beyond_the_squares_of_numbers():
    weights = np.outer(1.0 + np.arange(30), 1.0 + np.arange(14))
    once, again = (
        factorize(DENSE, K, beta_loss="kullback-leibler", rng=0, entry_weight=weights * unit).loss / unit
        for unit in (1.0, 1e200)
    )
    np.testing.assert_allclose(again, once, rtol=0.01)


def test_penalties_are_in_the_unit_of_the_loss():
    """An L2 penalty on factors is in the unit of X, an L1 penalty in its power 1.5 (`NMF`, Notes)."""
    for l1_ratio, power in ((0.0, 1.0), (1.0, 1.5)):
        plain, scaled = (
            solved("dense", "random", "hals", "frobenius", c, alpha_W=0.01 * c**power, l1_ratio=l1_ratio)
            for c in (1.0, 4.0**6)
        )
        assert scaled.n_iter == plain.n_iter
        np.testing.assert_allclose(scaled.W @ scaled.H / 4.0**6, plain.W @ plain.H, rtol=1e-9)


@pytest.mark.parametrize("name", ["nndsvda", "nndsvdar"])
def test_scikit_learns_initializations_depend_on_the_unit(name):
    """They are scikit-learn's to the digit; nothing else depends on the unit."""
    plain, scaled = (solved("dense", name, "hals", "frobenius", c) for c in (1.0, 4.0**9))
    assert not np.allclose(scaled.W @ scaled.H / 4.0**9, plain.W @ plain.H, rtol=1e-6)


@pytest.mark.parametrize(
    ("load", "k", "before", "divided"), [(load_breast_cancer, 5, 139.0, 69.0), (load_wine, 3, 60.0, 41.0)]
)
def test_tables_need_not_be_divided_by_their_mean(load, k, before, divided):
    """These errors were found with the default that added X.mean() to the factors, and after a division."""
    X = load().data
    as_given, scaled = (NMF(k, max_iter=1000).fit(table) for table in (X, X / X.mean()))
    assert scaled.reconstruction_err_ * X.mean() == pytest.approx(as_given.reconstruction_err_, rel=1e-3)
    assert as_given.reconstruction_err_ < 1.02 * divided < before
    assert as_given.certificate_["stationarity"].holds


def test_the_function_of_scikit_learns_signature_does_not_depend_on_the_unit():
    first, second = (non_negative_factorization(DENSE * c, n_components=K) for c in (1.0, 4.0**8))
    assert first[2] == second[2]
    np.testing.assert_array_equal(second[1], first[1] * 2.0**8)


def test_the_recommended_rank_does_not_depend_on_the_unit():
    few = {"k_max": 4, "rng": 0, "method_params": {"n_folds": 2}}
    first, second = (compare_ranks(DENSE * c, **few) for c in (1.0, 4.0**8))
    assert first.reason == second.reason
    assert first.table() == second.table()
