"""Words of a record: numbers, counts and names for people, and rows of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

_FORMATS = dict.fromkeys(("conductance", "cosine", "npmi", "stability"), ".2f") | {"recurrence": ".0%"}
_SHARES = ("abundance", "proportion", "share", "usage")  # what is written in percent


def number(value: Any) -> str:
    """Write a number for a person."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def counted(count: int, noun: str) -> str:
    """Write how many there are of something."""
    plural = f"{noun[:-1]}ies" if noun.endswith("ty") else f"{noun}s"
    return f"{number(count)} {noun if count == 1 else plural}"


def percent(share: float) -> str:
    """Write a share in percent, with as many digits as its distance from 0 and 100 asks for."""
    for digits in (1, 2, 3, 4):
        text = f"{100 * share:.{digits}f}"
        if share >= 1 or float(text) < 100:
            return f"{text}%"
    return "more than 99.9999%"


def explained(count: int, noun: str, error: float, whole: str) -> str:
    """Say how much of data something explains, by its relative error."""
    part = percent(max(1.0 - error**2, 0.0))
    return f"{counted(count, noun)} explain{'s' * (count == 1)} {part} of the squared norm of {whole}."


def seconds(value: float) -> str:
    """Write a duration."""
    if value < 1:
        return f"{1000 * value:.0f} ms" if value >= 5e-4 else "under 1 ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"


def lead(data: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Say where data came from, how a run went about them, how long it took and why it stopped."""
    text = f"{data['source']} ({product(data['shape'])})" if "shape" in data else str(data["source"])
    text += f", {counted(data['n_missing'], 'cell')} missing" if data.get("n_missing") else ""
    text += f", by {result['method']}" if result.get("method", "auto") != "auto" else ""
    text += f", in {seconds(result['seconds'])}" if "seconds" in result else ""
    if "stop_reason" in result:
        reason = result["stop_reason"]["sentence"].strip().rstrip(".").replace("`", "")
        text += f" and {counted(result['n_iter'], 'iteration')}; it stopped because {reason}"
    return f"{text}."


def product(shape: Iterable[int]) -> str:
    """Write the shape of data."""
    return " \N{MULTIPLICATION SIGN} ".join(number(side) for side in shape)


def strongest(weights: Any, names: Sequence[Any], count: int) -> list[tuple[Any, float]]:
    """Return the names of the largest positive entries, and these."""
    order = np.argsort(-np.asarray(weights), kind="stable")[:count].tolist()
    return [(names[at], float(weights[at])) for at in order if weights[at] > 0]


def entries_of(**columns: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the entries of a table that is given by its columns."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def rows_of(entries: Iterable[Mapping[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """Return entries as rows of a table for people: shares in percent, NaN as nothing."""
    return [{heading(key): _written(key, entry.get(key)) for key in keys} for entry in entries]


def heading(key: str) -> str:
    """Write the name of a value in words."""
    words = key.removeprefix("n_").replace("held_out", "held-out").replace("_", " ").replace("npmi", "NPMI")
    return {"iter": "iterations", "seconds": "time", "recurrence": "restarts"}.get(words, words)


def _written(key: str, value: Any) -> Any:
    if isinstance(value, float) and np.isnan(value):
        return None
    if isinstance(value, list) and not any(isinstance(one, tuple) for one in value):
        return ", ".join(map(str, value))
    if isinstance(value, float) and key in _FORMATS:
        return f"{value:{_FORMATS[key]}}"
    return percent(value) if value is not None and key.endswith(_SHARES) else value
