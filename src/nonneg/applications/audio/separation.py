"""SourceSeparation: from recordings to their sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from math import inf
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nonneg._arguments import is_number
from nonneg._random import Seed
from nonneg._typing import Array, FloatArray, IntArray
from nonneg.applications.audio import methods
from nonneg.applications.audio.grouping import (
    PROPOSALS,
    best_proposal,
    energy_shares,
    group_by_solos,
    group_components,
)
from nonneg.applications.audio.sources import (
    check_sound,
    checked_n_sources,
    checked_recordings,
    checked_training,
    completed_names,
    grouped_by_hand,
    separation_certificate,
)
from nonneg.applications.method_entries import check_search
from nonneg.certificates.certificate import Certificate
from nonneg.estimators.nmf import NMF
from nonneg.estimators.saving import Fields, Names, SavableEstimator, StoredArray, damaged
from nonneg.estimators.transform_nmf import TransformNMF
from nonneg.exceptions import InvalidParameterError
from nonneg.iteration import Progress

# The spectrogram is modeled as a sum of magnitudes; the masks are ratios of their squares, powers.
MASK_EXPONENT = 2.0
# Multiplicative updates of the gains of a channel, a problem with one unknown per component.
GAIN_UPDATES = 30


@dataclass(eq=False, repr=False)
class SourceSeparation(SavableEstimator):
    """Separate a recording into sources by NMF of its spectrogram.

    Parameters
    ----------
    n_sources : int or None
        The number of sources. None is the number of sources with training recordings, but at least 2. There
        may be more sources than training recordings, and more or fewer where `grouping` names them.
    method : {"stft", "transform", "tl", "jd", "dct"}, default "stft"
        "stft": NMF of a magnitude spectrogram with activations that are smooth in time. The others use
        orthogonal transforms of frames: one that is learned together with the components (TL-NMF, "tl") or
        before them (JD+NMF, "jd"), the discrete cosine transform ("dct"), or the learned or the cosine
        transform, whichever explains held-out frames better ("transform").
    n_components : int or None
        The total number of components. None: with "stft" eight per source, with the other methods one.
    grouping : str or dict, default "auto"
        Which components belong to the same source. "timbre": those with similar mel spectra.
        "timbre-dynamics": those with similar spectra up to a transposition, where the dynamics of the
        activations (how rough they are, and how much faster they rise than fall) count as much. "auto": the
        one of these two that leaves the smaller share of the differences between components within sources.
        Or the components of each source by its name, as in ``{"drums": [0, 2], "bass": [1]}``, where those
        not listed form a source called "rest".
    frame_length, window : int or None, str, tuple, array or None
        How signals are cut into frames; see `Framing`. None: with "stft" frames of 46, 93, 186 or
        372 ms, whichever concentrates the energy of the recording in the fewest coefficients, a quarter of
        a frame apart, with a Hann window; with orthogonal transforms 512 samples, half a frame apart, with
        tapered ends.
    init : str, array or None
        The initialization: "random" for "stft", otherwise the initial transform ("dct" by default, "jd",
        "random" or a matrix).
    n_init : int or None
        Number of initializations, of which the best is kept; None is 1, or 3 with orthogonal transforms.
    max_iter : int or None
        Maximum number of iterations; None is 200, or 100 with orthogonal transforms.
    tol : float or None
        When to stop, as in `NMF` (1e-4) and `TransformNMF` (1e-7).
    method_params : dict or None
        Further parameters of the method. With "stft": the weight of temporal ``continuity`` (1). With the
        others as in `TransformNMF`.
    random_state : int, RandomState, Generator or None
        The seed of the initializations.
    {verbose, n_jobs, callback, checkpoint}

    Attributes
    ----------
    model_ : NMF or TransformNMF
        The factorization, with its history and certificate.
    framing_ : Framing
        How signals were cut.
    activations_ : array of shape (n_frames, n_components)
        How much of each component is in each frame.
    groups_ : array of int of shape (n_components,)
        The source of each component.
    proposals_ : array of shape (2,) or (0,)
        With ``grouping="auto"``: the share of the differences between components that remains within sources,
        for "timbre" and "timbre-dynamics"; the smaller one was taken. Otherwise empty.
    divergences_ : array of shape (2,) or (0,)
        With training recordings of all sources: the Kullback-Leibler divergence of the spectrogram, per unit
        of its sum, from templates of the solos and from components of its own. The smaller one was taken.
    energy_shares_ : array of shape (n_sources,)
        The energy of each source in the model, divided by the sum over all sources.
    source_names_ : tuple of str
        The names of the sources: those in `training` or `grouping`, otherwise "source 1", "source 2", ...
    rate_ : int or None
        Sampling rate in hertz, if `fit` was given it.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg.applications import SourceSeparation
    >>> t = np.arange(4000) / 4000
    >>> low, high = np.sin(2 * np.pi * 200 * t) * (t < 0.6), np.sin(2 * np.pi * 700 * t) * (t > 0.3)
    >>> separation = SourceSeparation(2, random_state=0)
    >>> sources = separation.fit_separate(low + high, 4000)
    >>> sources.shape
    (2, 4000)
    >>> bool(np.allclose(sources.sum(axis=0), low + high))
    True
    """

    n_sources: int | None = None
    _: KW_ONLY
    method: str = "stft"
    n_components: int | None = None
    grouping: Any = "auto"
    frame_length: int | None = None
    window: Any = None
    init: Any = None
    n_init: int | None = None
    max_iter: int | None = None
    tol: float | None = None
    method_params: dict[str, Any] | None = None
    random_state: Seed = None
    verbose: int = 0
    n_jobs: int | None = None
    callback: Callable[[Progress], bool | None] | None = None
    checkpoint: str | PathLike[str] | None = None

    _stored: ClassVar[Fields] = {
        "model_": NMF | TransformNMF,
        "framing_": methods.FRAMING,
        "groups_": StoredArray("number of components", kind="i"),
        "activations_": StoredArray("n_frames", "number of components", nonnegative=True),
        "energy_shares_": StoredArray("number of sources", nonnegative=True),
        "rate_": int | None,
        "proposals_": StoredArray("number of proposals", nonnegative=True, optional=True),
        "divergences_": StoredArray("number of models", nonnegative=True, optional=True),
        "source_names_": Names("number of sources", container=tuple, optional=True),
    }

    def fit(self, signals: Any, rate: int | None = None, *, training: Any = None) -> SourceSeparation:
        """Learn components from a recording, or from several.

        Parameters
        ----------
        signals : array-like of shape (n_samples,) or (n_channels, n_samples)
            The recording, with one row per channel, or realizations of the same piece in which the same notes
            sound at the same time. They share components and activations. Never modified.
        rate : int, optional
            Sampling rate in hertz: for the length of the frames, and for what is reported in seconds and
            hertz.
        training : dict, optional
            Solo recordings: a signal per source by its name, or several as a list, at the rate of `signals`.
            A component of the recording belongs to the source whose solo recordings have the most similar
            component, or the components are templates of the solos, if these fit better.

        Returns
        -------
        SourceSeparation
            The fitted estimator.
        """
        check_search(self, methods.METHODS)
        run = methods.METHODS[self.method].run
        solos = checked_training(training)
        n_sources = checked_n_sources(self.n_sources, self.n_components, self.grouping, tuple(solos))
        if rate is not None and not (is_number(rate) and 0 < rate < inf):
            raise InvalidParameterError(f"rate must be None or a sampling rate in hertz, got {rate!r}.")
        recordings = checked_recordings(signals)
        self.framing_, self.model_, self.activations_ = run(self, recordings, n_sources, rate)
        self.rate_ = rate
        self.proposals_ = self.divergences_ = np.array([])
        if isinstance(self.model_, NMF):
            # As `separate` finds them.
            self.activations_ = self._encoded(recordings)
        if not isinstance(self.grouping, str):
            return self._set_groups(*grouped_by_hand(self.grouping, self.activations_.shape[1]))
        groups = self._trained(recordings, solos, n_sources) if solos else self._grouped(n_sources)
        return self._set_groups(groups, completed_names(tuple(solos), n_sources))

    def _set_groups(self, groups: IntArray, names: tuple[str, ...]) -> SourceSeparation:
        self.groups_, self.source_names_ = groups, names
        variances, H = isinstance(self.model_, TransformNMF), self.model_.components_
        self.energy_shares_ = energy_shares(self.activations_, H, groups, variances=variances)
        return self

    def _grouped(self, n_groups: int) -> IntArray:
        """Return the groups of components, and note the numbers of the proposals."""
        W, H, frequencies = self.activations_, self.model_.components_, self._frequencies
        named = PROPOSALS if self.grouping == "auto" else (self.grouping,)
        found = {by: group_components(W, H, n_groups, by=by, frequencies=frequencies) for by in named}
        within = {by: share for by, (_, share) in found.items()}
        self.proposals_ = np.array(list(within.values()) if len(named) > 1 and n_groups > 1 else [])
        return found[best_proposal(within)][0]

    def _trained(
        self, recordings: FloatArray, solos: Mapping[str, list[FloatArray]], n_sources: int
    ) -> IntArray:
        """Return the groups of components; where the templates of the solos fit better, take these."""
        W, H = self.activations_, self.model_.components_
        factors = methods.fit_solos(self, self.framing_, solos, max(1, len(H) // n_sources))
        groups = group_by_solos(W, H, factors, n_sources, self._frequencies)
        if n_sources > len(solos):
            return groups
        model, activations, labels = methods.fit_templates(self, self.framing_, recordings, solos)
        both = ((activations, model.components_), (W, H))
        self.divergences_ = np.array([methods.divergence(self.framing_, recordings, *pair) for pair in both])
        if self._supervised:
            self.model_, self.activations_, groups = model, activations, labels
        return groups

    @property
    def _supervised(self) -> bool:
        """Whether the components are templates of solo recordings."""
        return len(self.divergences_) == 2 and self.divergences_[0] <= self.divergences_[1]

    @property
    def _frequencies(self) -> FloatArray:
        # Librosa's default where the sampling rate is not known.
        return methods.bin_frequencies(self.framing_, self.model_, self.rate_ or 22050)

    def regroup(self, grouping: Any) -> SourceSeparation:
        """Group the components of a fitted model by hand, without another fit.

        Parameters
        ----------
        grouping : dict of str to list of int
            As the parameter of the class.

        Returns
        -------
        SourceSeparation
            Itself, with new `groups_`, `source_names_` and `energy_shares_`.
        """
        check_is_fitted(self)
        groups, names = grouped_by_hand(grouping, len(self.groups_))
        self.proposals_ = np.array([])
        return self._set_groups(groups, names)

    @property
    def history_(self) -> Any:
        """Measures after each iteration of the model's fit."""
        return self.model_.history_

    @property
    def certificate_(self) -> Certificate:
        """Statements about the model and the grouping."""
        proposals = dict(zip(PROPOSALS, self.proposals_.tolist(), strict=False))
        return separation_certificate(self.model_.certificate_, proposals, self.divergences_)

    def separate(self, signals: Any) -> Any:
        """Return the sources of a recording, by the components that were learned.

        Parameters
        ----------
        signals : array-like of shape (n_samples,) or (n_channels, n_samples)
            A recording, that of the fit or another. Never modified.

        Returns
        -------
        array of shape (n_sources, n_samples) or (n_sources, n_channels, n_samples)
            The sources, which sum to the recording.
        """
        check_is_fitted(self)
        recordings = checked_recordings(signals)
        check_sound(recordings, self.framing_.frame_length)
        return self._separated(signals, recordings, self._encoded(recordings))

    def _encoded(self, recordings: FloatArray) -> FloatArray:
        return methods.encoded(self, self.framing_, self.model_, recordings, self._supervised)

    def _separated(self, signals: Any, recordings: FloatArray, activations: Array) -> FloatArray:
        coefficients = methods.coefficients(self.framing_, self.model_, recordings)
        masks = channel_masks(coefficients, activations, self.model_, self.groups_)
        # Source by source, because all coefficients of all sources need much memory.
        n = recordings.shape[1]
        parts = (methods.synthesized(self.framing_, self.model_, coefficients * mask, n) for mask in masks)
        sources = np.stack(list(parts))
        return sources[:, 0] if np.ndim(signals) == 1 else sources

    def fit_separate(self, signals: Any, rate: int | None = None, *, training: Any = None) -> Any:
        """Learn from a recording and return its sources.

        Parameters
        ----------
        signals : array-like of shape (n_samples,) or (n_channels, n_samples)
            The recording. Never modified.
        rate : int, optional
            Sampling rate in hertz.
        training : dict, optional
            Solo recordings of the sources, as for `fit`.

        Returns
        -------
        array of shape (n_sources, n_samples) or (n_sources, n_channels, n_samples)
            As `separate` returns them.
        """
        self.fit(signals, rate, training=training)
        if isinstance(self.model_, TransformNMF):
            return self.separate(signals)
        # The activations of the fit are those that `separate` would find.
        return self._separated(signals, checked_recordings(signals), self.activations_)

    def _complete_loaded(self) -> None:
        length = self.framing_.frame_length
        expected = (len(self.groups_), length // 2 + 1 if isinstance(self.model_, NMF) else length)
        if self.model_.components_.shape != expected:
            raise damaged(f"expected components of shape {expected}, got {self.model_.components_.shape}")
        if not np.array_equal(np.unique(self.groups_), np.arange(len(self.source_names_))):
            raise damaged(f"expected components of each of {len(self.source_names_)} sources")


def channel_masks(
    coefficients: Array, W: FloatArray, model: NMF | TransformNMF, groups: IntArray
) -> Iterator[FloatArray]:
    """Yield the masks of each source, (n_channels, n_frames, n_bins), or one mask for all channels."""
    H, gains, exponent = model.components_, np.ones((1, W.shape[1]), W.dtype), 1.0
    if isinstance(model, NMF):
        exponent = MASK_EXPONENT
        # Realizations in an orthogonal transform have the same variances; channels have their own gains.
        if len(coefficients) > 1:
            gains = channel_gains(np.abs(coefficients), W, H)
    floor = getattr(model, "eps0_", 0.0)
    # One iterator of masks per channel, because all masks of all sources need much memory.
    channels = (_source_masks(W * gain, H, groups, floor, exponent) for gain in gains)
    yield from map(np.stack, zip(*channels, strict=True))


def _source_masks(
    W: FloatArray, H: FloatArray, groups: IntArray, floor: float, exponent: float
) -> Iterator[FloatArray]:
    """Yield the share of each source in every coefficient; equal shares where nothing is known."""
    n_sources = int(groups.max()) + 1

    def part(source: int) -> FloatArray:
        own = groups == source
        return (W[:, own] @ H[own] + floor / n_sources) ** exponent

    # The parts are made twice, rather than kept.
    total = sum(map(part, range(1, n_sources)), part(0))
    unknown = total <= 0
    total[unknown] = 1.0
    for source in range(n_sources):
        mask = part(source) / total
        mask[unknown] = 1.0 / n_sources
        yield mask


def channel_gains(magnitudes: FloatArray, activations: FloatArray, components: FloatArray) -> FloatArray:
    """Return the gain of every component in every channel, (n_channels, n_components).

    The factors model all channels together; where a component is panned, it is louder in one of them. This is
    the nonnegative tensor factorization of FitzGerald, Cranitch & Coyle (2005), fitted in two steps.
    """
    W, H, small = activations, components, np.finfo(activations.dtype).tiny
    weights = np.maximum(W.sum(axis=0) * H.sum(axis=1), small)
    gains = []
    for channel in magnitudes:
        mean = float(channel.mean(dtype=np.float64))
        V = (channel / (mean if mean > 0 else 1.0)).astype(W.dtype, copy=False)
        gain = np.ones(W.shape[1], W.dtype)
        for _ in range(GAIN_UPDATES):
            ratio = V / np.maximum((W * gain) @ H, small)
            gain *= np.einsum("kb,kb->k", W.T @ ratio, H) / weights
        gains.append(gain)
    return np.stack(gains)
