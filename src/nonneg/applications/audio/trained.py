"""Templates from solo recordings: supervised and semi-supervised separation.

Smaragdis, Raj & Shashanka (2007), "Supervised and semi-supervised separation of sounds from single-channel
mixtures". The trained templates are not fixed but the means of priors (Virtanen, Cemgil & Godsill 2008): an
instrument never sounds exactly the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._random import generator
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.audio import methods
from nonneg.applications.audio.grouping import group_components
from nonneg.applications.audio.recordings import Recordings, check_sound, checked_recordings
from nonneg.applications.audio.sources import checked_names, default_names
from nonneg.applications.audio.spectrogram import (
    COMPONENTS_PER_SOURCE,
    REFINEMENTS,
    band_edges,
    fit_spectrogram,
    low_framing,
    spectrogram_framing,
)
from nonneg.applications.audio.timbre import masked_energies, source_odds
from nonneg.certificates.certificate import Certificate
from nonneg.data import as_data_matrix
from nonneg.estimators import NMF
from nonneg.exceptions import InvalidParameterError
from nonneg.losses.beta import objective
from nonneg.losses.penalties import Penalties
from nonneg.solvers.certificate import certify
from nonneg.solvers.factorize import run_factorization
from nonneg.solvers.result import FactorizationResult

# All chosen on the mixtures that the study `studies/separation-trained` names as choosing ones.
TEMPLATES_PER_SOURCE = 40
# Weight of the trained templates against the recording: as if each had been heard for this many times its
# average share of the recording.
PRIOR_WEIGHT = 30.0
# A solo recording has some notes of an instrument, and the recording has others: templates are also learned
# from the solo recording this many semitones higher and lower.
TRANSPOSITIONS = (-2, -1, 0, 1, 2)
# Fewer templates have no room for transpositions: five for each.
ENOUGH = 5 * len(TRANSPOSITIONS)
# The least share of a template that the trained ones see in a source: they are never sure.
LEAST_SEEN = 1e-3
# Librosa's default, for pitches where the sampling rate is not known.
RATE = 22050.0
# Frames to learn templates from; evenly spaced ones of more.
MOST_FRAMES = 4000
# Iterations with bands; templates of the training recordings need no last digits.
MAX_ITER, TOL = 100, 1e-4


def checked_training(training: Any) -> dict[str, Recordings]:
    """Return the solo recordings of each source, by its name."""
    if training is None:
        return {}
    if isinstance(training, Mapping):
        given = dict(training)
    elif isinstance(training, Sequence) and len(training) > 0 and np.ndim(training[0]) > 0:
        given = dict(zip(default_names(len(training)), training, strict=True))
    else:
        raise InvalidParameterError(
            "training: expected solo recordings by the names of their sources, such as {'drums': signal, "
            f"'bass': signal}}, or a list of signals, got {type(training).__name__}."
        )
    if not given:
        raise InvalidParameterError("training contains no recordings. Give one per source, or leave it out.")
    checked_names(list(given), "training")
    solos = {}
    for name, signal in given.items():
        several = isinstance(signal, Sequence) and len(signal) > 0 and np.ndim(signal[0]) > 0
        solos[name] = checked_recordings(signal, "consecutive" if several else "aligned")
    return solos


def fit_trained(
    given: Any, recordings: Recordings, solos: Mapping[str, Recordings], rate: float | None
) -> tuple[Any, NMF, FloatArray, Any]:
    """Return framing, model, activations and the source of each component."""
    _check_params(given)
    framing = spectrogram_framing(recordings, given.frame_length, given.hop, given.window, rate)
    check_sound(recordings, framing.frame_length)
    for name, solo in solos.items():
        check_sound(solo, framing.frame_length, f"training recording of {name!r}")
    V = methods.spectrogram(framing, recordings, given)
    if given.frame_length is None and given.hop is None:
        deep = low_framing(V, framing, recordings, rate)
        if deep is not framing and all(2 * deep.frame_length <= solo.shortest for solo in solos.values()):
            framing, V = deep, methods.spectrogram(deep, recordings, given)
    n_each, n_free = _numbers(given, len(solos))
    random = generator(given.random_state)
    templates: list[FloatArray] = []
    no_model: Any = None  # bins have frequencies without one
    for name, solo in solos.items():
        heard = methods.spectrogram(framing, solo, given).astype(V.dtype)
        if n_each >= ENOUGH:
            heard = with_transpositions(heard, methods.bin_frequencies(framing, no_model, rate))
        # No more than there are frames to learn from, or bands to tell them apart.
        k = min(n_each, len(heard), len(band_edges(heard.shape[1])))
        templates.append(
            _learned(heard, k, _Search(given, f"training on {name}", f"training-{len(templates)}"), random)
        )
    trained = np.concatenate(templates)
    model, activations = _fit_recording(V, trained, n_free, given, random)
    labels = np.repeat(np.arange(len(solos)), [len(part) for part in templates])
    n_own = COMPONENTS_PER_SOURCE * len(solos)
    if given.n_components is None and not n_free and len(labels) + n_own <= max(V.shape):
        own, found = _own_templates(
            V, model.components_, activations, labels, given,
            framing=framing, solos=list(solos.values()), rate=rate,
        )  # fmt: skip
        labels = np.concatenate([labels, found])
        model, activations = _model_of(_average(V, model.result_, own), given)
    if n_free:
        found = group_components(
            activations[:, len(labels) :],
            model.components_[len(labels) :],
            given.n_sources - len(solos),
            by=given.grouping,
            frequencies=methods.bin_frequencies(framing, model, rate),
        )
        labels = np.concatenate([labels, len(solos) + found])
    return framing, model, activations, labels


def with_transpositions(V: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Return a spectrogram and its transpositions one after the other, or evenly spaced frames of these."""
    n_frames, n_bins = V.shape
    n_all = len(TRANSPOSITIONS) * n_frames
    chosen = np.arange(n_all) if n_all <= MOST_FRAMES else np.linspace(0, n_all - 1, MOST_FRAMES).astype(int)
    parts = []
    for at, semitones in enumerate(TRANSPOSITIONS):
        rows = V[chosen[chosen // n_frames == at] - at * n_frames]
        # The place from which every frequency comes, between two bins.
        places = np.interp(frequencies / 2 ** (semitones / 12), frequencies, np.arange(n_bins), right=np.nan)
        known = np.isfinite(places)
        low = np.minimum(np.where(known, places, 0).astype(int), n_bins - 2)
        share = (np.where(known, places, 0) - low).astype(V.dtype)
        parts.append(
            np.where(known, rows[:, low] * (1 - share) + rows[:, low + 1] * share, 0).astype(V.dtype)
        )
    return np.concatenate(parts)


class _Search:
    """Multiplicative updates from given factors, as the user set them."""

    def __init__(self, given: Any, name: str, folder: str) -> None:
        self.name = name
        self.options = {
            "max_iter": MAX_ITER if given.max_iter is None else given.max_iter,
            "tol": TOL if given.tol is None else given.tol,
            "n_jobs": given.n_jobs,
            "verbose": given.verbose,
            "callback": given.callback,
        }
        self.folder = None if given.checkpoint is None else Path(given.checkpoint) / folder

    def run(self, X: FloatArray, W: FloatArray, H: FloatArray, stage: str) -> tuple[FloatArray, FloatArray]:
        """Return factors with a smaller divergence; the bins only refine what the bands have found."""
        few = {"max_iter": min(self.options["max_iter"], REFINEMENTS), "verbose": 0}
        result = run_factorization(
            as_data_matrix(X), len(H), beta=1.0, penalties=Penalties(), solver="mu", init="custom", W=W, H=H,
            checkpoint=None if self.folder is None else self.folder / stage,
            caller=self.name, **(self.options | (few if stage == "bins" else {})),
        )  # fmt: skip
        return result.W, result.H

    def run_twice(self, X: FloatArray, W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return factors fitted first to bins pooled to bands, which is fast, and then to all bins."""
        edges = band_edges(X.shape[1])
        if len(edges) < X.shape[1]:
            pooled = np.add.reduceat(H, edges, axis=1)
            W, coarse = self.run(np.add.reduceat(X, edges, axis=1), W, pooled, "bands")
            change = coarse / np.maximum(pooled, np.finfo(X.dtype).tiny)
            H = H * np.repeat(change, np.diff([*edges, X.shape[1]]), axis=1)
            return self.run(X, W, H, "bins")
        return self.run(X, W, H, "bands")


def _learned(V: FloatArray, k: int, search: _Search, random: np.random.Generator) -> FloatArray:
    """Return templates of one source."""
    W, H = _noise(V, k, random)
    return search.run_twice(V, W, H)[1]


def _noise(V: FloatArray, k: int, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return factors to begin with: noise around the mean spectrum and the loudness."""
    H = random.uniform(0.5, 1.5, (k, V.shape[1])) * V.mean(axis=0)
    W = random.uniform(0.5, 1.5, (len(V), k)) * V.sum(axis=1, keepdims=True) / k
    return W.astype(V.dtype), _normalized(H).astype(V.dtype)


def _normalized(H: FloatArray) -> FloatArray:
    sums = H.sum(axis=1, keepdims=True)
    return H / np.where(sums > 0, sums, 1.0)


def _check_params(given: Any) -> None:
    if given.method != "stft":
        raise InvalidParameterError(f"Training recordings need method='stft', got {given.method!r}.")
    params = methods.spectrogram_params(given.method_params)
    if params["beta_loss"] not in ("kullback-leibler", 1, 1.0):
        raise InvalidParameterError(
            "Training recordings need beta_loss='kullback-leibler', the default, got "
            f"{params['beta_loss']!r}."
        )


def _numbers(given: Any, n_trained: int) -> tuple[int, int]:
    """Return the number of templates per trained source, and of free components in total."""
    n_more = given.n_sources - n_trained
    if given.n_components is None:
        return TEMPLATES_PER_SOURCE, COMPONENTS_PER_SOURCE * n_more
    n_each = given.n_components // given.n_sources
    return n_each, given.n_components - n_each * n_trained if n_more else 0


def _fit_recording(
    V: FloatArray, templates: FloatArray, n_free: int, given: Any, random: np.random.Generator
) -> tuple[NMF, FloatArray]:
    """Fit the recording: adapt the trained templates and learn free ones, then fit the activations."""
    trained = _normalized(templates).astype(V.dtype)
    k = len(trained) + n_free
    W, H = _noise(V, k, random)
    H[: len(trained)] = trained
    # A prior of H at the trained templates is a further row of data per template, which has a weight for this
    # template alone: multiplicative updates keep the zeros of W.
    weight = PRIOR_WEIGHT * float(V.sum(dtype=np.float64)) / k
    rows = np.concatenate([V, weight * trained])
    own = weight * np.eye(len(trained), k, dtype=V.dtype)
    W, H = _Search(given, "recording", "recording").run_twice(rows, np.concatenate([W, own]), H)
    return _model_of(encoded(V, H, given), given)


def _average(V: FloatArray, one: FactorizationResult, other: FactorizationResult) -> FactorizationResult:
    """Return the mean of two models of a recording as one model with the templates of both.

    Activations fitted to the templates of both prefer those of the recording itself, which explain it better
    and tell its sources apart less well.
    """
    H = np.concatenate([one.H, other.H])
    sums = H.sum(axis=1)
    W = 0.5 * np.concatenate([one.W, other.W], axis=1) * sums
    H = _normalized(H).astype(V.dtype)
    data, W = as_data_matrix(V), W.astype(V.dtype)
    loss = objective(data, W, H.T, beta=1.0, penalties=Penalties())
    statements = certify(data, W, H.T, beta=1.0, penalties=Penalties(), free=None)
    return replace(one, W=W, H=H, loss=loss, certificate=Certificate(tuple(statements)))


def _own_templates(
    V: FloatArray,
    trained: FloatArray,
    activations: FloatArray,
    labels: IntArray,
    given: Any,
    *,
    framing: Any,
    solos: list[Recordings],
    rate: float | None,
) -> tuple[FactorizationResult, IntArray]:
    """Return a model of the recording alone, and the source of each of its templates.

    Its own templates fit a recording better than any from elsewhere, but nobody knows whose they are. The
    trained templates see a part of each in every source, and each sounds like one of them.
    """
    own = _alone(V, given, None if given.checkpoint is None else Path(given.checkpoint) / "own")
    powers = [np.square(activations[:, labels == at] @ trained[labels == at]) for at in range(len(solos))]
    seen = masked_energies(V, own.W, own.H, powers)
    seen = seen / np.maximum(seen.sum(axis=1, keepdims=True), np.finfo(V.dtype).tiny)
    no_model: Any = None

    def components(mixture: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = _alone(mixture, given, None, verbose=0, callback=None)
        return found.W, found.H

    heard = source_odds(
        own.W,
        own.H,
        framing,
        methods.bin_frequencies(framing, no_model, RATE if rate is None else rate),
        solos,
        components,
        exponent=methods.spectrogram_params(given.method_params)["exponent"],
    )
    return own, np.argmax(np.log(np.maximum(seen, LEAST_SEEN)) + heard, axis=1)


def _alone(V: FloatArray, given: Any, checkpoint: Path | None, **changes: Any) -> FactorizationResult:
    """Factorize a spectrogram without templates from elsewhere."""
    params = methods.spectrogram_params(given.method_params)
    search = methods.search_of(given, methods.SPECTROGRAM_SEARCH) | changes
    model, W = fit_spectrogram(
        V, given.n_sources, None, continuity=params["continuity"], beta_loss=params["beta_loss"],
        solver="auto", checkpoint=checkpoint, **search,
    )  # fmt: skip
    return replace(model.result_, W=W, H=np.asarray(model.components_))


def encoded(V: FloatArray, H: FloatArray, given: Any) -> FactorizationResult:
    """Fit the activations of a spectrogram to templates by multiplicative updates.

    Not by `NMF.transform`: templates that resemble one another make its Newton steps slow, and how a sound is
    shared among them does not matter to the masks.
    """
    k = len(H)
    W = np.repeat(V.sum(axis=1, keepdims=True) / max(float(H.sum()), np.finfo(V.dtype).tiny), k, axis=1)
    return run_factorization(
        as_data_matrix(V), k, beta=1.0, penalties=Penalties(), solver="mu", init="custom", W=W, H=H,
        frozen_components=range(k), max_iter=MAX_ITER, tol=TOL,
        n_jobs=given.n_jobs, verbose=given.verbose, caller="activations",
    )  # fmt: skip


def _model_of(result: FactorizationResult, given: Any) -> tuple[NMF, FloatArray]:
    """Return the model of a recording with its templates, as a fit would leave it."""
    k = len(result.H)
    options = methods.search_of(given, methods.SPECTROGRAM_SEARCH) | {"init": "custom", "n_init": 1}
    model = NMF(k, solver="mu", beta_loss="kullback-leibler", **options)
    model.components_ = np.ascontiguousarray(result.H)
    model.n_components_, model.n_features_in_ = k, result.H.shape[1]
    model.reconstruction_err_ = math.sqrt(2 * max(result.loss, 0.0))
    model.result_, model.n_iter_, model.history_ = result, result.n_iter, result.history
    model.certificate_ = result.certificate
    return model, result.W
