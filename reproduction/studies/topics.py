"""Defaults of `TopicModel` on collections with known classes: words, weights and the number."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray
from nonneg.applications import TopicModel
from nonneg.applications.topics.documents import used_words
from nonneg.metrics import clustering_accuracy, normalized_mutual_information, npmi_coherence, top_words
from reproduction.artifacts import Artifact, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES
from reproduction.studies.topic_collections import collection

NAME = "studies/topics"
FAMILIES = {
    "news wire": ("reuters", "re0", "tdt2"),
    "newspapers": ("bbc", "la1", "hitech"),
    "TREC": ("tr11", "tr12", "tr23", "tr41", "fbis"),
    "web pages": ("k1a",),
    "abstracts": ("classic",),
}
QUICK = "planted-400"
CANDIDATES = {
    "default": "`TopicModel(k)`: `min_df=2`",
    "growing": "`min_df` that grows with the root of the number of documents",
    "sklearn-nmf": "scikit-learn's NMF on TF-IDF",
}
AUTO = "auto"
MEASURES = {
    "nmi": "NMI",
    "accuracy": "accuracy",
    "npmi": "NPMI",
    "smallest": "smallest topic",
    "n_words": "words used",
}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per collection and candidate."""
    names = [QUICK] if quick else [name for family in FAMILIES.values() for name in family]
    found = [
        {"collection": name, "candidate": candidate} for name in names for candidate in (*CANDIDATES, AUTO)
    ]
    return sorted(found, key=cost, reverse=True)


def cost(setting: Mapping[str, Any]) -> float:
    """Return the relative cost of a trial."""
    size = {"reuters": 20.0, "tdt2": 10.0, "k1a": 2.0}.get(setting["collection"], 1.0)
    return size * (1.0 if setting["candidate"] != AUTO else 10.0)


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one trial."""
    counts, y = collection(setting["collection"])
    counts = sp.csr_array(counts).astype(np.float64)
    counts = sp.csr_array(counts[:, used_words(counts, 2, 1.0)])
    filled = np.flatnonzero(np.diff(counts.indptr) > 0)
    counts, y = sp.csr_array(counts[filled]), y[filled]
    labels = y[y >= 0]
    k = len(np.unique(labels))
    started = time.perf_counter()
    with warnings.catch_warnings():
        # Reached limits are results here.
        warnings.simplefilter("ignore")
        topics, weights, facts = FITS[setting["candidate"]](counts, k)
    facts["seconds"] = round(time.perf_counter() - started, 3)
    main, known = np.argmax(weights, axis=1), y >= 0
    sizes = np.bincount(main[weights.sum(axis=1) > 0], minlength=len(topics))
    scores = {
        "nmi": normalized_mutual_information(y[known], main[known]),
        "accuracy": clustering_accuracy(y[known], main[known]),
        "npmi": float(npmi_coherence(counts, top_words(topics, 10)).mean()),
        "smallest": int(sizes.min()),
    }
    # Classes with less than 1% of the documents are not sought.
    large = int(np.sum(np.bincount(labels) >= 0.01 * len(y)))
    return [{"n_documents": len(y), "classes": k, "large_classes": large, **facts, **scores}]


Fit = tuple[FloatArray, FloatArray, dict[str, Any]]


def _ours(**parameters: Any) -> Callable[[Any, int], Fit]:
    def fit(counts: Any, k: int) -> Fit:
        options = {"n_topics": k, "random_state": 0, "n_jobs": 1, **parameters}
        if options.get("min_df") == "growing":
            # The default of earlier versions.
            options["min_df"] = max(2, round(np.sqrt(counts.shape[0]) / 10))
        model = TopicModel(**options)
        weights = model.fit_transform(counts)
        facts: dict[str, Any] = {"n_topics": model.n_topics_, "n_words": len(model.word_indices_)}
        facts["n_few"] = int(model.few_documents_.sum())
        if model.selection_ is not None:
            facts |= {"range": model.selection_["range"], "modularity": max(model.selection_["modularity"])}
            facts["stands_out"] = not model.selection_["reason"].startswith("No number stands out")
        return model.components_, weights, facts

    return fit


def _sklearn_nmf(counts: Any, k: int) -> Fit:
    from sklearn.decomposition import NMF
    from sklearn.feature_extraction.text import TfidfTransformer

    model = NMF(k, random_state=0)
    weights = model.fit_transform(TfidfTransformer().fit_transform(counts))
    # In units of topics of the same length: its length says nothing about a topic.
    lengths = np.linalg.norm(model.components_, axis=1)
    return model.components_, weights * lengths, {"n_topics": k, "n_words": counts.shape[1]}


FITS: dict[str, Callable[[Any, int], Fit]] = {
    "default": _ours(),
    "growing": _ours(min_df="growing"),
    "sklearn-nmf": _sklearn_nmf,
    AUTO: _ours(n_topics="auto"),
}


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the candidates by family, by collection, and the recommended numbers."""
    fits = [record for record in records if record["candidate"] != AUTO]
    chosen = [record for record in records if record["candidate"] == AUTO]
    shown: list[Artifact] = []
    if fits:
        # Means are over the collections on which every candidate was run.
        by_name = grouped(fits, "collection")
        whole = [
            r for some in by_name.values() if {r["candidate"] for r in some} == {*CANDIDATES} for r in some
        ]
        families: dict[str, list[Record]] = {
            name: [r for r in whole if r["collection"] in some] for name, some in FAMILIES.items()
        }
        families = {name: some for name, some in families.items() if some} or {QUICK: [*fits]}
        shown = [_by_family(families), _by_collection(fits), _means(families)]
    if chosen:
        shown.append(_numbers(chosen, fits))
    return [*shown, *_verdicts(fits, chosen)]


