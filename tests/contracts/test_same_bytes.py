"""A seed gives the same bytes whatever was measured on the machine, and whatever else it has to do."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import NMF, _cores, _threads

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
    """Draw data of a size at which the cost of waking a thread decides how many are used."""
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
@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_the_cost_of_waking_threads_changes_no_byte(kind, solver, loss, n_jobs, monkeypatch):
    X, found = entries(kind), set()
    for waking in (0.0, 3e-5, 1.0):
        monkeypatch.setattr(_threads, "waking_seconds", lambda waking=waking: waking)
        found.add(fitted(X, solver, loss, n_jobs))
    assert len(found) == 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_cache_that_cannot_be_written_changes_no_byte(monkeypatch, tmp_path):
    """Each process measures again then, and finds another cost each time."""
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(_cores, "user_cache", lambda: tmp_path / "file")
    X, found = entries("dense"), set()
    for cost in (8e-6, 2.5e-4):
        monkeypatch.setattr(_threads, "_measure_waking", lambda cost=cost: cost)
        _threads.waking_seconds.cache_clear()
        assert _threads.waking_seconds() == cost
        found.add(fitted(X, "newton", "kullback-leibler", 2))
    _threads.waking_seconds.cache_clear()
    assert len(found) == 1
