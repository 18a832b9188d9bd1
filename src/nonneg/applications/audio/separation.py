"""SourceSeparation: from recordings to their sources, in a transform learned from the recordings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from numbers import Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nonneg._random import Seed
from nonneg._typing import FloatArray
from nonneg.applications.audio.frames import Framing, as_recordings
from nonneg.applications.audio.grouping import WAYS, group_components
from nonneg.applications.audio.masks import checked_groups, mask_of_each
from nonneg.certificates.certificate import Certificate
from nonneg.estimators import TransformNMF
from nonneg.estimators.saving import Model, SavableEstimator
from nonneg.estimators.stored_fields import Fields, Part, StoredArray, Value
from nonneg.exceptions import (
    FileFormatError,
    InvalidDataError,
    InvalidParameterError,
    NonFiniteDataError,
    ShapeError,
    UnknownNameError,
)
from nonneg.iteration import Progress

RECORDINGS = ("aligned", "consecutive")


class SourceSeparation(SavableEstimator):
    """Separate a recording into sources by NMF with a learned transform.

    Parameters
    ----------
    n_sources : int
        The number of sources.
    method : {"tl", "jd", "dct"}
        Learn the transform together with the components (TL-NMF), before them (JD+NMF), or keep the discrete
        cosine transform.
    n_components : int or None
        The total number of components; None takes one per source.
    grouping : {"activations", "templates", "both"} or array-like of int of shape (n_components,)
        Which components belong to the same source: found by `group_components`, or the source of each,
        numbered from 0.
    frame_length, hop, window : int, int or None, str, tuple or array
        How signals are cut into frames; see `Framing`.
    recordings : {"aligned", "consecutive"}
        What several recordings are. "aligned": realizations of the same piece, of equal length, in which the
        same sounds at the same time; they share activations, which improves the estimate of variances.
        "consecutive": pieces of any length, as if one followed the other; they share templates only.
    eps0, average_frames : float or "auto", int
        The floor of the variances, and the number of neighboring frames that are averaged: see
        `TransformNMF`.
    init : {"dct", "jd", "random"} or array
        The initial transform.
    n_init : int
        Number of initializations, of which the best counts.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Stop when ten iterations lower the objective by less than this per entry.
    method_params : dict or None
        Further parameters of the method, as in `TransformNMF`.
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
    model_ : TransformNMF
        The factorization, with its history and certificate.
    framing_ : Framing
        How signals were cut.
    groups_ : array of int of shape (n_components,)
        The source of each component.
    rate_ : int or None
        Sampling rate in hertz, if `fit` was given it.

    Examples
    --------
    >>> import numpy as np
    >>> from nonneg.applications import SourceSeparation
    >>> t = np.arange(4000) / 4000
    >>> low, high = np.sin(2 * np.pi * 200 * t) * (t < 0.6), np.sin(2 * np.pi * 700 * t) * (t > 0.3)
    >>> separation = SourceSeparation(2, frame_length=64, max_iter=20, random_state=0)
    >>> sources = separation.fit_separate(low + high)
    >>> sources.shape
    (2, 4000)
    >>> bool(np.allclose(sources.sum(axis=0), low + high))
    True
    """

    _stored: ClassVar[Fields] = {
        "model_": Model(TransformNMF),
        "framing_": Part(
            {
                Framing: {
                    "frame_length": Value(int),
                    "hop": Value(int, source="step"),
                    "window": StoredArray("frame_length", source="weights"),
                }
            }
        ),
        "groups_": StoredArray("number of components", kind="i"),
        "rate_": Value(int, optional=True),
    }

    def __init__(
        self,
        n_sources: int = 2,
        *,
        method: str = "tl",
        n_components: int | None = None,
        grouping: Any = "activations",
        frame_length: int = 512,
        hop: int | None = None,
        window: Any = ("tukey", 0.1),
        recordings: str = "aligned",
        eps0: float | str = "auto",
        average_frames: int = 1,
        init: Any = "dct",
        n_init: int = 3,
        max_iter: int = 100,
        tol: float = 1e-7,
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
        """Learn transform and components from a recording, or from several.

        Parameters
        ----------
        signals : array-like of shape (n_samples,) or (n_recordings, n_samples), or list of arrays
            The recording; several of different lengths as a list. Never modified.
        rate : int, optional
            Sampling rate in hertz, for what is reported in seconds and hertz.

        Returns
        -------
        SourceSeparation
            Itself.
        """
        n_components = self._checked_number()
        if rate is not None and (not isinstance(rate, Real) or isinstance(rate, bool) or not 0 < rate < inf):
            raise InvalidParameterError(f"rate must be None or a sampling rate in hertz, got {rate!r}.")
        framing = Framing(self.frame_length, self.hop, self.window)
        frames, _ = self._frames(signals, framing)
        model = TransformNMF(
            n_components,
            method=self.method,
            n_init=self.n_init,
            init=self.init,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
            verbose=self.verbose,
            n_jobs=self.n_jobs,
            callback=self.callback,
            checkpoint=self.checkpoint,
            eps0=self.eps0,
            average_frames=self.average_frames,
            method_params=self.method_params,
        ).fit(frames)
        if isinstance(self.grouping, str):
            groups = group_components(model.activations_, model.components_, self.n_sources, by=self.grouping)
        else:
            groups = checked_groups(self.grouping, n_components)
        self.model_, self.framing_, self.groups_, self.rate_ = model, framing, groups, rate
        return self

    @property
    def certificate_(self) -> Certificate:
        """What is known about the fit: the statements of the model behind it."""
        return self.model_.certificate_

    def separate(self, signals: Any) -> Any:
        """Return the sources of a recording, by the transform and the components that were learned.

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
        frames, lengths = self._frames(signals, self.framing_)
        model, framing = self.model_, self.framing_
        masks = mask_of_each(model.transform(frames), model.components_, self.groups_, floor=model.eps0_)
        coefficients = model.analyze(frames)
        # Source by source, because all frames of all sources need much memory.
        parts = (model.synthesize(coefficients * mask) for mask in masks)
        if self.recordings == "aligned":
            return _like(np.stack([framing.join(part, lengths[0]) for part in parts]), signals)
        ends = np.cumsum([framing.n_frames(length) for length in lengths])[:-1]
        pieces = [np.split(part[0], ends) for part in parts]
        sources = [
            np.stack([framing.join(piece[at], length) for piece in pieces])
            for at, length in enumerate(lengths)
        ]
        return sources if _is_ragged(signals) else _like(np.stack(sources, axis=1), signals)

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
        return self.fit(signals, rate).separate(signals)

    def strongest_atoms(self, n_atoms: int = 8) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Return the atoms of the transform that carry most of the power.

        Parameters
        ----------
        n_atoms : int
            Maximum number of atoms.

        Returns
        -------
        array of int
            Rows of ``model_.transform_``, strongest first.
        """
        check_is_fitted(self)
        if not isinstance(n_atoms, int | np.integer) or isinstance(n_atoms, bool) or n_atoms < 1:
            raise InvalidParameterError(f"n_atoms must be an integer of at least 1, got {n_atoms!r}.")
        power = self.model_.activations_.sum(axis=0) @ self.model_.components_
        return np.argsort(-power, kind="stable")[:n_atoms]

    def _complete_loaded(self) -> None:
        n_components, length = self._checked_number(), self.framing_.frame_length
        if self.model_.components_.shape != (n_components, length):
            raise FileFormatError(
                f"expected {n_components} components of {length} samples, got "
                f"{self.model_.components_.shape}. The file is damaged."
            )
        self.groups_ = checked_groups(self.groups_, n_components)

    def _checked_number(self) -> int:
        n_components = self.n_sources if self.n_components is None else self.n_components
        for name, value in (("n_sources", self.n_sources), ("n_components", n_components)):
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                raise InvalidParameterError(f"{name} must be an integer of at least 1, got {value!r}.")
        if n_components < self.n_sources:
            raise InvalidParameterError(
                f"n_components={n_components} is less than n_sources={self.n_sources}: every source needs a "
                "component of its own. Raise n_components, or leave it out."
            )
        if isinstance(self.grouping, str):
            if self.grouping not in WAYS:
                raise UnknownNameError.of("grouping", self.grouping, WAYS)
        elif (n_found := int(checked_groups(self.grouping, int(n_components)).max()) + 1) != self.n_sources:
            raise InvalidParameterError(f"grouping names {n_found} sources, but n_sources={self.n_sources}.")
        if self.recordings not in RECORDINGS:
            raise UnknownNameError.of("recordings", self.recordings, RECORDINGS)
        return int(n_components)

    def _frames(self, signals: Any, framing: Framing) -> tuple[FloatArray, list[int]]:
        """Cut signals into frames: one array, and the length of every signal."""
        if (
            _is_ragged(signals)
            and self.recordings == "aligned"
            and len({len(signal) for signal in signals}) > 1
        ):
            lengths = [len(signal) for signal in signals]
            raise ShapeError(
                f"Aligned recordings have the same length, got {lengths} samples. Cut them to the same part "
                "of the piece, or pass recordings='consecutive' (--recordings consecutive)."
            )
        one_by_one = _is_ragged(signals) and self.recordings == "consecutive"
        parts = [as_recordings(signal) for signal in signals] if one_by_one else [as_recordings(signals)]
        for at, part in enumerate(parts):
            _check_sound(part, framing, f"Recording {at}" if len(parts) > 1 else "The recording")
        if all((part == part[:, :1]).all() for part in parts):
            what = "constant: expected sound, got the same number throughout"
            if not any(part.any() for part in parts):
                what = "silent: expected sound, got zeros only"
            raise InvalidDataError(f"The recording is {what}. Check the file and its channel.")
        if self.recordings == "aligned":
            return framing.split(parts[0]), [parts[0].shape[1]]
        signals = [signal for part in parts for signal in part]
        frames = np.concatenate([framing.split(signal)[0] for signal in signals], axis=0)
        return frames[None], [len(signal) for signal in signals]


def _is_ragged(signals: Any) -> bool:
    """Tell whether recordings came as a sequence of signals rather than as one array or one signal."""
    return isinstance(signals, Sequence) and len(signals) > 0 and np.ndim(signals[0]) > 0


def _like(sources: FloatArray, signals: Any) -> FloatArray:
    """Drop the axis of recordings if one signal came."""
    return sources[:, 0] if np.ndim(signals) == 1 else sources


def _check_sound(recordings: FloatArray, framing: Framing, name: str) -> None:
    if not np.isfinite(recordings).all():
        row, at = np.argwhere(~np.isfinite(recordings))[0]
        raise NonFiniteDataError(
            f"Sample {at} of recording {row} is {recordings[row, at]}. Expected finite numbers. Replace it, "
            "or cut that part out."
        )
    n_recordings, n_samples = recordings.shape
    if n_samples < framing.frame_length:
        hint = "Record more, or use a shorter frame_length."
        if n_recordings >= framing.frame_length:
            hint = "Recordings are rows: pass signals.T, or signals.mean(axis=1) if the columns are channels."
        raise InvalidDataError(
            f"{name} has {n_samples} samples, less than one frame of {framing.frame_length}. {hint}"
        )
