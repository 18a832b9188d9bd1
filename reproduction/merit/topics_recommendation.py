"""Which topic method to recommend: accuracy, coherence and overlap over many corpora."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from reproduction import data as datasets
from reproduction.artifacts import Artifact, Paragraph, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.merit.table_2 import published
from reproduction.merit.topic_candidates import AFTER_MERIT, CONVERGED, FACTORIZATIONS, scored
from reproduction.merit.topic_draws import CORPORA, NUMBERS, QUICK, Draw, make_draw, prepared_draw
from reproduction.registry import TITLES

NAME = "merit/topics-recommendation"
RECOMMENDED = ("nmf balanced plain", "argmax")
"""The candidate and the way to sort documents that the default of `TopicModel` builds on."""
N_DRAWS = 10
CLUTO = ("tr11", "tr12", "tr23", "tr41", "re0", "fbis", "k1a", "classic", "la1")
OTHERS = ("bbc", "hitech")
PARTS = {"factorizations": FACTORIZATIONS, "after MERIT": AFTER_MERIT, "converged": CONVERGED}
# Exact steps to a small gap take ten times as long as the published ones.
CONVERGED_DRAWS = 2
COLLECTIONS = {"tdt2": "TDT2", "reuters21578": "Reuters-21578", "whole": "CLUTO, BBC, hitech"}
MEASURES = {
    "argmax": "argmax",
    "k-means": "k-means",
    "coherence": "coherence",
    "npmi": "NPMI",
    "similarity": "overlap",
}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per corpus or draw and part of the candidates."""
    if quick:
        return [{"corpus": QUICK, "k": 3, "draw": 0, "part": part} for part in PARTS]
    settings: list[dict[str, Any]] = [
        {"corpus": corpus, "k": k, "draw": draw, "part": part}
        for part in PARTS
        for corpus in CORPORA
        for k in NUMBERS
        for draw in range(CONVERGED_DRAWS if part == "converged" else N_DRAWS)
    ]
    settings += [{"corpus": name, "part": part} for part in PARTS for name in (*CLUTO, *OTHERS)]
    # Draw after draw, so that a part of the trials compares all candidates on the same documents.
    return sorted(
        settings, key=lambda setting: (setting["part"] == "converged", setting.get("draw", 0), cost(setting))
    )


def cost(setting: Mapping[str, Any]) -> float:
    """Return the relative cost of a trial."""
    k = setting.get("k", 30)
    n = {"tdt2": 0.5 + 0.15 * k, "reuters21578": 0.2 + 0.05 * k, QUICK: 0.01}.get(setting["corpus"], 1.0)
    each = {"factorizations": 8.0 * n, "after MERIT": 6.0 * n * n, "converged": 20.0 * n * n}
    return each[setting["part"]] * k / 5.0


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one trial."""
    draw = _draw(setting)
    cache: dict[str, Any] = {}
    facts = {"n_topics": draw.k, "n_words": draw.counts.shape[1], "n_documents": draw.counts.shape[0]}
    return [
        facts | scored(draw, candidate, setting.get("draw", 0), cache) for candidate in PARTS[setting["part"]]
    ]


def _draw(setting: Setting) -> Draw:
    name = setting["corpus"]
    if name in CORPORA or name == QUICK:
        return make_draw(name, setting["k"], setting["draw"])
    loaders = {"bbc": datasets.load_bbc, "hitech": datasets.load_hitech}
    found = loaders[name]() if name in loaders else datasets.load_cluto(name)
    filled = np.flatnonzero(np.diff(sp.csr_array(found.X).indptr) > 0)
    return prepared_draw(sp.csr_array(found.X)[filled], found.y[filled], len(np.unique(found.y[filled])))


def _paired(records: Sequence[Record]) -> list[Record]:
    """Keep the draws on which every candidate was run, but for those that are run on few."""
    done: dict[tuple[Any, ...], set[str]] = {}
    for record in records:
        done.setdefault(_place(record), set()).add(record["part"])
    both = {place for place, parts in done.items() if {"factorizations", "after MERIT"} <= parts}
    return [record for record in records if _place(record) in both] if both else list(records)


def _place(record: Record) -> tuple[Any, ...]:
    return record["corpus"], record.get("k"), record.get("draw")


def _collection(record: Record) -> str:
    return record["corpus"] if record["corpus"] in (*CORPORA, QUICK) else "whole"


def _average(records: Sequence[Record], measure: str) -> float | None:
    return mean_and_spread([record.get(measure) for record in records])[0]


def _by_number(records: Sequence[Record], measure: str) -> float | None:
    """Average over the numbers of topics, each with the same weight."""
    return mean_and_spread([_average(group, measure) for group in grouped(records, "n_topics").values()])[0]


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the comparison."""
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for (name,), found in grouped(
        [dict(record, collection=_collection(record)) for record in _paired(records)], "collection"
    ).items():
        groups[name] = {str(key[0]): some for key, some in grouped(found, "candidate").items()}
    ranking = _ranking(groups)
    shown: list[Artifact] = [_overview(groups, ranking)]
    for name, candidates in groups.items():
        rows = [
            {"candidate": candidate, "n": len(candidates[candidate])}
            | {measure: _by_number(candidates[candidate], measure) for measure in (*MEASURES, "seconds")}
            for candidate, _ in ranking
            if candidate in candidates
        ]
        columns = {"candidate": "candidate", "n": "draws"} | MEASURES | {"seconds": "seconds"}
        shown.append(Table(f"{COLLECTIONS.get(name, name)}: means over K and draws.", columns, rows, 3))
    shown += [_by_k(groups, corpus) for corpus in CORPORA if corpus in groups]
    return [*shown, Paragraph(_words(ranking)), *_verdicts(groups, ranking)]


