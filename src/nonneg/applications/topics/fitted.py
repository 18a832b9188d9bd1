"""What a fitted topic model answers: topic proportions, top words, representative documents, coherence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nonneg._threads import threads
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.certify import topic_statements
from nonneg.applications.topics.documents import make_vectorizer, spread_out
from nonneg.applications.topics.proportions import (
    ENCODER,
    check_encoder,
    grouped,
    proportions_of,
    representative_rows,
)
from nonneg.applications.topics.quality import Support, documents_per_topic, topic_npmi
from nonneg.applications.topics.reading import read_documents
from nonneg.applications.topics.topic_recovery import rows_of_sum_one
from nonneg.certificates.certificate import Certificate
from nonneg.estimators.saving import SavableEstimator
from nonneg.estimators.stored_fields import Fields, Names, Record, StoredArray, Value
from nonneg.exceptions import FileFormatError, ShapeError, UnknownNameError
from nonneg.metrics.topics import cv_coherence, npmi_coherence, top_words, umass_coherence

N_TOP_WORDS = 20
MEASURES = {"umass": umass_coherence, "npmi": npmi_coherence, "c_v": cv_coherence}


class FittedTopics(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavableEstimator):
    """An estimator whose fit has found topics."""

    n_topics: Any
    vectorizer: Any
    stop_words: Any
    n_jobs: int | None
    components_: FloatArray
    anchor_indices_: IntArray | None
    set_aside_: IntArray
    duplicate_of_: IntArray
    vectorizer_: Any
    _encode: Any
    _stored: ClassVar[Fields] = {
        "n_features_in_": Value(int),
        "n_iter_": Value(int),
        "_own_vectorizer": Value(bool),
        "certificate_": Record(Certificate.from_dict),
        "components_": StoredArray("n_topics_", "n_features_in_"),
        "topic_proportions_": StoredArray("n_topics_"),
        "coherence_": StoredArray("n_topics_"),
        "npmi_": StoredArray("n_topics_", optional=True),
        "documents_per_topic_": StoredArray("n_topics_", kind="i", optional=True),
        "few_documents_": StoredArray("n_topics_", kind="b", optional=True),
        "selection_": Value(dict, optional=True),
        "set_aside_": StoredArray("documents set aside", kind="i", optional=True),
        "duplicate_of_": StoredArray("documents of the fit", kind="i", optional=True),
        "word_indices_": StoredArray("number of words used", kind="i", below="n_features_in_"),
        "_inverse": StoredArray("number of words used"),
        "anchor_indices_": StoredArray("n_topics_", kind="i", below="n_features_in_", optional=True),
        "vocabulary_": Names("n_features_in_", optional=True),
        "feature_names_in_": Names("n_features_in_", optional=True),
        "_encode": ENCODER,
        "topic_names_": Value(list, optional=True),
        "edits_": Value(list, optional=True),
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.positive_only = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def transform(self, X: Any) -> FloatArray:
        """Return the topic proportions of documents, each on its own.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            Texts where the fit had texts, counts of the same words otherwise; never modified.

        Returns
        -------
        array of shape (n_documents, n_topics)
            Rows sum to one. A document without any word that is used, or that is in a topic, has a row of
            zeros; a warning counts such documents.
        """
        check_is_fitted(self, "components_")
        counts = self._read(X, reset=False)
        with threads(self.n_jobs):
            return self._proportions(
                sp.csr_array(counts[:, self.word_indices_]).astype(np.float64), counts.dtype
            )

    def predict(self, X: Any) -> IntArray:
        """Return the topic with the largest proportion in each document.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            As for `transform`.

        Returns
        -------
        array of int of shape (n_documents,)
            -1 for documents whose proportions are zero.
        """
        proportions = self.transform(X)
        return np.where(proportions.sum(axis=1) > 0, np.argmax(proportions, axis=1), -1)

    def top_words(self, n: int = 10) -> list[list[Any]]:
        """Return the most important words of every topic.

        Parameters
        ----------
        n : int, default 10
            Maximum number of words; words of weight zero are left out.

        Returns
        -------
        list of list of str
            Largest weight first; columns (int) if words have no names.
        """
        check_is_fitted(self, "components_")
        best = top_words(self.components_, n)
        return [self._names(row[self.components_[topic, row] > 0]) for topic, row in enumerate(best)]

    def representative_documents(
        self, X: Any, n: int = 3, *, proportions: FloatArray | None = None
    ) -> list[IntArray]:
        """Return the most representative documents of every topic.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            The documents to choose from.
        n : int, default 3
            Maximum number of documents per topic.
        proportions : array of shape (n_documents, n_topics), optional
            Those of X, if they are known.

        Returns
        -------
        list of array of int
            Rows of X, the best first: by proportion times the square root of how many of the topic's words
            they contain, so that a long document ranks above a line with one of the words.
        """
        check_is_fitted(self, "components_")
        counts = self._read(X, reset=False)
        found = self.transform(X) if proportions is None else np.asarray(proportions)
        if found.shape != (counts.shape[0], len(self.components_)):
            raise ShapeError(
                f"Expected proportions of shape ({counts.shape[0]}, {len(self.components_)}), got "
                f"{found.shape}."
            )
        said = np.asarray(counts @ self.topics_.T.astype(counts.dtype))
        return representative_rows(found, said, n)

    def coherence(self, X: Any, *, measure: str = "umass", n_words: int = N_TOP_WORDS) -> FloatArray:
        """Return how well the top words of every topic go together in documents.

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            Documents in which every top word occurs, such as those of the fit.
        measure : {"umass", "npmi", "c_v"}, default "umass"
            See `nonneg.metrics`: `umass_coherence`, `npmi_coherence` and `cv_coherence`, the last with
            sliding windows over texts, and with documents as windows for counts.
        n_words : int
            Number of words per topic.

        Returns
        -------
        array of shape (n_topics,)
            Larger is better.
        """
        check_is_fitted(self, "components_")
        if measure not in MEASURES:
            raise UnknownNameError.of("measure", measure, MEASURES)
        if measure == "c_v" and hasattr(self.vectorizer_, "build_analyzer"):
            return cv_coherence(list(map(self.vectorizer_.build_analyzer(), X)), self.top_words(n_words))
        counts = self._read(X, reset=False)[:, self.word_indices_]
        return MEASURES[measure](counts, top_words(self.components_[:, self.word_indices_], n_words))

    @property
    def _own_vectorizer(self) -> bool:
        """Whether the words of texts are counted by a vectorizer that is not the user's."""
        return self.vectorizer_ is not None and self.vectorizer is None

    @_own_vectorizer.setter
    def _own_vectorizer(self, own: bool) -> None:
        self.vectorizer_ = make_vectorizer(None, self.stop_words) if own else None

    def _complete_loaded(self) -> None:
        check_encoder(self._encode, len(self.components_), len(self.word_indices_))
        # Files of earlier versions have none of these.
        self.topic_names_ = getattr(self, "topic_names_", [None] * len(self.components_))
        self.edits_ = getattr(self, "edits_", [])
        good = all(name is None or isinstance(name, str) for name in self.topic_names_)
        good = good and all(isinstance(edit, dict) for edit in self.edits_)
        if not good or len(self.topic_names_) != len(self.components_):
            raise FileFormatError("the topic names do not match the topics. The file is damaged.")
        if self.vectorizer_ is not None:
            self.vectorizer_.set_params(vocabulary=list(self.vocabulary_))
        self.n_topics_ = len(self.components_)
        unknown: dict[str, Any] = {
            "selection_": None,
            "npmi_": np.full(self.n_topics_, np.nan),
            "documents_per_topic_": np.full(self.n_topics_, -1),
            "few_documents_": np.zeros(self.n_topics_, dtype=bool),
            "set_aside_": np.zeros(0, dtype=np.int64),
            "duplicate_of_": np.zeros(0, dtype=np.int64),
        }
        self.__dict__.update({name: value for name, value in unknown.items() if name not in vars(self)})
        self.topics_ = rows_of_sum_one(self.components_)
        self.anchor_words_ = None if self.anchor_indices_ is None else self._names(self.anchor_indices_)

    def _names(self, columns: IntArray) -> list[Any]:
        if self.vocabulary_ is None:
            return [int(column) for column in columns]
        return [str(self.vocabulary_[column]) for column in columns]

    def _read(self, X: Any, *, reset: bool) -> Any:
        return read_documents(self, X, reset=reset)

    def _proportions(self, used: Any, dtype: Any) -> FloatArray:
        return proportions_of(self._encode(used), used, dtype)

    def _describe(
        self,
        used: Any,
        proportions: FloatArray,
        components: FloatArray,
        anchors: IntArray | None,
        certificate: Certificate,
        *,
        names: Sequence[str | None] | None = None,
        in_order: bool = False,
    ) -> IntArray:
        """Set what follows from topics and their proportions in documents; return ``order[new] = old``."""
        # Fits, edits and batches of a stream end here. Topics are numbered by their share, except where the
        # user chose the order.
        total = float(proportions.sum())
        shares = proportions.sum(axis=0) / (total or 1.0)
        order = np.arange(len(components))
        if not in_order:
            # Shares that differ in their last digits only would depend on the machine.
            order = np.argsort(-np.round(shares, 9), kind="stable")
            self._encode = grouped(self._encode, np.argsort(order))
            components, shares = components[order], shares[order]
            anchors = None if anchors is None else anchors[order]
        words = self.word_indices_
        self.components_ = spread_out(components.astype(proportions.dtype), words, self.n_features_in_)
        self.topics_ = rows_of_sum_one(self.components_)
        self.anchor_indices_ = None if anchors is None else words[anchors]
        self.anchor_words_ = None if self.anchor_indices_ is None else self._names(self.anchor_indices_)
        self.topic_names_ = [None] * len(order) if names is None else [names[at] for at in order.tolist()]
        self.topic_proportions_ = shares
        top = top_words(components, N_TOP_WORDS)
        self.coherence_ = umass_coherence(used, top)
        self.npmi_ = topic_npmi(used, components)
        proportions = proportions[:, order]
        self.n_topics_, self.documents_per_topic_ = len(components), documents_per_topic(proportions)
        support = Support.of(proportions, vars(self).get("duplicate_of_"), vars(self).get("set_aside_"))
        self.few_documents_ = support.few
        n_empty = int(np.sum(~(proportions.sum(axis=1) > 0)))
        self.certificate_ = certificate.with_statements(
            topic_statements(
                rows_of_sum_one(components), top, anchors,
                [] if self.anchor_words_ is None else self.anchor_words_, n_empty, len(proportions), support,
            )
        )  # fmt: skip
        return order
