"""Every solver gives one answer, whatever holds the data."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.contracts.cases import (
    ALL,
    CASES,
    MAIN_CASES,
    N_ITER,
    PENALTIES,
    K,
    close,
    close_in_float32,
    entries,
    initial,
    run,
    steady,
    with_forms,
)
from tests.references.containers import FORMS, ON_GPU, SPARSE_TENSOR, TORCH, as_container, container_of, plain
from tests.references.stored import write

from nonneg import factorize, open_matrix
from nonneg.exceptions import UnsupportedInputError

WEIGHTS = np.random.default_rng(2).gamma(1.0, size=24)
OTHER_FORMS = [*(form for form in FORMS if form != "dense"), SPARSE_TENSOR, *ON_GPU]
FEW_FORMS = ("csr", "strict", TORCH, SPARSE_TENSOR)
BLOCK_FORMS = ("dask-columns", "dask-sparse", "streamed-sparse", "streamed")
REQUIRED = {
    2.0: {"hals": {"dense", "sparse", "array", "dask"}, "anls": {"dense", "sparse", "dask"}},
    1.0: {
        "mu": {"dense", "sparse", "array", "dask"},
        "newton": {"dense", "sparse", "array", "dask"},
        "kl-cd": {"dense", "sparse"},
    },
    0.0: {"newton": {"dense", "array", "dask"}, "mu": {"dense", "array", "dask"}},
    1.5: {"newton": {"dense", "sparse", "array", "dask"}, "mu": {"dense", "sparse", "array", "dask"}},
    -1.0: {"newton": {"dense", "array", "dask"}, "mu": {"dense", "array", "dask"}},
}


def test_the_registry_is_at_least_the_promised_matrix():
    for beta, solvers in REQUIRED.items():
        for name, kinds in solvers.items():
            assert all(ALL[name].takes(kind, beta) for kind in kinds), (name, beta)
    for name in ("hals", "hals-accelerated", "hals-plain"):
        assert ALL[name].takes_missing(2.0)
    assert ALL["mu"].takes_missing(1.0)
    assert all(ALL["newton"].takes_missing(beta) for beta in REQUIRED)


@cache
def in_memory(name, beta, **options):
    """Run on a NumPy array, once for all forms of the data."""
    return run(entries(beta), name, beta, **options)


@cache
def with_weights_and_penalties(name, beta, max_iter):
    return run(entries(beta), name, beta, max_iter=max_iter, sample_weight=WEIGHTS, **initial(), **PENALTIES)


def check_twenty_iterations(name, beta, form):
    X = entries(beta)
    if not ALL[name].takes(container_of(form), beta):
        with pytest.raises(UnsupportedInputError, match=r"Use|Solvers that do"):
            run(as_container(X, form), name, beta)
        return
    options = {"max_iter": N_ITER.get(form, 20), "sample_weight": WEIGHTS, **initial(), **PENALTIES}
    expected = with_weights_and_penalties(name, beta, options["max_iter"])
    result = run(as_container(X, form), name, beta, **options)
    if container_of(form) not in ("sparse", "streamed"):
        given = as_container(X, form)
        assert type(result.W) is type(given)
        assert getattr(result.W, "device", None) == getattr(given, "device", None)
    close(plain(result.W), expected.W, 1e-8)
    close(plain(result.H), expected.H, 1e-8)
    np.testing.assert_allclose(result.history.loss, expected.history.loss, rtol=1e-8)


def slow(case):
    """Kernels for Newton steps of this loss are compiled for nothing else, and `hals` serves it better."""
    return [pytest.mark.slow] if case.values == ("newton", 2.0) else []


# Both array libraries take the same path: all losses on one of them.
@pytest.mark.covering(2)
@pytest.mark.parametrize(
    ("form", "name", "beta"),
    [
        pytest.param(
            *getattr(form, "values", (form,)),
            *case.values,
            marks=[*case.marks, *getattr(form, "marks", ()), *slow(case)],
        )
        for form in FEW_FORMS
        for case in (MAIN_CASES if form == "strict" else CASES)
    ],
)
def test_twenty_iterations_agree_with_dense_to_1e_8(form, name, beta):
    check_twenty_iterations(name, beta, form)


@pytest.mark.parametrize(
    ("name", "beta"), [case for case in CASES if ALL[case.values[0]].takes("sparse-array", case.values[1])]
)
@pytest.mark.parametrize("form", ON_GPU)
def test_twenty_iterations_on_a_gpu_agree_with_dense_to_1e_8(name, beta, form):
    check_twenty_iterations(name, beta, form)


@pytest.mark.covering(1)
@pytest.mark.parametrize(
    ("name", "beta"),
    [
        pytest.param(*case.values, marks=[*case.marks, *slow(case)], id=case.id)
        for case in CASES
        if ALL[case.values[0]].takes("sparse-array", case.values[1])
    ],
)
@pytest.mark.parametrize("form", [SPARSE_TENSOR, *ON_GPU])
def test_twenty_iterations_in_float32_agree_with_dense(name, beta, form):
    X = steady(beta)
    given = {key: value.astype(np.float32) for key, value in initial(X.shape).items()}
    expected = run(X, name, beta, max_iter=20, **given)
    close_in_float32(run(as_container(X, form), name, beta, max_iter=20, **given), expected)


# Passes over blocks are the same whatever the loss: one without a name stands for the others, and every
# other case has dense blocks on Dask and sparse ones in files, or the reverse.
@pytest.mark.covering(1)
@pytest.mark.parametrize(
    ("form", "name", "beta"),
    [
        pytest.param(form, *case.values)
        for at, case in enumerate(case for case in CASES if case.values[1] in (2.0, 1.0, 0.0, 1.5))
        for form in BLOCK_FORMS[at % 2 :: 2]
    ],
)
def test_twenty_iterations_in_blocks_agree_with_dense_to_1e_8(form, name, beta):
    check_twenty_iterations(name, beta, form)


@pytest.mark.covering(1)
@pytest.mark.parametrize(("name", "beta", "form"), with_forms(MAIN_CASES, ["csr", TORCH, "dask", "streamed"]))
def test_runs_to_tolerance_agree_in_the_loss_to_1e_6(name, beta, form):
    X = entries(beta)
    options = {"max_iter": 200, "tol": 1e-2, "init": "random", "rng": 0}
    expected = in_memory(name, beta, **options)
    result = run(as_container(X, form), name, beta, **options)
    assert result.n_iter == expected.n_iter < 200
    assert result.loss == pytest.approx(expected.loss, rel=1e-6)


@pytest.mark.covering(1)
@pytest.mark.parametrize(
    ("name", "beta"), [case for case in MAIN_CASES if ALL[case.values[0]].takes("dask", case.values[1])]
)
def test_a_cluster_agrees_with_dense(name, beta, dask_client):
    X = entries(beta)
    expected = run(X, name, beta, max_iter=3, **initial())
    result = run(as_container(X, "dask-columns"), name, beta, max_iter=3, **initial())
    close(plain(result.W), expected.W, 1e-8)
    close(plain(result.H), expected.H, 1e-8)


@pytest.mark.parametrize("loss", ["kullback-leibler", "itakura-saito", 0.5])
def test_the_automatic_choice_is_as_good_on_chunks_as_on_numpy(loss):
    X = entries(0.0)
    local, chunked = (
        factorize(as_container(X, form), K, beta_loss=loss, max_iter=20, tol=0) for form in ("dense", "dask")
    )
    assert chunked.solver == local.solver
    assert chunked.loss == pytest.approx(local.loss, rel=1e-8)


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_the_automatic_choice_runs_for_every_form(form):
    X = entries(2.0)
    for loss in ("frobenius", "kullback-leibler"):
        result = factorize(as_container(X, form), K, beta_loss=loss, max_iter=3)
        assert np.isfinite(result.loss)
    if not container_of(form).startswith("sparse") and not form.endswith("-sparse"):
        assert np.isfinite(
            factorize(as_container(entries(0.0), form), K, beta_loss="itakura-saito", max_iter=3).loss
        )


@pytest.mark.covering(1)
@pytest.mark.parametrize(
    ("name", "beta", "form"),
    with_forms(MAIN_CASES, ["dense", "csr", "csc", TORCH, SPARSE_TENSOR, "dask-one-chunk"]),
)
def test_the_input_is_not_changed(name, beta, form):
    X = entries(beta)
    brought = as_container(X.copy(), form)
    given = {key: value.copy() for key, value in initial().items()}
    run(brought, name, beta, max_iter=3, sample_weight=WEIGHTS, **given)
    np.testing.assert_array_equal(plain(brought), X)
    for key, value in initial().items():
        np.testing.assert_array_equal(given[key], value)


# Each against memory: files in `test_stored.py`, threads above, processes in `tests/data/test_faults.py`.
@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of Dask, about workers
@pytest.mark.parametrize(("name", "beta"), [("hals", 2.0), ("anls", 2.0), ("newton", 1.0), ("newton", 0.0)])
def test_memory_files_threads_and_processes_give_one_answer(name, beta, tmp_path, dask_processes):
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    X = entries(beta)
    options = {"max_iter": 6, **initial()}
    found = []
    for form in ("zarr 3", "h5ad" if beta else "dense h5ad"):
        path, variable = write(X, form, tmp_path)
        with open_matrix(path, variable=variable, memory=X.nbytes + 1) as stored:
            assert not stored.fits()
            found.append(run(stored, name, beta, **options))
    chunked = da.from_array(X, chunks=(4, -1))
    found.append(run(chunked, name, beta, **options))
    processes = found[-1].W.compute()
    with dask.config.set(scheduler="threads"):
        found.append(run(chunked, name, beta, **options))
        np.testing.assert_allclose(found[-1].W.compute(), processes, rtol=1e-10)
    expected = run(X, name, beta, **options)
    for result in found:
        close(plain(result.W), expected.W, 1e-8)
        close(plain(result.H), expected.H, 1e-8)
        assert result.loss == pytest.approx(expected.loss, rel=1e-8)
