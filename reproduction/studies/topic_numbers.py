"""Numbers of topics: what tells the number of classes of a collection, over candidate numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, IntArray
from nonneg.applications import TopicModel
from nonneg.applications.topics.number_of_topics import recommended
from nonneg.metrics import normalized_mutual_information
from reproduction.artifacts import Artifact, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped
from reproduction.registry import TITLES
from reproduction.studies.topic_collections import collection
from reproduction.studies.topic_number_curves import Sample
from reproduction.studies.topics import load as load_draw

NAME = "studies/topic-numbers"
CHOOSING = {
    **dict.fromkeys(("tr11", "tr12", "tr23", "tr41", "re0", "k1a"), (0,)),
    "k1a, 6 classes": (0, 1),
    "k1a, 12 classes": (0,),
    "re0, 5 classes": (0,),
    "tr41, 5 classes": (0,),
    "reuters, 5 classes": (20, 21),
    "reuters, 10 classes": (20, 21),
    "reuters, 15 classes": (20,),
    "mixed-5": (0,),
    "mixed-8": (1,),
    "mixed-14": (2,),
    "mixed-25": (3,),
    "planted-4000": (0,),
}
"""Collections and draws used to choose the rule."""
REPORTING = {
    **dict.fromkeys(("bbc", "hitech", "la1", "classic", "fbis"), (0,)),
    "fbis, 6 classes": (0,),
    "fbis, 11 classes": (0,),
    "tdt2, 5 classes": (20, 21),
    "tdt2, 10 classes": (20, 21),
    "tdt2, 15 classes": (20, 21),
    "tdt2, 20 classes": (20,),
    "tdt2, 25 classes": (20,),
    "mixed-6": (100,),
    "mixed-11": (101,),
    "mixed-18": (102,),
    "mixed-30": (103,),
    "planted-4000": (100,),
}
"""Test collections and draws."""
GROUPS = {"choosing": CHOOSING, "reporting": REPORTING}
CANDIDATES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 25, 30, 40)
N_PARTS = 4
"""Trials that share the candidates of a collection."""
WITHIN, LOST, SMALLEST = 0.3, 0.03, 0.01
"""How far the number may be from that of the classes, as a share of it, how much NMI it may cost, and which
share of the documents makes a class."""


def load(name: str, draw: int) -> tuple[Any, IntArray]:
    """Return counts and classes of a collection, or of some of its classes."""
    source, _, many = name.partition(", ")
    if not many or source in ("tdt2", "reuters"):
        return load_draw(name, draw)
    counts, y = collection(source)
    sizes = np.bincount(y)
    some = np.flatnonzero(sizes >= 0.01 * len(y))
    chosen = np.random.default_rng(draw).choice(some, int(many.split()[0]), replace=False)
    rows = np.flatnonzero(np.isin(y, chosen))
    return sp.csr_array(counts[rows]), y[rows]


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return trials of the curves over parts of the candidates."""
    if quick:
        small = {"group": "reporting", "collection": "planted-400", "draw": 0}
        return [small | {"part": part} for part in range(N_PARTS)]
    found = [
        {"group": group, "collection": name, "draw": draw, "part": part}
        for group, sets in GROUPS.items()
        for name, draws in sets.items()
        for draw in draws
        for part in range(N_PARTS)
    ]
    return sorted(found, key=cost, reverse=True)


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    return 0.3 if setting["collection"].startswith(("tr", "re0", "reuters")) else 1.0


