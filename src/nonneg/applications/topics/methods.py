"""The ways to find topics by name: anchors, factorizations, and latent Dirichlet allocation."""

from __future__ import annotations

import contextlib
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._random import Seed, generator, whole_number
from nonneg._registry import Registry
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.method_entries import ApplicationMethod
from nonneg.applications.topics.anchor_words import find_anchor_words, reduced_words
from nonneg.applications.topics.proportions import AllocationEncoder, LeastSquaresEncoder, NMFEncoder
from nonneg.applications.topics.seeds import guided_problem
from nonneg.applications.topics.term_weights import balanced_documents, term_weights
from nonneg.applications.topics.topic_recovery import document_weights, rows_of_sum_one, topics_of_anchors
from nonneg.certificates.certificate import Certificate
from nonneg.estimators.nmf import NMF
from nonneg.exceptions import InvalidDataError, InvalidParameterError
from nonneg.separable.registry import METHODS as ANCHOR_METHODS


@dataclass(frozen=True)
class Task:
    """What a method is given."""

    counts: Any  # counts of the used words, float64
    inverse: FloatArray  # their inverse document frequencies
    n_topics: int  # how many topics
    anchors: IntArray | None = None  # anchor words that the user chose, among the used ones
    seeds: Sequence[IntArray] = ()  # seed words of the first topics, among the used ones
    balance: bool = True  # "nmf": whether documents are balanced; otherwise they have unit length
    min_documents: float | None = None  # "nmf": the least number of a topic; None for the default
    set_aside: bool = True  # "nmf": whether documents of groups that are too small are set aside
    # Of the method and of its iterations.
    params: Mapping[str, Any] = field(default_factory=dict)
    rng: Seed = None  # for methods that draw
    n_jobs: int | None = None  # threads
    verbose: int = 0  # 1 shows progress


@dataclass(frozen=True)
class TopicMethod(ApplicationMethod):
    """A way to find topics: ``run(task)`` returns `FoundTopics`."""

    takes_anchors: bool = False  # whether it can start from anchor words that the user chose
    takes_seeds: bool = False  # whether seed words can guide it


@dataclass(frozen=True)
class FoundTopics:
    """What a method found."""

    components: FloatArray  # topics in the method's own unit
    # Takes counts of the used words and returns topic proportions before normalization, row by row.
    encode: Callable[[Any], FloatArray]
    anchors: IntArray | None  # anchor words among the used ones
    n_iter: int  # iterations of the method
    certificate: Certificate  # what it says of itself
    result: Any  # the method's own result
    set_aside: IntArray | None = None  # documents that took no part, because their groups are too small


def _anchor_method(name: str) -> Callable[[Task], FoundTopics]:
    def run(task: Task) -> FoundTopics:
        weights = term_weights(task.counts, task.inverse)
        anchors, found = task.anchors, None
        if anchors is None:
            # As many directions as there can be: few documents span few.
            n_directions = max(1, min(2 * task.n_topics, *weights.shape))
            if n_directions < task.n_topics:
                raise InvalidParameterError(
                    f"n_topics={task.n_topics} is more than {weights.shape[0]} documents with "
                    f"{weights.shape[1]} used words can distinguish. Ask for fewer."
                )
            found = find_anchor_words(
                reduced_words(weights, n_directions), task.n_topics, method=name, rng=task.rng,
                n_jobs=task.n_jobs, verbose=task.verbose, **task.params,
            )  # fmt: skip
            anchors = found.anchors
        topics = topics_of_anchors(weights, anchors)
        return FoundTopics(
            topics,
            LeastSquaresEncoder(topics),
            anchors,
            0 if found is None else found.n_iter,
            Certificate() if found is None else found.certificate,
            found,
        )

    return run


# By default a topic has at least this fraction of the documents of an average one: 0.5% of all documents for
# twenty topics. Twice as much takes small classes away from tr41 and Reuters-21578, which chose it.
SMALLEST = 0.1
# Documents of groups that are too small are set aside in this many rounds, up to this fraction of all.
N_ROUNDS, LARGEST_PART = 5, 0.1


def smallest_topic(task: Task, n_documents: int) -> float:
    """Return how many documents a topic has at least."""
    return SMALLEST * n_documents / task.n_topics if task.min_documents is None else task.min_documents


def _least_squares(task: Task) -> FoundTopics:
    """Factorize TF-IDF weights, and do so again without the documents of groups that are too small."""
    n_documents = task.counts.shape[0]
    live = np.arange(n_documents)
    found = _factorized(task)
    if not task.balance or not task.set_aside or task.anchors is not None or task.seeds:
        return found
    for attempt in range(N_ROUNDS):
        weights = found.encode(task.counts[live])
        main = np.where(weights.sum(axis=1) > 0, np.argmax(weights, axis=1), -1)
        sizes = np.bincount(main[main >= 0], minlength=task.n_topics)
        inside = np.isin(main, np.flatnonzero(sizes < smallest_topic(task, len(live))))
        if not inside.any() or n_documents - np.sum(~inside) > LARGEST_PART * n_documents:
            break
        live = live[~inside]
        params = dict(task.params)
        if params.get("checkpoint") is not None:
            params["checkpoint"] = Path(params["checkpoint"]) / f"without-small-groups-{attempt + 1}"
        found = _factorized(replace(task, counts=sp.csr_array(task.counts[live]), params=params))
    return replace(found, set_aside=np.setdiff1d(np.arange(n_documents), live))


