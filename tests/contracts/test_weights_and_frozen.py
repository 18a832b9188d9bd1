"""Every solver: weights count like repetitions, frozen rows stay, penalties mean what they mean elsewhere."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.optimize
from sklearn import decomposition
from sklearn.exceptions import ConvergenceWarning
from tests.contracts.cases import (
    BRANCHES,
    CASES,
    MISSING_CASES,
    PENALTIES,
    close,
    entries,
    initial,
    run,
    run_until_settled,
)
from tests.references.objectives import objective

COUNTS = np.random.default_rng(3).integers(0, 4, size=24)


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta"), BRANCHES)
@pytest.mark.parametrize("penalties", [{}, PENALTIES], ids=["plain", "penalized"])
def test_an_integer_weight_counts_like_so_many_rows(name, beta, penalties):
    X, given = entries(beta), initial()
    weighted = run(X, name, beta, sample_weight=COUNTS, **given, **penalties)
    rows = {"W": np.repeat(given["W"], COUNTS, axis=0), "H": given["H"]}
    repeated = run(np.repeat(X, COUNTS, axis=0), name, beta, **rows, **penalties)
    close(weighted.H, repeated.H, 1e-8)
    close(np.repeat(weighted.W, COUNTS, axis=0), repeated.W, 1e-8)
    np.testing.assert_allclose(weighted.history.loss, repeated.history.loss, rtol=1e-8)


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta"), BRANCHES)
@pytest.mark.parametrize("init", [None, "random"])
def test_the_whole_fit_with_weights_is_that_of_repeated_rows(name, beta, init):
    X = entries(beta)
    options = {"max_iter": 40, "tol": 1e-3, "init": init, "rng": 0}
    weighted = run(X, name, beta, sample_weight=COUNTS, **options)
    repeated = run(np.repeat(X, COUNTS, axis=0), name, beta, **options)
    assert weighted.n_iter == repeated.n_iter
    close(weighted.H, repeated.H, 1e-6)


@pytest.mark.parametrize(("name", "beta"), MISSING_CASES)
def test_weights_count_like_rows_with_missing_entries_too(name, beta):
    X, given = entries(beta), initial()
    mask = np.random.default_rng(4).random(X.shape) < 0.8
    weighted = run(X, name, beta, sample_weight=COUNTS, mask=mask, **given)
    rows = {"W": np.repeat(given["W"], COUNTS, axis=0), "H": given["H"]}
    repeated = run(np.repeat(X, COUNTS, axis=0), name, beta, mask=np.repeat(mask, COUNTS, axis=0), **rows)
    close(weighted.H, repeated.H, 1e-8)


@pytest.mark.parametrize(("name", "beta"), BRANCHES)
def test_rows_of_weight_zero_do_not_matter(name, beta):
    X = entries(beta)
    other = X.copy()
    other[COUNTS == 0] *= 3.0
    first, second = (run(data, name, beta, sample_weight=COUNTS, **initial()) for data in (X, other))
    close(first.H, second.H, 1e-9)


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta"), BRANCHES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("frozen", [[1], [2, 0], [0, 1, 2]])
def test_frozen_rows_stay_bit_for_bit_and_the_others_move(name, beta, dtype, frozen):
    given = initial()
    H = given["H"].astype(dtype)
    result = run(entries(beta, dtype=dtype), name, beta, H=H, frozen_components=frozen, **PENALTIES)
    assert result.H[frozen].tobytes() == H[frozen].tobytes()
    free = [a for a in range(3) if a not in frozen]
    assert all(not np.allclose(result.H[a], H[a]) for a in free)
    losses = np.array(result.history.loss)
    slack = 1e-12 if dtype == np.float64 else 1e-5
    assert np.diff(losses).max() <= slack * max(0.5 * float((entries(beta) ** 2).sum()), losses[0])


@pytest.mark.parametrize(("name", "beta"), BRANCHES)
def test_frozen_rows_stay_from_any_initialization(name, beta):
    H = initial()["H"]
    result = run(entries(beta), name, beta, H=H, frozen_components=[1], init="random", rng=0)
    assert result.H[1].tobytes() == H[1].tobytes()


@pytest.mark.covering(1)
@pytest.mark.parametrize(("name", "beta"), [case for case in CASES if 0 <= case.values[1] <= 2])
def test_what_scikit_learn_found_cannot_be_improved(name, beta):
    # If a penalty had another scale, the optimum would lie elsewhere.
    X = entries(beta) + 0.1
    peer = decomposition.NMF(
        3,
        solver="cd" if beta == 2 else "mu",
        beta_loss=beta,
        init="custom",
        tol=1e-9,
        max_iter=3000,
        alpha_W=0.003,
        alpha_H=0.006,
        l1_ratio=0.3,
    )
    given = initial()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        W = peer.fit_transform(X, W=given["W"].copy(), H=given["H"].copy())
    penalties = {"alpha_W": 0.003, "alpha_H": 0.006, "l1_ratio": 0.3}
    there = objective(X, W, peer.components_, beta=beta, **penalties)
    result = run(X, name, beta, W=W, H=peer.components_, max_iter=30, **penalties)
    assert result.loss <= there * (1 + 1e-9)
    # Its multiplicative updates have not quite ended below beta 1.
    assert result.loss == pytest.approx(there, rel=2e-4 if beta >= 1 else 5e-3)


@pytest.mark.parametrize(("name", "beta"), CASES)
def test_a_stronger_l1_penalty_gives_smaller_factors(name, beta):
    X = entries(beta)
    plain, strong = (
        run(X, name, beta, max_iter=30, alpha_W=alpha, l1_ratio=1.0, **initial()) for alpha in (0.0, 0.05)
    )
    assert strong.W.sum() * strong.H.sum() < plain.W.sum() * plain.H.sum()


@pytest.mark.covering(1)
@pytest.mark.parametrize(("name", "beta"), [case for case in CASES if 1 <= case.values[1] <= 2])
def test_with_all_of_h_frozen_the_convex_optimum_is_found(name, beta):
    X, given = entries(beta), initial()
    result = run_until_settled(
        X, name, beta, H=given["H"], frozen_components=[0, 1, 2], max_iter=400, alpha_W=0.002
    )

    def loss(w, row):
        return objective(X[row : row + 1], w[None], given["H"], beta=beta, alpha_W=0.002, alpha_H=0.0)

    for row in (0, 11, 23):
        best = scipy.optimize.minimize(
            loss, np.full(3, 0.5), args=(row,), bounds=[(1e-12, None)] * 3, method="L-BFGS-B", tol=1e-14
        )
        assert loss(result.W[row], row) == pytest.approx(best.fun, rel=1e-5, abs=1e-9)
