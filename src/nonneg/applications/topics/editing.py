"""Topics that a user merges, splits and renames; everything that depends on them is updated."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from nonneg._random import Seed
from nonneg._threads import threads
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.method_entries import iteration_params
from nonneg.applications.topics.documents import spread_out, used_words
from nonneg.applications.topics.exploring import ExplorableTopics
from nonneg.applications.topics.methods import METHODS, Task
from nonneg.applications.topics.proportions import SplitEncoder, grouped
from nonneg.applications.topics.term_weights import inverse_frequencies, term_weights
from nonneg.applications.topics.topic_recovery import document_weights, rows_of_sum_one
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.exceptions import DataChangedWarning, InvalidDataError, InvalidParameterError

Names = Mapping[Any, str | None]


class EditableTopics(ExplorableTopics):
    """Fitted topics that can be merged, split and renamed."""

    method: str
    anchors: Any
    balance: bool
    min_documents: float | None
    min_df: int | None
    max_df: float
    tol: float | None
    max_iter: int | None
    random_state: Seed
    method_params: dict[str, Any] | None
    selection_: dict[str, Any] | None

    def merge_topics(self, topics: Sequence[Any], X: Any) -> Self:
        """Return a model in which several topics are one.

        Parameters
        ----------
        topics : sequence of int or str, or sequence of such sequences
            The topics to merge, by number or name, such as ``[3, 7]``; or several groups, such as
            ``[[3, 7], [0, 5]]``. The groups of a `hierarchy` can be passed as they are.
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            The documents of the fit, from which proportions, coherence and certificate are recomputed.

        Returns
        -------
        TopicModel
            A new model; this one is unchanged. The proportion of a merged topic in any document is the sum of
            the original proportions, and its words are those of the merged topics, weighted by their
            proportions. Topics are numbered by proportion again; ``edits_[-1]["mapping"]`` has the new number
            of every old one.
        """
        groups = list(topics)
        if groups and not any(isinstance(group, list | tuple | set | np.ndarray) for group in groups):
            groups = [groups]
        return self._edited(X, merge=groups)

    def split_topic(self, topic: Any, X: Any, into: int = 2) -> Self:
        """Return a model in which one topic is divided into several.

        Parameters
        ----------
        topic : int or str
            The topic, by number or name.
        X : sequence of str, or array, sparse matrix or data frame of shape (n_documents, n_words)
            The documents of the fit. The method of the model is applied to those of them in which this topic
            has the largest proportion.
        into : int, default 2
            Number of topics that take its place.

        Returns
        -------
        TopicModel
            A new model; this one is unchanged. The proportions of the new topics in a document add up to the
            proportion that the topic had; those of the other topics do not change. Topics are numbered by
            proportion again; ``edits_[-1]["mapping"]`` has the new numbers of every old one.
        """
        return self._edited(X, split={topic: into})

    def rename_topics(self, names: Names) -> Self:
        """Return a model with other topic names.

        Parameters
        ----------
        names : dict of int or str to str or None
            New names by number or current name, such as ``{0: "sports"}``; None removes a name.

        Returns
        -------
        TopicModel
            A new model with these `topic_names_`; this one is unchanged.
        """
        return self._edited(None, rename=names)

    def _number(self, topic: Any) -> int:
        """Return the number of a topic that was named by number or by name."""
        n_topics = len(self.components_)
        if isinstance(topic, str):
            if topic in self.topic_names_:
                return self.topic_names_.index(topic)
            known = [name for name in self.topic_names_ if name]
            raise InvalidParameterError(
                f"There is no topic called {topic!r}. Names are {known}; refer to topics without a name by "
                f"number."
            )
        if isinstance(topic, bool) or not isinstance(topic, int | np.integer) or not 0 <= topic < n_topics:
            raise InvalidParameterError(
                f"Topics are numbers from 0 to {n_topics - 1} or names, got {topic!r}."
            )
        return int(topic)

    def _edited(
        self,
        X: Any,
        *,
        merge: Sequence[Sequence[Any]] = (),
        split: Mapping[Any, int] | None = None,
        rename: Names | None = None,
    ) -> Self:
        """Return a model with all of these changes; numbers are those of this model."""
        check_is_fitted(self, "components_")
        groups = [sorted({self._number(topic) for topic in group}) for group in merge]
        groups = [group for group in groups if len(group) > 1]
        parts = {self._number(topic): _checked_parts(into) for topic, into in (split or {}).items()}
        given = _checked_names({self._number(topic): name for topic, name in (rename or {}).items()})
        taken = [*(topic for group in groups for topic in group), *parts]
        if len(set(taken)) < len(taken):
            twice = sorted({topic for topic in taken if taken.count(topic) > 1})
            raise InvalidParameterError(
                f"Topics {twice} are in two groups, or both merged and split. Do one after the other."
            )
        new = copy.copy(self)
        names = [given.get(at, name) for at, name in enumerate(self.topic_names_)]
        mapping = [[at] for at in range(len(names))]
        if taken:
            mapping = new._restructure(X, groups, parts, names, given)
        else:
            new.topic_names_ = names
        _check_unique(new.topic_names_)
        edit = {
            "merged": groups,
            "split": [[topic, into] for topic, into in parts.items()],
            "renamed": [[topic, name] for topic, name in given.items()],
            "mapping": mapping,
        }
        new.edits_ = [*self.edits_, edit]
        return new

    def _restructure(
        self, X: Any, groups: list[list[int]], parts: dict[int, int], names: list[str | None], given: Names
    ) -> list[list[int]]:
        """Merge and split in place; return the new numbers of every old topic."""
        counts = self._read(X, reset=False)
        used = sp.csr_array(counts[:, self.word_indices_]).astype(np.float64)
        with threads(self.n_jobs):
            with warnings.catch_warnings():
                # Said once, of the new proportions.
                warnings.simplefilter("ignore", DataChangedWarning)
                proportions = self._proportions(used, np.float64)
            rows = self._rows(proportions, names)
            # From the last one, so that the places of those before stay.
            for topic in sorted(parts, reverse=True):
                rows[topic : topic + 1] = self._split(rows[topic], used, proportions, parts[topic])
            group_of = {topic: group for group in groups for topic in group}
            # A topic that is not merged, or a part of one, is a group of its own.
            keys = [tuple(group_of.get(row.topic, (-1, at))) for at, row in enumerate(rows)]
            kept = list(dict.fromkeys(keys))
            membership = np.array([kept.index(key) for key in keys])
            members = [[row for row, key in zip(rows, keys, strict=True) if key == one] for one in kept]
            merged = [_merged(some, given, unit=self.method == "nmf") for some in members]
            self._encode = grouped(self._encode, membership)
            proportions = self._proportions(used, counts.dtype)
        # Neither was chosen by the data.
        self.n_topics, self.selection_ = len(merged), None
        anchors = None
        if all(row.anchor is not None for row in merged):
            anchors = np.array([row.anchor for row in merged])
        order = self._describe(
            used, proportions, np.array([row.weights for row in merged]), anchors,
            _certificate(groups, parts), names=[row.name for row in merged],
        )  # fmt: skip
        if self.anchors is not None:
            self.anchors = self.anchor_words_
        numbers = np.argsort(order)[membership]
        return [
            sorted({int(number) for row, number in zip(rows, numbers, strict=True) if row.topic == at})
            for at in range(len(names))
        ]

    def _rows(self, proportions: FloatArray, names: list[str | None]) -> list[_Row]:
        anchors: list[Any] = [None] * len(names)
        if self.anchor_indices_ is not None:
            anchors = np.searchsorted(self.word_indices_, self.anchor_indices_).tolist()
        weights = self.components_[:, self.word_indices_].astype(np.float64)
        shares = proportions.sum(axis=0).tolist()
        return [_Row(at, *row) for at, row in enumerate(zip(weights, shares, anchors, names, strict=True))]

    def _split(self, whole: _Row, used: Any, proportions: FloatArray, into: int) -> list[_Row]:
        """Apply the method to the documents of a topic, and put its encoder to use."""
        leads = (proportions.argmax(axis=1) == whole.topic) & (proportions[:, whole.topic] > 0)
        documents = sp.csr_array(used[np.flatnonzero(leads)])
        words: IntArray = np.array([], dtype=np.intp)
        if leads.any():
            with contextlib.suppress(InvalidDataError):
                words = used_words(documents, self.min_df, float(self.max_df))
        if into > min(documents.shape[0], len(words)):
            raise InvalidParameterError(
                f"Topic {whole.topic} cannot be split into {into}: it leads in {documents.shape[0]} "
                f"documents, which share {len(words)} words. Ask for fewer parts, or split a larger topic."
            )
        inner = sp.csr_array(documents[:, words])
        method = METHODS.name_of(self.method)
        limits = iteration_params(
            METHODS, method, tol=self.tol, max_iter=self.max_iter, callback=None, checkpoint=None
        )
        task = Task(
            inner, inverse_frequencies(inner), into, balance=self.balance, min_documents=self.min_documents,
            rng=self.random_state,
            params=dict(self.method_params or {}) | limits, n_jobs=self.n_jobs,
        )  # fmt: skip
        found = METHODS[method].run(task)
        inside = rows_of_sum_one(np.maximum(np.asarray(found.encode(inner), dtype=np.float64), 0.0))
        total = inside.sum(axis=0)
        prior = total / total.sum() if total.sum() > 0 else np.full(into, 1.0 / into)
        self._encode = SplitEncoder(self._encode, found.encode, words, whole.topic, prior)
        weights = spread_out(found.components, words, used.shape[1])
        if self.method == "nmf":
            # In the weights of the whole collection, as the other topics: the method saw those of this topic.
            known = term_weights(documents, self._inverse, unit_rows=True)
            weights = document_weights(sp.csr_array(known.T), np.ascontiguousarray(inside.T)).T
        anchors: list[Any] = [None] * into if found.anchors is None else words[found.anchors].tolist()
        names = [None if whole.name is None else f"{whole.name} {at + 1}" for at in range(into)]
        shares = (whole.share * prior).tolist()
        return [_Row(whole.topic, *row) for row in zip(weights, shares, anchors, names, strict=True)]


@dataclass(frozen=True)
class _Row:
    """A topic while topics are being edited."""

    topic: int  # the topic that it is, or is a part of
    weights: FloatArray  # of the words used
    share: float
    anchor: int | None  # among the words used
    name: str | None


def _merged(rows: Sequence[_Row], given: Names, *, unit: bool) -> _Row:
    """Return the mixture of topics by their shares, in the method's own scale."""
    shares = np.array([row.share for row in rows])
    shares = shares if shares.sum() > 0 else np.ones(len(rows))
    weights = shares @ np.array([row.weights for row in rows])
    size = float(np.linalg.norm(weights) if unit else weights.sum())
    weights = weights / (size or 1.0)
    anchors = [row.anchor for row in rows if row.anchor is not None]
    # What was exclusive to a part is exclusive to the whole: the one that says most of it stands for it.
    anchor = max(anchors, key=lambda at: float(weights[at])) if len(anchors) == len(rows) else None
    # A name given now counts more than those that the topics had, which stand for half of the whole or for
    # nothing.
    fresh = [row.name for row in rows if row.name and row.topic in given]
    known = sum(row.share for row in rows if row.name) >= 0.5 * sum(row.share for row in rows)
    names = list(dict.fromkeys(fresh or [row.name for row in rows if row.name and known]))
    return _Row(rows[0].topic, weights, float(shares.sum()), anchor, " / ".join(names) or None)


