"""Sources: their number, names, components and energies."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.applications.audio.frames import STFT
from nonneg.applications.audio.grouping import GROUPINGS, best_proposal
from nonneg.applications.audio.masks import checked_groups
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.exceptions import InvalidParameterError, NonnegWarning, UnknownNameError

REST = "rest"
"""The source of what nobody named."""
# A source with more of the energy leaves nothing to the others, and is worth a warning.
MOST_ENERGY = 0.95
ROUNDING = 1e-9


def default_names(n_sources: int) -> tuple[str, ...]:
    """Number the sources."""
    return tuple(f"source {at + 1}" for at in range(n_sources))


def completed_names(named: Sequence[str], n_sources: int) -> tuple[str, ...]:
    """Return the names given, and names for the sources beyond them."""
    n_more = n_sources - len(named)
    if not named or n_more == 0:
        return tuple(named) or default_names(n_sources)
    more = (REST,) if n_more == 1 else default_names(n_sources)[len(named) :]
    return (*named, *more)


def checked_names(names: Sequence[Any], where: str) -> tuple[str, ...]:
    """Reject names that cannot be distinguished or read."""
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InvalidParameterError(f"{where}: expected the name of a source, got {name!r}.")
        if list(names).count(name) > 1:
            raise InvalidParameterError(f"{where} names the source {name!r} twice. Use different names.")
    return tuple(names)


def checked_n_sources(n_sources: Any, n_components: Any, grouping: Any, named: Sequence[str]) -> int:
    """Return the number of sources, which names or groups may imply; `named` are those with training."""
    for name, value in (("n_sources", n_sources), ("n_components", n_components)):
        if value is None:
            continue
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise InvalidParameterError(f"{name} must be an integer of at least 1, got {value!r}.")
    if isinstance(grouping, str) and grouping not in GROUPINGS:
        raise UnknownNameError.of("grouping", grouping, GROUPINGS)
    if named:
        found = _n_trained(n_sources, grouping, named)
    elif isinstance(grouping, str):
        found = 2 if n_sources is None else int(n_sources)
    elif isinstance(grouping, Mapping):
        found = _n_named(n_sources, grouping)
    else:
        size = np.size(grouping) if n_components is None else n_components
        found = int(checked_groups(grouping, int(size)).max()) + 1
        if n_sources is not None and found != n_sources:
            raise InvalidParameterError(f"grouping names {found} sources, but n_sources={n_sources}.")
    if n_components is not None and n_components < found:
        raise InvalidParameterError(
            f"n_components={n_components} is less than n_sources={found}: every source needs its own "
            f"component. Raise n_components, or leave it out."
        )
    return found


def _n_trained(n_sources: Any, grouping: Any, named: Sequence[str]) -> int:
    if not isinstance(grouping, str):
        raise InvalidParameterError(
            "Training recordings say which components belong to which source: leave grouping (--group) out."
        )
    if n_sources is not None and n_sources < len(named):
        raise InvalidParameterError(
            f"There are training recordings of {len(named)} sources ({', '.join(named)}), but "
            f"n_sources={n_sources}. Leave n_sources out, or raise it to look for further sources."
        )
    return len(named) if n_sources is None else int(n_sources)


def _n_named(n_sources: Any, grouping: Mapping[Any, Any]) -> int:
    checked_names(list(grouping), "grouping")
    # One more if components are left over: they are the rest.
    if n_sources is not None and n_sources not in (len(grouping), len(grouping) + 1):
        raise InvalidParameterError(f"grouping names {len(grouping)} sources, but n_sources={n_sources}.")
    return len(grouping)


def grouped_by_hand(grouping: Any, n_components: int) -> tuple[Any, tuple[str, ...]]:
    """Return the source of each component and the names of the sources, from a mapping or an array."""
    if isinstance(grouping, str):
        raise InvalidParameterError(
            "Expected the components of each source, such as {'drums': [0, 2], 'bass': [1]}, got "
            f"{grouping!r}."
        )
    if not isinstance(grouping, Mapping):
        labels = checked_groups(grouping, n_components)
        return labels, default_names(int(labels.max()) + 1)
    names = checked_names(list(grouping), "grouping")
    labels = np.full(n_components, len(names), dtype=np.intp)
    for at, (name, members) in enumerate(grouping.items()):
        chosen = np.atleast_1d(np.asarray(members))
        if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
            raise InvalidParameterError(
                f"grouping: expected the components of {name!r}, such as [0, 2], got {members!r}."
            )
        if (bad := chosen[(chosen < 0) | (chosen >= n_components)]).size:
            raise InvalidParameterError(
                f"grouping gives component {bad[0]} to {name!r}, but the {n_components} components are "
                f"numbered from 0 to {n_components - 1} (from 1 to {n_components} on the command line)."
            )
        if (taken := chosen[labels[chosen] < len(names)]).size:
            other = names[labels[taken[0]]]
            raise InvalidParameterError(
                f"grouping gives component {taken[0]} to {other!r} and to {name!r}. Give each to one source."
            )
        labels[chosen] = at
    if (labels == len(names)).any():
        if REST in names:
            raise InvalidParameterError(
                f"grouping: {REST!r} is the name of the source of all components that are not listed. List "
                "all of them, or use another name."
            )
        names = (*names, REST)
    return labels, names


def separation_certificate(
    known: Certificate, shares: FloatArray, proposals: Mapping[str, float], divergences: FloatArray
) -> Certificate:
    """Return the statements about the model, the grouping, and the balance of the sources."""
    # Masks are ratios of sums of components: small changes of single ones do not matter to them.
    statements = [
        replace(one, quantities={**one.quantities, "by_design": "separation"})
        if one.name == "stationarity"
        else one
        for one in known
    ]
    if proposals:
        statements.append(grouping_statement(proposals))
    if len(divergences):
        statements.append(training_statement(*divergences.tolist()))
    balance = balance_statement(shares)
    return Certificate((*statements, *([] if balance is None else [balance])))


def grouping_statement(proposals: Mapping[str, float]) -> Statement:
    """Say which of the proposed groupings was taken, and by which number."""
    best = best_proposal(proposals)
    listed = " and ".join(f"{100 * value:.3g}% by {name}" for name, value in proposals.items())
    sentence = (
        f"Components are grouped by {best}, the proposal that spreads the energy most evenly: the largest "
        f"source of the model has {listed}."
    )
    return Statement("grouping", sentence, proposals[best], None, Verdict.NOT_VERIFIABLE, dict(proposals))


def training_statement(by_templates: float, by_components: float) -> Statement:
    """Say whether sources are made of templates of the solos or of components of the recording."""
    taken = "these templates" if by_templates <= by_components else "the components most like each solo"
    sentence = (
        f"The divergence of the spectrogram, per unit of its sum, is {by_templates:.3g} from templates of "
        f"the solo recordings and {by_components:.3g} from components of its own: a source is the sum of "
        f"{taken}."
    )
    numbers = {"templates": by_templates, "components": by_components}
    value = min(by_templates, by_components)
    return Statement("training", sentence, value, None, Verdict.NOT_VERIFIABLE, numbers)


def balance_statement(shares: FloatArray) -> Statement | None:
    """State whether the energy is spread over the sources; nothing about a single one."""
    if len(shares) == 1:
        return None
    largest = float(shares.max())
    if not (np.isfinite(shares).all() and largest > 0):
        sentence = "The sources have no energy, or too little to be measured."
        return Statement("energy-shares", sentence, None, MOST_ENERGY, Verdict.NOT_VERIFIABLE)
    holds = largest <= MOST_ENERGY + ROUNDING
    # As many digits as tell the share from the limit.
    digits = next((d for d in range(1, 9) if (round(100 * largest, d) <= 100 * MOST_ENERGY) == holds), 9)
    sentence = (
        f"The largest source has {100 * largest:.{digits}f}% of the energy of all sources; "
        + ("up to" if holds else "more than")
        + f" {100 * MOST_ENERGY:.0f}% leaves {'something' if holds else 'hardly anything'} for the others."
    )
    verdict = Verdict.HOLDS if holds else Verdict.FAILS
    return Statement("energy-shares", sentence, largest, MOST_ENERGY, verdict)


def shares_of_energy(sources: Iterable[Any], framing: Any) -> FloatArray:
    """Return the share of every source in the sum of the energies; sources yield masks and coefficients."""
    # Coefficients of real signals stand for two frequencies, except those at zero and at half the rate.
    counts: Any = 1.0
    if isinstance(framing, STFT):
        counts = np.full(framing.n_bins, 2.0)
        counts[0] = 1.0
        if framing.frame_length % 2 == 0:
            counts[-1] = 1.0
    energies, unit = [], 0.0
    for masks, parts in sources:
        # Squares of faint recordings vanish.
        unit = unit or max(float(np.abs(part).max(initial=0.0)) for part in parts) or 1.0
        energy = 0.0
        for mask, part in zip(masks, parts, strict=True):
            squares = np.square(np.abs(part / unit * mask))
            energy += float(np.sum(squares.sum(axis=(0, 1), dtype=np.float64) * counts))
        energies.append(energy)
    return np.asarray(energies) / max(sum(energies), np.finfo(float).tiny)


def warn_of_one_source(names: Sequence[str], shares: FloatArray) -> None:
    """Warn where one source holds nearly all of the energy."""
    at = int(np.argmax(shares))
    if len(names) == 1 or shares[at] <= MOST_ENERGY + ROUNDING:
        return
    numbered = tuple(names) == default_names(len(names))
    called = f"Source {at + 1} of {len(names)}" if numbered else f"The source {names[at]!r}"
    warnings.warn(
        f"{called} has {100 * shares[at]:.1f}% of the energy: the components were hardly separated. Try "
        "another grouping (--grouping, or --group by hand), another number of components (--components), or "
        "solo recordings of the sources (--train).",
        NonnegWarning,
        stacklevel=4,
    )
