"""The methods of `SourceSeparation`: spectrograms by the STFT, or by orthogonal transforms of frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nonneg._registry import Entry, Registry
from nonneg._typing import Array, FloatArray
from nonneg.applications.audio.constant_q import ConstantQ
from nonneg.applications.audio.frames import Framing
from nonneg.applications.audio.lapped import LappedFraming
from nonneg.applications.audio.recordings import Recordings, check_sound
from nonneg.applications.audio.spectrogram import (
    concentrated_framing,
    fit_spectrogram,
    is_simple,
    low_framing,
    magnitudes,
    spectrogram_framing,
)
from nonneg.applications.audio.stft import STFT
from nonneg.estimators import NMF, TransformNMF
from nonneg.exceptions import InvalidParameterError
from nonneg.transforms.options import METHODS as TRANSFORM_METHODS

_HERE = "nonneg.applications.audio.methods"
METHODS = Registry(
    "method",
    {
        "stft": Entry(
            f"{_HERE}:fit_stft",
            "NMF of a magnitude spectrogram (short-time Fourier transform, Kullback-Leibler)",
            options=frozenset({"beta_loss", "continuity", "exponent", "mask_exponent", "solver"}),
        ),
        "cqt": Entry(
            f"{_HERE}:fit_stft",
            "NMF of a constant-Q spectrogram, whose bands are half a semitone wide",
            options=frozenset({"beta_loss", "continuity", "exponent", "mask_exponent", "solver"}),
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

# How much smooth activations count, beside a divergence that is divided by the mass of a component per frame:
# chosen as the constants of `spectrogram`.
CONTINUITY = 0.3
# The spectrogram is modeled as a sum of magnitudes; the masks are ratios of their squares, powers.
SPECTROGRAM_PARAMS: dict[str, Any] = {
    "beta_loss": "kullback-leibler",
    "continuity": None,
    "exponent": 1.0,
    "mask_exponent": 2.0,
    "solver": "auto",
}
# The iterations of both kinds, where users leave them out.
SPECTROGRAM_SEARCH = {"init": "random", "n_init": 1, "max_iter": 200, "tol": 1e-4}
FRAME_SEARCH = {"init": "dct", "n_init": 3, "max_iter": 100, "tol": 1e-7}
FRAME_LENGTH, FRAME_WINDOW = 512, ("tukey", 0.1)
# Parameters that only frames have, and what they are when left out.
ONLY_FRAMES = {"lapped": False, "eps0": "auto", "average_frames": 1}

SPECTROGRAMS = (STFT, ConstantQ)
"""Transforms with a spectrogram of their own, where the others are learned with the model."""

Fit = tuple[Any, Any, FloatArray]
"""Framing, model and activations."""


def fit_stft(given: Any, recordings: Recordings, n_components: int | None, rate: float | None) -> Fit:
    """Factorize a spectrogram."""
    for name, default in ONLY_FRAMES.items():
        if getattr(given, name) != default:
            raise InvalidParameterError(
                f"method={given.method!r} does not accept {name}; 'transform', 'tl', 'jd' and 'dct' do."
            )
    params = spectrogram_params(given.method_params)
    loss = {name: params[name] for name in ("beta_loss", "solver")}
    search = search_of(given, SPECTROGRAM_SEARCH)
    framing = _spectrogram_transform(given, recordings, rate)
    check_sound(recordings, framing.frame_length)
    pool = isinstance(framing, STFT)  # the constant-Q transform has bands
    percussive = isinstance(given.grouping, str) and given.grouping == "harmonic-percussive"
    if n_components in (None, given.n_sources) and not percussive:
        longer = framing
        if isinstance(framing, STFT) and given.frame_length is None and given.hop is None:
            longer = concentrated_framing(recordings, framing)
        V = magnitudes(coefficients(longer, None, recordings), params["exponent"])
        if n_components is not None or is_simple(V, given.n_sources, pool, **loss, **search):
            return longer, *fit_spectrogram(
                V, given.n_sources, given.n_sources, pool=pool, checkpoint=given.checkpoint, **loss, **search
            )
    V = magnitudes(coefficients(framing, None, recordings), params["exponent"])
    if isinstance(framing, STFT) and given.frame_length is None and given.hop is None:
        deep = low_framing(V, framing, recordings, rate)
        if deep is not framing:
            framing, V = deep, magnitudes(coefficients(deep, None, recordings), params["exponent"])
    model, activations = fit_spectrogram(
        V,
        given.n_sources,
        n_components,
        pool=pool,
        continuity=params["continuity"],
        percussive=percussive,
        checkpoint=given.checkpoint,
        **loss,
        **search,
    )
    return framing, model, activations


def _spectrogram_transform(given: Any, recordings: Recordings, rate: float | None) -> STFT | ConstantQ:
    if given.method == "stft":
        return spectrogram_framing(recordings, given.frame_length, given.hop, given.window, rate)
    for name in ("frame_length", "window"):
        if getattr(given, name) is not None:
            raise InvalidParameterError(f"method='cqt' does not accept {name}; 'stft' does.")
    return ConstantQ(22050 if rate is None else rate, hop=given.hop)  # librosa's default rate


def fit_frames(given: Any, recordings: Recordings, n_components: int | None, rate: float | None) -> Fit:
    """Factorize the coefficients of frames in an orthogonal transform."""
    length = FRAME_LENGTH if given.frame_length is None else given.frame_length
    framing: Any
    if given.lapped:
        if given.hop is not None:
            raise InvalidParameterError("lapped=True does not accept hop, which equals frame_length.")
        framing = LappedFraming(length, "sine" if given.window is None else given.window)
    else:
        framing = Framing(length, given.hop, FRAME_WINDOW if given.window is None else given.window)
    check_sound(recordings, framing.frame_length)
    search = search_of(given, FRAME_SEARCH)
    reference = "dct-iv" if given.lapped else "dct"
    if isinstance(search["init"], str) and search["init"] == "dct":
        search["init"] = reference
    model = TransformNMF(
        given.n_sources if n_components is None else n_components,
        method="auto" if given.method == "transform" else given.method,
        reference=reference,
        eps0=given.eps0,
        average_frames=given.average_frames,
        method_params=given.method_params,
        checkpoint=given.checkpoint,
        **search,
    ).fit(_all_frames(framing, recordings))
    return framing, model, model.activations_


def spectrogram_params(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Check `method_params` of the STFT and complete them."""
    METHODS.check_options("stft", given or {})
    params = SPECTROGRAM_PARAMS | dict(given or {})
    for name in ("exponent", "mask_exponent"):
        value = params[name]
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 10:
            raise InvalidParameterError(f"{name} must be a number above 0, such as 1 or 2, got {value!r}.")
    plain = params["beta_loss"] not in ("kullback-leibler", 1) or params["solver"] != "auto"
    weight = params["continuity"]
    if weight is None:
        weight = params["continuity"] = 0.0 if plain else CONTINUITY
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 <= weight < np.inf:
        raise InvalidParameterError(f"continuity must be a nonnegative number, such as 0.3, got {weight!r}.")
    if weight > 0 and plain:
        raise InvalidParameterError(
            "continuity needs beta_loss='kullback-leibler' and solver='auto'. Leave the other out, or pass "
            "continuity=0."
        )
    return params


