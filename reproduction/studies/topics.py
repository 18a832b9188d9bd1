"""Topics by the default of `TopicModel` beside what else people use, on collections with known classes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._optional import is_installed
from nonneg._typing import FloatArray, IntArray
from nonneg.applications import TopicModel
from nonneg.applications.topics.term_weights import informative_words
from nonneg.metrics import (
    clustering_accuracy,
    cv_coherence,
    normalized_mutual_information,
    npmi_coherence,
    top_words,
    topic_diversity,
)
from reproduction import data as datasets
from reproduction.artifacts import Artifact, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES
from reproduction.studies.topic_collections import collection

NAME = "studies/topics"
CLUTO = ("tr11", "tr12", "tr23", "tr41", "re0", "k1a", "fbis", "classic", "la1")
# Draws of classes that were stored with the collections: those of the study "merit/topics-recommendation",
# which chose balanced weights, have 3 to 10 classes.
TDT2, REUTERS, PLANTED = "tdt2, 15 classes", "reuters, 10 classes", "planted-20000"
CHOOSING = {
    **dict.fromkeys(CLUTO[:6], (0,)),
    REUTERS: tuple(range(12)),
    "planted-4000": (0, 1),
}
"""Collections and draws used to choose the rules."""
REPORTING = {
    **dict.fromkeys(("bbc", "hitech", *CLUTO[6:]), (0,)),
    TDT2: tuple(range(12)),
    PLANTED: (100, 101, 102),
}
"""Test collections and draws."""
GROUPS: dict[str, dict[str, tuple[int, ...]]] = {
    "choosing": CHOOSING,
    "reporting": REPORTING,
    "quick": {"planted-400": (0,)},
}
PUBLISHED = {"min_documents": 0, "duplicates": "keep", "min_df": 2}
# Slow methods run on the first draw of TDT2, and not on 20,000 documents.
N_SLOW = {TDT2: 1, PLANTED: 0}
METHODS = {
    "default": "TopicModel",
    "published": "balanced weights as published",
    "sklearn-nmf": "scikit-learn NMF on TF-IDF",
    "sklearn-lda": "scikit-learn LDA (batch)",
    "gensim-lda": "gensim LDA",
    "tomotopy-lda": "tomotopy LDA",
}
SLOW = ("sklearn-lda", "gensim-lda", "tomotopy-lda")
PEERS = {"gensim-lda": "gensim", "tomotopy-lda": "tomotopy"}
MEASURES = {
    "nmi": "NMI",
    "accuracy": "accuracy",
    "npmi": "NPMI",
    "c_v": "C_v",
    "diversity": "diversity",
    "smallest": "smallest topic (% of documents)",
    "below": "topics under 1%",
    "seconds": "seconds",
}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one setting per collection, draw and method."""
    if quick:
        known = [method for method in METHODS if method not in PEERS or is_installed(PEERS[method])]
        return [_setting("quick", "planted-400", 0, method) for method in known]
    found = []
    for group in ("choosing", "reporting"):
        for name, draws in GROUPS[group].items():
            for place, draw in enumerate(draws):
                methods = [*METHODS] if group == "reporting" else ["default", "published"]
                if place >= N_SLOW.get(name, len(draws)):
                    methods = [method for method in methods if method not in SLOW]
                found += [(place, _setting(group, name, draw, method)) for method in methods]
    # Draw after draw, the longest first, so that a part of the trials compares all methods.
    found.sort(key=lambda entry: (_stage(*entry), -cost(entry[1])))
    return [setting for _, setting in found]


def _stage(place: int, setting: Mapping[str, Any]) -> int:
    return 0 if place <= 2 and setting["group"] == "reporting" else 2 + place // 4


def _setting(group: str, name: str, draw: int, method: str) -> dict[str, Any]:
    return {"group": group, "collection": name, "draw": draw, "method": method}


def cost(setting: Mapping[str, Any]) -> float:
    """Return the relative cost of a trial."""
    size = {"classic": 2.0, "planted-20000": 6.0, TDT2: 2.0, "planted-4000": 1.0}
    each = {"sklearn-lda": 10.0, "gensim-lda": 10.0, "tomotopy-lda": 10.0}
    return size.get(setting["collection"], 0.6) * each.get(setting["method"], 1.0)


