"""The methods of `SourceSeparation`: spectrograms by the STFT, or by orthogonal transforms of frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nonneg._registry import Entry, Registry
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.applications.audio.frames import Framing
from nonneg.applications.audio.recordings import Recordings, check_sound, checked_recordings
from nonneg.applications.audio.sources import checked_names, default_names
from nonneg.applications.audio.spectrogram import (
    COMPONENTS_PER_SOURCE,
    encode_spectrogram,
    fit_spectrogram,
    magnitudes,
    spectrogram_framing,
)
from nonneg.applications.audio.stft import STFT
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
            options=frozenset({"beta_loss", "continuity", "exponent", "mask_exponent"}),
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
SPECTROGRAM_PARAMS: dict[str, Any] = {
    "beta_loss": "kullback-leibler",
    "continuity": None,
    "exponent": 1.0,
    "mask_exponent": 2.0,
}
CONTINUITY = 1.0
# Templates of a source with training recordings: more than a mixture has of each.
TEMPLATES_PER_SOURCE = 40
# The iterations of both kinds, where users leave them out.
SPECTROGRAM_SEARCH = {"init": "random", "n_init": 1, "max_iter": 200, "tol": 1e-4}
FRAME_SEARCH = {"init": "dct", "n_init": 3, "max_iter": 100, "tol": 1e-7}
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
    framing, V, params, search = _prepared(given, recordings, rate)
    k = COMPONENTS_PER_SOURCE * given.n_sources if n_components is None else n_components
    if _is_kullback_leibler(params):
        return framing, *fit_spectrogram(V, k, params["continuity"], search)
    model = NMF(k, beta_loss=params["beta_loss"], **search)
    return framing, model, model.fit_transform(V)


def _prepared(
    given: Any, recordings: Recordings, rate: float | None
) -> tuple[STFT, FloatArray, dict[str, Any], dict[str, Any]]:
    """Return the transform, the spectrogram, the parameters of the model and those of the search."""
    for name, default in ONLY_FRAMES.items():
        if getattr(given, name) != default:
            raise InvalidParameterError(
                f"method={given.method!r} does not accept {name}; 'transform', 'tl', 'jd' and 'dct' do."
            )
    params = spectrogram_params(given.method_params)
    framing = spectrogram_framing(recordings, given.frame_length, given.hop, given.window, rate)
    check_sound(recordings, framing.frame_length)
    search = search_of(given, SPECTROGRAM_SEARCH)
    if _is_kullback_leibler(params) and search["init"] != "random":
        raise InvalidParameterError(
            f"method='stft' begins with init='random', got {given.init!r}; the learned transforms and other "
            "losses (beta_loss in method_params) accept further initializations."
        )
    return framing, spectrogram(framing, recordings, given), params, search


def fit_trained(
    given: Any, recordings: Recordings, solos: Mapping[str, Recordings], rate: float | None
) -> tuple[Any, NMF, FloatArray, IntArray]:
    """Return framing, model, activations and the source of each component, -1 where it is not known.

    Smaragdis, Raj & Shashanka (2007), Supervised and semi-supervised separation of sounds from single-channel
    mixtures: templates are learned from the solo recordings and stay as they are; further components are
    learned from the recording.
    """
    if given.method != "stft":
        raise InvalidParameterError(f"Training recordings need method='stft', got {given.method!r}.")
    framing, V, params, search = _prepared(given, recordings, rate)
    if not _is_kullback_leibler(params):
        raise InvalidParameterError(
            "Training recordings need beta_loss='kullback-leibler', the default, got "
            f"{params['beta_loss']!r}."
        )
    n_each, n_free = _numbers(given, len(solos))
    templates: list[FloatArray] = []
    for name, solo in solos.items():
        check_sound(solo, framing.frame_length, f"training recording of {name!r}")
        heard = spectrogram(framing, solo, given).astype(V.dtype)
        # No more than there are frames to learn from.
        model, _ = fit_spectrogram(
            heard, min(n_each, len(heard)), params["continuity"], search, name=f"training-{len(templates)}"
        )
        templates.append(model.components_)
    labels = np.repeat(np.arange(len(solos)), [len(part) for part in templates])
    labels = np.concatenate([labels, np.full(n_free, -1)])
    model, activations = fit_spectrogram(
        V, len(labels), params["continuity"], search, fixed=np.concatenate(templates)
    )
    return framing, model, activations, labels


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


def _numbers(given: Any, n_trained: int) -> tuple[int, int]:
    """Return the number of templates per trained source, and of free components in total."""
    n_more = given.n_sources - n_trained
    if given.n_components is None:
        return TEMPLATES_PER_SOURCE, COMPONENTS_PER_SOURCE * n_more
    n_each = given.n_components // given.n_sources
    return n_each, given.n_components - n_each * n_trained if n_more else 0


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


def _is_kullback_leibler(params: Mapping[str, Any]) -> bool:
    return params["beta_loss"] in ("kullback-leibler", 1)


def spectrogram_params(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Check `method_params` of the STFT and complete them."""
    METHODS.check_options("stft", given or {})
    params = SPECTROGRAM_PARAMS | dict(given or {})
    for name in ("exponent", "mask_exponent"):
        value = params[name]
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 10:
            raise InvalidParameterError(f"{name} must be a number above 0, such as 1 or 2, got {value!r}.")
    weight = params["continuity"]
    if weight is None:
        weight = params["continuity"] = CONTINUITY if _is_kullback_leibler(params) else 0.0
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 <= weight < np.inf:
        raise InvalidParameterError(f"continuity must be a nonnegative number, such as 1, got {weight!r}.")
    if weight > 0 and not _is_kullback_leibler(params):
        raise InvalidParameterError(
            "continuity needs beta_loss='kullback-leibler'. Leave the other out, or pass continuity=0."
        )
    return params


def coefficients(framing: Any, model: Any, recordings: Recordings) -> list[Array]:
    """Return the coefficients of every part, (n_recordings, n_frames, n_bins)."""
    if isinstance(framing, STFT):
        return [framing.analyze(part) for part in recordings.parts]
    return [model.analyze(framing.split(part)) for part in recordings.parts]


def spectrogram(framing: STFT, recordings: Recordings, given: Any) -> FloatArray:
    """Return the magnitudes that are factorized."""
    exponent = spectrogram_params(given.method_params)["exponent"]
    return magnitudes(coefficients(framing, None, recordings), exponent)


def encoded(framing: Any, model: Any, recordings: Recordings, given: Any) -> FloatArray:
    """Return the activations of recordings, of all parts one after the other."""
    if not isinstance(framing, STFT):
        return model.transform(_all_frames(framing, recordings))
    V, params = spectrogram(framing, recordings, given), spectrogram_params(given.method_params)
    if not _is_kullback_leibler(params):
        return model.transform(V)
    return encode_spectrogram(
        V, model.components_, params["continuity"], search_of(given, SPECTROGRAM_SEARCH)
    )


def synthesized(framing: Any, model: Any, coefficients: Array, n_samples: int) -> FloatArray:
    """Return the signals of coefficients."""
    if isinstance(framing, STFT):
        return framing.synthesize(coefficients, n_samples)
    return framing.join(model.synthesize(coefficients), n_samples)


def mask_exponent(framing: Any, given: Any) -> float:
    """Return the power of the modeled parts whose ratios are the masks."""
    if not isinstance(framing, STFT):
        return 1.0
    return float(spectrogram_params(given.method_params)["mask_exponent"])


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
