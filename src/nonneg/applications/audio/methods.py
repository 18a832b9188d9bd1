"""The methods of `SourceSeparation`: spectrograms by the STFT, or by orthogonal transforms of frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nonneg._registry import Entry, Registry
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.applications.audio.frames import STFT, Framing
from nonneg.applications.audio.recordings import Recordings, check_sound, checked_recordings
from nonneg.applications.audio.sources import checked_names, default_names
from nonneg.applications.audio.spectrogram import (
    COMPONENTS_PER_SOURCE,
    encode_spectrogram,
    fit_spectrogram,
    magnitudes,
    spectrogram_framing,
)
from nonneg.estimators import NMF, TransformNMF
from nonneg.estimators.saving import Part, StoredArray, Value
from nonneg.exceptions import InvalidParameterError
from nonneg.transforms.options import METHODS as TRANSFORM_METHODS

_HERE = "nonneg.applications.audio.methods"
METHODS = Registry(
    "method",
    {
        "stft": Entry(
            f"{_HERE}:fit_stft",
            "NMF of a magnitude spectrogram (short-time Fourier transform, Kullback-Leibler)",
            options=frozenset({"continuity", "mask_exponent"}),
        ),
        "transform": Entry(
            f"{_HERE}:fit_frames",
            "a learned transform or a cosine transform, chosen on held-out frames",
            options=TRANSFORM_METHODS["tl"].options,
        ),
    }
    | {
        name: Entry(f"{_HERE}:fit_frames", entry.summary, options=entry.options)
        for name, entry in TRANSFORM_METHODS.items()
    },
)
"""The methods of `SourceSeparation`; their options are those of `method_params`."""

# The spectrogram is modeled as a sum of magnitudes; the masks are ratios of their squares, powers. Smooth
# activations count as much as the divergence of one component.
CONTINUITY, MASK_EXPONENT = 1.0, 2.0
# The iterations of both kinds, where users leave them out.
SPECTROGRAM_SEARCH = {"init": "random", "n_init": 1, "max_iter": 200, "tol": 1e-4}
FRAME_SEARCH = {"init": "dct", "n_init": 3, "max_iter": 100, "tol": 1e-7}
# Templates of a source with training recordings: more than a mixture has of each.
TEMPLATES_PER_SOURCE = 40
FRAME_LENGTH, FRAME_WINDOW = 512, ("tukey", 0.1)
# Parameters that only frames have, and what they are when left out.
ONLY_FRAMES = {"eps0": "auto", "average_frames": 1}

FRAMING = Part(
    {
        kind: {
            "frame_length": Value(int),
            "hop": Value(int, source="step"),
            "window": StoredArray("frame_length", source="weights"),
        }
        for kind in (Framing, STFT)
    }
)
"""How a saved model stores the transform of its signals."""

Fit = tuple[Any, Any, FloatArray]
"""Framing, model and activations."""


def fit_stft(given: Any, recordings: Recordings, n_components: int | None, rate: float | None) -> Fit:
    """Factorize a spectrogram."""
    framing = spectrogram_framing(recordings, given.frame_length, given.hop, given.window, rate)
    k = COMPONENTS_PER_SOURCE * given.n_sources if n_components is None else n_components
    return framing, *_fit_in(framing, given, recordings, k, "stft")


def fit_solos(
    given: Any, framing: Any, solos: Mapping[str, Recordings], n_components: int
) -> list[tuple[FloatArray, FloatArray]]:
    """Return activations and components of the solo recordings of every source."""
    if given.method != "stft":
        raise InvalidParameterError(f"Training recordings need method='stft', got {given.method!r}.")
    factors = []
    for at, (name, solo) in enumerate(solos.items()):
        check_sound(solo, framing.frame_length, f"training recording of {name!r}")
        model, activations = _fit_in(framing, given, solo, n_components, f"training-{at}")
        factors.append((activations, model.components_))
    return factors


def fit_templates(
    given: Any, framing: Any, recordings: Recordings, solos: Mapping[str, Recordings]
) -> tuple[NMF, FloatArray, IntArray]:
    """Return a supervised NMF: templates learned from the solos, which stay as they are.

    Smaragdis, Raj & Shashanka (2007), Supervised and semi-supervised separation of sounds from single-channel
    mixtures. Returned are the model, its activations and the source of each template.
    """
    search = search_of(given, SPECTROGRAM_SEARCH) | {"init": None, "checkpoint": None}
    V, *heard = (magnitudes(coefficients(framing, None, one)) for one in (recordings, *solos.values()))
    k = TEMPLATES_PER_SOURCE if given.n_components is None else given.n_components // len(solos)
    templates = [
        # No more than there are frames to learn from.
        NMF(min(k, len(solo)), beta_loss="kullback-leibler", **search).fit(solo).components_
        for solo in heard
    ]
    H = np.concatenate(templates).astype(V.dtype)
    model = NMF(len(H), beta_loss="kullback-leibler", **search | {"n_init": 1})
    model.fit(V, H=H, frozen_components=range(len(H)))
    return model, model.transform(V), np.repeat(np.arange(len(solos)), [len(part) for part in templates])


def _fit_in(framing: STFT, given: Any, recordings: Recordings, k: int, name: str) -> tuple[NMF, FloatArray]:
    for only, default in ONLY_FRAMES.items():
        if getattr(given, only) != default:
            raise InvalidParameterError(
                f"method={given.method!r} does not accept {only}; 'transform', 'tl', 'jd' and 'dct' do."
            )
    check_sound(recordings, framing.frame_length)
    search = search_of(given, SPECTROGRAM_SEARCH)
    if search["init"] != "random":
        raise InvalidParameterError(
            f"method='stft' begins with init='random', got {given.init!r}; the learned transforms accept "
            "further initializations."
        )
    V = magnitudes(coefficients(framing, None, recordings))
    return fit_spectrogram(V, k, continuity(given), search, name=name)


def checked_training(training: Any) -> dict[str, Recordings]:
    """Return the solo recordings of each source, by its name."""
    if training is None:
        return {}
    if isinstance(training, Mapping):
        solos = dict(training)
    elif isinstance(training, Sequence) and len(training) > 0 and np.ndim(training[0]) > 0:
        solos = dict(zip(default_names(len(training)), training, strict=True))
    else:
        raise InvalidParameterError(
            "training: expected solo recordings by the names of their sources, such as {'drums': signal, "
            f"'bass': signal}}, or a list of signals, got {type(training).__name__}."
        )
    if not solos:
        raise InvalidParameterError("training contains no recordings. Give one per source, or leave it out.")
    checked_names(list(solos), "training")
    several = {
        name: isinstance(signal, Sequence) and len(signal) > 0 and np.ndim(signal[0]) > 0
        for name, signal in solos.items()
    }
    return {
        name: checked_recordings(signal, "consecutive" if several[name] else "aligned")
        for name, signal in solos.items()
    }


def fit_frames(given: Any, recordings: Recordings, n_components: int | None, rate: float | None) -> Fit:
    """Factorize the coefficients of frames in an orthogonal transform."""
    length = FRAME_LENGTH if given.frame_length is None else given.frame_length
    framing = Framing(length, given.hop, FRAME_WINDOW if given.window is None else given.window)
    check_sound(recordings, framing.frame_length)
    model = TransformNMF(
        given.n_sources if n_components is None else n_components,
        method="auto" if given.method == "transform" else given.method,
        eps0=given.eps0,
        average_frames=given.average_frames,
        method_params=given.method_params,
        **search_of(given, FRAME_SEARCH),
    ).fit(_all_frames(framing, recordings))
    return framing, model, model.activations_


def continuity(given: Any) -> float:
    """Return the weight of smooth activations."""
    return float(_param(given, "continuity", CONTINUITY, least=0.0))


def mask_exponent(framing: Any, given: Any) -> float:
    """Return the power of the modeled parts whose ratios are the masks."""
    if not isinstance(framing, STFT):
        return 1.0
    return float(_param(given, "mask_exponent", MASK_EXPONENT, least=float(np.finfo(float).tiny)))


def _param(given: Any, name: str, default: float, *, least: float) -> float:
    METHODS.check_options("stft", given.method_params or {})
    value = (given.method_params or {}).get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < np.inf:
        bound = "nonnegative number" if least == 0 else "number above 0"
        raise InvalidParameterError(f"{name} must be a {bound}, such as 1 or 2, got {value!r}.")
    return value


def coefficients(framing: Any, model: Any, recordings: Recordings) -> list[Array]:
    """Return the coefficients of every part, (n_recordings, n_frames, n_bins)."""
    if isinstance(framing, STFT):
        return [framing.analyze(part) for part in recordings.parts]
    return [model.analyze(framing.split(part)) for part in recordings.parts]


def encoded(framing: Any, model: Any, recordings: Recordings, given: Any, supervised: bool) -> FloatArray:
    """Return the activations of recordings, of all parts one after the other."""
    if not isinstance(framing, STFT):
        return model.transform(_all_frames(framing, recordings))
    V = magnitudes(coefficients(framing, None, recordings))
    if supervised:
        return model.transform(V)
    return encode_spectrogram(V, model.components_, continuity(given), search_of(given, SPECTROGRAM_SEARCH))


def divergence(framing: Any, recordings: Recordings, W: FloatArray, H: FloatArray) -> float:
    """Return the Kullback-Leibler divergence of a spectrogram from a model, over the sum of magnitudes."""
    V = magnitudes(coefficients(framing, None, recordings)).astype(np.float64)
    tiny = np.finfo(float).tiny
    model = W @ H + tiny
    logs = V * np.log(np.maximum(V, tiny) / model)
    return float(np.sum(logs - V + model) / V.sum())


def synthesized(framing: Any, model: Any, coefficients: Array, n_samples: int) -> FloatArray:
    """Return the signals of coefficients."""
    if isinstance(framing, STFT):
        return framing.synthesize(coefficients, n_samples)
    return framing.join(model.synthesize(coefficients), n_samples)


def bin_frequencies(framing: Any, model: NMF | TransformNMF, rate: float | None) -> FloatArray:
    """Return the frequency of each bin or atom, in hertz, or in samples per second without a rate."""
    if isinstance(framing, STFT):
        shares = np.arange(framing.n_bins) / framing.frame_length
    else:
        atoms = np.asarray(model.transform_, dtype=np.float64)
        power = np.square(np.abs(np.fft.rfft(atoms, axis=1)))
        shares = power @ np.fft.rfftfreq(atoms.shape[1]) / power.sum(axis=1)
    return shares * (1.0 if rate is None else float(rate))


def _all_frames(framing: Any, recordings: Recordings) -> FloatArray:
    frames = [framing.split(part) for part in recordings.parts]
    return frames[0] if len(frames) == 1 else np.concatenate(frames, axis=1)


def search_of(given: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return how to search: what the user said, and the method's defaults for the rest."""
    options = {
        name: default if getattr(given, name) is None else getattr(given, name)
        for name, default in defaults.items()
    }
    same = ("random_state", "verbose", "n_jobs", "callback", "checkpoint")
    return options | {name: getattr(given, name) for name in same}
