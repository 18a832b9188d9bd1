"""A seed gives the same bytes whatever else the machine has to do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import NMF, factorize

CASES = [
    ("dense", "hals", "frobenius"),
    ("dense", "anls", "frobenius"),
    ("dense", "mu", "kullback-leibler"),
    ("dense", "newton", "kullback-leibler"),
    ("dense", "newton", "itakura-saito"),
    ("sparse", "mu", "frobenius"),
    ("sparse", "kl-cd", "kullback-leibler"),
    ("masked", "newton", "kullback-leibler"),
]


def entries(kind):
    """Draw data that are large enough for several threads."""
    rng = np.random.default_rng(3)
    X = rng.gamma(0.5, size=(900, 5)) @ rng.gamma(0.5, size=(5, 200)) + 0.01 * rng.random((900, 200))
    if kind == "dense":
        return X
    X[rng.random(X.shape) < 0.6] = 0 if kind == "sparse" else np.nan
    return sp.csr_array(X) if kind == "sparse" else X


def fitted(X, solver, loss, n_jobs):
    """Return the bytes of a fit."""
    model = NMF(5, solver=solver, beta_loss=loss, max_iter=4, tol=0, random_state=0, n_jobs=n_jobs, n_init=1)
    model.set_params(missing="error" if sp.issparse(X) or not np.isnan(X).any() else "mask")
    return model.fit_transform(X).tobytes(), model.components_.tobytes()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("kind", "solver", "loss"), CASES)
def test_fits_side_by_side_have_the_bytes_of_one_alone(kind, solver, loss):
    X = entries(kind)
    alone = fitted(X, solver, loss, 3)
    with ThreadPoolExecutor(2) as others:
        together = list(others.map(lambda _: fitted(X, solver, loss, 3), range(2)))
    assert set(together) == {alone}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("kind", "solver", "loss"), CASES)
def test_the_number_of_threads_changes_no_byte(kind, solver, loss):
    # Sums over ranges of rows once followed the number of threads: seen in array code, with wide rows.
    X = entries(kind)[:300].repeat(9, axis=1) if kind != "sparse" else entries(kind)
    assert len({fitted(X, solver, loss, n_jobs) for n_jobs in (1, 5)}) == 1


def test_the_number_of_workers_changes_no_byte(request):
    # Sums over chunks once followed the number of threads of the cluster.
    da = pytest.importorskip("dask.array")
    X = da.from_array(entries("dense")[:300], chunks=(23, 200))

    def bytes_of_fit():
        result = factorize(X, 3, solver="hals", max_iter=4, tol=0, rng=0)
        return np.asarray(result.W).tobytes(), result.H.tobytes()

    alone = bytes_of_fit()
    request.getfixturevalue("dask_client")
    assert bytes_of_fit() == alone
