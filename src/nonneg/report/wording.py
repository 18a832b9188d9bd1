"""The sentences and numbers of the report, in words a person can use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nonneg.certificates.advice import Advice, advice_for, grade_of
from nonneg.report.tables import markdown_table

LOSS_WORDS = {
    "frobenius": "squared error",
    "kullback-leibler": "Kullback-Leibler divergence",
    "itakura-saito": "Itakura-Saito divergence",
}

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
    "n_isolated": "nodes without edges",
    "n_self_loops": "self-loops",
    "seconds": "time",
    "similarity_count": "shared top words",
}


def fact(name: str, value: Any, *, digits: int = 8) -> tuple[str, str]:
    """Name a number of the record in words."""
    words = _NAMES.get(name, name.removeprefix("n_").replace("_", " "))
    return words, seconds(value) if name == "seconds" else number(value, digits=digits)


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


def answer(record: Mapping[str, Any]) -> str:
    """Describe the result in one sentence."""
    result = record["result"]
    k = result["n_components"]
    subject = "1 component explains" if k == 1 else f"{number(k)} components explain"
    explained = result.get("explained")
    entries = "the observed entries" if record["data"].get("n_missing") else "the data"
    if result.get("scale"):
        entries = f"{entries}, columns scaled"
    if explained is None or explained < 0:
        words = loss_words(record)
        article = "an" if words[0] in "AEIOU" else "a"
        return f"{counted(k, 'component')} with {article} {words} of {number(result['loss'])}."
    if result["loss_name"] == "frobenius":
        found = f"{subject} {percent(explained)} of the squared norm of {entries}"
    else:
        found = (
            f"{subject} {percent(explained)} of the {loss_words(record)} of {entries} from their column means"
        )
    if dominance := result.get("dominance"):
        columns = dominance["columns"]
        holds = (
            f"one column, {columns[0]}, accounts for"
            if len(columns) == 1
            else f"{_listed(columns)} account for"
        )
        found += f"; {holds} {percent(dominance['share'])} of it"
    return f"{found}."


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def hints(record: Mapping[str, Any]) -> list[str]:
    """Say what a user may want to change."""
    result, found = record["result"], []
    if dominance := result.get("dominance"):
        columns = dominance["columns"]
        found.append(
            f"{_listed(columns)} outweigh{'s' * (len(columns) == 1)} the other "
            f"{dominance['n_columns'] - len(columns)} columns, which may hardly count. --scale max balances "
            f"them; --drop leaves {'it' if len(columns) == 1 else 'them'} out."
        )
    return found


def label_rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Lay out the mean share of every component in every class."""
    labels = record["result"].get("labels")
    if not labels:
        return []
    return [
        {"class": label, "count": count}
        | {f"component {at}": percent(share) for at, share in enumerate(shares)}
        for label, count, shares in zip(labels["classes"], labels["counts"], labels["shares"], strict=True)
    ]


def label_sentence(record: Mapping[str, Any]) -> str:
    """Say how well the strongest components agree with the classes."""
    labels = record["result"].get("labels")
    if not labels:
        return ""
    return (
        f"The strongest component of a sample against its {labels['name']}: purity "
        f"{labels['purity']:.3f}, normalized mutual information {labels['nmi']:.3f}."
    )


def label_table(record: Mapping[str, Any]) -> str:
    """Write the comparison with the classes for the terminal."""
    rows = label_rows(record)
    if not rows:
        return ""
    columns = {"class": str(record["result"]["labels"]["name"]), "count": "samples"}
    columns |= {name: name for name in rows[0] if name not in columns}
    return f"{label_sentence(record)}\n{markdown_table(rows, columns).rstrip()}"


def outcome(record: Mapping[str, Any]) -> str:
    """Say how the run ended."""
    result, data = record["result"], record["data"]
    rows, columns = data["shape"]
    reason = result["stop_reason"]["sentence"].strip().rstrip(".").replace("`", "")
    return (
        f"{counted(rows, 'sample')} with {counted(columns, 'feature')} from {data['source']}, factorized by "
        f"minimizing the {loss_words(record)}. The run took {counted(result['n_iter'], 'iteration')} and "
        f"{seconds(result['seconds'])}, and stopped because {reason}."
    )


def loss_words(record: Mapping[str, Any]) -> str:
    """Name the loss that was minimized."""
    name = str(record["result"]["loss_name"])
    return LOSS_WORDS.get(name, f"beta divergence ({name})")


def tiles(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Choose the few numbers that stand on top."""
    result = record["result"]
    measure = ("relative error", number(result["relative_error"]))
    if result["loss_name"] != "frobenius":
        measure = ("divergence", number(result["loss"]))
    return [
        ("components", number(result["n_components"])),
        measure,
        ("iterations", number(result["n_iter"])),
        ("time", seconds(result["seconds"])),
    ]


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


def failures(record: Mapping[str, Any]) -> list[str]:
    """Say for the terminal what failed, and what to do about it: problems first."""
    found = [statement(entry) for entry in record.get("certificate", [])]
    problems = [f"{one['headline']} {one['sentence']} {one['advice']}" for one in found if one["headline"]]
    cautions = [one["name"] for one in found if one["grade"] == "caution"]
    if cautions:
        listed = f"{', '.join(cautions[:4])}{', ...' * (len(cautions) > 4)}"
        problems.append(f"Cautions in the certificate: {listed}.")
    return problems


def facts(record: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Collect all that someone needs to repeat the run."""
    data, result = record["data"], record["result"]
    rows, columns = data["shape"]
    about_data = [
        ("source", data["source"]),
        ("shape", f"{number(rows)} \N{MULTIPLICATION SIGN} {number(columns)}"),
        ("entries", data["dtype"]),
    ]
    if data.get("n_stored") is not None:
        stored = data["n_stored"]
        about_data.append(("nonzeros", f"{number(stored)} ({percent(stored / (rows * columns))})"))
    if data.get("n_missing"):
        missing = data["n_missing"]
        about_data.append(("missing", f"{number(missing)} ({percent(missing / (rows * columns))})"))
    scale = result.get("scale")
    about_result = [
        ("solver", result["solver"]),
        ("loss", loss_words(record)),
        ("columns divided by", {"std": "standard deviation", None: "nothing"}.get(scale, str(scale))),
        ("final loss", number(result["loss"], digits=8)),
        ("reconstruction error", number(result["reconstruction_err"], digits=8)),
        ("relative error", number(result["relative_error"], digits=8)),
        ("iterations", number(result["n_iter"])),
        ("stopped because", result["stop_reason"]["sentence"].replace("`", "")),
        ("time", seconds(result["seconds"])),
    ]
    if result.get("rank_reason"):
        about_result.append(("number of components", f"{result['n_components']}: {result['rank_reason']}"))
    parameters = [(name, number(value)) for name, value in record.get("parameters", {}).items()]
    return [("Data", about_data), ("Result", about_result), ("Parameters", parameters)]


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