def coefficients(framing: Any, model: Any, recordings: Recordings) -> list[Array]:
    """Return the coefficients of every part, (n_recordings, n_frames, n_bins)."""
    if isinstance(framing, SPECTROGRAMS):
        return [framing.analyze(part) for part in recordings.parts]
    return [model.analyze(framing.split(part)) for part in recordings.parts]


def spectrogram(framing: Any, recordings: Recordings, given: Any) -> FloatArray:
    """Return the magnitudes that are factorized."""
    exponent = spectrogram_params(given.method_params)["exponent"]
    return magnitudes(coefficients(framing, None, recordings), exponent)


def encoded(framing: Any, model: Any, recordings: Recordings, given: Any) -> FloatArray:
    """Return the activations of recordings, of all parts one after the other."""
    if isinstance(framing, SPECTROGRAMS):
        return model.transform(spectrogram(framing, recordings, given))
    return model.transform(_all_frames(framing, recordings))


def synthesized(framing: Any, model: Any, coefficients: Array, n_samples: int) -> FloatArray:
    """Return the signals of coefficients."""
    if isinstance(framing, SPECTROGRAMS):
        return framing.synthesize(coefficients, n_samples)
    return framing.join(model.synthesize(coefficients), n_samples)


def mask_exponent(framing: Any, given: Any) -> float:
    """Return the power of the modeled parts whose ratios are the masks."""
    if not isinstance(framing, SPECTROGRAMS):
        return 1.0
    return float(spectrogram_params(given.method_params)["mask_exponent"])


def bin_frequencies(framing: Any, model: NMF | TransformNMF, rate: float | None) -> FloatArray:
    """Return the frequency of each bin or atom, in hertz, or in samples per second without a rate."""
    if isinstance(framing, ConstantQ):
        return framing.frequencies
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
    found = {
        name: default if getattr(given, name) is None else getattr(given, name)
        for name, default in defaults.items()
    }
    same = ("random_state", "verbose", "n_jobs", "callback")
    return found | {name: getattr(given, name) for name in same}