def _factorized(task: Task) -> FoundTopics:
    """Factorize TF-IDF weights, balanced or of unit length, by `nonneg.NMF` with the Frobenius loss."""
    X = term_weights(task.counts, task.inverse, unit_rows=not task.balance)
    if task.balance:
        X = balanced_documents(X, smallest_topic(task, int(np.count_nonzero(np.diff(X.indptr)))))
    options = {"tol": 1e-6, "max_iter": 1000, **task.params}
    given = {}
    if task.anchors is not None:
        H = topics_of_anchors(term_weights(task.counts, task.inverse), task.anchors)
        W = document_weights(X, H)
    elif task.seeds:
        weights = term_weights(task.counts, task.inverse, unit_rows=True)
        X, W, H = guided_problem(X, weights, task.seeds, task.n_topics, task.rng)
    if task.anchors is not None or task.seeds:
        options["init"] = "custom"
        # Zeros would stay zeros: a little everywhere lets them go.
        given = {"W": W + 1e-6 * W.max(), "H": H + 1e-9}
    model = NMF(task.n_topics, random_state=task.rng, n_jobs=task.n_jobs, verbose=task.verbose, **options)
    with warnings.catch_warnings():
        # Stopping at the limit is said in the certificate.
        warnings.filterwarnings("ignore", message="Maximum number of iterations")
        model.fit(X, **given)
    lengths = np.linalg.norm(model.components_, axis=1, keepdims=True)
    components = model.components_ / np.where(lengths > 0, lengths, 1.0)
    encode = LeastSquaresEncoder(components, task.inverse)
    # With seed words the problem that was solved has more documents than there are.
    certificate = Certificate() if task.seeds else model.certificate_
    return FoundTopics(components, encode, task.anchors, model.n_iter_, certificate, model)


def _divergence(task: Task) -> FoundTopics:
    """Factorize counts by `nonneg.NMF` with the Kullback-Leibler loss."""
    options = {"tol": 1e-5, "max_iter": 500, **task.params}
    model = NMF(
        task.n_topics, beta_loss="kullback-leibler", random_state=task.rng, n_jobs=task.n_jobs,
        verbose=task.verbose, **options,
    )  # fmt: skip
    filled = np.flatnonzero(np.diff(task.counts.indptr) > 0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Maximum number of iterations")
        model.fit(task.counts[filled])
    sums = model.components_.sum(axis=1)
    components = rows_of_sum_one(model.components_)
    encode = NMFEncoder(model, sums)
    return FoundTopics(components, encode, None, model.n_iter_, model.certificate_, model)


def _allocation(task: Task) -> FoundTopics:
    """Fit scikit-learn's latent Dirichlet allocation to counts."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        task.n_topics,
        random_state=_legacy(task.rng),
        verbose=task.verbose,
        **{"max_iter": 20, **task.params},
    )
    try:
        # scikit-learn prints its progress where results belong.
        with contextlib.redirect_stdout(sys.stderr):
            model.fit(task.counts)
    except ValueError as error:
        raise InvalidDataError(
            f"scikit-learn's LatentDirichletAllocation rejected the documents: {error}"
        ) from error
    return FoundTopics(
        rows_of_sum_one(model.components_),
        AllocationEncoder.of(model),
        None,
        int(model.n_iter_),
        Certificate(),
        model,
    )


def _legacy(rng: Seed) -> Any:
    # scikit-learn takes whole numbers and its own kind of generator.
    if rng is None or isinstance(rng, int | np.integer | np.random.RandomState):
        return rng
    return whole_number(generator(rng))


OF_NMF = frozenset(inspect.signature(NMF).parameters) - {
    *(
        "n_components",
        "random_state",
        "verbose",
        "n_jobs",
        "tol",
        "max_iter",
        "callback",
        "checkpoint",
        "device",
    )
}
OF_ALLOCATION = frozenset(
    {"doc_topic_prior", "topic_word_prior", "learning_method", "learning_decay", "learning_offset"}
    | {"batch_size", "evaluate_every", "total_samples", "perp_tol", "mean_change_tol", "max_doc_update_iter"}
)
ITERATIVE = frozenset({"tol", "max_iter", "callback", "checkpoint"})

METHODS: Registry[TopicMethod] = Registry(
    "method",
    {
        "nmf": TopicMethod(
            _least_squares,
            "least squares on TF-IDF weights, balanced so that large subjects do not take all topics",
            options=OF_NMF,
            shared=ITERATIVE | {"device"},
            takes_anchors=True,
            takes_seeds=True,
        ),
        "kl": TopicMethod(
            _divergence,
            "Kullback-Leibler divergence on counts",
            options=OF_NMF - {"beta_loss"},
            shared=ITERATIVE | {"device"},
        ),
        "lda": TopicMethod(
            _allocation,
            "latent Dirichlet allocation, scikit-learn's variational method",
            options=OF_ALLOCATION,
            shared=frozenset({"max_iter"}),
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
        },
        "merit-0": TopicMethod(
            _anchor_method("merit-0"),
            "anchor words by MERIT without its row sparsity",
            options=(ANCHOR_METHODS["merit"].options | {"init"}) - {"lam"},
            shared=ITERATIVE,
            takes_anchors=True,
        ),
    },
)
"""The methods of `TopicModel`."""