def load(name: str, draw: int) -> tuple[Any, IntArray]:
    """Return the counts and classes of a collection or of a draw of its classes."""
    if ", " not in name:
        return collection(name, seed=draw)
    source, many = name.split(", ")
    found = {"tdt2": datasets.load_tdt2, "reuters": datasets.load_reuters21578}[source]()
    classes = found.extras["class_subsets"][int(many.split()[0])][draw]
    rows = np.flatnonzero(np.isin(found.y, classes))
    return sp.csr_array(found.X[rows]), np.asarray(found.y)[rows]


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one trial."""
    counts, y = load(setting["collection"], setting["draw"])
    filled = np.flatnonzero(np.diff(counts.indptr) > 0)
    counts, y = sp.csr_array(counts[filled]).astype(np.float64), y[filled]
    counts = sp.csr_array(counts[:, informative_words(counts)])
    k = len(np.unique(y[y >= 0]))
    started = time.perf_counter()
    with warnings.catch_warnings():
        # Copies, small groups and reached limits are results here.
        warnings.simplefilter("ignore")
        topics, weights, facts = FITS[setting["method"]](counts, k)
    facts["seconds"] = round(time.perf_counter() - started, 3)
    return [{"n_documents": len(y), "classes": k, **facts, **scores(counts, y, topics, weights)}]


def scores(counts: Any, y: IntArray, topics: FloatArray, weights: FloatArray) -> dict[str, Any]:
    """Score topics against classes and by the words of the documents."""
    main, known = np.argmax(weights, axis=1), y >= 0
    sizes = np.bincount(main[weights.sum(axis=1) > 0], minlength=len(topics))
    words = top_words(topics, 10)
    return {
        "nmi": normalized_mutual_information(y[known], main[known]),
        "accuracy": clustering_accuracy(y[known], main[known]),
        "npmi": float(npmi_coherence(counts, words).mean()),
        "c_v": float(cv_coherence(counts, words).mean()),
        "diversity": topic_diversity(top_words(topics, 25)),
        "smallest": 100.0 * float(sizes.min()) / len(y),
        "below": int(np.sum(sizes < 0.01 * len(y))),
    }


Fit = tuple[FloatArray, FloatArray, dict[str, Any]]


def _ours(**parameters: Any) -> Callable[[Any, int], Fit]:
    def fit(counts: Any, k: int) -> Fit:
        model = TopicModel(k, random_state=0, n_jobs=1, **parameters)
        weights = model.fit_transform(counts)
        facts: dict[str, Any] = {"n_topics": model.n_topics_, "n_few": int(model.few_documents_.sum())}
        facts["n_set_aside"] = len(model.set_aside_)
        facts["n_copies"] = int(np.sum(model.duplicate_of_ != np.arange(len(weights))))
        return model.components_, weights, facts

    return fit


def _sklearn_nmf(counts: Any, k: int) -> Fit:
    from sklearn.decomposition import NMF
    from sklearn.feature_extraction.text import TfidfTransformer

    model = NMF(k, random_state=0)
    weights = model.fit_transform(TfidfTransformer().fit_transform(counts))
    # In units of topics of the same length: its length says nothing about a topic.
    return model.components_, weights * np.linalg.norm(model.components_, axis=1), {}


def _sklearn_lda(counts: Any, k: int) -> Fit:
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(k, random_state=0, n_jobs=1)
    weights = model.fit_transform(counts)
    return model.components_, weights, {}


def _gensim_lda(counts: Any, k: int) -> Fit:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    corpus = [[(word, int(count)) for word, count in document] for document in Sparse2Corpus(counts.T)]
    names = {word: str(word) for word in range(counts.shape[1])}
    model = LdaModel(corpus, num_topics=k, id2word=names, passes=5, random_state=0)
    return model.get_topics(), model.inference(corpus)[0], {}


def _tomotopy_lda(counts: Any, k: int) -> Fit:
    import tomotopy

    model = tomotopy.LDAModel(k=k, seed=0)
    # It leaves out empty documents.
    filled = np.flatnonzero(np.diff(counts.indptr) > 0)
    for row in filled:
        inside = slice(counts.indptr[row], counts.indptr[row + 1])
        model.add_doc(np.repeat(counts.indices[inside], counts.data[inside].astype(int)).astype(str).tolist())
    model.train(300, workers=1)
    topics = np.zeros((k, counts.shape[1]))
    topics[:, [int(word) for word in model.used_vocabs]] = [model.get_topic_word_dist(at) for at in range(k)]
    weights = np.zeros((counts.shape[0], k))
    weights[filled] = [document.get_topic_dist() for document in model.docs]
    return topics, weights, {}


FITS: dict[str, Callable[[Any, int], Fit]] = {
    "default": _ours(),
    "published": _ours(**PUBLISHED),
    "sklearn-nmf": _sklearn_nmf,
    "sklearn-lda": _sklearn_lda,
    "gensim-lda": _gensim_lda,
    "tomotopy-lda": _tomotopy_lda,
}


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return the table of peers, and the collections one by one."""
    shown: list[Artifact] = []
    for group, words in (
        ("reporting", "Test collections"),
        ("choosing", "Collections used to choose the rules"),
        ("quick", "Quick setting"),
    ):
        inside = [record for record in records if record["group"] == group]
        if inside:
            shown += _tables(_shared(inside), words)
    shown += _all_draws([record for record in records if record["group"] == "reporting"])
    return [*shown, *_verdicts(records)]


def _shared(records: Sequence[Record]) -> list[Record]:
    """Keep the draws on which every method was run."""
    methods = {record["method"] for record in records}
    draws = grouped(records, "collection", "draw").values()
    return [r for some in draws if {record["method"] for record in some} == methods for r in some]


