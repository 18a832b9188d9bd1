"""Figure 6: the memory of searches for anchor words against the size of the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.artifacts import Artifact, Curves, Figure, Measured, Paragraph, Series, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.merit.peak_memory import can_measure, measured_peak
from reproduction.merit.topic_draws import ANCHOR_METHODS, CORPORA, NUMBERS, QUICK, make_draw
from reproduction.merit.topic_memory import measured_topics
from reproduction.registry import TITLES

NAME = "merit/figure-6"
SHOWN = ("merit", "merit(0)", "spa", "fast-gradient", "default")
NAMES = ANCHOR_METHODS | {"whole": "TopicModel, whole", "default": "select_anchors(X, K)"}
# Beyond this many words FastGradient's five square arrays need more than this machine should be asked for.
FAST_GRADIENT_WORDS = 8000
FAST_GRADIENT_STEPS = 3


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per draw and method."""
    if quick:
        return [{"corpus": QUICK, "k": 3, "draw": 0, "method": method} for method in ("merit", "spa")]
    return [
        {"corpus": corpus, "k": k, "draw": 0, "method": method}
        for k in NUMBERS[::-1]
        for corpus in CORPORA
        for method in ("whole", *SHOWN)
    ]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one trial."""
    method = setting["method"]
    draw = make_draw(setting["corpus"], setting["k"], setting["draw"])
    n_words = draw.counts.shape[1]
    facts = {"n_words": n_words, "n_documents": draw.counts.shape[0]}
    if method == "whole":
        return [facts | measured_topics(draw.counts, draw.k, n_jobs=2)]
    if method == "fast-gradient":
        if n_words > FAST_GRADIENT_WORDS:
            return [facts | {"left_out": True}]
        options: dict[str, Any] = {
            "method": method,
            "method_params": {"memory_limit": 8e9},
            "max_iter": FAST_GRADIENT_STEPS,
            "rng": 0,
        }
    elif method in ("spa", "default"):
        options = {"method": "spa"} if method == "spa" else {}
    else:
        lam = 0.0 if method == "merit(0)" else 5e-7
        options = {
            "method": "merit",
            "method_params": {"lam": lam, "t_init": "paper", "recovery": False},
            "init": "spa",
            "tol": 0.25,
            "max_iter": 60,
        }
    return [facts | measured_peak(draw.points, draw.k, options)]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the curves, a table, and the claims."""
    found = {key: group[-1] for key, group in grouped(records, "corpus", "method", "n_words").items()}
    corpora = [name for name in (*CORPORA, QUICK) if any(corpus == name for corpus, _, _ in found)]
    panels = [
        Curves(
            f"{CORPORA.get(corpus, corpus)}: {words}", "words", "MB",
            _series(found, corpus, entry), x_log=True, y_log=True,
        )
        for corpus in corpora
        for entry, words in (("process", "whole process"), ("search", "search alone"))
    ]  # fmt: skip
    columns = {"corpus": "collection", "k": "K", "n_words": "words"}
    columns |= {
        f"{entry} {name}": f"{NAMES[name]}, {entry} (MB)"
        for name in (*SHOWN, "whole")
        for entry in ("process", "search")
        if name != "whole" or entry == "process"
    }
    rows = []
    for corpus, k in dict.fromkeys((record["corpus"], record["k"]) for record in records):
        some = {r["method"]: r for r in records if r["corpus"] == corpus and r["k"] == k}
        row: dict[str, Any] = {
            "corpus": CORPORA.get(corpus, corpus), "k": k, "n_words": next(iter(some.values()))["n_words"],
        }  # fmt: skip
        for name in (*SHOWN, "whole"):
            for entry in ("process", "search"):
                row[f"{entry} {name}"] = Measured(some.get(name, {}).get(entry))
        rows.append(row)
    return [
        Figure("peak-memory", "Peak resident memory against the number of words.", panels),
        Table("Peak resident memory.", columns, rows, 3),
        *_left_out(records),
        *_verdicts(records),
    ]


def _series(found: dict[tuple[Any, ...], dict[str, Any]], corpus: str, entry: str) -> list[Series]:
    series = []
    for name in SHOWN:
        points = sorted(
            (n, max(record[entry], 0.1))
            for (other, method, n), record in found.items()
            if other == corpus and method == name and entry in record
        )
        if points:
            series.append(Series(NAMES[name], [n for n, _ in points], [mb for _, mb in points]))
    sizes = sorted({n for other, _, n in found if other == corpus})
    square = [5 * 8 * n * n / 1e6 for n in sizes]
    return [*series, Series("five square arrays", sizes, square, style="dashed")]


def _left_out(records: Sequence[Record]) -> list[Paragraph]:
    words = [record["n_words"] for record in records if record.get("left_out")]
    if not words:
        return []
    return [
        Paragraph(
            f"FastGradient was not run on {len(words)} draws of {min(words)} to {max(words)} words: its five "
            f"arrays would take {40e-9 * min(words) ** 2:.1f} to {40e-9 * max(words) ** 2:.1f} GB."
        )
    ]


def _verdicts(records: Sequence[Record]) -> list[Verdict]:
    merit = [record for record in records if record["method"] in ("merit", "merit(0)")]
    defaults = [record for record in records if record["method"] == "default"]
    whole = [r for r in records if r["method"] == "whole" and r["corpus"] == "tdt2" and r["k"] == 10]
    largest = max(merit, key=lambda record: record["n_words"], default=None)
    real = largest is not None and largest["n_words"] > 15_000
    return [
        Verdict(
            "MERIT and MERIT(0) need less than 2 GB on every draw, as published",
            None if not real else all(record["process"] < 2000 for record in merit),
            "not measured" if largest is None
            else f"{largest['process']:.0f} MB at {largest['n_words']} words",
        ),
        Verdict(
            "so does the default of select_anchors",
            None if not real or not defaults else all(record["process"] < 2000 for record in defaults),
            "not measured" if not defaults
            else f"at most {max(record['process'] for record in defaults):.0f} MB",
        ),
        Verdict(
            "One TDT2 draw at K = 10 needs at most 500 MB in total, from the counts to the memberships",
            None if not whole else whole[0]["process"] <= 500,
            "not measured" if not whole else f"{whole[0]['process']:.0f} MB",
        ),
        Verdict(
            "It takes at most 20 s on two cores",
            None if not whole else whole[0]["seconds"] <= 20,
            "not measured" if not whole else f"{whole[0]['seconds']:.1f} s",
        ),
    ]  # fmt: skip


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=tuple(CORPORA),
    quick_data_sets=(),
    cost=lambda setting: float(setting["k"]),
    lacks=lambda quick: (
        None if can_measure() else "memory is read from /proc/self/status, which only Linux has."
    ),
)
