"""From documents to topic proportions: encoders of the methods, and representative documents."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.term_weights import term_weights
from nonneg.applications.topics.topic_recovery import document_weights, rows_of_sum_one
from nonneg.estimators.nmf import NMF
from nonneg.estimators.saving import Model
from nonneg.estimators.stored_fields import Part, StoredArray, Value
from nonneg.exceptions import DataChangedWarning


@dataclass(frozen=True)
class LeastSquaresEncoder:
    """Nonnegative least squares on the topics, every document on its own."""

    components: FloatArray  # the topics
    # Inverse document frequencies, where topics are made of TF-IDF weights of unit length; None for counts.
    inverse: FloatArray | None = None

    def __call__(self, counts: Any) -> FloatArray:
        """Return the weights of documents."""
        if self.inverse is not None:
            counts = term_weights(counts, self.inverse, unit_rows=True)
        return document_weights(counts, self.components)


@dataclass(frozen=True)
class NMFEncoder:
    """The transform of an `NMF` that was fitted to counts."""

    model: Any  # fitted
    scale: FloatArray | None = None  # by which its weights are multiplied

    def __call__(self, counts: Any) -> FloatArray:
        """Return the weights of documents."""
        found = np.asarray(self.model.transform(counts))
        return found if self.scale is None else found * self.scale


@dataclass(frozen=True)
class AllocationEncoder:
    """The transform of scikit-learn's `LatentDirichletAllocation`, by the attributes that it documents."""

    params: Mapping[str, Any]
    components: FloatArray
    exp_dirichlet_component: FloatArray
    doc_topic_prior: float
    topic_word_prior: float
    bound: float
    n_batch_iter: int
    n_iter: int

    @classmethod
    def of(cls, model: Any) -> AllocationEncoder:
        """Take what a fitted allocation needs to encode documents."""
        # A transform draws nothing.
        params = {name: value for name, value in model.get_params().items() if name != "random_state"}
        attributes = {
            name: getattr(model, f"{name}_") for name in cls.__dataclass_fields__ if name != "params"
        }
        return cls(params, **attributes)

    def __call__(self, counts: Any) -> FloatArray:
        """Return the weights of documents."""
        from sklearn.decomposition import LatentDirichletAllocation

        model = LatentDirichletAllocation(**self.params)
        for name in self.__dataclass_fields__:
            if name != "params":
                setattr(model, f"{name}_", getattr(self, name))
        model.n_features_in_ = self.components.shape[1]
        return np.asarray(model.transform(counts))


_SCALE = StoredArray("n_topics", optional=True)
_TOPICS = StoredArray("n_topics", "number of words used")
ENCODER = Part(
    {
        LeastSquaresEncoder: {
            "components": _TOPICS,
            "inverse": StoredArray("number of words used", optional=True),
        },
        NMFEncoder: {"model": Model(NMF), "scale": _SCALE},
        AllocationEncoder: {
            "params": Value(dict),
            "components": _TOPICS,
            "exp_dirichlet_component": _TOPICS,
            "doc_topic_prior": Value(float),
            "topic_word_prior": Value(float),
            "bound": Value(float),
            "n_batch_iter": Value(int),
            "n_iter": Value(int),
        },
    }
)
"""What a saved model holds of its encoder."""


def proportions_of(weights: FloatArray, used: Any, dtype: Any) -> FloatArray:
    """Return topic proportions, which sum to one, and warn of documents that have none."""
    found = rows_of_sum_one(np.maximum(np.asarray(weights, dtype=np.float64), 0.0))
    # A method with a prior gives an empty document the prior's mean, although nothing is known of it.
    found[np.diff(used.indptr) == 0] = 0.0
    n_empty = int(np.sum(np.diff(used.indptr) == 0))
    n_apart = int(np.sum(~(found.sum(axis=1) > 0))) - n_empty
    said = [f"{n_empty} of {len(found)} documents contain none of the {used.shape[1]} words used"] * (
        n_empty > 0
    )
    said += [f"{n_apart} of {len(found)} documents contain only words that are in no topic"] * (n_apart > 0)
    if said:
        warnings.warn(
            f"{', and '.join(said)}: their topic proportions are zero.", DataChangedWarning, stacklevel=4
        )
    return found.astype(dtype)


def representative_rows(proportions: FloatArray, said: FloatArray, n: int) -> list[IntArray]:
    """Return the most representative documents of every topic."""
    # A long document about a topic shows more of it than a line that happens to have one of its words.
    strength = proportions * np.sqrt(said)
    order = np.argsort(-strength, axis=0, kind="stable")[: max(1, n)]
    return [order[proportions[order[:, at], at] > 0, at] for at in range(proportions.shape[1])]