def _all_draws(records: Sequence[Record]) -> list[Artifact]:
    """Compare the quick methods on all draws of the collections with several."""
    several = {name for name, draws in REPORTING.items() if len(draws) > 1}
    quick = [r for r in records if r["method"] not in SLOW and r["collection"] in several]
    rows = []
    for (name, method), found in grouped(_shared(quick), "collection", "method").items():
        row = {"collection": name, "method": METHODS[method], "draws": len(found)}
        rows.append(row | {measure: _mean(found, measure) for measure in MEASURES})
    columns = {"collection": "collection", "method": "method", "draws": "draws"} | MEASURES
    return [Table("The quick methods on all draws: means.", columns, rows, 3)] if rows else []


def _mean(records: Sequence[Record], measure: str) -> float | None:
    return mean_and_spread([record.get(measure) for record in records])[0]


def _over_collections(records: Sequence[Record], measure: str) -> float | None:
    """Average over collections, each with the same weight."""
    return mean_and_spread([_mean(some, measure) for some in grouped(records, "collection").values()])[0]


def _tables(records: Sequence[Record], caption: str) -> list[Artifact]:
    methods = {key[0]: some for key, some in grouped(records, "method").items()}
    names = list(dict.fromkeys(record["collection"] for record in records))
    rows, by_collection = [], []
    for method in (method for method in METHODS if method in methods):
        found = methods[method]
        n_shown = {name for name in names if any(record["collection"] == name for record in found)}
        rows.append(
            {"method": METHODS[method], "n": len(n_shown)}
            | {measure: _over_collections(found, measure) for measure in MEASURES}
        )
        by_collection.append(
            {"method": METHODS[method]}
            | {name: _mean([r for r in found if r["collection"] == name], "nmi") for name in names}
        )
    draws = {name: len({r["draw"] for r in records if r["collection"] == name}) for name in names}
    headings = {name: name if draws[name] == 1 else f"{name} ({draws[name]} draws)" for name in names}
    return [
        Table(
            f"{caption}: means over collections, each with the same weight.",
            {"method": "method", "n": "collections"} | MEASURES, rows, 3,
        ),
        Table(f"{caption}: NMI on each.", {"method": "method"} | headings, by_collection, 3),
    ]  # fmt: skip


def _verdicts(records: Sequence[Record]) -> list[Verdict]:
    reporting = [record for record in records if record["group"] == "reporting"]
    shared = _shared(reporting)
    values = {str(key[0]): _over_collections(some, "nmi") for key, some in grouped(shared, "method").items()}
    whole = set(values) == set(METHODS) and {r["collection"] for r in shared} == set(REPORTING) - {PLANTED}
    peers = [method for method in METHODS if method not in ("default", "published")]
    verdicts = [
        Verdict(
            "The default has a larger mean NMI than every peer on the collections that all methods have seen",
            all((values["default"] or 0.0) > (values[method] or 0.0) for method in peers) if whole else None,
            ", ".join(f"{METHODS[m]} {v:.3f}" for m, v in values.items() if v is not None) or "not measured",
        )
    ]
    for name, words in ((TDT2, "draws of TDT2"), (PLANTED, "generated collections")):
        found = {
            method: [r["nmi"] for r in reporting if r["collection"] == name and r["method"] == method]
            for method in ("default", "published", "sklearn-nmf")
        }
        known = all(len(some) == len(REPORTING[name]) for some in found.values())
        means = {method: float(np.mean(some)) for method, some in found.items() if some}
        verdicts.append(
            Verdict(
                f"It has a larger mean NMI than scikit-learn's NMF on the {words}",
                means["default"] > means["sklearn-nmf"] if known else None,
                ", ".join(f"{METHODS[m]} {v:.3f}" for m, v in means.items()) or "not measured",
            )
        )
    # The smallest planted topic has 1.1% of the documents.
    for method, claim in (
        ("default", "Every topic of the default contains at least 0.5% of the 20,000 generated documents"),
        ("published", "The published weights give topics of under 0.1% there"),
    ):
        least = [r["smallest"] for r in reporting if r["collection"] == PLANTED and r["method"] == method]
        met = None
        if len(least) == len(REPORTING[PLANTED]):
            met = min(least) >= 0.5 if method == "default" else max(least) < 0.1
        detail = ", ".join(f"{value:.2f}%" for value in least)
        verdicts.append(Verdict(claim, met, f"smallest topic: {detail}" if least else "not measured"))
    return verdicts


def lacks(quick: bool) -> str | None:
    """Name the peers that are not installed."""
    missing = [] if quick else [name for name in PEERS.values() if not is_installed(name)]
    return None if not missing else f"the table of peers needs {' and '.join(missing)}; install them first."


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=(*(f"cluto_{name}" for name in CLUTO), "bbc", "hitech_bmme", "tdt2", "reuters21578"),
    quick_data_sets=(),
    cost=cost,
    lacks=lacks,
)  # fmt: skip
