"""From documents to topic proportions: encoders of the methods, and representative documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._typing import FloatArray, IntArray
from nonneg._warnings import warn_user
from nonneg.applications.topics.term_weights import term_weights
from nonneg.applications.topics.topic_recovery import document_weights, rows_of_sum_one
from nonneg.estimators.nmf import NMF
from nonneg.estimators.saving import Model
from nonneg.estimators.stored_fields import Content, Fields, Part, StoredArray, Value
from nonneg.exceptions import DataChangedWarning, FileFormatError


@dataclass(frozen=True)
class LeastSquaresEncoder:
    """Nonnegative least squares on the topics, every document on its own."""

    components: FloatArray  # the topics
    # Inverse document frequencies, where topics are made of TF-IDF weights of unit length; None for counts.
    inverse: FloatArray | None = None

    @property
    def n_topics(self) -> int:
        """The number of topics."""
        return len(self.components)

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

    @property
    def n_topics(self) -> int:
        """The number of topics."""
        return len(self.model.components_)

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

    @property
    def n_topics(self) -> int:
        """The number of topics."""
        return len(self.components)

    def __call__(self, counts: Any) -> FloatArray:
        """Return the weights of documents."""
        from sklearn.decomposition import LatentDirichletAllocation

        model = LatentDirichletAllocation(**self.params)
        for name in self.__dataclass_fields__:
            if name != "params":
                setattr(model, f"{name}_", getattr(self, name))
        model.n_features_in_ = self.components.shape[1]
        return np.asarray(model.transform(counts))


@dataclass(frozen=True)
class GroupedEncoder:
    """Another encoder whose topics are put into another order, or several of them into one."""

    base: Any  # an encoder
    groups: IntArray  # for every topic of the other encoder the topic that it belongs to

    @property
    def n_topics(self) -> int:
        """The number of topics."""
        return int(self.groups.max()) + 1

    def __call__(self, counts: Any) -> FloatArray:
        """Return the weights of documents: sums, so that proportions of merged topics add up."""
        return self.base(counts) @ np.eye(self.n_topics)[self.groups]


@dataclass(frozen=True)
class SplitEncoder:
    """Another encoder, one of whose topics is divided among the topics that were found within it."""

    base: Any  # an encoder
    within: Any  # the encoder of the topics found within
    words: IntArray  # the words that it is for, among those used
    topic: int  # the topic that was split; the new ones take its place
    prior: FloatArray  # how it is divided in documents that contain no word of the new topics

    @property
    def n_topics(self) -> int:
        """The number of topics."""
        return int(self.base.n_topics - 1 + self.within.n_topics)

    def __call__(self, counts: Any) -> FloatArray:
        """Return the weights of documents; those of the other topics are what they were."""
        weights = np.asarray(self.base(counts))
        parts = np.zeros((len(weights), len(self.prior)))
        rows = np.flatnonzero(weights[:, self.topic] > 0)
        if len(rows):
            inner = rows_of_sum_one(np.maximum(self.within(sp.csr_array(counts[rows][:, self.words])), 0.0))
            inner[~(inner.sum(axis=1) > 0)] = self.prior
            parts[rows] = weights[rows, self.topic, None] * inner
        return np.hstack([weights[:, : self.topic], parts, weights[:, self.topic + 1 :]])


class _InnerEncoder(Part):
    """An encoder inside another, with its own numbers of topics and words; `check_encoder` compares them."""

    def read(self, name: str, content: Content) -> Any:
        return super().read(name, replace(content, sizes={}))


_SCALE = StoredArray("n_topics_", optional=True)
_TOPICS = StoredArray("n_topics_", "number of words used")
_CLASSES: dict[Any, Fields] = {
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
_INNER = _InnerEncoder(_CLASSES)
_CLASSES |= {
    GroupedEncoder: {"base": _INNER, "groups": StoredArray("topics of the fit", kind="i")},
    SplitEncoder: {
        "base": _INNER,
        "within": _INNER,
        "words": StoredArray("words of the topics within", kind="i"),
        "topic": Value(int),
        "prior": StoredArray("topics found within", nonnegative=True),
    },
}
ENCODER = Part(_CLASSES)
"""What a saved model holds of its encoder."""


def grouped(encoder: Any, groups: IntArray) -> GroupedEncoder:
    """Return an encoder whose topics are merged or put into another order: ``groups[old] = new``."""
    if isinstance(encoder, GroupedEncoder):
        return GroupedEncoder(encoder.base, groups[encoder.groups])
    return GroupedEncoder(encoder, groups)


def check_encoder(encoder: Any, n_topics: int, n_words: int) -> None:
    """Reject the encoder of a damaged file: its parts must fit together."""
    good = encoder.n_topics == n_topics
    if isinstance(encoder, GroupedEncoder):
        good = good and set(encoder.groups.tolist()) == set(range(n_topics))
        check_encoder(encoder.base, len(encoder.groups), n_words)
    elif isinstance(encoder, SplitEncoder):
        words = encoder.words
        good = (
            good
            and 0 <= encoder.topic < encoder.base.n_topics
            and bool(((words >= 0) & (words < n_words)).all())
        )
        check_encoder(encoder.base, encoder.base.n_topics, n_words)
        check_encoder(encoder.within, len(encoder.prior), len(words))
    else:
        components = encoder.model.components_ if isinstance(encoder, NMFEncoder) else encoder.components
        good = good and components.shape[1] == n_words
    if not good:
        raise FileFormatError("the encoder is for other words or topics. The file is damaged.")


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
        warn_user(f"{', and '.join(said)}: their topic proportions are zero.", DataChangedWarning)
    return found.astype(dtype)


def representative_rows(proportions: FloatArray, said: FloatArray, n: int) -> list[IntArray]:
    """Return the most representative documents of every topic."""
    # A long document about a topic shows more of it than a line that happens to have one of its words.
    strength = proportions * np.sqrt(said)
    order = np.argsort(-strength, axis=0, kind="stable")[: max(1, n)]
    return [order[proportions[order[:, at], at] > 0, at] for at in range(proportions.shape[1])]
