"""Scores of separated sources."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.exceptions import InvalidDataError, NonFiniteDataError, ShapeError
from nonneg.metrics import scale_invariant_sdr, separation_scores


@pytest.fixture
def sources(rng):
    return rng.standard_normal((2, 3000))


def test_scores_see_noise_and_interference_apart(sources, rng):
    pytest.importorskip("mir_eval")
    noise = rng.standard_normal(3000)
    found = np.stack([sources[1] + 0.1 * sources[0], sources[0] + 0.1 * noise])
    scores = separation_scores(sources, found)
    assert scores.permutation.tolist() == [1, 0]
    # Source 0 has noise at 20 dB and no interference, source 1 the other way round.
    assert scores.sdr == pytest.approx([20, 20], abs=1.5)
    assert scores.sar[0] < 23 < 40 < scores.sar[1]
    assert scores.sir[1] < 23 < 27 < scores.sir[0]


def test_a_filter_costs_nothing_but_a_factor_only_does(sources):
    pytest.importorskip("mir_eval")
    delayed = np.roll(sources, 5, axis=1)
    assert separation_scores(sources, delayed).sdr.min() > 20
    assert scale_invariant_sdr(sources, delayed)[0].max() < -10


def test_scale_invariant_ratio(sources, rng):
    noise = rng.standard_normal(3000)
    noise -= (noise @ sources[0]) / (sources[0] @ sources[0]) * sources[0]
    noise *= np.linalg.norm(sources[0]) / np.linalg.norm(noise) / 10
    sdr, permutation = scale_invariant_sdr(sources, [-3 * sources[1], 7 * (sources[0] + noise)])
    assert permutation.tolist() == [1, 0]
    assert sdr[0] == pytest.approx(20.0, abs=1e-9)
    assert sdr[1] > 250
    assert scale_invariant_sdr([[1.0, 0.0]], [[0.0, 0.0]])[0][0] == -np.inf


def test_what_is_refused(sources):
    with pytest.raises(ShapeError, match="same shape"):
        scale_invariant_sdr(sources, sources[:1])
    with pytest.raises(NonFiniteDataError, match="the found sources hold NaN"):
        separation_scores(sources, sources * np.nan)
    with pytest.raises(InvalidDataError, match="Source 1 of the found ones is silent"):
        separation_scores(sources, sources * np.array([[1.0], [0.0]]))
