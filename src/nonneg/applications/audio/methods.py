"""The methods of `SourceSeparation`: spectrograms by the STFT, or by orthogonal transforms of frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.fft
from scipy.special import kl_div

from nonneg._arguments import checked_nonnegative
from nonneg._registry import Entry, Registry
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.applications.audio.frames import Framing
from nonneg.applications.audio.sources import check_sound
from nonneg.applications.audio.spectrogram import (
    encode_spectrogram,
    fit_spectrogram,
    spectrogram,
    spectrogram_framing,
)
from nonneg.estimators.nmf import NMF
from nonneg.estimators.saving import StoredArray
from nonneg.estimators.transform_nmf import TransformNMF
from nonneg.exceptions import InvalidParameterError
from nonneg.solvers.factorize import factorize
from nonneg.transforms.options import METHODS as TRANSFORM_METHODS

_HERE = "nonneg.applications.audio.methods"
METHODS = Registry(
    "method",
    {
        "stft": Entry(
            f"{_HERE}:fit_stft",
            "NMF of a magnitude spectrogram (short-time Fourier transform, Kullback-Leibler)",
            options=frozenset({"continuity"}),
        ),
        "transform": Entry(
            f"{_HERE}:fit_frames",
            "a learned transform or a cosine transform, chosen on held-out frames",
            options=TRANSFORM_METHODS["tl"].options,
        ),
        **{
            name: Entry(f"{_HERE}:fit_frames", entry.summary, options=entry.options)
            for name, entry in TRANSFORM_METHODS.items()
        },
    },
)
"""The methods of `SourceSeparation`; their options are those of `method_params`."""

# Two sources have the 16 components of librosa's example of `librosa.decompose.decompose`.
COMPONENTS_PER_SOURCE = 8
# Smooth activations count as much as the divergence of one component.
CONTINUITY = 1.0
# The iterations of both kinds, where users leave them out.
SPECTROGRAM_SEARCH = {"init": "random", "n_init": 1, "max_iter": 200, "tol": 1e-4}
FRAME_SEARCH = {"init": "dct", "n_init": 3, "max_iter": 100, "tol": 1e-7}
# Templates of a source with training recordings: more than a mixture has of each.
TEMPLATES_PER_SOURCE = 40
FRAME_LENGTH, FRAME_WINDOW = 512, ("tukey", 0.1)

FRAMING = {
    Framing: {
        "frame_length": int,
        "hop": int,
        "window": StoredArray("frame_length", source="weights"),
        "centered": bool,
    }
}
"""Stored form of the transform of the signals in a saved model."""

# In all functions, `separation` is the `SourceSeparation` whose parameters count.


def fit_stft(
    separation: Any, recordings: FloatArray, n_sources: int, rate: float | None
) -> tuple[Framing, NMF, FloatArray]:
    """Factorize a spectrogram; return framing, model and activations."""
    if separation.init is not None and str(separation.init) != "random":
        raise InvalidParameterError(
            f"method='stft' begins with init='random', got {separation.init!r}; the learned transforms "
            "accept further initializations."
        )
    framing = spectrogram_framing(recordings, separation.frame_length, separation.window, rate)
    k = separation.n_components or COMPONENTS_PER_SOURCE * n_sources
    check_sound(recordings, framing.frame_length)
    return framing, *_fit_spectrogram(separation, spectrogram(framing, [recordings]), k, "stft")


def fit_frames(
    separation: Any, recordings: FloatArray, n_sources: int, rate: float | None
) -> tuple[Framing, TransformNMF, FloatArray]:
    """Factorize the coefficients of frames in an orthogonal transform; return framing, model, activations."""
    length = FRAME_LENGTH if separation.frame_length is None else separation.frame_length
    window = FRAME_WINDOW if separation.window is None else separation.window
    framing = Framing(length, window=window)
    check_sound(recordings, framing.frame_length)
    model = TransformNMF(
        separation.n_components or n_sources,
        method="auto" if separation.method == "transform" else separation.method,
        method_params=separation.method_params,
        **_search(separation, FRAME_SEARCH),
    ).fit(framing.split(recordings))
    return framing, model, model.activations_


def fit_solos(
    separation: Any, framing: Any, solos: Mapping[str, list[FloatArray]], n_components: int
) -> list[tuple[FloatArray, FloatArray]]:
    """Return activations and components of the solo recordings of every source."""
    if separation.method != "stft":
        raise InvalidParameterError(f"Training recordings need method='stft', got {separation.method!r}.")
    factors = []
    for at, (name, solo) in enumerate(solos.items()):
        for one in solo:
            check_sound(one, framing.frame_length, f"training recording of {name!r}")
        V = spectrogram(framing, solo)
        model, W = _fit_spectrogram(separation, V, n_components, f"training-{at}")
        factors.append((W, model.components_))
    return factors


def fit_templates(
    separation: Any, framing: Any, recordings: FloatArray, solos: Mapping[str, list[FloatArray]]
) -> tuple[NMF, FloatArray, IntArray]:
    """Return a supervised NMF: templates learned from the solos, which stay as they are.

    Smaragdis, Raj & Shashanka (2007), Supervised and semi-supervised separation of sounds from single-channel
    mixtures. Returned are the model, its activations and the source of each template.
    """
    search = _search(separation, SPECTROGRAM_SEARCH) | {"init": None, "checkpoint": None}
    V, *heard = (spectrogram(framing, one) for one in ([recordings], *solos.values()))
    n_components = separation.n_components
    k = TEMPLATES_PER_SOURCE if n_components is None else n_components // len(solos)
    # No more than there are frames to learn from. A dictionary need not be stationary: nothing warns of it.
    options = {"rng" if name == "random_state" else name: value for name, value in search.items()}
    templates = [
        factorize(solo, min(k, len(solo)), beta_loss="kullback-leibler", **options).H for solo in heard
    ]
    H = np.concatenate(templates).astype(V.dtype)
    model = NMF(len(H), beta_loss="kullback-leibler", **search | {"n_init": 1})
    model.fit(V, H=H, frozen_components=range(len(H)))
    return model, model.transform(V), np.repeat(np.arange(len(solos)), [len(part) for part in templates])


def encoded(
    separation: Any, framing: Any, model: Any, recordings: FloatArray, supervised: bool
) -> FloatArray:
    """Return the activations of recordings, of all parts one after the other."""
    if isinstance(model, TransformNMF):
        return model.transform(framing.split(recordings))
    V = spectrogram(framing, [recordings])
    if supervised:
        return model.transform(V)
    search = _search(separation, SPECTROGRAM_SEARCH)
    return encode_spectrogram(V, model.components_, _continuity(separation), search)


def divergence(framing: Any, recordings: FloatArray, W: FloatArray, H: FloatArray) -> float:
    """Return the Kullback-Leibler divergence of a spectrogram from a model, over the sum of magnitudes."""
    V = spectrogram(framing, [recordings]).astype(np.float64)
    return float(kl_div(V, W @ H + np.finfo(float).tiny).sum() / V.sum())


def coefficients(framing: Framing, model: NMF | TransformNMF, recordings: FloatArray) -> Array:
    """Return the coefficients of recordings, (n_recordings, n_frames, n_bins)."""
    frames = framing.split(recordings)
    return model.analyze(frames) if isinstance(model, TransformNMF) else scipy.fft.rfft(frames)


def synthesized(
    framing: Framing, model: NMF | TransformNMF, coefficients: Array, n_samples: int
) -> FloatArray:
    """Return the signals of coefficients."""
    if isinstance(model, TransformNMF):
        return framing.join(model.synthesize(coefficients), n_samples)
    return framing.join(scipy.fft.irfft(coefficients, n=framing.frame_length), n_samples)


def bin_frequencies(framing: Framing, model: NMF | TransformNMF, rate: float) -> FloatArray:
    """Return the frequency of each bin or atom in hertz."""
    if isinstance(model, NMF):
        return scipy.fft.rfftfreq(framing.frame_length, 1.0 / float(rate))
    atoms = np.asarray(model.transform_, dtype=np.float64)
    power = np.square(np.abs(np.fft.rfft(atoms, axis=1)))
    return power @ np.fft.rfftfreq(atoms.shape[1]) / power.sum(axis=1) * float(rate)


def _fit_spectrogram(separation: Any, V: FloatArray, k: int, name: str) -> tuple[NMF, FloatArray]:
    return fit_spectrogram(V, k, _continuity(separation), _search(separation, SPECTROGRAM_SEARCH), name=name)


def _continuity(separation: Any) -> float:
    return checked_nonnegative("continuity", (separation.method_params or {}).get("continuity", CONTINUITY))


def _search(separation: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return how to search: what the user said, and the method's defaults for the rest."""
    options = {
        name: default if getattr(separation, name) is None else getattr(separation, name)
        for name, default in defaults.items()
    }
    same = ("random_state", "verbose", "n_jobs", "callback", "checkpoint")
    return options | {name: getattr(separation, name) for name in same}
