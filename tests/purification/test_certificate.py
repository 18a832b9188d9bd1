"""Certificate of a run, balancing, and services of the loop."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.purification.perturbation import perturbed_features
from tests.references.purification import purify_with_truth

from nonneg import purify
from nonneg.exceptions import InterruptedFitWarning
from nonneg.metrics import mixing
from nonneg.purification.certificate import weight_constants

NAMES = (
    "warm-start",
    "decode-consistency",
    "mixing-on-halves",
    "weight-moments",
    "weight-correlation",
    "noise-level",
    "explained",
)


def test_statements_of_a_clean_run(planted):
    data, init = planted()
    certificate = purify(data.X, init).certificate
    assert certificate.names == NAMES
    assert all(certificate[name].holds for name in NAMES)
    # The mixing that the data show is that of the init.
    true_level = mixing(data.H, init).e_symmetric_norm
    assert certificate["warm-start"].number == pytest.approx(true_level, rel=0.3)
    assert "good warm start" in certificate["warm-start"].sentence
    assert certificate["decode-consistency"].number < 1e-20
    assert certificate["mixing-on-halves"].number < 1e-8
    moments = certificate["weight-moments"]
    # Weights 0 and 1 with three of twenty not zero have C1 = c2 = C2 = 3.
    assert moments.quantities["C1"] == pytest.approx(3, rel=0.15)
    assert moments.quantities["c2"] == pytest.approx(3, rel=0.15)
    assert moments.quantities["density"] == pytest.approx(weight_constants(data.W).density(20), rel=1e-3)
    assert moments.quantities["density"] == pytest.approx(3 / 20, rel=0.5)


def test_statements_under_noise(planted):
    data, init = planted(n_samples=20000, noise="unbiased", noise_level=1.0)
    result = purify_with_truth(data.X, init, truth=data.H)
    certificate = result.certificate
    assert 1e-4 < certificate["decode-consistency"].number < 0.05
    # Two halves differ by about twice what the whole differs from the truth.
    found = mixing(data.H, result.H)
    assert certificate["mixing-on-halves"].number == pytest.approx(2 * found.e_norm, rel=0.7)
    assert found.normalized_error == pytest.approx(result.history["normalized_error"][-1])
    assert found.potential(4.0) == pytest.approx(result.history["potential"][-1])


@pytest.mark.parametrize("level", [0.05, 0.3, 0.5])
def test_the_level_of_a_start_is_estimated(planted, level):
    data, init = planted(level=level, weights="uniform")
    result = purify(data.X, init, max_iter=1)
    assert result.init_quality.level == pytest.approx(level, rel=0.35)
    words = "good" if level <= 0.1 else "usable"
    assert f"A {words} warm start" in result.init_quality.sentence


def test_balancing_evens_out_uneven_weights(planted):
    uneven = tuple(np.repeat([1.0, 0.04], [5, 5]))
    options = {"n_samples": 40000, "n_features": 60, "n_components": 10, "sparsity": 3}
    data, _ = planted(**options, proportions=uneven)
    init = perturbed_features(data.H, 0.1, signs="positive", rng=2)
    # One r for all features, as in the paper, shrinks the rare ones to nothing.
    common = {"update": "covariance", "threshold": 0.2, "scale": 1.0 / (2 * 0.3 * 0.7 * 0.8)}
    common |= {"max_iter": 15, "tol": 0, "pseudo_inverse": "moore-penrose"}
    plain = purify(data.X, init, **common, check_init="report")
    own = mixing(data.H, plain.H).diagonal
    assert own[5:].max() < 0.5 < own[:5].min()
    balanced = purify(data.X, init, **common | {"scale": "auto"}, balance=True)
    found = mixing(data.H, balanced.H)
    assert found.diagonal.min() > 0.8
    assert balanced.balancing[:5].min() > 3 * balanced.balancing[5:].max()
    statement = balanced.certificate["balancing"]
    assert statement.holds
    assert statement.quantities["ratio"] > 3
    assert not balanced.certificate["weight-moments"].holds
    negative = perturbed_features(data.H, 0.3, signs="negative", rng=2)
    assert not purify(data.X, negative, balance=True, max_iter=1).certificate["balancing"].holds


def test_balancing_does_not_change_the_default(planted):
    data, init = planted(weights="uniform")
    one, other = (purify(data.X, init, balance=balance, max_iter=15, tol=0) for balance in (False, True))
    np.testing.assert_allclose(one.H, other.H, atol=1e-9)
    np.testing.assert_allclose(one.W, other.W, atol=1e-8)


def test_callback_interruption_and_checkpoint(planted, tmp_path):
    data, init = planted(weights="uniform")
    whole = purify(data.X, init, max_iter=12, tol=0)
    stopped = purify(data.X, init, max_iter=12, tol=0, callback=lambda now: now.n_iter == 5)
    assert stopped.n_iter == 5
    assert stopped.stop_reason.name == "CALLBACK"

    def interrupt(now):
        if now.n_iter == 7:
            raise KeyboardInterrupt

    with pytest.warns(InterruptedFitWarning):
        cut = purify(data.X, init, max_iter=12, tol=0, callback=interrupt, checkpoint=tmp_path)
    assert cut.n_iter == 7
    resumed = purify(data.X, init, max_iter=12, tol=0, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.H, whole.H)
    assert resumed.history["change"] == whole.history["change"]
    other = purify(data.X, init, max_iter=12, tol=0, checkpoint=tmp_path, threshold=0.3)
    assert other.n_iter == 12
    assert not np.array_equal(other.H, whole.H)


def test_a_run_with_linear_programs_resumes(planted, tmp_path):
    data, init = planted()
    options = {"pseudo_inverse": "min-infinity", "tol": 0}
    whole = purify(data.X, init, max_iter=6, **options)
    purify(data.X, init, max_iter=3, checkpoint=tmp_path, **options)
    resumed = purify(data.X, init, max_iter=6, checkpoint=tmp_path, **options)
    np.testing.assert_array_equal(resumed.H, whole.H)


def test_progress_is_shown(planted, capsys):
    data, init = planted()
    purify(data.X, init, max_iter=2, verbose=1)
    assert "purification: iteration" in capsys.readouterr().err
