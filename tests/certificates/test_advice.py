"""Messages of a certificate: grades, advice that works, and one threshold for all who say it."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import nonneg
from nonneg import NMF, ConeNMF
from nonneg.certificates.advice import ADVICE
from nonneg.certificates.stationarity import stationarity_statement
from nonneg.results import Statement

SOURCE = Path(nonneg.__file__).parent


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(60, 4)) @ rng.gamma(1.0, size=(4, 25))
    return X + 0.3 * rng.random(X.shape)


def test_a_good_statement_is_green_and_asks_for_nothing():
    said = stationarity_statement(1e-5, 1e-6)
    assert (said.grade, said.advice, said.headline) == ("good", "", "")


def test_a_fit_that_is_not_stationary_is_amber():
    said = stationarity_statement(0.2, 0.1)
    assert (said.verdict, said.grade, said.headline) == ("fails", "caution", "")
    assert "max_iter" in said.advice
    assert str(said).startswith("[caution]")
    assert str(said).endswith(said.advice)


def test_factors_that_are_not_nonnegative_are_red():
    said = stationarity_statement(0.0, 0.0, n_infeasible=3)
    assert (said.verdict, said.grade) == ("fails", "problem")
    assert said.headline == "The factors are not nonnegative."


def test_an_error_far_from_the_lower_bound_is_amber():
    said = Statement("eckart-young-bound", "The error is 30% above the bound.", 1.3, 1.1, "fails")
    assert said.grade == "caution"
    assert said.headline == ""
    assert said.advice


def test_what_cannot_be_verified_is_neither_good_nor_bad():
    assert Statement("theorem-3", "Nothing is known.", None, None, "not verifiable").grade == "open"


def test_cones_are_not_told_to_iterate(X):
    said = ConeNMF(4).fit(X).certificate_["stationarity"]
    assert said.verdict == "fails"
    assert (said.grade, said.headline) == ("caution", "")
    assert "init='cr1'" in said.advice


def test_there_is_advice_for_every_statement_that_can_fail():
    """A statement is named by a literal; its module says that it can fail."""
    named = re.compile(r'(?:Statement\(\s*|NAME = |name = )"([a-z][a-z0-9-]+)"')
    missing = {}
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "Verdict.FAILS" not in source:
            continue
        names = {name for name in named.findall(source) if name not in ADVICE}
        # These only ever hold, or are not verifiable; the first one is a method.
        names -= {
            "singular-value-ratio", "size-angles", "expected-error", "limiting-error", "streamed-error",
            "streamed-radius", "streamed-separation", "distance-from-joint-fit", "documents-used",
            "documents-weighted", "candidates", "grouping", "method", "recovery-bound", "lemma-1",
            "theorem-3", "training", "duality-gap", "largest-residual", "support",
        }  # fmt: skip
        if names:
            missing[path.name] = sorted(names)
    assert missing == {}
    assert all(entry.todo for entry in ADVICE.values())


def test_certificate_and_warning_agree_and_the_advice_works(X):
    with pytest.warns(ConvergenceWarning, match="before a stationary point.*Raise max_iter") as caught:
        model = NMF(4, random_state=0, max_iter=2).fit(X)
    assert model.certificate_["stationarity"].headline == "The fit has not converged."
    assert caught[0].filename == __file__
    assert NMF(4, random_state=0, max_iter=5000, tol=1e-9).fit(X).certificate_["stationarity"].holds


def test_the_certificate_names_a_tolerance_that_continues_the_run(X):
    """scikit-learn's values for zeros are far away for large numbers, so that few iterations meet tol."""
    options = {"init": "nndsvda", "random_state": 0, "max_iter": 5000}
    rough = NMF(4, **options).fit(1e6 * X)
    said = rough.certificate_["stationarity"]
    assert said.verdict == "fails"
    tol = float(re.search(r"tol=(\S+) would have continued it", said.sentence)[1])
    assert NMF(4, tol=tol, **options).fit(1e6 * X).n_iter_ > rough.n_iter_


def test_a_fit_whose_certificate_holds_does_not_warn(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert NMF(4, random_state=0).fit(X).certificate_["stationarity"].grade == "good"


def test_a_rough_fit_that_was_asked_for_is_no_reason_to_warn(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not NMF(4, random_state=0, tol=0.5).fit(X).certificate_["stationarity"].holds


def test_a_number_of_iterations_that_was_asked_for_is_no_reason_to_warn(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not NMF(4, random_state=0, tol=0, max_iter=2).fit(X).certificate_["stationarity"].holds