Ranking = list[tuple[str, dict[str, float]]]


def _ranking(groups: Mapping[str, Mapping[str, Sequence[Record]]]) -> Ranking:
    """Order the candidates by the mean over collections of the better of their two accuracies."""
    found = []
    for candidate in (*FACTORIZATIONS, *AFTER_MERIT, *CONVERGED):
        scores = {}
        for decoder in ("argmax", "k-means"):
            values = [_by_number(some.get(candidate, []), decoder) for some in groups.values()]
            if values and all(value is not None for value in values):
                scores[decoder] = float(np.mean([value for value in values if value is not None]))
        if scores:
            found.append((candidate, scores))
    return sorted(found, key=lambda entry: -max(entry[1].values()))


def _overview(groups: Mapping[str, Mapping[str, Sequence[Record]]], ranking: Ranking) -> Table:
    rows = []
    for candidate, scores in ranking:
        row: dict[str, Any] = {"candidate": candidate, **scores}
        for name, candidates in groups.items():
            records = candidates.get(candidate, [])
            better = [_by_number(records, decoder) for decoder in ("argmax", "k-means")]
            row[name] = max((value for value in better if value is not None), default=None)
        rows.append(row)
    columns = {"candidate": "candidate", "argmax": "argmax", "k-means": "k-means"}
    columns |= {name: COLLECTIONS.get(name, name) for name in groups}
    return Table(
        "Accuracy: mean over the corpora for either decoder, and for the better of the two in each corpus.",
        columns, rows, 3,
    )  # fmt: skip


def _by_k(groups: Mapping[str, Mapping[str, Sequence[Record]]], corpus: str) -> Table:
    candidate, decoder = RECOMMENDED
    rows = []
    for k in NUMBERS:
        row: dict[str, Any] = {"k": k, "published": published(corpus, "accuracy", "merit", k)}
        for name, way in (
            (candidate, decoder),
            ("nmf unit", "k-means"),
            ("merit", "k-means"),
            ("spa", "k-means"),
        ):
            row[name] = _average([r for r in groups[corpus].get(name, []) if r["n_topics"] == k], way)
        rows.append(row)
    columns = {"k": "K", candidate: f"{candidate}, {decoder} (recommended)", "nmf unit": "nmf unit, k-means"}
    columns |= {"merit": "MERIT, k-means", "spa": "SPA, k-means", "published": "MERIT, published (50 draws)"}
    return Table(f"{CORPORA[corpus]}: accuracy by K over the first {N_DRAWS} draws.", columns, rows, 3)


def _words(ranking: Ranking) -> str:
    best = ", ".join(f"{name} {max(scores.values()):.3f}" for name, scores in ranking[:3])
    return f"Best accuracy over the corpora: {best}."


def _verdicts(groups: Mapping[str, Mapping[str, Sequence[Record]]], ranking: Ranking) -> list[Verdict]:
    candidate, decoder = RECOMMENDED
    whole = set(COLLECTIONS) <= set(groups) and all(
        len(groups[corpus].get(candidate, [])) == N_DRAWS * len(NUMBERS) for corpus in CORPORA
    )
    scores = {(name, way): value for name, ways in ranking for way, value in ways.items()}
    ours, best = scores.get(RECOMMENDED), max(scores, key=lambda key: scores[key], default=None)
    verdicts = [
        Verdict(
            f"The method that TopicModel builds on ({candidate}, {decoder}) is within 0.01 of the best "
            "accuracy over the corpora",
            None if not whole or ours is None or best is None else ours >= scores[best] - 0.01,
            "not measured"
            if ours is None or best is None
            else f"{ours:.3f}; best: {best[0]}, {best[1]} {scores[best]:.3f}",
        )
    ]
    for corpus, name in CORPORA.items():
        records = groups.get(corpus, {})
        pairs = [
            (
                _average([r for r in records.get(candidate, []) if r["n_topics"] == k], decoder),
                _average([r for r in records.get("merit", []) if r["n_topics"] == k], "k-means"),
            )
            for k in NUMBERS
        ]
        known = [(one, other) for one, other in pairs if one is not None and other is not None]
        verdicts.append(
            Verdict(
                f"It is more accurate than MERIT on {name} for every K, on the same draws",
                None if not whole or len(known) < len(NUMBERS) else all(one > other for one, other in known),
                ", ".join(f"{one:.3f} ({other:.3f})" for one, other in known) or "not measured",
            )
        )
    return verdicts


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=(*CORPORA, *(f"cluto_{name}" for name in CLUTO), "bbc", "hitech_bmme"),
    quick_data_sets=(),
    cost=cost,
    supports_device=True,
)
