"""Recordings and sources as users pass them, checked; names, components and energies of sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nonneg._arguments import checked_count
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.audio.frames import as_recordings
from nonneg.applications.audio.grouping import GROUPINGS, best_proposal
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.exceptions import InvalidDataError, InvalidParameterError, NonFiniteDataError, UnknownNameError

REST = "rest"
"""The source of what nobody named."""


def checked_recordings(signals: Any) -> FloatArray:
    """Return recordings of equal length or the channels of one, (n_recordings, n_samples)."""
    recordings = as_recordings(signals)
    if not np.isfinite(recordings).all():
        row, at = np.argwhere(~np.isfinite(recordings))[0]
        raise NonFiniteDataError(
            f"Sample {at} of recording {row} is {recordings[row, at]}. Expected finite numbers. Replace it, "
            "or cut that part out."
        )
    # Files of floats may hold such samples; the fifth root leaves room for sums over a frame.
    limit = float(np.finfo(recordings.dtype).max) ** 0.2
    if (peak := float(np.abs(recordings).max())) > limit:
        raise InvalidDataError(
            f"The largest sample is {peak:.3g}: products of powers overflow in {recordings.dtype}. Divide "
            "the recording by its largest sample, or read the file again if it is damaged."
        )
    return recordings


def checked_training(training: Any) -> dict[str, list[FloatArray]]:
    """Return the solo recordings of each source, by its name."""
    if training is None:
        return {}
    if not isinstance(training, Mapping) or not training:
        raise InvalidParameterError(
            "training: expected solo recordings by the names of their sources, such as {'drums': signal, "
            f"'bass': signal}}, got {'none' if isinstance(training, Mapping) else type(training).__name__}."
        )
    checked_names(list(training), "training")
    return {
        name: [checked_recordings(one) for one in solo]
        if isinstance(solo, Sequence) and len(solo) > 0 and np.ndim(solo[0]) > 0
        else [checked_recordings(solo)]
        for name, solo in training.items()
    }


def check_sound(recordings: FloatArray, frame_length: int, called: str = "recording") -> None:
    """Reject recordings that are shorter than a frame, or silent."""
    n_recordings, n_samples = recordings.shape
    if n_samples < frame_length:
        hint = "Record more, or use a shorter frame_length."
        if n_recordings >= frame_length:
            hint = "Recordings are rows: pass signals.T, whose rows are the channels."
        raise InvalidDataError(
            f"The {called} has {n_samples} samples, less than one frame of {frame_length}. {hint}"
        )
    if (recordings == recordings[:, :1]).all():
        raise InvalidDataError(f"The {called} is silent: all samples are equal. Check the file.")


def completed_names(named: Sequence[str], n_sources: int) -> tuple[str, ...]:
    """Return the names of the first sources, and numbers or `REST` for those beyond them."""
    rest = tuple(f"source {at + 1}" for at in range(len(named), n_sources))
    return (*named, *((REST,) if named and len(rest) == 1 else rest))


def checked_names(names: Sequence[Any], where: str) -> tuple[str, ...]:
    """Reject names that cannot be read."""
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InvalidParameterError(f"{where}: expected the name of a source, got {name!r}.")
    return tuple(names)


def checked_n_sources(n_sources: Any, n_components: Any, grouping: Any, trained: Sequence[str]) -> int:
    """Return the number of sources, which the names of trained sources may imply."""
    for name, value in (("n_sources", n_sources), ("n_components", n_components)):
        if value is not None:
            checked_count(name, value)
    if isinstance(grouping, str):
        UnknownNameError.check("grouping", grouping, GROUPINGS)
    if trained and not isinstance(grouping, str):
        raise InvalidParameterError(
            "Training recordings say which components belong to which source: leave grouping (--group) out."
        )
    # One source would be the whole recording.
    count = int(n_sources or max(len(trained), 2))
    if count < len(trained):
        raise InvalidParameterError(
            f"There are training recordings of {len(trained)} sources ({', '.join(trained)}), but "
            f"n_sources={n_sources}. Leave n_sources out."
        )
    if n_components is not None and n_components < count:
        raise InvalidParameterError(
            f"n_components={n_components} is less than n_sources={count}: every source needs its own "
            f"component. Raise n_components, or leave it out."
        )
    return count


def grouped_by_hand(grouping: Any, n_components: int) -> tuple[IntArray, tuple[str, ...]]:
    """Return the source of each component and the names of the sources."""
    if not isinstance(grouping, Mapping):
        raise InvalidParameterError(
            "Expected the components of each source, such as {'drums': [0, 2], 'bass': [1]}, got "
            f"{grouping!r}."
        )
    names = checked_names(list(grouping), "grouping")
    labels = np.full(n_components, len(names), dtype=np.intp)
    for at, (name, members) in enumerate(grouping.items()):
        own = np.atleast_1d(np.asarray(members))
        if own.ndim != 1 or own.size == 0 or own.dtype.kind not in "iu":
            raise InvalidParameterError(
                f"grouping: expected the components of {name!r}, such as [0, 2], got {members!r}."
            )
        if (bad := own[(own < 0) | (own >= n_components)]).size:
            raise InvalidParameterError(
                f"grouping gives component {bad[0]} to {name!r}, but the {n_components} components are "
                f"numbered from 0 to {n_components - 1} (from 1 to {n_components} on the command line)."
            )
        if (used := own[labels[own] < len(names)]).size:
            other = names[labels[used[0]]]
            raise InvalidParameterError(
                f"grouping gives component {used[0]} to {other!r} and to {name!r} (the first is 0, on the "
                "command line 1). Give each to one source."
            )
        labels[own] = at
    if (labels < len(names)).all():
        return labels, names
    if REST in names:
        raise InvalidParameterError(
            f"grouping: {REST!r} is the name of the source of all components that are not listed. List all "
            "of them, or use another name."
        )
    return labels, (*names, REST)


def separation_certificate(
    model: Certificate, proposals: Mapping[str, float], divergences: FloatArray
) -> Certificate:
    """Return the statements about the model and the grouping."""
    # Masks are ratios of sums of components: small changes of single ones do not matter to them.
    statements = [
        replace(one, quantities={**one.quantities, "by_design": "separation"})
        if one.name == "stationarity"
        else one
        for one in model
    ]
    if proposals:
        best = best_proposal(proposals)
        listed = " and ".join(f"{100 * value:.3g}% by {name}" for name, value in proposals.items())
        sentence = (
            f"Components are grouped by {best}, the proposal that leaves the least of the differences "
            f"between components within sources: {listed}."
        )
        statements.append(
            Statement("grouping", sentence, proposals[best], None, Verdict.NOT_VERIFIABLE, dict(proposals))
        )
    if len(divergences):
        by_templates, by_components = divergences.tolist()
        used = "these templates" if by_templates <= by_components else "the components most like each solo"
        sentence = (
            f"The divergence of the spectrogram, per unit of its sum, is {by_templates:.3g} from templates "
            f"of the solo recordings and {by_components:.3g} from components of its own: a source is the sum "
            f"of {used}."
        )
        both = {"templates": by_templates, "components": by_components}
        least = min(both.values())
        statements.append(Statement("training", sentence, least, None, Verdict.NOT_VERIFIABLE, both))
    return Certificate(tuple(statements))
