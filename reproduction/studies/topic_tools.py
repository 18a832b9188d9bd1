"""Topics beyond the fit: trees over topics, seed words and streams, on collections with known classes."""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist
from sklearn.decomposition import LatentDirichletAllocation, MiniBatchNMF
from sklearn.feature_selection import chi2
from sklearn.metrics import normalized_mutual_info_score

from nonneg._typing import IntArray
from nonneg.applications import TopicModel
from nonneg.applications.topics import seeds as seeding
from nonneg.applications.topics.documents import used_words
from nonneg.applications.topics.term_weights import inverse_frequencies, term_weights
from nonneg.metrics import clustering_accuracy
from reproduction.artifacts import Artifact, Measured, Paragraph, Table, Verdict
from reproduction.experiment import Experiment, Record, Setting
from reproduction.grouping import grouped, mean_and_spread
from reproduction.registry import TITLES
from reproduction.studies.topic_collections import collection

NAME = "studies/topic-tools"
CHOOSING = ("tr11", "tr12", "tr23", "re0")
"""Collections used to choose the linkage of the tree and the strength of seed words."""
REPORTING = ("bbc", "hitech", "fbis", "k1a", "la1", "tr41")
STREAMS = {"choosing": ("planted-6000",), "reporting": ("classic", "tdt2", "reuters")}
QUICK = ("planted-400",)
N_SEEDS, N_DRAWS, BATCH = 3, 5, 200
N_STREAM_DRAWS, N_PEER_DRAWS = 2, 2
SMALLEST_CLASS = 20
"""Smaller classes are left out: half of their documents could not tell their words."""
MULTIPLES = (2, 3, 4)
LINKAGES = ("ward", "complete", "average")
STRENGTHS = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0)
TREE, FREE = "ward, words (default)", "unguided, matched to the classes"
MINI = "scikit-learn MiniBatchNMF, TF-IDF of all documents"
DEFAULT = f"strength {seeding.STRENGTH:g} (default)"


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return a trial per part, collection and draw."""
    if quick:
        return [
            {"part": part, "group": "quick", "collection": QUICK[0], "draw": 0}
            for part in ("tree", "seeds", "stream")
        ]
    found: list[dict[str, Any]] = []
    for group, names in (("choosing", CHOOSING), ("reporting", REPORTING)):
        found += [{"part": "tree", "group": group, "collection": name, "draw": 0} for name in names]
        found += [
            {"part": "seeds", "group": group, "collection": name, "draw": draw}
            for name in names
            for draw in range(N_DRAWS)
        ]
    found += [
        {"part": "stream", "group": group, "collection": name, "draw": draw}
        for group, names in STREAMS.items()
        for name in names
        for draw in range(N_STREAM_DRAWS)
    ]
    # Draw after draw, the longest first.
    return sorted(found, key=lambda setting: (setting["draw"], -cost(setting)))


def cost(setting: Setting) -> float:
    """Return the relative cost of a trial."""
    if setting["part"] == "stream":
        return {"tdt2": 60.0, "reuters": 60.0, "classic": 15.0}.get(setting["collection"], 10.0)
    return {"k1a": 12.0, "la1": 10.0, "fbis": 10.0}.get(setting["collection"], 3.0)


def run(setting: Setting) -> list[dict[str, Any]]:
    """Run one part on one collection."""
    parts: dict[str, Callable[..., list[dict[str, Any]]]] = {
        "tree": _tree,
        "seeds": _seeds,
        "stream": _stream,
    }
    counts, y = _classes(setting["collection"], setting["draw"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parts[setting["part"]](counts, y, setting)


def _classes(name: str, draw: int) -> tuple[Any, IntArray]:
    counts, y = collection(name, seed=draw)
    sizes = np.bincount(y[y >= 0])
    kept = (y >= 0) & (sizes[np.maximum(y, 0)] >= SMALLEST_CLASS)
    return sp.csr_array(counts[np.flatnonzero(kept)]).astype(np.float64), np.unique(
        y[kept], return_inverse=True
    )[1]


def _tree(counts: Any, y: IntArray, setting: Setting) -> list[dict[str, Any]]:
    """Cut the tree over too many topics into as many groups as there are classes."""
    n_classes = int(y.max()) + 1
    records = []
    once = TopicModel(n_classes, random_state=0).fit(counts).predict(counts)
    for multiple in MULTIPLES[:1] if setting["group"] == "quick" else MULTIPLES:
        model = TopicModel(multiple * n_classes, random_state=0).fit(counts)
        topics = model.predict(counts)
        groups = model.hierarchy().cut(n_classes)
        number = {topic: at for at, group in enumerate(groups) for topic in group}
        found = {TREE: np.array([number.get(topic, -1) for topic in topics])}
        rows = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
        for space, points in (("words", rows), ("Hellinger", np.sqrt(model.topics_))):
            for name in LINKAGES:
                if (name, space) != ("ward", "words"):  # the default
                    cut = fcluster(linkage(pdist(points), name), n_classes, "maxclust")
                    found[f"{name}, {space}"] = np.where(topics >= 0, cut[topics], -1)
        found["as many topics as classes"] = once
        records += [
            {"candidate": name, "multiple": multiple, "nmi": float(normalized_mutual_info_score(y, labels))}
            for name, labels in found.items()
        ]
    return records


def _seeds(counts: Any, y: IntArray, setting: Setting) -> list[dict[str, Any]]:
    """Guide topics by words that half of the documents tell; judge them on the other half."""
    n_classes = int(y.max()) + 1
    rng = np.random.default_rng([11, setting["draw"]])
    labeled = rng.random(len(y)) < 0.5
    words = used_words(counts, None, 1.0)
    present = (counts[:, words] > 0).astype(np.float64)
    chosen = [words[_telling(present[labeled], y[labeled] == at)] for at in range(n_classes)]
    # Two classes per draw guide a topic alone; the draws go through the classes.
    some = [(2 * setting["draw"] + step) % n_classes for step in range(min(2, n_classes))]
    judged, free = ~labeled, TopicModel(n_classes, random_state=0).fit(counts).predict(counts)
    best = [max(_f1(y == at, free == topic, judged) for topic in range(n_classes)) for at in some]
    accuracy = clustering_accuracy(y[judged], free[judged])
    records = [{"candidate": FREE, "accuracy": float(accuracy), "f1": float(np.mean(best))}]
    before = seeding.STRENGTH
    # The other strengths are for choosing only.
    for strength in STRENGTHS if setting["group"] == "choosing" else (0.0, before):
        seeding.STRENGTH = strength
        try:
            found = _guided(counts, y, dict(enumerate(chosen)), judged)
            alone = [_guided(counts, y, {at: chosen[at]}, judged)[1] for at in some]
        finally:
            seeding.STRENGTH = before
        name = "initialization only" if strength == 0 else f"strength {strength:g}"
        name = DEFAULT if strength == before else name
        records.append({"candidate": name, "accuracy": found[0], "f1": float(np.mean(alone))})
    if setting["draw"] >= N_PEER_DRAWS:
        return records
    peer = _corex(counts[:, words], [np.searchsorted(words, group) for group in chosen])
    if peer is not None:
        records.append(
            {"candidate": "anchored CorEx", "accuracy": float(np.mean(peer[judged] == y[judged])), "f1": None}
        )
    return records


def _guided(counts: Any, y: IntArray, chosen: Mapping[int, IntArray], judged: Any) -> tuple[float, float]:
    """Return the accuracy of the names of guided topics, and F1 of the first of them."""
    seeds = {f"class {at}": group.tolist() for at, group in chosen.items()}
    model = TopicModel(int(y.max()) + 1, seed_words=seeds, random_state=0).fit(counts)
    classes = np.array([-1 if name is None else int(name.split()[1]) for name in model.topic_names_])
    topics = model.predict(counts)
    found, first = np.where(topics >= 0, classes[topics], -1), next(iter(chosen))
    return float(np.mean((found == y)[judged])), _f1(y == first, found == first, judged)


def _telling(present: Any, inside: Any) -> IntArray:
    """Return the words with the largest chi-squared statistic among those more frequent in a class."""
    scores = np.nan_to_num(chi2(present, inside)[0])
    more = np.asarray(present[inside].mean(axis=0) > present[~inside].mean(axis=0)).reshape(-1)
    return np.argsort(-scores * more, kind="stable")[:N_SEEDS]


def _corex(counts: Any, groups: Sequence[IntArray]) -> IntArray | None:
    """Return the topics of anchored correlation explanation, where it is installed."""
    try:
        corextopic = importlib.import_module("corextopic.corextopic")
    except ImportError:
        return None
    model = corextopic.Corex(n_hidden=len(groups), max_iter=50, seed=0)
    model.fit(
        sp.csr_matrix((counts > 0).astype(int)),
        anchors=[group.tolist() for group in groups],
        anchor_strength=3,
    )
    return np.asarray(model.p_y_given_x.argmax(axis=1))


def _f1(truth: Any, found: Any, judged: Any) -> float:
    truth, found = truth[judged], found[judged]
    return float(2 * np.sum(truth & found) / max(1, truth.sum() + found.sum()))


def _stream(counts: Any, y: IntArray, setting: Setting) -> list[dict[str, Any]]:
    """Learn from batches in random order, once; compare with one fit to all."""
    n_classes = int(y.max()) + 1
    order = np.random.default_rng([12, setting["draw"]]).permutation(len(y))
    counts, y = sp.csr_array(counts[order]), y[order]
    batch = 100 if setting["group"] == "quick" else BATCH
    batches = [sp.csr_array(counts[at : at + batch]) for at in range(0, len(y), batch)]
    whole = TopicModel(n_classes, random_state=0)
    model, lda = TopicModel(n_classes, random_state=0), LatentDirichletAllocation(n_classes, random_state=0)
    words = used_words(counts, None, 1.0)
    inverse = inverse_frequencies(counts[:, words])
    mini = MiniBatchNMF(n_classes, batch_size=batch, random_state=0, forget_factor=1.0)

    def weights(part: Any) -> Any:
        return term_weights(sp.csr_array(part[:, words]), inverse, unit_rows=True)

    runs: dict[str, tuple[Callable[[], Any], Callable[[], IntArray]]] = {
        "one fit": (lambda: whole.fit(counts), lambda: whole.predict(counts)),
        "partial_fit": (lambda: [model.partial_fit(b) for b in batches], lambda: model.predict(counts)),
        MINI: (
            lambda: [mini.partial_fit(weights(part)) for part in batches],
            lambda: mini.transform(weights(counts)).argmax(axis=1),
        ),
        "scikit-learn LatentDirichletAllocation": (
            lambda: [lda.partial_fit(part) for part in batches],
            lambda: lda.transform(counts).argmax(axis=1),
        ),
    }
    records = []
    for name, (learn, label) in runs.items():
        started = time.perf_counter()
        learn()
        seconds = time.perf_counter() - started
        found = label()
        records.append(
            {
                "candidate": name,
                "accuracy": float(clustering_accuracy(y, found)),
                "nmi": float(normalized_mutual_info_score(y, found)),
                "cosine": _cosine(whole, model) if name == "partial_fit" else None,
                "s": round(seconds, 2),
            }
        )
    return records


def _cosine(one: TopicModel, other: TopicModel) -> float:
    """Return the mean cosine between matched topics."""
    rows = [
        model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True) for model in (one, other)
    ]
    alike = rows[0] @ rows[1].T
    return float(alike[linear_sum_assignment(-alike)].mean())


WORDS_OF = {
    "choosing": "collections used to choose the rules",
    "reporting": "test collections",
    "quick": "quick setting",
}
TITLES_OF = {
    "tree": "Two to four times as many topics as classes, cut into as many groups as classes: NMI",
    "seeds": f"{N_SEEDS} seed words for every class: accuracy of the names, on the other documents",
    "one": f"{N_SEEDS} seed words for one class only: F1 of its topic, on the other documents",
    "stream": f"Batches of {BATCH} documents, once: accuracy, topics and classes matched one to one",
    "likeness": f"Batches of {BATCH} documents, once: NMI with the classes",
}


def summarize(records: Sequence[Record]) -> list[Artifact]:
    """Return tables of the three parts, and what they say."""
    shown: list[Artifact] = []
    for part, measure, title in (
        ("tree", "nmi", "tree"),
        ("seeds", "accuracy", "seeds"),
        ("seeds", "f1", "one"),
        ("stream", "accuracy", "stream"),
        ("stream", "nmi", "likeness"),
    ):
        for group in ("choosing", "reporting", "quick"):
            some = [record for record in records if record["part"] == part and record["group"] == group]
            if some:
                shown.append(_table(some, measure, f"{TITLES_OF[title]} ({WORDS_OF[group]})."))
    return [*shown, Paragraph(_stream_sentence(records)), *_verdicts(records)]


def _table(records: Sequence[Record], measure: str, caption: str) -> Table:
    names = list(dict.fromkeys(record["collection"] for record in records))
    groups = grouped(records, "candidate", "collection")
    rows = []
    for candidate in dict.fromkeys(record["candidate"] for record in records):
        row: dict[str, Any] = {"candidate": candidate}
        for name in names:
            mean, spread = mean_and_spread([one.get(measure) for one in groups.get((candidate, name), [])])
            row[name] = None if mean is None else Measured(mean, spread)
        values = [row[name].value for name in names if row[name] is not None]
        if values:
            rows.append(row | {"mean": float(np.mean(values))})
    return Table(
        caption, {"candidate": "candidate", "mean": "mean"} | {name: name for name in names}, rows, 3
    )


def _means(records: Sequence[Record], measure: str) -> dict[str, dict[str, float]]:
    """Return candidate -> collection -> mean."""
    found: dict[str, dict[str, float]] = {}
    for (candidate, name), some in grouped(records, "candidate", "collection").items():
        mean, _ = mean_and_spread([one.get(measure) for one in some])
        if mean is not None:
            found.setdefault(str(candidate), {})[str(name)] = mean
    return found


def _stream_sentence(records: Sequence[Record]) -> str:
    parts = []
    for (name,), some in grouped(
        [record for record in records if record["part"] == "stream"], "collection"
    ).items():
        cosines = [record["cosine"] for record in some if record["candidate"] == "partial_fit"]
        times = {
            candidate: mean_and_spread([one["s"] for one in group])[0]
            for (candidate,), group in grouped(some, "candidate").items()
        }
        said = ", ".join(f"{candidate} {seconds:.3g} s" for candidate, seconds in times.items())
        parts.append(f"{name}: mean cosine {np.mean(cosines):.3f} ({said})")
    return (
        "Streams: mean cosine between the topics of `partial_fit` and those of one fit, matched one to one, "
        f"and mean times. {'; '.join(parts)}."
    )


def _verdicts(records: Sequence[Record]) -> list[Verdict]:
    def means(part: str, measure: str) -> Mapping[str, Mapping[str, float]]:
        return _means([r for r in records if r["part"] == part and r["group"] == "reporting"], measure)

    tree, stream, likeness = means("tree", "nmi"), means("stream", "accuracy"), means("stream", "nmi")
    seeds, one = means("seeds", "accuracy"), means("seeds", "f1")
    claims = (
        ("Ward's criterion on words beats average linkage", tree, TREE, "average, Hellinger", 0.0),
        ("Guided topics bear the right name more often than unguided ones", seeds, DEFAULT, FREE, 0.0),
        ("Seed words are more than an initialization", seeds, DEFAULT, "initialization only", 0.0),
        ("The topic of one guided class is as good as the best unguided one", one, DEFAULT, FREE, 0.0),
        ("partial_fit is within 0.03 of one fit in accuracy", stream, "partial_fit", "one fit", -0.03),
        ("partial_fit is at least as accurate as MiniBatchNMF", stream, "partial_fit", MINI, 0.0),
        ("partial_fit has more NMI with the classes than MiniBatchNMF", likeness, "partial_fit", MINI, 0.0),
    )
    found = []
    for claim, measures, ours, other, margin in claims:
        if ours not in measures or other not in measures:
            found.append(Verdict(claim, None, "not in these records"))
            continue
        both = [
            (measures[ours][name], measures[other][name])
            for name in measures[ours]
            if name in measures[other]
        ]
        mine, theirs = (float(np.mean(side)) for side in zip(*both, strict=True))
        better = sum(a >= b + margin for a, b in both)
        found.append(
            Verdict(
                f"{claim} (mean over the test collections)",
                mine >= theirs + margin,
                f"{mine:.3f} against {theirs:.3f}; so on {better} of {len(both)} collections",
            )
        )
    return found


EXPERIMENT = Experiment(
    NAME,
    TITLES[NAME],
    trials=trials,
    run=run,
    summarize=summarize,
    data_sets=tuple(
        {"bbc": "bbc", "hitech": "hitech_bmme", "tdt2": "tdt2", "reuters": "reuters21578"}.get(
            name, f"cluto_{name}"
        )
        for name in (*CHOOSING, *REPORTING, *STREAMS["reporting"])
    ),
    quick_data_sets=(),
    cost=cost,
)
