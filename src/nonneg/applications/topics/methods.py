"""Methods of topics by name: factorizations and anchor words.

Anchor words are words of one topic alone. With F the weights of words in documents (one document per row),
they are found among the rows of the word-word correlation P = F'F / n_documents, which is as wide and as high
as the vocabulary. It is never formed: products with it are two products with F.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh

from nonneg._arrays import to_float64
from nonneg._random import Seed
from nonneg._registry import Registry
from nonneg._threads import threads
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.method_entries import ApplicationMethod, anchor_parameters
from nonneg.applications.topics.documents import rows_of_sum_one, term_weights, unit_rows
from nonneg.certificates.certificate import Certificate
from nonneg.data import as_data_matrix
from nonneg.estimators.nmf import NMF, non_negative_factorization
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.separable.certificate import with_statements
from nonneg.separable.registry import METHODS as ANCHOR_METHODS
from nonneg.separable.registry import split_params
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors
from nonneg.separable.weights import anchor_weights


@dataclass(frozen=True)
class Task:
    """Documents and parameters of a method."""

    counts: Any  # counts of the used words, float64
    inverse: FloatArray | None  # their inverse document frequencies; None for documents that are weighted
    n_topics: int
    anchors: IntArray | None = None  # anchor words that the user chose, among the used ones
    seeds: Sequence[IntArray] = ()  # seed words of the first topics, among the used ones
    params: Mapping[str, Any] = field(default_factory=dict)  # of the method and of its iterations
    rng: Seed = None
    n_jobs: int | None = None
    verbose: int = 0


@dataclass(frozen=True)
class TopicMethod(ApplicationMethod):
    """A way to find topics: ``run(task)`` returns `Topics`."""

    encoding: str = "counts"  # how documents are expressed by topics, see `document_weights`


@dataclass(frozen=True)
class Topics:
    """Topics as a method found them."""

    components: FloatArray  # in the method's own unit
    anchors: IntArray | None = None  # anchor words among the used ones
    n_iter: int = 0
    certificate: Certificate = field(default_factory=Certificate)
    result: Any = None  # the method's own result


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


def least_squares_weights(documents: Any, topics: FloatArray) -> FloatArray:
    """Return how much of each topic is in each document, every document on its own."""
    cross = np.ascontiguousarray(documents @ np.ascontiguousarray(topics.T))
    return nonnegative_least_squares(SharedGram(topics @ topics.T), cross)


# The paper's settings for topics, in the objective with the 1/2 of its (18): the authors' programs leave it
# out, so that their weight of 1e-6 and gap of 0.5 are twice these.
LAM, MU, GAP, LAST_ITERATION = 5e-7, 1e-5, 0.25, 100
# Up to as many documents or words, a dense decomposition is quicker than an iterative one.
DENSE = 500


def reduced_words(weights: Any, n_directions: int) -> FloatArray:
    """Return the words in few dimensions: rows of P of sum one along their leading singular directions."""
    n_documents, n_words = weights.shape

    def correlation(right: FloatArray) -> FloatArray:
        return np.asarray(weights.T @ (weights @ right)) / n_documents

    sums = correlation(np.ones(n_words, dtype=weights.dtype))
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)[:, None]
    if min(weights.shape) <= max(DENSE, n_directions):
        # diag(scale) P = A V' with F = U S V': the leading directions of A are those of the product.
        _, sizes, right = np.linalg.svd(weights.toarray(), full_matrices=False)
        A = scale * right.T * (sizes**2 / n_documents)
        return np.ascontiguousarray(A @ np.linalg.svd(A, full_matrices=False)[2][:n_directions].T)
    gram = LinearOperator(
        (n_words, n_words),
        lambda v: correlation(scale**2 * correlation(v.reshape(n_words, -1))),
        dtype=weights.dtype,
    )
    # From a fixed vector, so that nothing is drawn.
    _, directions = eigsh(gram, n_directions, v0=np.sqrt(np.maximum(sums, 0.0)))
    return np.ascontiguousarray(scale * correlation(directions[:, ::-1]))


def find_anchor_words(
    points: FloatArray,
    n_topics: int,
    *,
    method: str = "merit",
    rng: Seed = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    **options: Any,
) -> SelectionResult:
    """Search for anchor words."""
    name = ANCHOR_METHODS.name_of(method)
    settings = (merit_settings(to_float64(points), n_topics) if name == "merit" else {}) | options
    entry = ANCHOR_METHODS.find(name)
    if entry.kind == "convex":
        settings["verbose"] = verbose
    if entry.signed:
        return select_anchors(points, n_topics, method=name, rng=rng, n_jobs=n_jobs, **split_params(settings))
    # XRAY takes projections of nonnegative points, which `select_anchors` cannot tell from signed data.
    data = as_data_matrix(points)
    with threads(n_jobs):
        return with_statements(entry.run(data, n_topics, rng=rng, **settings), data)


def merit_settings(points: FloatArray, n_topics: int) -> dict[str, Any]:
    """Return the options with which the paper runs MERIT on words."""
    # MERIT starts from the anchors of successive projections and goes on at iteration t, the whole part of
    # ``sqrt(n_words) / ||R||`` with R the residuals of that start, to iteration 100 or a duality gap of 0.25.
    first = select_anchors(points, n_topics, method="spa").anchors
    vertices = points[first]
    residual = points - anchor_weights(as_data_matrix(points), vertices, sum_to_one=True) @ vertices
    t = math.floor(math.sqrt(len(points)) / max(float(np.linalg.norm(residual)), 1e-6)) - 1
    t = min(max(t, 1), LAST_ITERATION - 1)
    return {"lam": LAM, "mu": MU, "tol": GAP, "init": first, "t_init": t, "max_iter": LAST_ITERATION - t}


def topics_of_anchors(weights: Any, anchors: IntArray) -> FloatArray:
    """Return the topics of anchor words: ``min ||P - P[:, anchors] H||`` over nonnegative H, P as it is."""
    n_documents = weights.shape[0]
    beside = np.asarray(weights.T @ weights[:, anchors].toarray()) / n_documents
    cross = np.asarray(weights.T @ (weights @ beside)) / n_documents
    H = nonnegative_least_squares(SharedGram(beside.T @ beside), np.ascontiguousarray(cross))
    return rows_of_sum_one(np.ascontiguousarray(H.T))


def _anchor_method(name: str) -> Callable[[Task], Topics]:
    def run(task: Task) -> Topics:
        weights = term_weights(task.counts, task.inverse)
        if task.anchors is not None:
            return Topics(topics_of_anchors(weights, task.anchors), task.anchors)
        # As many directions as there can be: few documents span few.
        points = reduced_words(weights, min(2 * task.n_topics, *weights.shape))
        result = find_anchor_words(
            points, task.n_topics, method=name, rng=task.rng, n_jobs=task.n_jobs, verbose=task.verbose,
            **task.params,
        )  # fmt: skip
        topics = topics_of_anchors(weights, result.anchors)
        return Topics(topics, result.anchors, result.n_iter, result.certificate, result)

    return run


def _fitted(task: Task, X: Any, factors: Mapping[str, FloatArray] | None = None, **options: Any) -> NMF:
    model = NMF(task.n_topics, random_state=task.rng, n_jobs=task.n_jobs, verbose=task.verbose, **options)
    model._caller = "TopicModel"  # whom progress and messages name
    with warnings.catch_warnings():
        # Stopping at the limit is said in the certificate.
        warnings.filterwarnings("ignore", message="Maximum number of iterations")
        return model.fit(X, **(factors or {}))


def _least_squares(task: Task) -> Topics:
    """Factorize balanced TF-IDF weights by `nonneg.NMF` with the Frobenius loss."""
    weights = term_weights(task.counts, task.inverse)
    # Documents are divided by the root of the sum of their similarities to all others: the normalized-cut
    # weighting NMF-NCW of Xu, Liu & Gong (2003), "Document clustering based on non-negative matrix
    # factorization", SIGIR. A least-squares factorization of them asks for clusters that are far from one
    # another in proportion to their size, where the plain one spends its components on the largest subjects.
    similar = np.asarray(weights @ (weights.T @ np.ones(weights.shape[0])), dtype=np.float64).ravel()
    scale = 1.0 / np.sqrt(np.where(similar > 0, similar, 1.0))
    X = sp.csr_array(weights.multiply(scale[:, None]))
    options = {"tol": 1e-6, "max_iter": 1000, **task.params}
    if not task.seeds:
        model = _fitted(task, X, **options)
        return Topics(unit_rows(model.components_), None, model.n_iter_, model.certificate_, model)
    X, W, H = guided_problem(task, X)
    # Zeros would stay zeros: a little everywhere lets them go.
    factors = {"W": W + 1e-6 * W.max(), "H": H + 1e-9}
    model = _fitted(task, X, factors, **options, init="custom")
    # The problem that was solved has more documents than there are: its certificate is not theirs.
    return Topics(unit_rows(model.components_), None, model.n_iter_, result=model)


# Weight of seed words: the squared norm of a document of them and of the words around them, relative to
# that of an average topic. It is an order of magnitude above one, so that the topic forms around them.
STRENGTH = 10.0


def guided_problem(task: Task, X: Any) -> tuple[Any, FloatArray, FloatArray]:
    """Return documents and one more for every group of seed words, and initial factors."""
    # The additional documents are the mean documents that contain the seed words, by how much they do: seed
    # words alone would become a topic of these words and no others, and as an initialization they are
    # forgotten in the iterations.
    weights, seeds = unit_rows(term_weights(task.counts, task.inverse)), task.seeds
    contained = np.column_stack([np.asarray(weights[:, places].sum(axis=1)).ravel() for places in seeds])
    profiles = unit_rows((weights.T @ contained).T)
    H = profiles
    if n_free := task.n_topics - len(H):
        # The others begin with documents that are less like the profiles than those with seed words are.
        likeness = np.asarray(weights @ profiles.T)
        usual = [np.median(likeness[contained[:, at] > 0, at]) for at in range(len(seeds))]
        other = np.clip(1.0 - (likeness / np.maximum(usual, np.finfo(np.float64).tiny)).max(axis=1), 0.0, 1.0)
        free = replace(task, n_topics=n_free, verbose=0)
        model = _fitted(free, sp.csr_array(sp.diags_array(other) @ X), tol=1e-4, max_iter=50)
        H = np.vstack([H, unit_rows(model.components_)])
    size = np.sqrt(STRENGTH * np.sum(X.data**2) / task.n_topics)
    X = sp.csr_array(sp.vstack([X, sp.csr_array(size * profiles)], format="csr"))
    return X, least_squares_weights(X, H), H


def _divergence(task: Task) -> Topics:
    """Factorize counts by `nonneg.NMF` with the Kullback-Leibler loss."""
    options = {"beta_loss": "kullback-leibler", "tol": 1e-5, "max_iter": 500, **task.params}
    model = _fitted(task, task.counts[np.flatnonzero(np.diff(task.counts.indptr) > 0)], **options)
    return Topics(rows_of_sum_one(model.components_), None, model.n_iter_, model.certificate_, model)


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
                **anchor_parameters(name, ITERATIVE),
            )
            for name, entry in ANCHOR_METHODS.items()
            if name != "auto"
        },
    },
)
"""The methods of `TopicModel`."""
