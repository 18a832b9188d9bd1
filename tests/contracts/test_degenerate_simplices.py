"""Degenerate input of Unmixing and MinVolNMF: a finite answer or an error of the package."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from nonneg import MinVolNMF
from nonneg.applications import Unmixing
from nonneg.applications.hyperspectral import estimate_n_endmembers
from nonneg.exceptions import InvalidDataError, NonnegError

RNG = np.random.default_rng(0)
PLAIN = RNG.dirichlet(np.ones(3), 60) @ (0.2 + RNG.random((3, 8)))
CASES = {
    "30% zero rows": np.where(np.arange(60)[:, None] < 18, 0.0, PLAIN),
    "zero columns": np.where(np.arange(8) < 3, 0.0, PLAIN),
    "constant": np.full((60, 8), 3.0),
    "identical rows": np.repeat(PLAIN[:1], 60, axis=0),
    "all zero": np.zeros((60, 8)),
    "duplicates": np.repeat(PLAIN[:6], 10, axis=0),
    "one entry": np.array([[2.0]]),
    "rank one": np.outer(1.0 + np.arange(60), PLAIN[0]),
    "three rows": PLAIN[:3],
    "one column": PLAIN[:, :1],
    "1e-200": 1e-200 * PLAIN,
    "1e200": 1e200 * PLAIN,
    "denormals": 1e-310 * PLAIN,
    "float16": PLAIN.astype(np.float16),
    "float32, 1e30": (1e30 * PLAIN).astype(np.float32),
    "integers": np.round(100 * PLAIN).astype(int),
    "bool": PLAIN > 0.5,
}
MODELS = {
    "Unmixing": lambda k: Unmixing(k, random_state=0),
    "Unmixing by minimum volume": lambda k: Unmixing(k, method="min-volume"),
    "Unmixing by snpa": lambda k: Unmixing(k, method="snpa"),
    "MinVolNMF": lambda k: MinVolNMF(k, max_iter=30),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", CASES)
def test_a_finite_answer_or_an_error_of_the_package(case, model):
    X = CASES[case]
    for k in (1, 2, 3, 8):
        estimator = MODELS[model](k)
        data = X if model == "MinVolNMF" else X.reshape(-1, 3 if len(X) % 3 == 0 else 1, X.shape[1])
        before = data.copy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of zeros, clipping and iterations
            try:
                weights = estimator.fit_transform(data)
            except NonnegError:
                continue
            again = estimator.transform(data)
        H = estimator.components_ if model == "MinVolNMF" else estimator.endmembers_
        rows = slice(None) if model == "MinVolNMF" else estimator.mask_
        assert np.isfinite(H).all()
        assert np.isfinite(weights[rows]).all()
        # Weights of more components than directions are not unique; what they mix is.
        np.testing.assert_allclose(again[rows] @ H, weights[rows] @ H, rtol=1e-5, atol=1e-6 * np.abs(H).max())
        assert (H >= 0).all()
        assert str(estimator.certificate_)
        np.testing.assert_array_equal(data, before)


def test_a_few_pixels_that_differ_are_no_materials():
    cube = np.ones((40, 50, 8))
    for band, row in enumerate(range(3, 30, 4)):
        cube[row, :8, band] = 2.0  # seven spectra of 0.4% of the pixels each, 2.8% together
    with pytest.raises(InvalidDataError, match=r"copies of fewer spectra\. Ask for fewer"):
        Unmixing(8, smooth=1, random_state=0).fit(cube)
    assert Unmixing(8, method="snpa").fit(cube).relative_error_ < 1e-6


def test_answers_where_there_is_one():
    zeros = Unmixing(3, random_state=0)
    with pytest.warns(UserWarning, match="18 pixels are zero in every band and were left out"):
        zeros.fit(CASES["30% zero rows"].reshape(12, 5, 8))
    assert (zeros.n_zero_, zeros.mask_.sum()) == (18, 42)
    for case in ("constant", "identical rows"):
        cube = CASES[case].reshape(12, 5, 8)
        np.testing.assert_allclose(Unmixing(1).fit(cube).endmembers_, cube[0, :1])
        with pytest.raises(InvalidDataError, match="n_endmembers=2, but the pixels differ in 0 directions"):
            Unmixing(2).fit(cube)
    with pytest.raises(InvalidDataError, match=r"entries up to .*e\+200, whose squares leave the range"):
        Unmixing(3).fit(CASES["1e200"].reshape(12, 5, 8))


@pytest.mark.parametrize("k", [2, 3])
def test_copies_of_one_sample_are_their_own_simplex(k):
    model = MinVolNMF(k).fit(CASES["identical rows"])
    np.testing.assert_allclose(model.components_, CASES["identical rows"][:k])
    # No step can lower the objective: more iterations are no advice.
    assert model.certificate_["stationarity"].verdict != "fails"


@pytest.mark.parametrize("case", CASES)
def test_estimates_of_the_number(case):
    try:
        estimate = estimate_n_endmembers(CASES[case])
    except NonnegError:
        return
    assert min(estimate.hysime, estimate.virtual_dimensionality, estimate.eigenvalues) >= 1
