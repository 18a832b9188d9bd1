"""Numbers, names and sentences in words a person can use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_ACRONYMS = frozenset({"nmf", "kl", "lda", "merit", "snpa", "spa", "spoc", "vca", "xray"})


def number(value: Any, *, digits: int = 4) -> str:
    """Write a number for a person."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f")
    return f"{value:.{digits}g}"


def method(name: str) -> str:
    """Write the name of a method as the literature does."""
    words = (part.upper() if part in _ACRONYMS else part for part in name.split("-"))
    return "-".join(words).replace("symnmf", "SymNMF")


def counted(count: int, noun: str) -> str:
    """Write how many there are of something."""
    return f"{number(count)} {noun}{'s' * (count != 1)}"


def percent(share: float) -> str:
    """Write a share in percent, with as many digits as its distance from 0 and 100 asks for."""
    for digits in (1, 2, 3, 4):
        text = f"{100 * share:.{digits}f}"
        if share >= 1 or float(text) < 100:
            return f"{text}%"
    return "more than 99.9999%"


def seconds(value: float) -> str:
    """Write a duration."""
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"


def listed(names: Sequence[str]) -> str:
    """List names in a sentence."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def ranges(numbers: Iterable[int]) -> str:
    """List whole numbers in ascending order, runs of three and more by their ends."""
    runs: list[list[int]] = []
    for number in sorted(int(number) for number in numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [[f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(number) for number in run] for run in runs]
    return ", ".join(text for part in shown for text in part)


def samples(data: Mapping[str, Any]) -> str:
    """Say how large a table is and where it came from."""
    rows, columns = data["shape"]
    missing = f", {counted(data['n_missing'], 'cell')} missing" if data.get("n_missing") else ""
    return f"{counted(rows, 'sample')} with {counted(columns, 'feature')}{missing} from {data['source']}"


def ending(result: Mapping[str, Any]) -> str:
    """Say how long a run took and why it stopped."""
    reason = result["stop_reason"]["sentence"].strip().rstrip(".").replace("`", "")
    took = f"{counted(result['n_iter'], 'iteration')} and {seconds(result['seconds'])}"
    return f"{took}, and stopped because {reason}"