def _mean(records: Sequence[Record], candidate: str, measure: str = "nmi") -> float | None:
    return mean_and_spread([r.get(measure) for r in records if r["candidate"] == candidate])[0]


def _by_family(families: Mapping[str, Sequence[Record]]) -> Table:
    columns = {"candidate": "candidate"} | {name: name for name in families} | {"mean": "mean of families"}
    rows = []
    for candidate, words in CANDIDATES.items():
        values = {name: _mean(some, candidate) for name, some in families.items()}
        rows.append({"candidate": words, **values, "mean": mean_and_spread(list(values.values()))[0]})
    return Table("Mean NMI with the classes by family, as many topics as classes.", columns, rows, 3)


def _by_collection(fits: Sequence[Record]) -> Table:
    rows = []
    for (name,), some in grouped(fits, "collection").items():
        row = {"collection": name, "documents": some[0]["n_documents"], "classes": some[0]["classes"]}
        rows.append(row | {candidate: _mean(some, candidate) for candidate in CANDIDATES})
    columns = {name: name for name in ("collection", "documents", "classes", *CANDIDATES)}
    return Table("NMI on each collection.", columns, rows, 3)


def _means(families: Mapping[str, Sequence[Record]]) -> Table:
    rows = [
        {"candidate": words}
        | {
            measure: mean_and_spread([_mean(some, candidate, measure) for some in families.values()])[0]
            for measure in MEASURES
        }
        for candidate, words in CANDIDATES.items()
    ]
    return Table("Means of families.", {"candidate": "candidate"} | MEASURES, rows, 3)


def _numbers(chosen: Sequence[Record], fits: Sequence[Record]) -> Table:
    rows = []
    for record in sorted(chosen, key=lambda record: str(record["collection"])):
        low, high = record["range"]
        rows.append(
            {
                "collection": record["collection"],
                "classes": record["large_classes"],
                "recommended": record["n_topics"],
                "range": f"{low} to {high}",
                "modularity": record["modularity"],
                "stands out": "yes" if record["stands_out"] else "no",
                "NMI": record["nmi"],
                "NMI with as many as classes": _mean(
                    [r for r in fits if r["collection"] == record["collection"]], "default"
                ),
            }
        )
    columns = {name: name for name in rows[0]}
    return Table('`n_topics="auto"`: classes with 1% of the documents or more.', columns, rows, 3)


def _verdicts(fits: Sequence[Record], chosen: Sequence[Record]) -> list[Verdict]:
    whole = {name for family in FAMILIES.values() for name in family}
    complete = whole <= {record["collection"] for record in fits}
    families = [[r for r in fits if r["collection"] in some] for some in FAMILIES.values()]
    means = {
        candidate: mean_and_spread([_mean(some, candidate) for some in families])[0]
        for candidate in CANDIDATES
    }
    detail = ", ".join(f"{name} {value:.3f}" for name, value in means.items() if value is not None)
    default = means["default"] or 0.0
    verdicts = [
        Verdict(
            f"Averaged over families, the NMI of the default is at most 0.01 below that of: {other}",
            default >= (means[other] or 0.0) - 0.01 if complete else None,
            detail or "not measured",
        )
        for other in CANDIDATES
        if other != "default"
    ]
    pairs = [
        (r["nmi"], _mean([f for f in fits if f["collection"] == r["collection"]], "default")) for r in chosen
    ]
    losses = [float(other) - float(nmi) for nmi, other in pairs if other is not None]
    verdicts.append(
        Verdict(
            "Averaged over collections, the recommended number costs at most 0.03 NMI against as many topics "
            "as classes",
            float(np.mean(losses)) <= 0.03 if complete and len(losses) == len(whole) else None,
            f"{np.mean(losses):.3f}" if losses else "not measured",
        )
    )
    return verdicts


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=(
        *(f"cluto_{name}" for name in (*FAMILIES["TREC"], "k1a", "re0", "la1", "classic")),
        "bbc",
        "hitech_bmme",
        "tdt2",
        "reuters21578",
    ),
    quick_data_sets=(),
    cost=cost,
)  # fmt: skip
