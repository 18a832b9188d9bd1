"""SourceSeparation: from recordings to their sources."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import inf
from numbers import Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nonneg._arguments import checked_checkpoint
from nonneg._random import Seed
from nonneg._typing import Array, FloatArray
from nonneg.applications.audio import methods
from nonneg.applications.audio.frames import Framing
from nonneg.applications.audio.grouping import WAYS, group_components
from nonneg.applications.audio.lapped import LappedFraming
from nonneg.applications.audio.masks import checked_groups, mask_of_each
from nonneg.applications.audio.methods import METHODS
from nonneg.applications.audio.recordings import KINDS, Recordings, check_sound, checked_recordings
from nonneg.applications.audio.stft import STFT
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.estimators import NMF, TransformNMF
from nonneg.estimators.saving import Model, SavableEstimator
from nonneg.estimators.stored_fields import Fields, Part, StoredArray, Value
from nonneg.exceptions import FileFormatError, InvalidParameterError, NonnegWarning, UnknownNameError
from nonneg.iteration import Progress

# A source with more of the energy leaves nothing to the others, and is worth a warning.
MOST_ENERGY = 0.95


class SourceSeparation(SavableEstimator):
    """Separate a recording into sources by NMF of its spectrogram.

    Parameters
    ----------
    n_sources : int
        The number of sources.
    method : {"stft", "transform", "tl", "jd", "dct"}
        "stft": NMF of the magnitude spectrogram of a short-time Fourier transform. The others use orthogonal
        transforms of frames: one that is learned together with the components (TL-NMF, "tl") or before them
        (JD+NMF, "jd"), the discrete cosine transform ("dct"), or the one among learned transform, cosine
        transform and blends of the two that explains held-out frames best ("transform").
    n_components : int or None
        The total number of components. None: with "stft" four per source, or one where that is enough; with
        the other methods one.
    grouping : {"features", "activations", "templates", "both"} or array-like of int of shape (n_components,)
        Which components belong to the same source: found by `group_components`, or the source of each,
        numbered from 0.
    frame_length, hop, window : int or None, int or None, str, tuple, array or None
        How signals are cut into frames; see `STFT` and `Framing`. None: with "stft" frames of some 93 ms,
        twice or four times as long where this makes the spectrogram more concentrated, a quarter of a frame
        apart, with a Hann window; with the other methods 512 samples, half a frame apart, with tapered ends.
    lapped : bool
        For the methods other than "stft": frames are folded as in the MDCT (`LappedFraming`), and the learned
        transform is a lapped one.
    recordings : {"aligned", "consecutive"}
        What several recordings are. "aligned": realizations of the same piece, of equal length, in which the
        same sounds at the same time; they share activations, which improves the estimate of variances.
        "consecutive": pieces of any length, as if one followed the other; they share templates only.
    eps0, average_frames : float or "auto", int
        For the methods other than "stft": the floor of the variances, and the number of neighboring frames
        that are averaged; see `TransformNMF`.
    init : str, array or None
        The initialization: of `NMF` ("random" by default), or the initial transform ("dct" by default, "jd",
        "random" or a matrix).
    n_init : int or None
        Number of initializations, of which the best counts; None is 1 with "stft" and 3 with the others.
    max_iter : int or None
        Maximum number of iterations; None is 200 with "stft" and 100 with the others.
    tol : float or None
        When to stop, as in `NMF` (1e-4) and `TransformNMF` (1e-7).
    method_params : dict or None
        Further parameters of the method. With "stft": ``beta_loss`` (default "kullback-leibler"), the
        ``solver``, the ``exponent`` of the magnitudes that are factorized (1) and the ``mask_exponent`` of
        the parts of the model whose ratios are the masks (2). With the others as in `TransformNMF`.
    random_state : int, RandomState, Generator or None
        The seed of the initializations.
    verbose : int
        1 shows progress, with the rate and the time left.
    n_jobs : int or None
        Number of threads; None uses all cores.
    callback : callable or None
        Called with a `Progress` after each iteration; True stops.
    checkpoint : str, path or None
        A folder from which an interrupted run resumes.

    Attributes
    ----------
    model_ : NMF or TransformNMF
        The factorization, with its history and certificate.
    framing_ : STFT, Framing or LappedFraming
        How signals were cut.
    activations_ : array of shape (n_frames, n_components)
        How much of each component is in each frame.
    groups_ : array of int of shape (n_components,)
        The source of each component.
    energy_shares_ : array of shape (n_sources,)
        The share of each source in the energy of the recording.
    rate_ : int or None
        Sampling rate in hertz, if `fit` was given it.

    Warns
    -----
    NonnegWarning
        If one source holds more than 95 % of the energy.

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

    _stored: ClassVar[Fields] = {
        "model_": Model(NMF, TransformNMF),
        "framing_": Part(
            {
                kind: {
                    "frame_length": Value(int),
                    "hop": Value(int, source="step"),
                    "window": StoredArray("frame_length", source="weights"),
                }
                for kind in (Framing, STFT)
            }
            | {
                LappedFraming: {
                    "frame_length": Value(int),
                    "window": StoredArray("length of the window", source="weights"),
                }
            }
        ),
        "groups_": StoredArray("number of components", kind="i"),
        "activations_": StoredArray("n_frames", "number of components", nonnegative=True),
        "energy_shares_": StoredArray("number of sources", nonnegative=True),
        "rate_": Value(int, optional=True),
    }

    def __init__(
        self,
        n_sources: int = 2,
        *,
        method: str = "stft",
        n_components: int | None = None,
        grouping: Any = "features",
        frame_length: int | None = None,
        hop: int | None = None,
        window: Any = None,
        lapped: bool = False,
        recordings: str = "aligned",
        eps0: float | str = "auto",
        average_frames: int = 1,
        init: Any = None,
        n_init: int | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        method_params: dict[str, Any] | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        callback: Callable[[Progress], bool | None] | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.n_sources = n_sources
        self.method = method
        self.n_components = n_components
        self.grouping = grouping
        self.frame_length = frame_length
        self.hop = hop
        self.window = window
        self.lapped = lapped
        self.recordings = recordings
        self.eps0 = eps0
        self.average_frames = average_frames
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.method_params = method_params
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.callback = callback
        self.checkpoint = checkpoint

    def fit(self, signals: Any, rate: int | None = None) -> SourceSeparation:
        """Learn components from a recording, or from several.

        Parameters
        ----------
        signals : array-like of shape (n_samples,) or (n_recordings, n_samples), or list of arrays
            The recording; several of different lengths as a list. Never modified.
        rate : int, optional
            Sampling rate in hertz: for the length of the frames, and for what is reported in seconds and
            hertz.

        Returns
        -------
        SourceSeparation
            Itself.
        """
        n_components = self._checked_number()
        if rate is not None and (not isinstance(rate, Real) or isinstance(rate, bool) or not 0 < rate < inf):
            raise InvalidParameterError(f"rate must be None or a sampling rate in hertz, got {rate!r}.")
        checked_checkpoint(self.checkpoint)
        recordings = checked_recordings(signals, self.recordings)
        method = METHODS.find(self.method)
        framing, model, activations = method.run(self, recordings, n_components, rate)
        if isinstance(self.grouping, str):
            frequencies = methods.bin_frequencies(framing, model, rate)
            groups = group_components(
                activations, model.components_, self.n_sources, by=self.grouping, frequencies=frequencies
            )
        else:
            groups = checked_groups(self.grouping, model.components_.shape[0])
        self.model_, self.framing_, self.groups_, self.rate_ = model, framing, groups, rate
        self.activations_ = activations
        self.energy_shares_ = self._energy_shares(recordings, activations)
        self._warn_of_one_source()
        return self

    @property
    def history_(self) -> Any:
        """What was measured after each iteration of the model's fit."""
        return self.model_.history_

    @property
    def certificate_(self) -> Certificate:
        """What is known about the fit: the statements of the model, and the balance of the sources."""
        largest = float(self.energy_shares_.max())
        sentence = (
            f"The largest source holds {100 * largest:.1f} % of the energy, where more than "
            f"{100 * MOST_ENERGY:.0f} % would leave next to nothing to the others."
        )
        if self.n_sources == 1:
            return self.model_.certificate_
        verdict = Verdict.HOLDS if largest <= MOST_ENERGY else Verdict.FAILS
        balance = Statement("energy-shares", sentence, largest, MOST_ENERGY, verdict)
        return Certificate((*self.model_.certificate_, balance))

    def separate(self, signals: Any) -> Any:
        """Return the sources of a recording, by the components that were learned.

        Parameters
        ----------
        signals : array-like of shape (n_samples,) or (n_recordings, n_samples), or list of arrays
            A recording, that of the fit or another. Never modified.

        Returns
        -------
        array of shape (n_sources, n_samples) or (n_sources, n_recordings, n_samples), or list of arrays
            The sources, which sum to the recording; for a list, one array of sources per recording.
        """
        check_is_fitted(self)
        recordings = checked_recordings(signals, self.recordings)
        check_sound(recordings, self.framing_.frame_length)
        return self._separated(recordings, methods.encoded(self.framing_, self.model_, recordings, self))

    def _separated(self, recordings: Recordings, activations: Array) -> Any:
        sources: list[list[FloatArray]] = [[] for _ in recordings.parts]
        # Source by source, because all coefficients of all sources need much memory.
        for masks, parts in self._masked(recordings, activations):
            for at, (mask, part) in enumerate(zip(masks, parts, strict=True)):
                sources[at].append(
                    methods.synthesized(self.framing_, self.model_, part * mask, recordings.lengths[at])
                )
        return recordings.like_given([np.stack(part) for part in sources])

    def fit_separate(self, signals: Any, rate: int | None = None) -> Any:
        """Learn from a recording and return its sources.

        Parameters
        ----------
        signals : array-like of shape (n_samples,) or (n_recordings, n_samples), or list of arrays
            The recording. Never modified.
        rate : int, optional
            Sampling rate in hertz.

        Returns
        -------
        array of shape (n_sources, n_samples) or (n_sources, n_recordings, n_samples), or list of arrays
            As `separate` returns them.
        """
        self.fit(signals, rate)
        if isinstance(self.model_, TransformNMF):
            return self.separate(signals)
        # The activations of the fit are those that `separate` would find.
        return self._separated(checked_recordings(signals, self.recordings), self.activations_)

    def strongest_atoms(self, n_atoms: int = 8) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Return the atoms of the transform that carry most of the power.

        Parameters
        ----------
        n_atoms : int
            Maximum number of atoms.

        Returns
        -------
        array of int
            Rows of ``model_.transform_``, or frequencies of the STFT, strongest first.
        """
        check_is_fitted(self)
        if not isinstance(n_atoms, int | np.integer) or isinstance(n_atoms, bool) or n_atoms < 1:
            raise InvalidParameterError(f"n_atoms must be an integer of at least 1, got {n_atoms!r}.")
        power = self.activations_.sum(axis=0) @ self.model_.components_
        return np.argsort(-power, kind="stable")[:n_atoms]

    def _masked(self, recordings: Recordings, activations: FloatArray) -> Any:
        """Yield for each source its masks and the coefficients, one array per part."""
        coefficients = methods.coefficients(self.framing_, self.model_, recordings)
        ends = np.cumsum([part.shape[1] for part in coefficients])[:-1]
        masks = mask_of_each(
            activations,
            self.model_.components_,
            self.groups_,
            floor=getattr(self.model_, "eps0_", 0.0),
            exponent=methods.mask_exponent(self.framing_, self),
        )
        for mask in masks:
            yield np.split(mask, ends), coefficients

    def _energy_shares(self, recordings: Recordings, activations: Array) -> FloatArray:
        energies = [
            sum(
                float(np.square(np.abs(part * mask)).sum(dtype=np.float64))
                for mask, part in zip(masks, parts, strict=True)
            )
            for masks, parts in self._masked(recordings, activations)
        ]
        return np.asarray(energies) / max(sum(energies), np.finfo(float).tiny)

    def _warn_of_one_source(self) -> None:
        at = int(np.argmax(self.energy_shares_))
        if self.n_sources > 1 and self.energy_shares_[at] > MOST_ENERGY:
            warnings.warn(
                f"Source {at + 1} of {self.n_sources} holds {100 * self.energy_shares_[at]:.1f} % of the "
                "energy: the components were hardly separated. Try another grouping (--grouping), or another "
                "number of components (--components).",
                NonnegWarning,
                stacklevel=3,
            )

    def _complete_loaded(self) -> None:
        self._checked_number()
        n_components, n_bins = self.model_.components_.shape
        framing = self.framing_
        expected = framing.n_bins if isinstance(framing, STFT) else framing.frame_length
        if n_components != len(self.groups_) or n_bins != expected:
            raise FileFormatError(
                f"expected {len(self.groups_)} components of {expected} bins, got {(n_components, n_bins)}. "
                "The file is damaged."
            )
        self.groups_ = checked_groups(self.groups_, n_components)

    def _checked_number(self) -> int | None:
        METHODS.find(self.method)
        n_components = self.n_components
        for name, value in (("n_sources", self.n_sources), ("n_components", n_components)):
            if name == "n_components" and value is None:
                continue
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                raise InvalidParameterError(f"{name} must be an integer of at least 1, got {value!r}.")
        if n_components is not None and n_components < self.n_sources:
            raise InvalidParameterError(
                f"n_components={n_components} is less than n_sources={self.n_sources}: every source needs a "
                "component of its own. Raise n_components, or leave it out."
            )
        if isinstance(self.grouping, str):
            if self.grouping not in WAYS:
                raise UnknownNameError.of("grouping", self.grouping, WAYS)
        else:
            # The number of components follows from the groups.
            n_components = np.size(self.grouping) if n_components is None else n_components
            if (n_found := int(checked_groups(self.grouping, int(n_components)).max()) + 1) != self.n_sources:
                raise InvalidParameterError(
                    f"grouping names {n_found} sources, but n_sources={self.n_sources}."
                )
        if self.recordings not in KINDS:
            raise UnknownNameError.of("recordings", self.recordings, KINDS)
        return None if n_components is None else int(n_components)
