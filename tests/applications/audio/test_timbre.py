"""What components sound like, and whose they are."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.applications.audio import STFT, timbre
from nonneg.applications.audio.recordings import checked_recordings

RATE = 8000
FREQUENCIES = np.arange(513) / 1024 * RATE


def tones(pitch, decay, n=513):
    template = np.zeros(n)
    for number in range(1, 11):
        template += decay ** (number - 1) * np.exp(-0.5 * ((FREQUENCIES - number * pitch) / 12.0) ** 2)
    return template


@pytest.mark.parametrize("pitch", [110.0, 196.0, 311.0])
def test_pitch_and_partials_of_a_template(pitch, rng):
    octave, harmonic, shares = timbre._partials(np.stack([tones(pitch, 0.5), rng.random(513)]), FREQUENCIES)
    assert octave[0] == pytest.approx(np.log2(pitch), abs=0.03)
    assert harmonic[0] > 5 * harmonic[1]
    # Halves of halves: differences of log10(2), down to the smallest share.
    np.testing.assert_allclose(np.diff(shares[0])[:4], -np.log10(2), atol=0.06)
    assert shares.shape == (2, 8)
    assert shares.min() >= -3


def test_a_silent_template_has_finite_features():
    assert np.isfinite(timbre.timbre(np.zeros((30, 2)), np.zeros((2, 513)), FREQUENCIES)).all()


def test_autocorrelations_against_their_formula(rng):
    W = rng.random((40, 3))
    centered = W - W.mean(axis=0)
    found = timbre._autocorrelations(W)
    for lag, values in zip((1, 2, 4, 9, 17), found, strict=True):
        expected = [sum(c[t] * c[t + lag] for t in range(40 - lag)) / (c @ c) for c in centered.T]
        np.testing.assert_allclose(values, expected)
    assert all((values == 0).all() for values in timbre._autocorrelations(np.ones((40, 2))))
    assert timbre._autocorrelations(W[:9])[-1].tolist() == [0.0, 0.0, 0.0]


def test_timbre_does_not_depend_on_loudness_or_precision(rng):
    W, H = rng.random((40, 2)), np.stack([tones(150.0, 0.7), rng.random(513)])
    found = timbre.timbre(W, H, FREQUENCIES)
    assert found.shape == (2, 20)
    np.testing.assert_allclose(timbre.timbre(7.0 * W, 0.01 * H, FREQUENCIES), found, atol=1e-6)
    single = timbre.timbre(W.astype(np.float32), H.astype(np.float32), FREQUENCIES)
    np.testing.assert_allclose(single, found, atol=1e-4)


def test_energies_in_masks_against_their_formula(rng):
    V, W, H = rng.random((5, 4)), rng.random((5, 3)), rng.random((3, 4))
    powers = rng.random((2, 5, 4))
    shares = powers / powers.sum(axis=0)
    masks = W.T[:, :, None] * H[:, None, :] / (W @ H)
    expected = np.einsum("ktf,tf,stf->ks", masks, V**2, shares)
    np.testing.assert_allclose(timbre.masked_energies(V, W, H, powers), expected)


def test_parts_are_as_loud_as_each_other_and_meet_other_parts():
    framing = STFT(64)
    places = np.arange(1000.0) + 1
    solos = [checked_recordings(places, "aligned"), checked_recordings([places, places], "aligned")]
    found = list(timbre.mixed_parts(solos, framing, 10))
    assert [parts.shape for parts in found] == [(2, 160)] * 8
    powers = np.array([np.sqrt(np.mean(parts**2, axis=1)) for parts in found])
    np.testing.assert_allclose(powers[:, 0], 1.0)
    np.testing.assert_allclose(20 * np.log10(powers[:, 1]), np.linspace(-3, 3, 8))
    # Within a part, entries are proportional to their places: their ratio tells where it begins.
    begins = np.array([1 / (parts[:, 1] / parts[:, 0] - 1) for parts in found]) - 1
    np.testing.assert_allclose(np.sort(begins[:, 0]), np.round(np.arange(8) * 120), atol=1e-6)
    np.testing.assert_allclose(np.sort(begins[:, 1]), np.round(np.arange(8) * 120), atol=1e-6)
    assert (np.abs(begins[:, 0] - begins[:, 1]) > 1).sum() >= 6


def test_parts_are_limited_and_silence_is_left_out():
    framing = STFT(64)
    signal = np.ones(90_000)
    signal[: 400 * 16] = 0.0
    solos = [checked_recordings(signal, "aligned"), checked_recordings(np.ones(70_000), "aligned")]
    found = list(timbre.mixed_parts(solos, framing, 5000))
    assert [parts.shape for parts in found] == [(2, 400 * 16)] * 7
    assert not list(timbre.mixed_parts([solos[0], checked_recordings(np.zeros(900), "aligned")], framing, 9))


def planted(framing, kinds, rng):
    """Return a factorization of a mixture into its sources, and signals of them."""
    t = np.arange(12_000) / RATE
    beat = np.sin(np.pi * 3 * t) ** 2
    tone = beat * sum(0.6**n * np.sin(2 * np.pi * 200 * (n + 1) * t) for n in range(6))
    noise = rng.standard_normal(len(t)) * (t % 0.4 < 0.05)
    return {"tone": tone, "noise": noise}[kinds]


def test_components_belong_to_the_source_they_sound_like(rng):
    framing = STFT(256)
    tone, noise = (planted(framing, kind, rng) for kind in ("tone", "noise"))
    frequencies = np.arange(129) / 256 * RATE

    def factorize(V):
        """Take the mean spectra of both sources as templates."""
        H = np.stack([np.abs(framing.analyze(one)[0]).mean(axis=0) for one in (tone, noise)])
        H = np.repeat(H / H.sum(axis=1, keepdims=True), 2, axis=0) * rng.uniform(0.9, 1.1, (4, 129))
        W = np.maximum(V @ np.linalg.pinv(H), 1e-9)
        return W, H

    solos = [checked_recordings(one, "aligned") for one in (tone, noise)]
    V = np.abs(framing.analyze(tone + noise)[0])
    W, H = factorize(V)
    odds = timbre.source_odds(W, H, framing, frequencies, solos, factorize)
    assert odds.shape == (4, 2)
    np.testing.assert_allclose(np.exp(odds).sum(axis=1), 1.0)
    np.testing.assert_array_equal(odds.argmax(axis=1), [0, 0, 1, 1])
    # Training recordings that sound alike say nothing, and neither do silent ones.
    same = timbre.source_odds(W, H, framing, frequencies, [solos[0]] * 2, lambda V: (W[: len(V), :1], H[:1]))
    silent = [solos[0], checked_recordings(np.zeros(12_000), "aligned")]
    np.testing.assert_allclose(same, np.log(0.5))
    assert not timbre.source_odds(W, H, framing, frequencies, silent, factorize).any()
