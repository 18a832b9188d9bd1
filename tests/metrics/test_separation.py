"""Scores of separated sources."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.exceptions import (
    InvalidDataError,
    NonFiniteDataError,
    NonnegWarning,
    ShapeError,
    UnknownNameError,
)
from nonneg.metrics import separation_scores


@pytest.fixture
def sources(rng):
    return rng.standard_normal((2, 3000))


@pytest.mark.parametrize("distortion", ["filter", "gain"])
def test_scores_see_noise_and_interference_apart(sources, rng, distortion):
    pytest.importorskip("mir_eval")
    noise = rng.standard_normal(3000)
    found = np.stack([sources[1] + 0.1 * sources[0], sources[0] + 0.1 * noise])
    scores = separation_scores(sources, found, distortion=distortion)
    assert scores.permutation.tolist() == [1, 0]
    # Source 0 has noise at 20 dB and no interference, source 1 the other way round.
    assert scores.sdr == pytest.approx([20, 20], abs=1.5)
    assert scores.sar[0] < 23 < 40 < scores.sar[1]
    assert scores.sir[1] < 23 < 27 < scores.sir[0]


def test_a_delay_is_a_filter_but_no_factor(sources):
    pytest.importorskip("mir_eval")
    delayed = np.roll(sources, 5, axis=1)
    assert separation_scores(sources, delayed).sdr.min() > 20
    assert separation_scores(sources, delayed, distortion="gain").sdr.max() < -10


def test_parts_are_orthogonal_and_known(sources, rng):
    basis, _ = np.linalg.qr(np.vstack([sources, rng.standard_normal(3000)]).T)
    first, second, noise = basis.T
    true = np.stack([first, first + second])
    # Along the first source 7, in the span and orthogonal to it 0.7, outside it 0.07.
    found = np.stack([-3 * true[1], 7 * (first + 0.1 * second + 0.01 * noise)])
    scores = separation_scores(true, found, distortion="gain")
    assert scores.permutation.tolist() == [1, 0]
    assert scores.sir[0] == pytest.approx(20.0)
    assert scores.sdr[0] == pytest.approx(-10 * np.log10(0.1**2 + 0.01**2))
    assert scores.sar[0] == pytest.approx(10 * np.log10((1 + 0.1**2) / 0.01**2))
    assert min(score[1] for score in scores[:3]) > 250


def test_a_ratio_that_cannot_be_is_told(sources, monkeypatch):
    # As with two notes of two partials: their delays are all but linearly dependent.
    module = pytest.importorskip("mir_eval.separation")
    ratios = np.full(2, 35.0), np.full(2, 20.0), np.full(2, 20.0), np.arange(2)
    monkeypatch.setattr(module, "bss_eval_sources", lambda *_, **__: ratios)
    with pytest.warns(NonnegWarning, match="too few partials"):
        separation_scores(sources, sources)


def test_what_is_refused(sources):
    with pytest.raises(ShapeError, match="same shape"):
        separation_scores(sources, sources[:1])
    with pytest.raises(NonFiniteDataError, match="the estimated sources contain NaN"):
        separation_scores(sources, sources * np.nan)
    with pytest.raises(NonFiniteDataError, match="the true sources contain NaN"):
        separation_scores(
            np.where(np.arange(sources.size).reshape(sources.shape) == 3, np.inf, sources), sources
        )
    with pytest.raises(InvalidDataError, match="Source 1 in `estimated` is silent"):
        separation_scores(sources, sources * np.array([[1.0], [0.0]]))
    with pytest.raises(UnknownNameError, match="Did you mean 'filter'"):
        separation_scores(sources, sources, distortion="filters")


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_loudness_does_not_matter_to_gains(scale):
    true = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    found = np.array([[1.0, 0.5, 0.1], [0.2, 1.0, 0.4]])
    plain = separation_scores(true, found, distortion="gain")
    for one, other in ((scale, 1.0), (1.0, scale), (scale, scale)):
        for a, b in zip(separation_scores(one * true, other * found, distortion="gain"), plain, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)
    np.testing.assert_allclose(plain.sdr, 10 * np.log10([1 / 0.26, 1 / 0.20]))
    np.testing.assert_allclose(plain.sir, 10 * np.log10([1 / 0.25, 1 / 0.04]))
    np.testing.assert_allclose(plain.sar, 10 * np.log10([1.25 / 0.01, 1.04 / 0.16]))


def test_what_no_source_explains_has_no_ratio_above_minus_infinity():
    scores = separation_scores([[1.0, 0.0]], [[0.0, 1.0]], distortion="gain")
    assert [score[0] for score in scores[:3]] == [-np.inf] * 3
    # One sample per source is enough to score.
    assert separation_scores([[2.0]], [[1.0]], distortion="gain").sdr[0] == np.inf
    with pytest.raises(ShapeError, match="same shape"):
        separation_scores(np.ones((0, 3)), np.ones((0, 3)), distortion="gain")
