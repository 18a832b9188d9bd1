"""Candidate topic methods, one of which is recommended."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from nonneg import NMF
from nonneg._typing import FloatArray
from nonneg.applications.topics.anchor_words import find_anchor_words
from nonneg.applications.topics.term_weights import balanced_documents
from nonneg.applications.topics.topic_recovery import document_weights, topics_of_anchors
from nonneg.metrics.clustering import clustering_accuracy
from nonneg.metrics.topics import npmi_coherence, similarity_count, top_words, umass_coherence
from reproduction.device import to_device
from reproduction.merit.topic_draws import N_TOP_WORDS, Draw, clustered_accuracy

WEIGHTS = {
    "unit": "TF-IDF, unit length",
    "plain": "TF-IDF",
    "balanced": "TF-IDF, unit length, balanced",
    "balanced plain": "TF-IDF, balanced",
}
FITTED = ("unit", "plain", "balanced", "balanced plain")
ANCHORS = {"spa": "SPA", "merit": "MERIT", "merit converged": "MERIT, converged"}
FACTORIZATIONS = (
    *(f"nmf {weights}" for weights in FITTED),
    *(f"nmf {weights} cone" for weights in FITTED),
    "nmf unit best of 5",
    "nmf balanced best of 5",
    "kl counts",
    "spa",
    "spa + nmf unit",
    "spa + nmf balanced",
    "lsa balanced",
)
AFTER_MERIT = (
    "merit",
    "merit + nmf unit",
    "merit + nmf balanced",
    "merit + nmf balanced plain",
)
CONVERGED = ("merit converged",)
# A tenth of the authors' gap, which steps with a line search reach.
CONVERGED_GAP = 0.025


def weighted(draw: Draw, name: str) -> Any:
    """Return the documents as a candidate sees them."""
    weights = draw.weights if name.endswith("plain") else draw.unit_weights
    return balanced_documents(weights) if name.startswith("balanced") else weights


def scored(draw: Draw, candidate: str, seed: int, cache: dict[str, Any]) -> dict[str, Any]:
    """Run a candidate and score it."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        # Reaching max_iter is a valid result here.
        warnings.simplefilter("ignore")
        W, H = _found(draw, candidate, seed, cache)
    record: dict[str, Any] = {"candidate": candidate, "seconds": round(time.perf_counter() - started, 3)}
    if H is not None:
        # As topics of unit length would have them: a topic's own length says nothing.
        W = W * np.linalg.norm(H, axis=1)
        words = top_words(H, N_TOP_WORDS)
        record |= {
            "argmax": clustering_accuracy(draw.y, np.argmax(W, axis=1)),
            "similarity": similarity_count(words) / max(1, draw.k * (draw.k - 1) // 2),
            "coherence": float(umass_coherence(draw.counts, words).mean()),
            "npmi": float(npmi_coherence(draw.counts, words).mean()),
        }
    return record | {"k-means": clustered_accuracy(W, draw.y, draw.k, seed, 1)}


def _found(
    draw: Draw, candidate: str, seed: int, cache: dict[str, Any]
) -> tuple[FloatArray, FloatArray | None]:
    first, _, rest = candidate.partition(" + ")
    if rest:
        topics = _topics(draw, first, cache)[0]
        return _polished(weighted(draw, rest.removeprefix("nmf ")), draw.k, topics)
    if first in ANCHORS:
        topics, weights = _topics(draw, first, cache)
        return weights, topics
    if first == "lsa balanced":
        return _leading(weighted(draw, "balanced"), draw.k), None
    if first == "kl counts":
        return _fitted(draw.counts, draw.k, seed, beta_loss="kullback-leibler")
    return _factorized(draw, first.removeprefix("nmf "), seed)


def _topics(draw: Draw, method: str, cache: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
    if method not in cache:
        options: dict[str, Any] = {}
        if method == "merit":
            options = {"recovery": False, "as_published": True}
        elif method == "merit converged":
            options = {
                "recovery": False,
                "init": "spa",
                "steps": "pairwise",
                "t_init": "paper",
                "tol": CONVERGED_GAP,
                "max_iter": 300,
                "ties": "first",
            }
        name = method.partition(" ")[0]
        points = to_device(draw.points) if name == "merit" else draw.points
        found = find_anchor_words(points, draw.k, method=name, **options)
        topics = topics_of_anchors(draw.weights, found.anchors)
        cache[method] = topics, document_weights(draw.counts, topics)
    return cache[method]


def _factorized(draw: Draw, name: str, seed: int) -> tuple[FloatArray, FloatArray]:
    for ending, run in INITS.items():
        if name.endswith(ending):
            return run(weighted(draw, name.removesuffix(ending)), draw.k, seed)
    return _fitted(weighted(draw, name), draw.k, seed)


def _fitted(X: Any, k: int, seed: int, **options: Any) -> tuple[FloatArray, FloatArray]:
    settings: dict[str, Any] = {"tol": 1e-6, "max_iter": 1000, "init": "nndsvda"} | options
    model = NMF(k, random_state=seed, **settings)
    return model.fit_transform(X), model.components_


def _from_cones(X: Any, k: int, seed: int) -> tuple[FloatArray, FloatArray]:
    return _fitted(X, k, seed, init="cone")


def _best_of_five(X: Any, k: int, seed: int) -> tuple[FloatArray, FloatArray]:
    models = [NMF(k, init="random", random_state=5 * seed + at, tol=1e-6, max_iter=1000) for at in range(5)]
    fits = [(model.fit_transform(X), model) for model in models]
    W, model = min(fits, key=lambda fit: fit[1].reconstruction_err_)
    return W, model.components_


INITS: dict[str, Callable[[Any, int, int], tuple[FloatArray, FloatArray]]] = {
    " cone": _from_cones,
    " best of 5": _best_of_five,
}


def _polished(X: Any, k: int, topics: FloatArray) -> tuple[FloatArray, FloatArray]:
    W = np.ascontiguousarray(document_weights(X, topics))
    model = NMF(k, init="custom", tol=1e-6, max_iter=1000)
    # Zeros are left by what follows; a little everywhere lets a coordinate come back.
    return model.fit_transform(X, W=W + 1e-6 * W.max(), H=topics + 1e-9), model.components_


def _leading(X: Any, k: int) -> FloatArray:
    from nonneg.data import as_data_matrix
    from nonneg.data.spectral import truncated_svd

    found = truncated_svd(as_data_matrix(X), k)
    return np.asarray(found.U) * found.s
