"""`TopicModel.partial_fit`."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.base import _fit_context

from nonneg._threads import threads
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.documents import kept_words
from nonneg.applications.topics.editing import EditableTopics
from nonneg.applications.topics.methods import METHODS
from nonneg.applications.topics.proportions import LeastSquaresEncoder, grouped
from nonneg.applications.topics.reading import read_batch
from nonneg.applications.topics.stream import (
    BETTER,
    DOUBLED,
    GROWTH,
    N_KEPT,
    STREAM,
    Balance,
    Stream,
    error_of,
    learned,
    sampled,
)
from nonneg.applications.topics.term_weights import document_frequencies
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.estimators.stored_fields import Fields
from nonneg.exceptions import (
    DataChangedWarning,
    FileFormatError,
    InvalidDataError,
    InvalidParameterError,
    UnsupportedError,
)


class StreamedTopics(EditableTopics):
    """Topics that are found one batch of documents at a time."""

    half_life: float | None
    _stream: Stream
    _stored: ClassVar[Fields] = {**EditableTopics._stored, "_stream": STREAM}

    @abstractmethod
    def _fit_counts(self, counts: Any) -> FloatArray:
        """Find topics from scratch; return the proportions of the documents."""

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Continue with a batch of documents (`method` "nmf").

        Parameters
        ----------
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            The batch; never modified. New words of texts are added at the end of the vocabulary, and are used
            as soon as `min_df` documents contain them; counts have the same words in every batch. A
            `vectorizer` of your own keeps the words of the first batch.
        y : Any
            Ignored.

        Returns
        -------
        TopicModel
            Itself, ready for `transform`, `save` and the next batch. Topics keep their numbers and names.

        Notes
        -----
        Up to 2000 documents, all are kept, and topics are found from scratch whenever their number has grown
        by a quarter. Otherwise a batch updates the sums of a least-squares problem, as in online NMF [1]_.
        Beyond 2000 documents a random sample of that size is kept, from which coherence and certificate are
        found; `topic_proportions_` are those of all documents. Whenever the number of documents has doubled,
        topics are found from scratch in the sample, and adopted if they fit held-out documents better by 1%.
        With `half_life`, the past counts half after that many documents, late documents prevail in the
        sample, and topics are found from scratch every `half_life` documents. After `fit`, whose documents
        are not kept, these are assumed to be like the batch.

        References
        ----------
        .. [1] Mairal, Bach, Ponce & Sapiro (2010), JMLR 11, Algorithm 1.
        """
        if METHODS.name_of(self.method) != "nmf":
            raise UnsupportedError(
                f"partial_fit needs method='nmf'; method={self.method!r} takes all documents."
            )
        if not isinstance(self.n_topics, Integral):
            raise UnsupportedError(
                f"partial_fit needs a number of topics, got n_topics={self.n_topics!r}. Fit some documents "
                "with n_topics='auto', and pass the n_topics_ that is recommended."
            )
        if any(edit["merged"] or edit["split"] for edit in getattr(self, "edits_", [])):
            raise UnsupportedError(
                "Topics were merged or split, and the next batch would undo that. Continue with the model "
                "from before the change, and edit its topics afterwards."
            )
        first = not hasattr(self, "components_")
        counts = self._read(X, reset=True) if first else read_batch(self, X)
        with threads(self.n_jobs):
            past = getattr(self, "_stream", None)
            past = None if past is None else past.widened(counts.shape[1])
            if past is None and not first:
                past = self._remembered(counts)
            self._continue(past, counts)
        return self

    def _complete_loaded(self) -> None:
        super()._complete_loaded()
        stream = getattr(self, "_stream", None)
        if stream is not None and len(stream.priorities) != stream.kept.shape[0]:
            raise FileFormatError(
                "the kept documents of the stream do not match each other. The file is damaged."
            )

    def _continue(self, past: Stream | None, counts: Any) -> None:
        kept, priorities = sampled(past, counts, self.half_life)
        n_seen = counts.shape[0] + (0 if past is None else past.n_seen)
        n_batches = 1 + (0 if past is None else past.n_batches)
        # Documents that are forgotten would count as much as others if topics were found from scratch.
        whole = kept.shape[0] == n_seen <= (self.half_life or N_KEPT)
        if past is None or (whole and n_seen >= GROWTH * past.n_fitted):
            self._start(kept)
            sums = self._sums(kept)
            self._stream = replace(
                sums, priorities=priorities, n_seen=n_seen, n_fitted=n_seen, n_batches=n_batches
            )
            return
        share = 1.0 if self.half_life is None else 0.5 ** (counts.shape[0] / self.half_life)
        stream = past.decayed(share).with_counted(counts)
        stream = replace(stream, kept=kept, priorities=priorities, n_seen=n_seen, n_batches=n_batches)
        words = self._words_of(stream)
        stream = learned(stream, counts, words, self._balance_of(stream))
        if n_seen >= min(DOUBLED * past.n_fitted, past.n_fitted + (self.half_life or np.inf)):
            stream = self._restarted(stream, words)
        self._stream = stream
        self._take_over(stream, self._words_of(stream), counts.dtype)

    def _start(self, counts: Any) -> None:
        """Find topics from scratch, in the order of those before."""
        before, edits = getattr(self, "components_", None), getattr(self, "edits_", [])
        names = getattr(self, "topic_names_", None)
        proportions = self._fit_counts(counts)
        if before is None or len(before) != len(self.components_):
            return
        new = self.components_[:, : before.shape[1]]
        alike = before @ new.T / np.maximum(np.linalg.norm(new, axis=1), np.finfo(np.float64).tiny)
        _, order = linear_sum_assignment(-alike)
        self._encode = grouped(self._encode, np.argsort(order))
        used = sp.csr_array(counts[:, self.word_indices_]).astype(np.float64)
        anchors = None
        if self.anchor_indices_ is not None:
            anchors = np.searchsorted(self.word_indices_, self.anchor_indices_)[order]
        components = self.components_[order][:, self.word_indices_].astype(np.float64)
        self._describe(
            used, proportions[:, order], components, anchors, self.certificate_, names=names, in_order=True
        )
        self.edits_ = edits

    def _restarted(self, stream: Stream, words: IntArray) -> Stream:
        """Find topics from scratch in the sample, and take them over where they fit it clearly better."""
        # A topic that nobody writes about any more does not turn into a new one by itself. A third of the
        # sample decides, in which topics were not searched: they always fit the documents that they are from.
        stream, kept = replace(stream, n_fitted=stream.n_seen), stream.kept
        held_out = np.arange(kept.shape[0]) % 3 == 0
        balance = self._balance_of(stream)
        fresh = copy.copy(self)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataChangedWarning)
            try:
                fresh._start(sp.csr_array(kept[np.flatnonzero(~held_out)]))
                found, test = fresh._sums(kept), sp.csr_array(kept[np.flatnonzero(held_out)])
                present = error_of(stream, test, words, balance)
                if error_of(replace(stream, topics=found.topics), test, words, balance) > BETTER * present:
                    return stream
                fresh._start(kept)
            except (InvalidDataError, InvalidParameterError):
                # Too few documents or words in the sample for a fit.
                return stream
        found = fresh._sums(kept).decayed(stream.n_documents / kept.shape[0])
        return replace(stream, gram=found.gram, cross=found.cross, topics=found.topics, shares=found.shares)

    def _sums(self, counts: Any) -> Stream:
        """Return what is known of documents whose topics were found from scratch."""
        n, n_words = counts.shape
        k = len(self.components_)
        topics = np.zeros((n_words, k))
        topics[self.word_indices_] = (
            self.components_[:, self.word_indices_] / np.where(self._inverse > 0, self._inverse, 1.0)
        ).T
        empty = Stream(
            counts, np.zeros(n), n, n, 0, 0.0, np.zeros(n_words), np.zeros(n_words), 0.0, np.zeros(k),
            np.zeros((k, k)), np.zeros((n_words, k)), topics,
        )  # fmt: skip
        stream = empty.with_counted(counts)
        return learned(stream, counts, self._words_of(stream), self._balance_of(stream), rounds=0)

    def _remembered(self, counts: Any) -> Stream:
        """Take the documents of a fit to be like those of a batch."""
        # Models of earlier versions do not know their number of documents.
        n_past = max(int(np.sum(self.documents_per_topic_)), counts.shape[0])
        stream = self._sums(counts).decayed(n_past / counts.shape[0])
        frequencies = stream.frequencies
        frequencies[self.word_indices_] = n_past * np.exp(-self._inverse)
        nothing = sp.csr_array((0, counts.shape[1]), dtype=counts.dtype)
        return replace(
            stream, frequencies=frequencies, cross=stream.topics @ stream.gram, kept=nothing,
            priorities=np.zeros(0), n_seen=n_past, n_fitted=n_past,
        )  # fmt: skip

    def _words_of(self, stream: Stream) -> IntArray:
        """Return the words that are used; what none of the kept documents contains is rare."""
        present = document_frequencies(stream.kept) > 0
        kept = kept_words(stream.frequencies, stream.n_documents, self.min_df, float(self.max_df)) & present
        # A word of all documents has no weight.
        words = np.flatnonzero(kept & (stream.frequencies < (1 - 1e-9) * stream.n_documents))
        if not len(words):
            raise InvalidDataError(
                "No word is left: min_df and max_df exclude all words of the documents so far."
            )
        return words

    def _balance_of(self, stream: Stream) -> Balance:
        added = 1.0 / len(self.components_)
        if self.min_documents is not None:
            added = self.min_documents / stream.n_documents
        return Balance(self.balance, added)

    def _take_over(self, stream: Stream, words: IntArray, dtype: Any) -> None:
        """Set the attributes of the model after a batch."""
        self.word_indices_ = words
        self._inverse = np.log(stream.n_documents / stream.frequencies[words])
        rows = (stream.topics[words] * self._inverse[:, None]).T
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        components = np.ascontiguousarray(rows / np.where(lengths > 0, lengths, 1.0))
        self._encode = LeastSquaresEncoder(components, self._inverse)
        used = sp.csr_array(stream.kept[:, words]).astype(np.float64)
        with warnings.catch_warnings():
            # Of the sample; documents of the batch are told of by `transform`.
            warnings.simplefilter("ignore", DataChangedWarning)
            proportions = self._proportions(used, dtype)
        self.duplicate_of_ = np.arange(len(proportions))
        self.set_aside_ = np.arange(0)
        self.result_ = None
        self._describe(
            used, proportions, components, None, _certificate(stream), names=self.topic_names_, in_order=True
        )
        total = float(stream.shares.sum())
        self.topic_proportions_ = (stream.shares / (total or 1.0)).astype(dtype)


def _certificate(stream: Stream) -> Certificate:
    return Certificate().with_statements(
        [
            Statement(
                "topics-streamed",
                f"Topics of a stream: {stream.n_seen} documents in {stream.n_batches} batches. Nothing is "
                f"claimed about an optimum; the other statements refer to {stream.kept.shape[0]} documents.",
                float(stream.n_seen),
                None,
                Verdict.NOT_VERIFIABLE,
                {"n_batches": stream.n_batches, "n_fitted": stream.n_fitted},
            )
        ]
    )
