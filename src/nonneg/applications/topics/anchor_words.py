"""Anchor words: words of one topic alone, found among the rows of the word-word correlation.

With F the weights of words in documents (one document per row), the correlation P = F'F / n_documents is as
wide and as high as the vocabulary. It is never formed: products with it are two products with F.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from nonneg._arrays import to_float64
from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.documents import rows_of_sum_one
from nonneg.data import as_data_matrix
from nonneg.kernels.grams import SharedGram
from nonneg.leastsquares import nonnegative_least_squares
from nonneg.separable.certificate import with_statements
from nonneg.separable.registry import METHODS, split_params
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors
from nonneg.separable.weights import anchor_weights

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
    name = METHODS.name_of(method)
    settings = merit_settings(to_float64(points), n_topics, options) if name == "merit" else {}
    settings |= options
    entry = METHODS.find(name)
    if entry.kind == "convex":
        settings["verbose"] = verbose
    if entry.signed:
        return select_anchors(points, n_topics, method=name, rng=rng, n_jobs=n_jobs, **split_params(settings))
    # XRAY takes projections of nonnegative points, which `select_anchors` cannot tell from signed data.
    METHODS.check_options(name, settings)
    data = as_data_matrix(points)
    with threads(n_jobs):
        keywords = {**settings, "rng": rng} if entry.seeded else settings
        return with_statements(entry.run(data, n_topics, **keywords), data)


def merit_settings(points: FloatArray, n_topics: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with which the paper runs MERIT on words."""
    # MERIT starts from the anchors of successive projections and goes on at iteration t, the whole part of
    # ``sqrt(n_words) / ||R||`` with R the residuals of that start, to iteration 100 or a duality gap of 0.25.
    common = {"lam": LAM, "mu": MU, "tol": GAP}
    if "init" in options or "t_init" in options:
        return {**common, "max_iter": LAST_ITERATION}
    first = select_anchors(points, n_topics, method="spa").anchors
    vertices = points[first]
    residual = points - anchor_weights(as_data_matrix(points), vertices, sum_to_one=True) @ vertices
    size = float(np.linalg.norm(residual))
    t = math.inf if size == 0 else math.sqrt(len(points)) / size
    t = int(np.clip(math.floor(min(t, 1e6)) - 1, 1, LAST_ITERATION - 1))
    return {**common, "init": first, "t_init": t, "max_iter": LAST_ITERATION - t}


def topics_of_anchors(weights: Any, anchors: IntArray) -> FloatArray:
    """Return the topics of anchor words: ``min ||P - P[:, anchors] H||`` over nonnegative H, P as it is."""
    n_documents = weights.shape[0]
    beside = np.asarray(weights.T @ weights[:, anchors].toarray()) / n_documents
    cross = np.asarray(weights.T @ (weights @ beside)) / n_documents
    H = nonnegative_least_squares(SharedGram(beside.T @ beside), np.ascontiguousarray(cross))
    return rows_of_sum_one(np.ascontiguousarray(H.T))


def least_squares_weights(documents: Any, topics: FloatArray) -> FloatArray:
    """Return how much of each topic is in each document, every document on its own."""
    cross = np.ascontiguousarray(documents @ np.ascontiguousarray(topics.T))
    return nonnegative_least_squares(SharedGram(topics @ topics.T), cross)
