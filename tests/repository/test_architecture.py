"""The page "How a fit runs" is true: its solver solves, its way through a fit is the way, its files exist."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse

import nonneg
from nonneg import NMF, factorize
from nonneg.solvers.registry import SOLVERS

PACKAGE = Path(nonneg.__file__).parent
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
WAY = re.findall(r"^\| \d+\. `([\w.]+)` \| `([\w/.]+)` \|", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def solver():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (code,) = [block for block in blocks if "ENTRY =" in block]
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 40
    names: dict = {"__name__": "architecture"}
    exec(compile(code, "architecture.md", "exec", dont_inherit=True), names)
    with patch.dict(SOLVERS, {"on-the-page": names["ENTRY"]}):
        yield "on-the-page"


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3)) @ rng.random((3, 20)) * (rng.random((60, 20)) < 0.7)
    return SimpleNamespace(X=X, init={"W": rng.random((60, 3)) + 0.1, "H": rng.random((3, 20)) + 0.1})


def fitted(X, solver, problem, **options):
    return factorize(X, 3, solver=solver, max_iter=20, tol=0.0, **problem.init, **options)


def test_the_solver_on_the_page_decreases_the_loss_and_leaves_its_inputs(solver, problem):
    before = problem.X.copy(), problem.init["W"].copy(), problem.init["H"].copy()
    result = fitted(problem.X, solver, problem)
    losses = np.asarray(result.history.loss)
    assert np.all(np.diff(losses) <= 1e-12 * losses[0])
    assert losses[-1] == pytest.approx(0.5 * np.sum((problem.X - result.W @ result.H) ** 2), rel=1e-10)
    for array, kept in zip((problem.X, problem.init["W"], problem.init["H"]), before, strict=True):
        np.testing.assert_array_equal(array, kept)


def test_the_solver_on_the_page_runs_on_every_container(solver, problem):
    reference = fitted(problem.X, solver, problem)
    forms = [scipy.sparse.csr_array(problem.X)]
    dask = pytest.importorskip("dask.array")
    forms.append(dask.from_array(problem.X, chunks=(17, -1)))
    for X in forms:
        result = fitted(X, solver, problem)
        np.testing.assert_allclose(np.asarray(result.H), reference.H, rtol=1e-8)
        np.testing.assert_allclose(np.asarray(result.W), reference.W, rtol=1e-8, atol=1e-12)


def test_the_solver_on_the_page_minimizes_the_weighted_loss(solver, problem):
    weights = np.random.default_rng(1).integers(1, 4, len(problem.X))
    result = fitted(problem.X, solver, problem, sample_weight=weights)
    residual = problem.X - result.W @ result.H
    assert result.history.loss[-1] == pytest.approx(0.5 * np.sum(weights[:, None] * residual**2), rel=1e-10)


def test_the_way_through_a_fit_is_the_one_on_the_page():
    X = scipy.sparse.csr_array(np.random.default_rng(0).random((200, 50)))
    model = NMF(5, random_state=0, max_iter=3, tol=0.0)
    found: list[tuple[str, str]] = []

    def watch(frame, event, arg):
        code = frame.f_code
        if (
            event != "call"
            or found
            or not code.co_filename.endswith(WAY[-1][1])
            or code.co_name != WAY[-1][0]
        ):
            return
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                found.insert(0, (frame.f_code.co_name, path.relative_to(PACKAGE).as_posix()))
            frame = frame.f_back

    model.fit(X)  # compiled code is loaded
    sys.setprofile(watch)
    try:
        model.fit(X)
    finally:
        sys.setprofile(None)
    stated = [(name.split(".")[-1], file) for name, file in WAY]
    assert found == stated


def test_the_files_on_the_page_exist():
    named = {name for name in re.findall(r"`([\w/]+\.py)`", PAGE) if "/" in name} - {
        "solvers/projected_gradient.py"
    }
    assert [name for name in sorted(named) if not (PACKAGE / name).is_file()] == []