def run(setting: Setting) -> list[dict[str, Any]]:
    """Measure some of the candidates on one collection."""
    counts, y = load(setting["collection"], setting["draw"])
    filled = np.flatnonzero(np.diff(counts.indptr) > 0)
    counts, y = sp.csr_array(counts[filled]).astype(np.float64), y[filled]
    sizes = np.bincount(y[y >= 0])
    classes = int(np.sum(sizes >= SMALLEST * sizes.sum()))
    facts = {"classes": classes, "all classes": int(np.sum(sizes > 0)), "n_documents": len(y)}
    with warnings.catch_warnings():
        # Copies, small groups and reached limits are results here.
        warnings.simplefilter("ignore")
        numbers = [k for k in CANDIDATES if k <= max(2, len(y) // 10)]
        sample = Sample(counts)
        return [
            facts
            | {"k": k, "nmi": _nmi(y, TopicModel(k, random_state=0, n_jobs=1).fit_transform(counts))}
            | (sample.curves(k) if k in numbers else {})
            for k in sorted({*numbers, classes})[setting["part"] :: N_PARTS]
        ]


def _nmi(y: IntArray, weights: FloatArray) -> float:
    """Compare main topics with the classes that are known."""
    return float(normalized_mutual_information(y[y >= 0], np.argmax(weights, axis=1)[y >= 0]))


def _peak(name: str) -> Callable[[Sequence[Record]], int]:
    def rule(curves: Sequence[Record]) -> int:
        values = [float(np.mean(record[name])) for record in curves]
        return int(curves[int(np.argmax(np.round(values, 6)))]["k"])

    return rule


def _least_error(curves: Sequence[Record]) -> int:
    return int(min(curves, key=lambda record: round(record["held-out"], 6))["k"])


def _stable(curves: Sequence[Record]) -> int:
    """Return the largest number that keeps its top words, the former rule."""
    k, values = np.array([r["k"] for r in curves]), np.array([round(r["words 0.8"], 6) for r in curves])
    best = np.array([values[2 * k >= one].max() for one in k])
    enough = np.flatnonzero((values >= 2 / 3) & (values >= 0.92 * best))
    return int(k[enough[-1] if len(enough) else np.argmax(values)])


RULES: dict[str, Callable[[Sequence[Record]], int]] = {
    "modularity, 30 neighbors (the rule)": _peak("modularity 30"),
    "modularity, 10 neighbors": _peak("modularity 10"),
    "modularity, all documents": _peak("modularity all"),
    "largest stable number (the former rule)": _stable,
    "stability of top words, 80% of the documents": _peak("words 0.8"),
    "adjusted Rand index, 80% of the documents": _peak("rand 0.8"),
    "adjusted Rand index, two halves": _peak("rand 0.5"),
    "prediction strength": _peak("strength"),
    "held-out error": _least_error,
    "NPMI": _peak("npmi"),
    "silhouette": _peak("silhouette"),
}


def is_near(k: int, classes: int) -> bool:
    """Tell whether a number is that of the classes, up to 30%."""
    return abs(k - classes) <= WITHIN * classes + 1e-9


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return what the rule recommends, and what other rules find in the same curves."""
    shown: list[Artifact] = []
    verdicts: list[Verdict] = []
    for group, words in (
        ("reporting", "Test collections"),
        ("choosing", "Collections used to choose the rule"),
    ):
        some = [record for record in records if record["group"] == group]
        known = {key: _by_number(found) for key, found in grouped(some, "collection", "draw").items()}
        known = {key: found for key, found in known.items() if found}
        if not known:
            continue
        rows = [_row(key, found) for key, found in known.items()]
        shown += [_found_table(rows, words), _rule_table(known, words)]
        if group == "reporting":
            verdicts = _verdicts(rows, whole=len(rows) == sum(map(len, REPORTING.values())))
    return [*shown, *verdicts]


def _by_number(found: Sequence[Record]) -> dict[int, Record]:
    """Return the curves by number of topics; nothing while some are missing."""
    numbers = {int(record["k"]): record for record in found}
    classes, many = int(found[0]["classes"]), found[0]["n_documents"]
    wanted = {*(k for k in CANDIDATES if k <= max(2, many // 10)), classes}
    return {k: numbers[k] for k in sorted(wanted)} if wanted <= set(numbers) else {}


def _row(key: tuple[Any, ...], known: Mapping[int, Record]) -> dict[str, Any]:
    curves = [record for record in known.values() if "npmi" in record]
    at, near = recommended(np.array([record["modularity 30"] for record in curves]))
    found, classes = curves[at], int(curves[at]["classes"])
    low, high = (int(curves[place]["k"]) for place in near)
    k, given = int(found["k"]), float(known[classes]["nmi"])
    return {
        "collection": key[0], "draw": key[1], "documents": found["n_documents"], "classes": classes, "k": k,
        "range": f"{low} to {high}", "inside": low <= classes <= high, "modularity": found["modularity 30"],
        "nmi": found["nmi"], "given": given,
        "near": is_near(k, classes), "kept": found["nmi"] >= given - LOST,
    }  # fmt: skip


def _found_table(rows: Sequence[Mapping[str, Any]], words: str) -> Table:
    shown = [
        dict(row) | {"right": "yes" if row["near"] and row["kept"] else "no"}
        for row in sorted(rows, key=lambda row: (row["collection"], row["draw"]))
    ]
    columns = {"collection": "collection", "draw": "draw", "documents": "documents", "classes": "classes"}
    columns |= {"k": "recommended", "range": "range", "modularity": "modularity", "nmi": "NMI"}
    columns |= {"given": "NMI with as many as classes", "right": "right"}
    return Table(f"{words}: the recommended numbers.", columns, shown, 3)


def _rule_table(known: Mapping[Any, Mapping[int, Record]], words: str) -> Table:
    rows = []
    for name, rule in RULES.items():
        near, kept, both, gaps, factors = 0, 0, 0, [], []
        for numbers in known.values():
            classes = int(next(iter(numbers.values()))["classes"])
            k = rule([record for record in numbers.values() if "npmi" in record])
            gap = float(numbers[k]["nmi"]) - float(numbers[classes]["nmi"])
            near, kept = near + is_near(k, classes), kept + (gap >= -LOST)
            both += is_near(k, classes) and gap >= -LOST
            gaps.append(gap)
            factors.append(abs(np.log(k / classes)))
        rows.append(
            {"rule": name, "near": near, "kept": kept, "both": both, "gap": float(np.mean(gaps))}
            | {"worst": min(gaps), "factor": float(np.exp(np.mean(factors)))}
        )
    columns = {"rule": "rule", "near": "within 30% of the classes", "kept": "NMI at most 0.03 lower"}
    columns |= {"both": "both", "gap": "NMI less that of the classes, mean", "worst": "smallest"}
    columns |= {"factor": "factor from the classes, geometric mean"}
    return Table(
        f"{words}: rules applied to the curves of {len(known)} collections and draws.", columns, rows, 3
    )


def _verdicts(rows: Sequence[Mapping[str, Any]], *, whole: bool) -> list[Verdict]:
    right = sum(row["near"] and row["kept"] for row in rows)
    kept, inside = sum(row["kept"] for row in rows), sum(row["inside"] for row in rows)
    gap = float(np.mean([row["nmi"] - row["given"] for row in rows]))
    said = f"of {len(rows)} collections and draws"
    return [
        Verdict(
            "Every test collection: within 30% of the number of classes, and at most 0.03 NMI lower",
            right == len(rows) if whole else None,
            f"{right} {said}; NMI alone: {kept}",
        ),
        Verdict(
            "On average over the test collections it costs at most 0.03 NMI",
            gap >= -LOST if whole else None,
            f"{gap:+.3f}",
        ),
        Verdict(
            "The range contains the number of classes in three of four test collections",
            inside >= 0.75 * len(rows) if whole else None,
            f"{inside} {said}",
        ),
    ]


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=(
        *(
            f"cluto_{name}"
            for name in ("tr11", "tr12", "tr23", "tr41", "re0", "k1a", "fbis", "classic", "la1")
        ),
        *("bbc", "hitech_bmme", "tdt2", "reuters21578"),
    ),
    quick_data_sets=(),
    cost=cost,
)
