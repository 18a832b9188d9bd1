"""Numbers, names and sentences in words a person can use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nonneg.certificates.advice import Advice, advice_for, grade_of

# What a badge says: a statement that fails without harm is a caution.
_TITLES = {"eckart-young-bound": "Eckart-Young lower bound", "symnmf-error": "SymNMF error"}
_BADGES = {"good": "holds", "caution": "caution", "problem": "fails", "open": "not verifiable"}


def number(value: Any, *, digits: int = 4) -> str:
    """Write a number for a person."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f")
    return f"{value:.{digits}g}"


_METHOD_WORDS = {
    "nmf": "NMF",
    "kl": "Kullback-Leibler NMF",
    "lda": "latent Dirichlet allocation",
    "symnmf": "SymNMF",
    "regularized-spa": "regularized SPA",
    "merit": "MERIT",
    "merit-0": "MERIT(0)",
    "fast-anchor": "FastAnchor",
    "fast-gradient": "FastGradient",
    "spa": "SPA",
    "smoothed-spa": "smoothed SPA",
    "vca": "VCA",
    "snpa": "SNPA",
    "xray": "XRAY",
    "spoc": "SPOC",
}


def method(name: str) -> str:
    """Write the name of a method as the literature does."""
    return _METHOD_WORDS.get(name, name)


def counted(count: int, noun: str) -> str:
    """Write how many there are of something."""
    return f"{number(count)} {noun}{'s' * (count != 1)}"


_NAMES = {
    "n_iter": "iterations",
    "n_used": "words used",
    "n_empty": "documents without topic words",
    "n_kept": "nodes with the largest rows",
    "n_seen": "nodes compared",
    "n_mostly_one": "nodes mostly in one community",
    "n_unreached": "nodes not reached",
    "n_isolated": "isolated",
    "n_stored": "nonzeros",
    "dtype": "type of the entries",
    "seconds": "time",
    "similarity_count": "shared top words",
    "stop_reason": "stopped because",
}


def fact(name: str, value: Any) -> tuple[str, str]:
    """Name a number of the record in words."""
    words = _NAMES.get(name, name.removeprefix("n_").replace("_", " "))
    if name == "seconds":
        return words, seconds(value)
    if name == "shape":
        return words, " \N{MULTIPLICATION SIGN} ".join(number(side) for side in value)
    if isinstance(value, Mapping):  # why a run stopped
        return words, str(value["sentence"]).replace("`", "")
    return words, number(value, digits=8)


def tile(name: str, value: Any) -> tuple[str, str]:
    """Write one of the numbers on top of the page."""
    return name, seconds(value) if name == "time" else number(value)


def facts(record: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    """Collect all that someone needs to repeat the run: every single number of the record, by name."""
    groups = []
    for heading, entries in (("Data", record.data), ("Result", record.result)):
        plain = {
            name: value
            for name, value in entries.items()
            if value is not None
            and (name in ("shape", "stop_reason") or not isinstance(value, list | tuple | dict))
        }
        groups.append((heading, [fact(name, value) for name, value in plain.items()]))
    parameters = [(name, number(value)) for name, value in record.parameters.items()]
    return [*groups, ("Parameters", parameters)]


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


def statement(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Prepare one statement of the certificate."""
    threshold, quantities = entry.get("threshold"), entry.get("quantities") or {}
    name, verdict = str(entry["name"]), str(entry["verdict"])
    grade = grade_of(name, verdict, quantities)
    advice = advice_for(name, quantities) if verdict == "fails" else Advice("")
    return {
        "name": _TITLES.get(name, name.replace("-", " ").capitalize()),
        "sentence": entry["sentence"],
        "number": None if entry.get("number") is None else number(entry["number"]),
        "threshold": None if threshold is None else number(threshold),
        "verdict": _BADGES[grade],
        "grade": grade,
        "advice": advice.todo,
        "headline": advice.headline,
        "quantities": [(str(key).replace("_", " "), number(value)) for key, value in quantities.items()],
    }


def failures(record: Any) -> list[str]:
    """Say for the terminal what failed, and what to do about it: problems first."""
    entries = [statement(entry) for entry in record.certificate]
    problems = [f"{one['headline']} {one['sentence']} {one['advice']}" for one in entries if one["headline"]]
    cautions = [one["name"] for one in entries if one["grade"] == "caution"]
    if cautions:
        shown = f"{', '.join(cautions[:4])}{', ...' * (len(cautions) > 4)}"
        problems.append(f"Cautions in the certificate: {shown}.")
    return problems


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
