"""Synthetic instruments and a voice, for mixtures whose sources are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.signal import butter, lfilter, sosfilt

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError, UnknownNameError

# Steps of the major scale, in semitones.
SCALE = (0, 2, 4, 5, 7, 9, 11)
# Formants of five vowels in hertz (Peterson & Barney 1952, men).
VOWELS = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480), (570, 840, 2410))
FORMANT_WIDTHS = (80.0, 100.0, 140.0)


def instrument_sound(
    instrument: str,
    seconds: float = 8.0,
    *,
    rate: int = 16000,
    tempo: float | None = None,
    rng: Seed = None,
    dtype: npt.DTypeLike = np.float64,
) -> FloatArray:
    """Return a recording of one synthetic instrument that plays random notes, of root mean square 0.1.

    "piano": struck notes of slightly inharmonic, decaying partials; "plucked": Karplus-Strong strings;
    "marimba": struck bars, whose overtones are far apart; "violin": sustained notes with vibrato; "flute":
    sustained notes of few partials, with breath; "brass": notes that grow brighter as they grow louder;
    "organ": sustained chords; "bass": low notes; "drums": kick, snare and hi-hat, made of decaying sines and
    bursts of noise; "congas": membranes of three pitches; "speech": a pulse train through the formants of
    vowels, with fricative noise and pauses. `tempo` is in beats per minute, for instruments that play
    together; voices, violins, flutes and organs do not keep time.
    """
    if instrument not in _INSTRUMENTS:
        raise UnknownNameError.of("instrument", instrument, _INSTRUMENTS)
    if not seconds > 0 or not rate >= 4000 or (tempo is not None and not tempo > 0):
        raise InvalidParameterError(
            f"Expected seconds above 0, a rate of at least 4000 Hz and a tempo above 0, got "
            f"seconds={seconds!r}, rate={rate!r} and tempo={tempo!r}."
        )
    random = generator(rng)
    n_samples = max(round(seconds * rate), 1)
    sound = _INSTRUMENTS[instrument](n_samples, rate, random, tempo)
    size = np.sqrt(np.mean(np.square(sound)))
    return (0.1 * sound / (size if size > 0 else 1.0)).astype(dtype)


def _eighth(random: np.random.Generator, tempo: float | None) -> float:
    """Return the duration of an eighth note, in seconds; a tempo is drawn in any case."""
    drawn = random.uniform(85.0, 135.0)
    return 30.0 / (drawn if tempo is None else tempo)


def _onsets(
    n_samples: int, rate: int, random: np.random.Generator, share: float, tempo: float | None
) -> Iterator[int]:
    """Yield times of notes: a part of the eighths, the first among them."""
    eighth = _eighth(random, tempo)
    for at in range(int(n_samples / rate / eighth) + 1):
        if random.random() < share or at == 0:
            # Players are not exact to the millisecond.
            yield max(0, round((at * eighth + 0.005 * random.standard_normal()) * rate))


def _add(sound: FloatArray, begin: int, note: FloatArray) -> None:
    part = sound[begin : begin + len(note)]
    part += note[: len(part)]


def _pitches(lowest: float, random: np.random.Generator, n_octaves: int = 2) -> FloatArray:
    """Return frequencies of a few notes of a major scale on a random root."""
    root = lowest * 2 ** (random.integers(12) / 12)
    steps = [12 * octave + step for octave in range(n_octaves) for step in SCALE]
    chosen = random.choice(steps, size=min(6, len(steps)), replace=False)
    return root * 2.0 ** (np.sort(chosen) / 12)


def _chord(pitches: FloatArray, sizes: list[int], random: np.random.Generator) -> FloatArray:
    """Draw notes that sound together, as many as one of the sizes."""
    return random.choice(pitches, size=random.choice(sizes), replace=False)


def _piano(n_samples: int, rate: int, random: np.random.Generator, tempo: float | None) -> FloatArray:
    pitches, sound = _pitches(196.0, random), np.zeros(n_samples)
    time = np.arange(round(1.6 * rate)) / rate
    for begin in _onsets(n_samples, rate, random, 0.6, tempo):
        for pitch in _chord(pitches, [1, 1, 2, 3], random):
            note = np.zeros(len(time))
            for partial in range(1, 13):
                # Stiff strings: the partials are a little sharp.
                frequency = partial * pitch * np.sqrt(1 + 4e-4 * partial**2)
                if frequency < 0.45 * rate:
                    decay = 2.5 + 0.9 * partial
                    note += (
                        partial**-1.2
                        * np.exp(-decay * time)
                        * np.sin(2 * np.pi * frequency * time + random.uniform(0, 2 * np.pi))
                    )
            hammer = random.standard_normal(len(time)) * np.exp(-time * 150.0)
            _add(sound, begin, random.uniform(0.4, 1.0) * (1 - np.exp(-time * 400)) * (note + 0.1 * hammer))
    return sound


def _plucked(n_samples: int, rate: int, random: np.random.Generator, tempo: float | None) -> FloatArray:
    pitches, sound = _pitches(147.0, random), np.zeros(n_samples)
    for begin in _onsets(n_samples, rate, random, 0.7, tempo):
        period = round(rate / random.choice(pitches))
        burst = np.zeros(round(1.4 * rate))
        burst[:period] = random.uniform(-1.0, 1.0, period)
        burst[:period] -= burst[:period].mean()
        # Karplus and Strong: a delay line whose two last samples are averaged, with a little loss.
        loop = np.zeros(period + 2)
        loop[0], loop[-2:] = 1.0, -0.4985
        _add(sound, begin, random.uniform(0.5, 1.0) * lfilter([1.0], loop, burst))
    return sound


def _violin(n_samples: int, rate: int, random: np.random.Generator, tempo: float | None) -> FloatArray:
    pitches, sound, begin = _pitches(294.0, random), np.zeros(n_samples), 0
    while begin < n_samples:
        length = round(random.uniform(0.4, 1.1) * rate)
        time = np.arange(length) / rate
        depth, speed = random.uniform(0.003, 0.008), random.uniform(4.5, 6.5)
        pitch = random.choice(pitches) * (1 + depth * np.sin(2 * np.pi * speed * time))
        phase = 2 * np.pi * np.cumsum(pitch) / rate
        n_partials = min(14, int(0.45 * rate / pitch.max()))
        note = sum(
            partial**-1.1 * np.sin(partial * phase + random.uniform(0, 2 * np.pi))
            for partial in range(1, n_partials + 1)
        )
        swell = np.minimum(1.0, np.minimum(time, time[::-1]) / 0.06)
        _add(sound, begin, random.uniform(0.5, 1.0) * swell * note)
        begin += length + (round(random.uniform(0.1, 0.5) * rate) if random.random() < 0.3 else 0)
    return sound


def _flute(n_samples: int, rate: int, random: np.random.Generator, tempo: float | None) -> FloatArray:
    pitches, sound, begin = _pitches(523.0, random, 1), np.zeros(n_samples), 0
    while begin < n_samples:
        time = np.arange(round(random.uniform(0.25, 0.9) * rate)) / rate
        swell = np.minimum(1.0, np.minimum(time / 0.08, time[::-1] / 0.05))
        pitch = random.choice(pitches) * (1 + 0.003 * swell * np.sin(2 * np.pi * 5.0 * time))
        phase = 2 * np.pi * np.cumsum(pitch) / rate
        note = sum(size * np.sin(partial * phase) for partial, size in ((1, 1.0), (2, 0.3), (3, 0.12)))
        breath = [pitch[0] * 0.8, min(pitch[0] * 3.0, 0.45 * rate)]
        noise = sosfilt(
            butter(1, breath, "bandpass", fs=rate, output="sos"), random.standard_normal(len(time))
        )
        _add(sound, begin, random.uniform(0.6, 1.0) * swell * (note + 0.05 * noise))
        begin += len(time) + (round(random.uniform(0.1, 0.6) * rate) if random.random() < 0.3 else 0)
    return sound


def _brass(n_samples: int, rate: int, random: np.random.Generator, tempo: float | None) -> FloatArray:
    pitches, sound = _pitches(233.0, random, 1), np.zeros(n_samples)
    for begin in _onsets(n_samples, rate, random, 0.45, tempo):
        time = np.arange(round(random.uniform(0.2, 0.7) * rate)) / rate
        loudness = np.minimum(1.0, np.minimum(time / 0.05, time[::-1] / 0.08)) * (
            0.7 + 0.3 * np.exp(-time * 6)
        )
        pitch = random.choice(pitches)
        note = np.zeros(len(time))
        for partial in range(1, min(16, int(0.45 * rate / pitch)) + 1):
            # Upper partials come later and go first.
            sine = np.sin(2 * np.pi * partial * pitch * time + random.uniform(0, 2 * np.pi))
            note += partial**-0.8 * loudness ** (1 + 0.35 * partial) * sine
        _add(sound, begin, random.uniform(0.5, 1.0) * note)
    return sound


def _organ(n_samples: int, rate: int, random: np.random.Generator, tempo: float | None) -> FloatArray:
    pitches, sound, begin = _pitches(131.0, random), np.zeros(n_samples), 0
    # Pipes of 8, 4, 2 2/3, 2 and 1 1/3 feet.
    stops = [(1, 1.0), (2, 0.7), (3, 0.4), (4, 0.5), (6, 0.25), (8, 0.2)]
    while begin < n_samples:
        time = np.arange(round(random.uniform(0.6, 1.6) * rate)) / rate
        ends = np.minimum(1.0, np.minimum(time, time[::-1]) / 0.03)
        for pitch in _chord(pitches, [1, 2, 3], random):
            for multiple, size in stops:
                if multiple * pitch < 0.45 * rate:
                    phase = random.uniform(0, 2 * np.pi)
                    _add(sound, begin, size * ends * np.sin(2 * np.pi * multiple * pitch * time + phase))
        begin += len(time) - round(0.03 * rate)
    return sound


def _marimba(n_samples: int, rate: int, random: np.random.Generator, tempo: float | None) -> FloatArray:
    pitches, sound = _pitches(262.0, random), np.zeros(n_samples)
    time = np.arange(round(0.9 * rate)) / rate
    for begin in _onsets(n_samples, rate, random, 0.75, tempo):
        pitch, note = random.choice(pitches), np.zeros(len(time))
        # Bars are tuned to overtones of 1 : 3.9 : 9.2.
        for multiple, size, decay in ((1.0, 1.0, 6.0), (3.9, 0.35, 18.0), (9.2, 0.12, 45.0)):
            if multiple * pitch < 0.45 * rate:
                note += size * np.exp(-decay * time) * np.sin(2 * np.pi * multiple * pitch * time)
        knock = random.standard_normal(len(time)) * np.exp(-time * 250.0)
        _add(sound, begin, random.uniform(0.4, 1.0) * (note + 0.08 * knock))
    return sound


def _congas(n_samples: int, rate: int, random: np.random.Generator, tempo: float | None) -> FloatArray:
    sound, time = np.zeros(n_samples), np.arange(round(0.5 * rate)) / rate
    drums = random.uniform(170, 200) * np.array([1.0, 1.35, 1.9])
    for begin in _onsets(n_samples, rate, random, 0.8, tempo):
        pitch, slap = random.choice(drums), random.random() < 0.3
        # Modes of a round membrane.
        note = sum(
            size * np.exp(-decay * time) * np.sin(2 * np.pi * mode * pitch * time)
            for mode, size, decay in (
                (1.0, 1.0, 12.0),
                (1.59, 0.5, 20.0),
                (2.14, 0.35, 28.0),
                (2.65, 0.2, 35.0),
            )
        )
        hit = random.standard_normal(len(time)) * np.exp(-time * (60.0 if slap else 200.0))
        _add(sound, begin, random.uniform(0.4, 1.0) * ((0.4 if slap else 1.0) * note + 0.5 * hit))
    return sound


def _bass(n_samples: int, rate: int, random: np.random.Generator, tempo: float | None) -> FloatArray:
    pitches, sound = _pitches(41.2, random, 1), np.zeros(n_samples)
    begins = [*_onsets(n_samples, rate, random, 0.5, tempo), n_samples]
    for begin, end in pairwise(begins):
        time = np.arange(max(end - begin, 1)) / rate
        pitch, random_phase = random.choice(pitches), random.uniform(0, 2 * np.pi, 10)
        note = sum(
            partial**-1.3
            * np.exp(-(1.2 + 0.5 * partial) * time)
            * np.sin(2 * np.pi * partial * pitch * time + random_phase[partial - 1])
            for partial in range(1, 11)
        )
        # One string: a note ends when the next begins.
        ends = np.minimum(1.0, np.minimum(time / 0.004, time[::-1] / 0.01))
        _add(sound, begin, random.uniform(0.7, 1.0) * ends * note)
    return sound


def _drums(n_samples: int, rate: int, random: np.random.Generator, tempo: float | None) -> FloatArray:
    sound, time = np.zeros(n_samples), np.arange(round(0.4 * rate)) / rate
    eighth = _eighth(random, tempo)
    kick_pitch, snare_pitch = random.uniform(45, 60), random.uniform(170, 220)
    high = butter(4, min(6000.0, 0.35 * rate), "highpass", fs=rate, output="sos")
    band = butter(2, [800.0, 0.4 * rate], "bandpass", fs=rate, output="sos")
    for at in range(int(n_samples / rate / eighth) + 1):
        begin = max(0, round((at * eighth + 0.003 * random.standard_normal()) * rate))
        if at % 8 in (0, 4) or random.random() < 0.12:
            sweep = kick_pitch * (time + 0.05 * (1 - np.exp(-time * 40)))
            _add(sound, begin, 1.2 * np.exp(-time * 14) * np.sin(2 * np.pi * sweep))
        if at % 4 == 2 or random.random() < 0.06:
            noise = sosfilt(band, random.standard_normal(len(time)))
            tone = 0.6 * np.sin(2 * np.pi * snare_pitch * time) * np.exp(-time * 25)
            _add(sound, begin, 0.7 * (noise * np.exp(-time * 18) + tone))
        if random.random() < 0.85:
            noise = sosfilt(high, random.standard_normal(len(time)))
            _add(sound, begin, random.uniform(0.3, 0.6) * noise * np.exp(-time * random.choice([60, 12])))
    return sound


def _speech(n_samples: int, rate: int, random: np.random.Generator, tempo: float | None) -> FloatArray:
    sound, begin, pitch = np.zeros(n_samples), 0, random.uniform(95.0, 210.0)
    size = pitch / 130.0
    while begin < n_samples:
        length = round(random.uniform(0.09, 0.28) * rate)
        if random.random() < 0.15:  # a pause
            begin += length
            continue
        time = np.arange(length) / rate
        shape = np.minimum(1.0, np.minimum(time, time[::-1]) / 0.02)
        if random.random() < 0.25:  # a fricative
            low = min(random.uniform(2000, 4000), 0.3 * rate)
            band = butter(2, [low, 0.45 * rate], "bandpass", fs=rate, output="sos")
            _add(sound, begin, 0.25 * shape * sosfilt(band, random.standard_normal(length)))
        else:
            glide = pitch * (
                1 + random.uniform(-0.15, 0.15) + random.uniform(-0.4, 0.4) * (time - time[-1] / 2)
            )
            phase = np.cumsum(glide) / rate
            pulses = np.diff(np.floor(phase), prepend=0.0) - glide / rate
            voiced = lfilter([1.0], [1.0, -0.95], pulses)
            # Women have shorter vocal tracts: higher formants, though less so than pitches.
            factor = 1 + 0.3 * (size - 1)
            for formant, width in zip(VOWELS[random.integers(len(VOWELS))], FORMANT_WIDTHS, strict=True):
                frequency = min(factor * formant, 0.45 * rate)
                radius = np.exp(-np.pi * width / rate)
                angle = 2 * np.pi * frequency / rate
                poles = [1.0, -2 * radius * np.cos(angle), radius**2]
                voiced = lfilter([sum(poles)], poles, voiced)
            peak = np.abs(voiced).max()
            _add(sound, begin, random.uniform(0.6, 1.0) * shape * voiced / (peak if peak > 0 else 1.0))
        begin += length - round(0.01 * rate)
    return sound


_INSTRUMENTS: dict[str, Callable[[int, int, np.random.Generator, float | None], FloatArray]] = {
    "piano": _piano,
    "plucked": _plucked,
    "marimba": _marimba,
    "violin": _violin,
    "flute": _flute,
    "brass": _brass,
    "organ": _organ,
    "bass": _bass,
    "drums": _drums,
    "congas": _congas,
    "speech": _speech,
}
