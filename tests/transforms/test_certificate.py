"""The statements about a transform, from numbers given by hand: thresholds, quantities and words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nonneg.certificates.certificate import Verdict
from nonneg.iteration import History
from nonneg.transforms.certificate import (
    certified,
    covariance_statement,
    decomposition_statement,
    descent_statement,
    gaussian_bound,
    gaussian_statements,
)
from nonneg.transforms.covariances import FrameCovariances, frame_covariances
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.rotations.group import random_orthogonal


def data_of(n_realizations, *, n_frames=7, length=4, error=0.0, discarded=0.0, dtype=np.float64):
    """Covariances of which only the sizes and the losses matter."""
    virtual = np.ones((3, n_frames, length), dtype=dtype)
    return FrameCovariances(virtual, np.full(n_frames, discarded / n_frames), error, n_realizations)


def history_of(losses):
    history = History()
    for at, loss in enumerate(losses):
        history.record(at, 0.0, {"loss": loss})
    return history


@pytest.mark.parametrize(("single", "threshold"), [(False, 1e-10), (True, 1e-3)])
@pytest.mark.parametrize(
    ("C", "L", "part"), [(-2.0, -8.0, 6.0), (9.0, 4.0, 5.0), (-1.0, -9.0, 8.0), (1.0, -8.0, 9.0)]
)
def test_the_decomposition_is_off_by_a_share_of_the_largest_part(C, L, part, single, threshold):
    exact = decomposition_statement(C, L, part, single=single)
    assert (exact.number, exact.verdict, exact.threshold) == (0.0, Verdict.HOLDS, threshold)
    assert exact.quantities == {"C": C, "L": L, "I": part}
    off = decomposition_statement(C, L, part + 0.5, single=single)
    assert off.number == pytest.approx(0.5 / max(abs(C), abs(L), part + 0.5))
    assert off.verdict is Verdict.FAILS
    assert decomposition_statement(C + 0.5, L, part, single=single).number > 0


@pytest.mark.parametrize(
    ("losses", "rise"),
    [([4.0, 3.0, 2.0], 0.0), ([-4.0, -3.0, -5.0], 0.2), ([2.0, 1.0, 1.5], 0.25), ([-1.0, -8.0, -7.0], 0.125)],
)
def test_a_rise_is_a_share_of_the_largest_loss(losses, rise):
    found = descent_statement(history_of(losses), single=False)
    assert found.number == pytest.approx(rise)
    assert found.holds is (rise == 0.0)
    assert found.quantities == {"iterations": 3}


@pytest.mark.parametrize(("single", "threshold"), [(False, 1e-10), (True, 1e-4)])
def test_descent_needs_two_losses_and_allows_rounding(single, threshold):
    one = descent_statement(history_of([1.0]), single=single)
    assert (one.verdict, one.number, one.threshold) == (Verdict.NOT_VERIFIABLE, None, threshold)
    assert descent_statement(history_of([1.0, 0.5]), single=single).holds
    assert descent_statement(history_of([1.0, 0.5, 0.5 + 0.9 * threshold]), single=single).holds
    assert not descent_statement(history_of([1.0, 0.5, 0.5 + 1.1 * threshold]), single=single).holds


def test_the_gaussian_bound_holds_with_probability_095():
    S, n, m = 10**7, 7, 4
    t = math.sqrt(2 * math.log(2 / (1 - 0.95 ** (1 / n))))
    bound, probability = gaussian_bound(S, n, m, t)
    assert probability == pytest.approx(0.95)
    for part, verdict in ((bound, Verdict.HOLDS), (1.01 * bound, Verdict.FAILS)):
        (found,) = gaussian_statements(part, data_of(S, n_frames=n, length=m))
        assert (found.number, found.threshold, found.verdict) == (part, bound, verdict)
        assert found.quantities == {"probability": pytest.approx(0.95), "realizations": S}
        assert ("at most" if verdict is Verdict.HOLDS else "above") in found.sentence
    assert gaussian_statements(1.0, data_of(None)) == []
    assert gaussian_statements(1.0, data_of(10)) == []


@pytest.mark.parametrize(("dtype", "threshold"), [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_what_factoring_lost_is_said(dtype, threshold):
    found = covariance_statement(data_of(5, error=threshold, discarded=0.6, dtype=dtype), 2.0)
    assert (found.number, found.threshold, found.verdict) == (threshold, threshold, Verdict.HOLDS)
    assert found.quantities == {"rank": 3, "discarded": pytest.approx(0.6), "bound_on_L": pytest.approx(0.3)}
    assert covariance_statement(data_of(5, error=2 * threshold, dtype=dtype), 2.0).verdict is Verdict.FAILS


@pytest.mark.parametrize("method", ["tl", "jd"])
def test_the_numbers_are_those_of_the_solution(method):
    rng = np.random.default_rng(3)
    Y = rng.standard_normal((6, 8, 4))
    data, transform = frame_covariances(Y), random_orthogonal(4, 1)
    W, H, eps0 = rng.random((8, 2)) + 0.1, rng.dirichlet(np.ones(4), 2), 0.01
    options = TransformOptions(eps0=eps0)
    history = history_of([3.0, 2.0])
    found = certified(data, transform, W, H, options, method=method, history=history)
    V, model = np.mean((Y @ transform.T) ** 2, axis=0) + eps0, W @ H + eps0
    parts = found["decomposition"].quantities
    assert parts["C"] == pytest.approx(np.sum(V / model + np.log(model)))
    assert parts["L"] == pytest.approx(np.sum(1 + np.log(V)))
    assert parts["I"] == pytest.approx(np.sum(V / model - np.log(V / model) - 1))
    assert ("distance-from-joint-fit" in found.names) is (method == "jd")
    assert found["skew-gradient"].quantities["objective"] == ("C" if method == "tl" else "L")
    alone = certified(data, transform, None, None, options, method="jd", history=history)
    assert alone.names == ("orthogonality", "skew-gradient", "descent", "factored-covariances")