def _certificate(groups: list[list[int]], parts: dict[int, int]) -> Certificate:
    """Say that statements about the factorization were left out, because topics are no longer its own."""
    changes = [f"topics {', '.join(map(str, group))} were merged" for group in groups]
    changes += [f"topic {topic} was split into {into}" for topic, into in parts.items()]
    return Certificate().with_statements(
        [
            Statement(
                "topics-edited",
                f"After the fit {' and '.join(changes)} (numbers before this change). The certificate of "
                f"the model before the change says what is known about the factorization.",
                float(sum(map(len, groups)) + len(parts)),
                None,
                Verdict.NOT_VERIFIABLE,
            )
        ]
    )


def _checked_parts(into: Any) -> int:
    if isinstance(into, bool) or not isinstance(into, int | np.integer) or into < 2:
        raise InvalidParameterError(f"into must be an integer of at least 2, got {into!r}.")
    return int(into)


def _checked_names(names: dict[int, str | None]) -> dict[int, str | None]:
    for topic, name in names.items():
        if name is not None and (not isinstance(name, str) or not name.strip()):
            raise InvalidParameterError(f"The name of topic {topic} must be a word or None, got {name!r}.")
    return {topic: name if name is None else name.strip() for topic, name in names.items()}


def _check_unique(names: Sequence[str | None]) -> None:
    called = [name for name in names if name is not None]
    if twice := sorted({name for name in called if called.count(name) > 1}):
        raise InvalidParameterError(f"Two topics would be called {twice[0]!r}. Give each its own name.")
