"""Topics that a user merges, splits and renames; everything that depends on them is updated."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._threads import threads
from nonneg._typing import FloatArray, IntArray
from nonneg.applications.topics.anchor_words import least_squares_weights
from nonneg.applications.topics.documents import (
    inverse_frequencies,
    over_vocabulary,
    rows_of_sum_one,
    term_weights,
    used_words,
)
from nonneg.applications.topics.methods import METHODS, Task, document_weights, unit_rows
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.exceptions import DataChangedWarning, InvalidDataError, InvalidParameterError

Names = Mapping[Any, str | None]


def edited(
    model: Any,
    X: Any,
    *,
    merge: Sequence[Sequence[Any]] = (),
    split: Mapping[Any, int] | None = None,
    rename: Names | None = None,
) -> Any:
    """Return a model with all of these changes; numbers are those of the model before."""
    groups = [sorted({topic_number(model, topic) for topic in group}) for group in merge]
    groups = [group for group in groups if len(group) > 1]
    parts = {topic_number(model, topic): _checked_parts(into) for topic, into in (split or {}).items()}
    fresh = {topic_number(model, topic): name for topic, name in (rename or {}).items()}
    fresh = _checked_names(fresh)
    taken = [*(topic for group in groups for topic in group), *parts]
    if len(set(taken)) < len(taken):
        twice = sorted({topic for topic in taken if taken.count(topic) > 1})
        raise InvalidParameterError(
            f"Topics {twice} are in two groups, or both merged and split. Do one after the other."
        )
    new = copy.copy(model)
    new.topic_names_ = [fresh.get(at, name) for at, name in enumerate(model.topic_names_)]
    mapping = [[at] for at in range(len(new.topic_names_))]
    if taken:
        mapping = _restructure(new, X, groups, parts, fresh)
    names = [name for name in new.topic_names_ if name is not None]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidParameterError(f"Two topics would be called {twice[0]!r}. Give each its own name.")
    edit = {
        "merged": groups,
        "split": [[topic, into] for topic, into in parts.items()],
        "renamed": [[topic, name] for topic, name in fresh.items()],
        "mapping": mapping,
    }
    new.edits_ = [*model.edits_, edit]
    return new


def topic_number(model: Any, topic: Any) -> int:
    """Return the number of a topic that was named by number or by name."""
    n_topics = len(model.components_)
    if isinstance(topic, str):
        if topic in model.topic_names_:
            return int(model.topic_names_.index(topic))
        known = [name for name in model.topic_names_ if name]
        raise InvalidParameterError(
            f"There is no topic called {topic!r}. Names are {known}; refer to the others by number."
        )
    if isinstance(topic, bool) or not isinstance(topic, int | np.integer) or not 0 <= topic < n_topics:
        raise InvalidParameterError(f"Topics are numbers from 0 to {n_topics - 1} or names, got {topic!r}.")
    return int(topic)


@dataclass(frozen=True)
class _Topic:
    """A topic while topics are being edited."""

    source: int  # the topic that it is, or is a part of
    weights: FloatArray  # of the words used
    rows: list[int]  # by which documents are expressed: places in the base of the model
    share: float
    anchor: int | None  # among the words used
    name: str | None


def _restructure(
    model: Any, X: Any, groups: list[list[int]], parts: dict[int, int], fresh: Names
) -> list[list[int]]:
    """Merge and split in place; return the new numbers of every old topic."""
    counts = model._read(X, reset=False)
    used = model._used(counts)
    n_topics = len(model.components_)
    anchors: list[Any] = [None] * n_topics
    if model.anchor_indices_ is not None:
        anchors = np.searchsorted(model.word_indices_, model.anchor_indices_).tolist()
    with threads(model.n_jobs):
        with warnings.catch_warnings():
            # Said once, of the new proportions.
            warnings.simplefilter("ignore", DataChangedWarning)
            proportions = model._proportions(used, np.float64)
        weights = model.components_[:, model.word_indices_].astype(np.float64)
        topics: list[_Topic] = []
        for at, share in enumerate(proportions.sum(axis=0).tolist()):
            rows = np.flatnonzero(model._groups == at).tolist()
            topic = _Topic(at, weights[at], rows, share, anchors[at], model.topic_names_[at])
            topics += _split(model, topic, used, proportions, parts[at]) if at in parts else [topic]
        group_of = {topic: tuple(group) for group in groups for topic in group}
        # A topic that is not merged, or a part of one, is a group of its own.
        keys = [group_of.get(topic.source, (-1, at)) for at, topic in enumerate(topics)]
        distinct = list(dict.fromkeys(keys))
        members = [[topic for topic, key in zip(topics, keys, strict=True) if key == one] for one in distinct]
        merged = [_merged(some, fresh, unit=model.method == "nmf") for some in members]
        model._groups = np.full(len(model._base), -1)
        for at, topic in enumerate(merged):
            model._groups[topic.rows] = at
        proportions = model._proportions(used, counts.dtype)
    # Neither was chosen by the data.
    model.n_topics, model.selection_ = len(merged), None
    places = [topic.anchor for topic in merged]
    order = model._describe(
        used, proportions, np.array([topic.weights for topic in merged]),
        None if None in places else np.array(places), _certificate(groups, parts),
        names=[topic.name for topic in merged],
    )  # fmt: skip
    if model.anchors is not None:
        model.anchors = model.anchor_words_
    numbers = np.argsort(order)[[distinct.index(key) for key in keys]]
    return [
        sorted({int(new) for topic, new in zip(topics, numbers, strict=True) if topic.source == at})
        for at in range(n_topics)
    ]


def _split(model: Any, whole: _Topic, used: Any, proportions: FloatArray, into: int) -> list[_Topic]:
    """Apply the method to the documents of a topic."""
    leads = (proportions.argmax(axis=1) == whole.source) & (proportions[:, whole.source] > 0)
    documents = sp.csr_array(used[np.flatnonzero(leads)])
    words: IntArray = np.array([], dtype=np.intp)
    if leads.any():
        with contextlib.suppress(InvalidDataError):
            words = used_words(documents, model.min_df, float(model.max_df))
    if into > min(documents.shape[0], len(words)):
        raise InvalidParameterError(
            f"Topic {whole.source} cannot be split into {into}: it leads in {documents.shape[0]} "
            f"documents, which share {len(words)} words. Ask for fewer parts, or split a larger topic."
        )
    inner = sp.csr_array(documents[:, words])
    name = METHODS.name_of(model.method)
    params = model._method_params(name)
    task = Task(
        inner, None if model._inverse is None else inverse_frequencies(inner), into, balance=model.balance,
        params={key: params[key] for key in params if key not in ("callback", "checkpoint")},
        rng=model.random_state, n_jobs=model.n_jobs,
    )  # fmt: skip
    topics = METHODS[name].run(task)
    inside = document_weights(inner, topics.components, task.inverse, METHODS[name].encoding)
    inside = rows_of_sum_one(np.maximum(inside, 0.0))
    weights = over_vocabulary(topics.components, words, used.shape[1])
    if name == "nmf":
        # In the weights of the whole collection, as the other topics: the method saw those of this topic.
        known = term_weights(documents, model._inverse, unit_rows=True)
        weights = unit_rows(least_squares_weights(sp.csr_array(known.T), np.ascontiguousarray(inside.T)).T)
    # Every row of the topic is divided among the same parts.
    first = len(model._base)
    model._base = np.vstack([model._base, *[weights] * len(whole.rows)])
    model._parents = np.concatenate([model._parents, np.repeat(whole.rows, into)])
    shares = whole.share * rows_of_sum_one(inside.sum(axis=0, keepdims=True))[0]
    return [
        _Topic(
            whole.source, weights[at], list(range(first + at, len(model._base), into)), float(shares[at]),
            None if topics.anchors is None else int(words[topics.anchors[at]]),
            None if whole.name is None else f"{whole.name} {at + 1}",
        )
        for at in range(into)
    ]  # fmt: skip


def _merged(topics: Sequence[_Topic], fresh: Names, *, unit: bool) -> _Topic:
    """Return the mixture of topics by their shares, in the method's own scale."""
    if len(topics) == 1:
        return topics[0]
    total = sum(topic.share for topic in topics)
    shares = np.array([topic.share for topic in topics]) if total > 0 else np.ones(len(topics))
    mixture = shares @ np.array([topic.weights for topic in topics])
    weights = mixture / (float(np.linalg.norm(mixture) if unit else mixture.sum()) or 1.0)
    anchors = [topic.anchor for topic in topics if topic.anchor is not None]
    # What was exclusive to a part is exclusive to the whole: the one that says most of it stands for it.
    anchor = max(anchors, key=lambda at: float(weights[at])) if len(anchors) == len(topics) else None
    # A name given now counts more than those that the topics had, which stand for half of the whole or for
    # nothing.
    names = [topic.name for topic in topics if topic.name and topic.source in fresh]
    if not names and sum(topic.share for topic in topics if topic.name) >= 0.5 * total:
        names = [topic.name for topic in topics if topic.name]
    rows = [row for topic in topics for row in topic.rows]
    name = " / ".join(dict.fromkeys(names)) or None
    return replace(topics[0], weights=weights, rows=rows, share=total, anchor=anchor, name=name)


def _certificate(groups: list[list[int]], parts: dict[int, int]) -> Certificate:
    """Say that statements about the factorization were left out, because topics are no longer its own."""
    changes = [f"topics {', '.join(map(str, group))} were merged" for group in groups]
    changes += [f"topic {topic} was split into {into}" for topic, into in parts.items()]
    statement = Statement(
        "topics-edited",
        f"After the fit {' and '.join(changes)} (numbers before this change). The certificate of the model "
        "before the change says what is known about the factorization.",
        float(sum(map(len, groups)) + len(parts)), None, Verdict.NOT_VERIFIABLE,
    )  # fmt: skip
    return Certificate().with_statements([statement])


def _checked_parts(into: Any) -> int:
    if isinstance(into, bool) or not isinstance(into, int | np.integer) or into < 2:
        raise InvalidParameterError(f"into must be an integer of at least 2, got {into!r}.")
    return int(into)


def _checked_names(names: dict[int, str | None]) -> dict[int, str | None]:
    for topic, name in names.items():
        if name is not None and (not isinstance(name, str) or not name.strip()):
            raise InvalidParameterError(f"The name of topic {topic} must be a word or None, got {name!r}.")
    return {topic: name if name is None else name.strip() for topic, name in names.items()}
