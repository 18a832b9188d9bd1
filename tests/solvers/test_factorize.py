"""The front door: results, and errors that name the entry and the remedy."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from tests.contracts.cases import entries, initial
from tests.references.objectives import objective

from nonneg import NMF, factorize
from nonneg._random import generator
from nonneg.data import as_data_matrix
from nonneg.exceptions import (
    DataTypeError,
    FileFormatError,
    InterruptedFitWarning,
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    NonnegWarning,
    ShapeError,
    UnknownNameError,
    UnsupportedError,
)
from nonneg.iteration import StopReason
from nonneg.losses.penalties import Penalties
from nonneg.solvers.factorize import run_factorization
from nonneg.solvers.registry import SOLVERS

X = entries(2.0)
GIVEN = initial()


def spoiled(value):
    bad = X.copy()
    bad[4, 2] = value
    return bad


BAD = {
    "negative entry": (spoiled(-1.0), {}, NegativeDataError, r"entry \[4, 2\] is -1\.0.*keep"),
    "nan": (spoiled(np.nan), {}, NonFiniteDataError, r"NaN: entry \[4, 2\].*missing='mask'"),
    "infinity": (spoiled(np.inf), {}, NonFiniteDataError, r"infinity: entry \[4, 2\].*replace"),
    "empty": (np.empty((0, 4)), {}, InvalidDataError, "at least one sample"),
    "one dimension": (np.ones(5), {}, ShapeError, "Expected 2D array"),
    "complex": (X.astype(complex), {}, DataTypeError, "Complex data not supported"),
    "object": (X.astype(object), {}, DataTypeError, "dtype object"),
    "too many components": (
        X,
        {"n_components": 25},
        InvalidParameterError,
        "larger than both sides of X, 24 x 15",
    ),
    "no components": (
        X,
        {"n_components": 0},
        InvalidParameterError,
        r"must be an int in the range \[1, inf\).*Got 0",
    ),
    "half a component": (X, {"n_components": 2.5}, InvalidParameterError, "must be an int.*Got 2.5"),
    "true components": (X, {"n_components": True}, InvalidParameterError, "must be an int.*Got True"),
    "shape of W": (X, {"W": np.ones((3, 24))}, ShapeError, r"W of shape.*\(24, 3\), got \(3, 24\)"),
    "shape of H": (X, {"H": np.ones((15, 3))}, ShapeError, r"H of shape.*\(3, 15\), got \(15, 3\)"),
    "negative W": (X, {"W": GIVEN["W"] - 0.5}, NegativeDataError, r"nonnegative W, got W\[\d+, \d\]"),
    "nan in H": (X, {"H": GIVEN["H"] * np.nan}, NonFiniteDataError, r"finite H, got H\[0, 0\]"),
    "unknown loss": (X, {"beta_loss": "kulback"}, UnknownNameError, "Did you mean 'kullback-leibler'"),
    "unknown solver": (X, {"solver": "hal"}, UnknownNameError, "Did you mean 'hals'"),
    "unknown start": (X, {"init": "nnsvd"}, UnknownNameError, "Did you mean 'nndsvd"),
    "solver and loss": (
        X,
        {"solver": "hals", "beta_loss": 1},
        UnsupportedError,
        "does not minimize.*'mu'",
    ),
    "zeros and IS": (
        X,
        {"beta_loss": "itakura-saito"},
        InvalidDataError,
        r"entry \[\d+, \d+\] is 0.*add small values",
    ),
    "factors and a start": (X, {"W": GIVEN["W"], "init": "random"}, InvalidParameterError, "init='custom'"),
    "custom without factors": (X, {"init": "custom"}, InvalidParameterError, "neither W nor H"),
    "frozen without H": (X, {"frozen_components": [0]}, InvalidParameterError, "H is not given.*Pass H"),
    "frozen beyond": (
        X,
        {"frozen_components": [3], "H": GIVEN["H"]},
        InvalidParameterError,
        "contains 3.*0 to 2",
    ),
    "frozen below": (X, {"frozen_components": [-1], "H": GIVEN["H"]}, InvalidParameterError, "contains -1"),
    "frozen flags": (
        X,
        {"frozen_components": [True, False, True], "H": GIVEN["H"]},
        InvalidParameterError,
        "sequence of indices",
    ),
    "frozen number": (
        X,
        {"frozen_components": 1, "H": GIVEN["H"]},
        InvalidParameterError,
        "sequence of indices",
    ),
    "solver of another kind": (
        X,
        {"solver": ["hals"]},
        InvalidParameterError,
        "solver must be a string, got",
    ),
    "no threads": (
        X,
        {"n_jobs": 0},
        InvalidParameterError,
        "n_jobs must be None or an integer other than 0, got 0",
    ),
    "threads in words": (X, {"n_jobs": "two"}, InvalidParameterError, "n_jobs must be.*'two'"),
    "infinite penalty": (X, {"alpha_W": np.inf}, InvalidParameterError, "alpha_W must be a finite number"),
    "masked array": (np.ma.masked_less(X, 0.1), {}, DataTypeError, "Pass X.data.*getmaskarray"),
    "too large": (X * 1e160, {}, InvalidDataError, r"overflow in float64.*divide X"),
    "too small": ((X * 1e-25).astype(np.float32), {}, InvalidDataError, r"vanish in float32.*multiply X"),
    "max_iter": (
        X,
        {"max_iter": -1},
        InvalidParameterError,
        "max_iter must be a finite number of at least 0, got -1",
    ),
    "tol": (
        X,
        {"tol": "small"},
        InvalidParameterError,
        "tol must be a finite number of at least 0, got 'small'",
    ),
    "nan as tol": (X, {"tol": float("nan")}, InvalidParameterError, "tol must be a finite number"),
    "alpha_W": (X, {"alpha_W": -0.1}, InvalidParameterError, "alpha_W must be a finite number of at least 0"),
    "alpha_H": (X, {"alpha_H": "equal"}, InvalidParameterError, "alpha_H must be a finite number.*'equal'"),
    "l1_ratio": (X, {"l1_ratio": 1.5}, InvalidParameterError, "l1_ratio must be a number between 0 and 1"),
    "missing": (X, {"missing": "drop"}, UnknownNameError, "missing='drop' is not known"),
    "mask": (X, {"mask": np.ones((2, 2))}, ShapeError, "mask of the same shape as X"),
    "weights": (X, {"sample_weight": np.ones(3)}, ShapeError, "one weight per sample"),
    "missing and anls": (
        X,
        {"mask": X > 0, "solver": "anls"},
        UnsupportedError,
        "does not take missing.*hals",
    ),
    "missing and mu": (
        X + 1,
        {"mask": X > 0, "beta_loss": 0.5, "solver": "mu"},
        UnsupportedError,
        "missing entries.*newton",
    ),
    "no restarts": (
        X,
        {"n_init": 0},
        InvalidParameterError,
        "n_init must be an integer of at least 1",
    ),
    "equal restarts": (
        X,
        {"n_init": 2, "init": "cr1"},
        InvalidParameterError,
        "restarts would be equal",
    ),
    "seed": (X, {"rng": "seven", "init": "random"}, InvalidParameterError, "seed"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_by_name(what):
    data, options, kind, words = BAD[what]
    before = data.copy()
    with pytest.raises(kind, match=words) as caught:
        factorize(data, **{"n_components": 3, **options})
    assert isinstance(caught.value, ValueError)
    assert np.array_equal(data, before, equal_nan=data.dtype.kind == "f")


def test_the_caller_is_named_in_messages():
    with pytest.raises(InvalidParameterError, match="parameter of NMF must"):
        run_factorization(as_data_matrix(X), 0, beta=2.0, penalties=Penalties(), caller="NMF")


def test_the_result_describes_itself():
    result = factorize(X, 3, max_iter=4, tol=0)
    assert result.W.shape == (24, 3)
    assert result.H.shape == (3, 15)
    assert result.factors == (result.W, result.H)
    assert result.n_iter == 4 == len(result.history)
    assert result.stop_reason is StopReason.MAX_ITER
    assert result.solver in SOLVERS
    assert result.loss_name == "frobenius"
    assert result.loss == pytest.approx(objective(X, result.W, result.H))
    assert "n_iter=4" in repr(result)
    assert "loss=" in repr(result)
    with pytest.raises(AttributeError):
        result.loss = 0.0


def test_a_callback_stops_and_sees_the_run():
    seen = []

    def callback(progress):
        seen.append(progress.history.loss[-1])
        return progress.n_iter == 3

    result = factorize(X, 3, callback=callback, tol=0)
    assert result.n_iter == 3
    assert result.stop_reason is StopReason.CALLBACK
    assert seen == result.history.loss


def test_ctrl_c_returns_the_factors_so_far():
    def interrupt(progress):
        if progress.n_iter == 2:
            raise KeyboardInterrupt

    with pytest.warns(InterruptedFitWarning, match="after 2 iterations"):
        result = factorize(X, 3, callback=interrupt, tol=0)
    expected = factorize(X, 3, max_iter=2, tol=0)
    np.testing.assert_array_equal(result.W, expected.W)
    assert result.stop_reason is StopReason.INTERRUPTED


def test_every_kind_of_seed_is_taken():
    seeds = [
        0,
        np.int64(0),
        np.random.default_rng(0),
        np.random.RandomState(0),
        np.random.SeedSequence(0),
        None,
    ]
    results = [factorize(X, 3, init="random", rng=seed, max_iter=2) for seed in seeds]
    for same in results[1:3]:
        np.testing.assert_array_equal(results[0].H, same.H)
    assert all(np.isfinite(result.loss) for result in results)


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
def test_any_number_of_threads_gives_the_same_bytes(n_jobs):
    assert factorize(X, 3, n_jobs=n_jobs).W.tobytes() == factorize(X, 3).W.tobytes()


@pytest.mark.parametrize("data", [np.zeros((5, 4)), sp.csr_array((5, 4))], ids=["dense", "sparse"])
def test_data_of_zeros_are_factorized(data):
    result = factorize(data, 2)
    assert result.loss == 0.0
    assert np.isfinite(result.W).all()
    assert np.isfinite(result.H).all()
    np.testing.assert_allclose(result.W @ result.H, 0.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_exact_data_have_a_loss_that_is_not_negative(seed):
    rng = np.random.default_rng(seed)
    exact = rng.random((30, 2)) @ rng.random((2, 20))
    result = factorize(exact, 2, max_iter=2000, tol=1e-12)
    assert 0.0 <= result.loss <= 1e-9 * float((exact**2).sum())
    assert min(result.history.loss) >= 0.0


@pytest.mark.parametrize("size", [4.0**-248, 4.0**-50, 4.0**50, 4.0**232])
def test_tiny_and_huge_data_are_factorized_alike(size):
    result, expected = (factorize(data, 3, max_iter=50) for data in (X * size, X))
    assert result.n_iter == expected.n_iter
    np.testing.assert_allclose(result.W @ result.H / size, expected.W @ expected.H, rtol=1e-8, atol=1e-8)


def test_a_denormal_column_or_a_single_large_entry_is_harmless():
    odd = X.copy()
    odd[:, 3] = 1e-310
    odd[0, 0] = 1e12
    result = factorize(odd, 3)
    assert np.isfinite(result.W).all()
    assert np.isfinite(result.H).all()


def test_restarts_are_independent_and_the_best_is_returned():
    options = {"init": "random", "max_iter": 5, "tol": 0}
    streams = generator(7).spawn(4)
    runs = [factorize(X, 3, rng=stream, **options) for stream in streams]
    best = factorize(X, 3, rng=7, n_init=4, **options)
    assert len({result.loss for result in runs}) == 4
    # They share products with the data, whose sums a single fit adds up in another order.
    chosen = min(runs, key=lambda result: result.loss)
    np.testing.assert_allclose(best.W, chosen.W, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(best.H, chosen.H, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(best.history.loss, chosen.history.loss, rtol=1e-12)


def test_restarts_without_a_named_initialization_are_random():
    named = factorize(X, 3, rng=1, n_init=2, init="random", max_iter=3)
    assert factorize(X, 3, rng=1, n_init=2, max_iter=3).W.tobytes() == named.W.tobytes()


def test_restarts_end_with_the_callback():
    seen = []
    factorize(X, 3, rng=1, n_init=5, callback=lambda progress: seen.append(progress.n_iter) or len(seen) == 3)
    assert seen == [1, 2, 3]


def test_restarts_have_checkpoints_of_their_own(tmp_path):
    options = {"rng": 1, "n_init": 3, "tol": 0, "checkpoint": tmp_path}
    factorize(X, 3, max_iter=4, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["restart-0", "restart-1", "restart-2"]
    resumed = factorize(X, 3, max_iter=9, **options)
    whole = factorize(X, 3, max_iter=9, rng=1, n_init=3, tol=0)
    np.testing.assert_allclose(resumed.W, whole.W, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("alphas", "factor"),
    [({"alpha_W": 0.1, "alpha_H": 0.0}, "W"), ({"alpha_W": 0.0, "alpha_H": 0.1}, "H")],
)
def test_an_l1_penalty_on_one_factor_only_is_warned_of(alphas, factor):
    for fit in (
        lambda: factorize(X, 3, max_iter=2, l1_ratio=0.5, **alphas),
        lambda: NMF(3, max_iter=200, l1_ratio=0.5, tol=0.1, **alphas).fit(X),
    ):
        with pytest.warns(NonnegWarning, match=f"L1 penalty is on {factor} only") as said:
            fit()
        assert [each.filename for each in said] == [__file__]


def test_penalties_that_bound_both_factors_are_not_warned_of():
    for options in ({"alpha_W": 0.1, "l1_ratio": 1.0}, {"alpha_W": 0.1, "alpha_H": 0.0}):
        factorize(X, 3, max_iter=2, **options)
    factorize(X, 3, H=GIVEN["H"], frozen_components=[0, 1, 2], alpha_W=0.1, alpha_H=0, l1_ratio=1, max_iter=2)


@pytest.mark.parametrize("beta", [2.0, 1.0])
def test_negative_factors_of_a_callback_or_a_checkpoint_are_refused(beta, tmp_path):
    """A defect of 0.1: they ended under a certificate that held."""

    def write(progress):
        progress.state.Ht[0, 0] = -1.0

    with pytest.raises(InvalidDataError, match="Ht of the state has an entry -1 after the callback"):
        factorize(X, 3, beta_loss=beta, callback=write)
    factorize(X, 3, beta_loss=beta, max_iter=2, tol=0, checkpoint=tmp_path)
    (path,) = tmp_path.glob("*.npz")
    with np.load(path) as stored:
        arrays = dict(stored)
    about = json.loads(bytes(arrays["about"]).decode())
    for wrong in ({"state_Ht": -arrays["state_Ht"]}, {"about": {**about, "n_iter": -5}}):
        if "about" in wrong:
            wrong["about"] = np.frombuffer(json.dumps(wrong["about"]).encode(), dtype=np.uint8)
        np.savez(path, **{**arrays, **wrong})
        with pytest.raises(FileFormatError, match=r"entry -|-5 iterations"):
            factorize(X, 3, beta_loss=beta, max_iter=4, tol=0, checkpoint=tmp_path)
