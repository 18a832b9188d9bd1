"""Methods of topics by name: factorizations and anchor words."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._random import Seed
from nonneg._registry import Registry
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.method_entries import ApplicationMethod
from nonneg.applications.topics.anchor_words import (
    find_anchor_words,
    least_squares_weights,
    reduced_words,
    topics_of_anchors,
)
from nonneg.applications.topics.documents import rows_of_sum_one, term_weights, unit_rows
from nonneg.certificates.certificate import Certificate
from nonneg.estimators.functional import non_negative_factorization
from nonneg.estimators.nmf import NMF
from nonneg.exceptions import InvalidParameterError
from nonneg.separable.registry import METHODS as ANCHOR_METHODS


@dataclass(frozen=True)
class Task:
    """Documents and parameters of a method."""

    counts: Any  # counts of the used words, float64
    inverse: FloatArray | None  # their inverse document frequencies; None for documents that are weighted
    n_topics: int
    anchors: IntArray | None = None  # anchor words that the user chose, among the used ones
    seeds: Sequence[IntArray] = ()  # seed words of the first topics, among the used ones
    balance: bool = True  # "nmf": whether documents are balanced; otherwise they have unit length
    min_documents: int = 0  # "nmf": documents of smaller topics are set aside
    params: Mapping[str, Any] = field(default_factory=dict)  # of the method and of its iterations
    rng: Seed = None
    n_jobs: int | None = None
    verbose: int = 0


@dataclass(frozen=True)
class TopicMethod(ApplicationMethod):
    """A way to find topics: ``run(task)`` returns `Topics`."""

    encoding: str = "counts"  # how documents are expressed by topics, see `document_weights`
    takes_anchors: bool = False  # whether it can start from anchor words that the user chose
    takes_seeds: bool = False  # whether seed words can guide it


@dataclass(frozen=True)
class Topics:
    """Topics as a method found them."""

    components: FloatArray  # in the method's own unit
    anchors: IntArray | None = None  # anchor words among the used ones
    n_iter: int = 0
    certificate: Certificate = field(default_factory=Certificate)
    result: Any = None  # the method's own result
    set_aside: Any = ()  # documents that took no part, because their groups are too small


def document_weights(
    counts: Any, topics: FloatArray, inverse: FloatArray | None = None, encoding: str = "counts"
) -> FloatArray:
    """Return how much of each topic is in each document, every document on its own."""
    # By nonnegative least squares on counts or on TF-IDF weights, or by maximum likelihood.
    if encoding == "likelihood":
        return np.asarray(
            non_negative_factorization(counts, H=topics, update_H=False, beta_loss="kullback-leibler")[0]
        )
    return least_squares_weights(term_weights(counts, inverse) if encoding == "weights" else counts, topics)


def _anchor_method(name: str) -> Callable[[Task], Topics]:
    def run(task: Task) -> Topics:
        weights = term_weights(task.counts, task.inverse)
        if task.anchors is not None:
            return Topics(topics_of_anchors(weights, task.anchors), task.anchors)
        # As many directions as there can be: few documents span few.
        n_directions = max(1, min(2 * task.n_topics, *weights.shape))
        if n_directions < task.n_topics:
            raise InvalidParameterError(
                f"n_topics={task.n_topics} is more than {weights.shape[0]} documents with "
                f"{weights.shape[1]} used words can distinguish. Ask for fewer."
            )
        result = find_anchor_words(
            reduced_words(weights, n_directions), task.n_topics, method=name, rng=task.rng,
            n_jobs=task.n_jobs, verbose=task.verbose, **task.params,
        )  # fmt: skip
        topics = topics_of_anchors(weights, result.anchors)
        return Topics(topics, result.anchors, result.n_iter, result.certificate, result)

    return run


# More documents than this in groups that are too small are not boilerplate, but what the collection is like.
LARGEST_PART = 0.1


def _least_squares(task: Task) -> Topics:
    """Factorize TF-IDF weights, and do so again without the documents of groups that are too small."""
    topics = _factorized(task)
    if not task.balance or task.anchors is not None or task.seeds:
        return topics
    n_documents = task.counts.shape[0]
    live, attempt = np.arange(n_documents), 0
    while True:
        weights = document_weights(task.counts[live], topics.components, task.inverse, "weights")
        main = np.where(weights.sum(axis=1) > 0, np.argmax(weights, axis=1), -1)
        sizes = np.bincount(main[main >= 0], minlength=task.n_topics)
        inside = np.isin(main, np.flatnonzero(sizes < task.min_documents))
        n_aside = n_documents - int(np.sum(~inside))
        if not inside.any() or n_aside > LARGEST_PART * n_documents:
            return replace(topics, set_aside=np.setdiff1d(np.arange(n_documents), live))
        live, attempt = live[~inside], attempt + 1
        params = dict(task.params)
        if params.get("checkpoint") is not None:
            params["checkpoint"] = Path(params["checkpoint"]) / f"without-small-groups-{attempt}"
        topics = _factorized(replace(task, counts=sp.csr_array(task.counts[live]), params=params))


def _factorized(task: Task) -> Topics:
    """Factorize TF-IDF weights, balanced or of unit length, by `nonneg.NMF` with the Frobenius loss."""
    weights = term_weights(task.counts, task.inverse, unit_rows=not task.balance)
    X = balanced_documents(weights) if task.balance else weights
    options = {"tol": 1e-6, "max_iter": 1000, **task.params}
    factors = {}
    if task.anchors is not None:
        H = topics_of_anchors(term_weights(task.counts, task.inverse), task.anchors)
        W = least_squares_weights(X, H)
    elif task.seeds:
        unit = term_weights(task.counts, task.inverse, unit_rows=True)
        X, W, H = guided_problem(X, unit, task.seeds, task.n_topics, task.rng)
    if task.anchors is not None or task.seeds:
        options["init"] = "custom"
        # Zeros would stay zeros: a little everywhere lets them go.
        factors = {"W": W + 1e-6 * W.max(), "H": H + 1e-9}
    model = NMF(task.n_topics, random_state=task.rng, n_jobs=task.n_jobs, verbose=task.verbose, **options)
    with warnings.catch_warnings():
        # Stopping at the limit is said in the certificate.
        warnings.filterwarnings("ignore", message="Maximum number of iterations")
        model.fit(X, **factors)
    components = unit_rows(model.components_)
    # With seed words the problem that was solved has more documents than there are.
    certificate = Certificate() if task.seeds else model.certificate_
    return Topics(components, task.anchors, model.n_iter_, certificate, model)


def balanced_documents(weights: Any) -> Any:
    """Return documents divided by the root of the sum of their similarities to all others."""
    # This is the normalized-cut weighting NMF-NCW of Xu, Liu & Gong (2003), "Document clustering based on
    # non-negative matrix factorization", SIGIR: a least-squares factorization of it asks for clusters that
    # are far from one another in proportion to their size, where the plain one spends its components on the
    # largest subjects.
    similar = np.asarray(weights @ (weights.T @ np.ones(weights.shape[0])), dtype=np.float64).ravel()
    scale = 1.0 / np.sqrt(np.where(similar > 0, similar, 1.0))
    values = weights.data * np.repeat(scale, np.diff(weights.indptr))
    return sp.csr_array((values.astype(weights.dtype), weights.indices, weights.indptr), shape=weights.shape)


# How much seed words count: the squared norm of a document of them and of the words around them, relative to
# that of an average topic. It is an order of magnitude above one, so that the topic forms around them.
STRENGTH = 10.0


def guided_problem(
    X: Any, weights: Any, seeds: Sequence[IntArray], n_topics: int, rng: Seed
) -> tuple[Any, FloatArray, FloatArray]:
    """Return documents and one more for every group of seed words, and initial factors."""
    # The additional documents are the mean documents that contain the seed words, by how much they do: seed
    # words alone would become a topic of these words and no others, and as an initialization they are
    # forgotten in the iterations.
    contained = np.column_stack([np.asarray(weights[:, places].sum(axis=1)).ravel() for places in seeds])
    profiles = unit_rows((weights.T @ contained).T)
    H = profiles
    if len(H) < n_topics:
        # The others begin with documents that are less like the profiles than those with seed words are.
        likeness = np.asarray(weights @ profiles.T)
        usual = [np.median(likeness[contained[:, at] > 0, at]) for at in range(len(seeds))]
        other = np.clip(1.0 - (likeness / np.maximum(usual, np.finfo(np.float64).tiny)).max(axis=1), 0.0, 1.0)
        model = NMF(n_topics - len(H), random_state=rng, tol=1e-4, max_iter=50)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Maximum number of iterations")
            model.fit(sp.csr_array(sp.diags_array(other) @ X))
        H = np.vstack([H, unit_rows(model.components_)])
    size = np.sqrt(STRENGTH * np.sum(X.data**2) / n_topics)
    X = sp.csr_array(sp.vstack([X, sp.csr_array(size * profiles)], format="csr"))
    return X, least_squares_weights(X, H), H


def _divergence(task: Task) -> Topics:
    """Factorize counts by `nonneg.NMF` with the Kullback-Leibler loss."""
    model = NMF(
        task.n_topics, beta_loss="kullback-leibler", random_state=task.rng, n_jobs=task.n_jobs,
        verbose=task.verbose, **{"tol": 1e-5, "max_iter": 500, **task.params},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Maximum number of iterations")
        model.fit(task.counts[np.flatnonzero(np.diff(task.counts.indptr) > 0)])
    components = rows_of_sum_one(model.components_)
    return Topics(components, None, model.n_iter_, model.certificate_, model)


ITERATIVE = frozenset({"tol", "max_iter", "callback", "checkpoint"})
OF_NMF = frozenset(inspect.signature(NMF).parameters) - (
    ITERATIVE | {"n_components", "random_state", "verbose", "n_jobs", "device"}
)
METHODS: Registry[TopicMethod] = Registry(
    "method",
    {
        "nmf": TopicMethod(
            _least_squares,
            "least squares on TF-IDF weights, balanced so that large subjects do not take all topics",
            options=OF_NMF,
            shared=ITERATIVE | {"device"},
            encoding="weights",
            takes_anchors=True,
            takes_seeds=True,
        ),
        "kl": TopicMethod(
            _divergence,
            "Kullback-Leibler divergence on counts",
            options=OF_NMF - {"beta_loss"},
            shared=ITERATIVE | {"device"},
            encoding="likelihood",
        ),
        **{
            name: TopicMethod(
                _anchor_method(name),
                f"anchor words by {name}: {entry.summary}",
                options=entry.options | (entry.shared & {"init"}),
                shared=entry.shared & ITERATIVE,
                takes_anchors=True,
                aliases=entry.aliases,
            )
            for name, entry in ANCHOR_METHODS.items()
            if name != "auto"
        },
    },
)
"""The methods of `TopicModel`."""
