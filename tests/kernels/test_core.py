"""Compiled core: equal to array code on every level, number of threads and layout."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import scipy.sparse

from nonneg import NMF, factorize
from nonneg._compiled import LEVELS, core, instruction_set
from nonneg._threads import threads
from nonneg.exceptions import NonnegError
from nonneg.kernels.grams import SharedGram
from nonneg.kernels.hals import hals_passes

needs_core = pytest.mark.skipif(core() is None, reason="the core was not built")


def run_apart(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, check=False, env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def problem(n_rows, k, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    other = rng.random((2 * k + 3, k)) * (rng.random((2 * k + 3, k)) < 0.7)
    factor, X = rng.random((n_rows, k)), rng.random((n_rows, 2 * k + 3))
    return tuple(np.ascontiguousarray(a, dtype=dtype) for a in (factor, other.T @ other, X @ other))


@needs_core
def test_layouts_and_read_only_arrays_give_the_same():
    factor, gram, cross = problem(50, 5)
    expected, _ = hals_passes(factor, SharedGram(gram), cross, max_passes=3)
    wide = np.zeros((50, 12))
    wide[:, 1:11:2] = cross
    for array in (factor, gram, cross):
        array.setflags(write=False)
    for other in (np.asfortranarray(cross), wide[:, 1:11:2]):
        found, _ = hals_passes(np.asfortranarray(factor), SharedGram(gram.T), other, max_passes=3)
        np.testing.assert_array_equal(found, expected)


@needs_core
def test_nan_and_infinity_stay_in_their_rows():
    factor, gram, cross = problem(40, 5)
    expected, _ = hals_passes(factor, SharedGram(gram), cross, max_passes=2)
    cross[3, 1], cross[7, 2] = np.nan, np.inf
    found, violation = hals_passes(factor, SharedGram(gram), cross, max_passes=2)
    assert np.isnan(found[3]).any()
    assert not np.isfinite(violation)
    others = np.setdiff1d(np.arange(40), [3, 7])
    np.testing.assert_array_equal(found[others], expected[others])


@needs_core
def test_arrays_of_the_wrong_shape_are_refused():
    factor, gram, cross = problem(10, 3)
    out, order = np.empty_like(factor), np.arange(3)
    for wrong in ((gram[:2, :2].copy(), cross), (gram, cross[:4].copy())):
        with pytest.raises(ValueError, match="must"):
            core().hals_passes(out, factor, *wrong, order, 1, 0.0, 128, 1)
    with pytest.raises(ValueError, match="does not exist"):
        core().hals_passes(out, factor, gram, cross, np.array([3]), 1, 0.0, 128, 1)
    weights, other = np.ones((10, 4)), np.ones((4, 3))
    for wrong in ((weights[:9], other), (weights, other[:, :2].copy()), (weights, other[:3])):
        with pytest.raises(ValueError, match="must"):
            core().hals_weighted(out, *wrong, 0.0, cross, order, 1, 0.0, 1)
    with pytest.raises(ValueError, match="by rows or by columns"):
        core().hals_weighted(out, np.ones((20, 8))[::2, ::2], other, 0.0, cross, order, 1, 0.0, 1)


@needs_core
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_no_digit_depends_on_the_number_of_threads(form):
    X = np.random.default_rng(3).random((3000, 80)) ** 4
    X = X if form == "dense" else scipy.sparse.csr_array(X * (X > 0.3))
    fits = []
    for n_jobs in (1, 2, 5):
        with threads(n_jobs):
            fits.append(NMF(6, random_state=0, max_iter=10, tol=0).fit_transform(X))
    for other in fits[1:]:
        np.testing.assert_array_equal(other, fits[0])


@needs_core
def test_fits_from_several_threads_do_not_disturb_one_another():
    X = np.random.default_rng(4).random((2000, 40))
    expected = NMF(5, random_state=0, max_iter=15, tol=0).fit_transform(X)
    found = [None] * 4

    def fit(at):
        found[at] = NMF(5, random_state=0, max_iter=15, tol=0).fit_transform(X)

    workers = [threading.Thread(target=fit, args=(at,)) for at in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for W in found:
        np.testing.assert_array_equal(W, expected)


FITS = """
    import os
    import numpy as np
    from nonneg import _compiled, factorize
    X = np.random.default_rng(0).random((400, 30))
    for level in _compiled.LEVELS:
        os.environ["NONNEG_CORE"] = level
        _compiled._load.cache_clear()
        print(factorize(X, 4, rng=0, max_iter=30, tol=0).loss, _compiled.instruction_set())
"""


def test_every_instruction_set_gives_the_same_answer():
    expected = factorize(np.random.default_rng(0).random((400, 30)), 4, rng=0, max_iter=30, tol=0)
    for level, line in zip(LEVELS, run_apart(FITS).splitlines(), strict=True):
        loss, taken = line.split()
        assert float(loss) == pytest.approx(expected.loss, rel=1e-9)
        assert LEVELS.index(taken) <= LEVELS.index(level)


def test_an_unknown_level_is_refused():
    assert instruction_set() in LEVELS
    refused = (
        "from nonneg import _compiled\ntry: _compiled.core()\nexcept Exception as e: print(type(e).__mro__)"
    )
    assert NonnegError.__name__ in run_apart(refused, NONNEG_CORE="mmx")


@needs_core
def test_parts_of_different_builds_refuse_each_other():
    # Called through a table of another layout, the core crashed.
    code = """
        import sys, types, warnings
        from scipy.linalg import cython_blas
        from nonneg._compiled import core
        other = types.SimpleNamespace(table=cython_blas.__pyx_capi__["dgemm"])
        sys.modules["nonneg._kernels_baseline"] = other
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(core() is None, "different builds" in str(caught[0].message))
    """
    assert run_apart(code, NONNEG_CORE="baseline") == "True True"


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1), (2, 1), (40, 1)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_single_rows_and_columns_are_fitted(shape, order):
    X = np.asarray(np.random.default_rng(5).random(shape), order=order)
    model = NMF(1, init="random", random_state=0, max_iter=20).fit(X)
    assert np.isfinite(model.reconstruction_err_)
    assert model.reconstruction_err_ <= np.linalg.norm(X)
