"""Topics that a user merges, splits and renames; everything that depends on them is updated."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Mapping, Sequence
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
    unit_rows,
    used_words,
)
from nonneg.applications.topics.methods import METHODS, Task, document_weights
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.exceptions import DataChangedWarning, InvalidDataError, InvalidParameterError


def edited(
    model: Any,
    X: Any,
    *,
    merge: Sequence[Sequence[Any]] = (),
    split: Mapping[Any, int] | None = None,
    rename: Mapping[Any, str | None] | None = None,
) -> Any:
    """Return a model with all of these changes, in this order; numbers are those of the model before."""
    groups = [sorted({topic_number(model, topic) for topic in group}) for group in merge]
    groups = [group for group in groups if len(group) > 1]
    parts = {topic_number(model, topic): into for topic, into in (split or {}).items()}
    names = {topic_number(model, topic): name for topic, name in (rename or {}).items()}
    taken = [*(topic for group in groups for topic in group), *parts]
    if twice := sorted({topic for topic in taken if taken.count(topic) > 1}):
        raise InvalidParameterError(
            f"Topics {twice} are in two groups, or both merged and split. Do one after the other."
        )
    new = copy.copy(model)
    mapping = [[at] for at in range(model.n_topics_)]
    with threads(model.n_jobs):
        if groups:
            mapping = _merge(new, groups, X)
        new.topic_names_ = list(new.topic_names_)
        for topic, name in names.items():
            new.topic_names_[mapping[topic][0]] = _checked_name(topic, name)
        for topic, into in parts.items():
            step = _split(new, mapping[topic][0], into, X)
            mapping = [sorted(number for at in places for number in step[at]) for places in mapping]
    known = [name for name in new.topic_names_ if name is not None]
    if same := [name for name in known if known.count(name) > 1]:
        raise InvalidParameterError(f"Two topics would be called {same[0]!r}. Give each its own name.")
    if taken:
        # Neither was chosen by the data.
        new.n_topics, new.selection_ = new.n_topics_, None
        new.anchors = None if model.anchors is None else new.anchor_words_
        new.certificate_ = _certificate(groups, parts).with_statements(new.certificate_)
    edit = {
        "merged": groups,
        "split": [[topic, into] for topic, into in parts.items()],
        "renamed": [[topic, name] for topic, name in names.items()],
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


def _merge(model: Any, groups: list[list[int]], X: Any) -> list[list[int]]:
    """Merge topics in place; return the new numbers of every old topic."""
    first = np.arange(model.n_topics_)
    for group in groups:
        first[group] = group[0]
    numbers = np.unique(first, return_inverse=True)[1]
    shares = model.topic_proportions_
    unit = model.method == "nmf"
    components, anchors, names = [], [], []
    for number in range(int(numbers.max()) + 1):
        members = np.flatnonzero(numbers == number)
        weights = model.components_[members][:, model.word_indices_].astype(np.float64)
        if len(members) > 1:
            # The mixture by shares, in the method's own scale.
            mixture = (shares[members] if shares[members].any() else np.ones(len(members))) @ weights
            weights = mixture / (float(np.linalg.norm(mixture) if unit else mixture.sum()) or 1.0)
        components.append(weights.ravel())
        if model.anchor_indices_ is not None:
            # What was exclusive to a part is exclusive to the whole: the one that says most of it.
            places = np.searchsorted(model.word_indices_, model.anchor_indices_[members])
            anchors.append(places[np.argmax(components[-1][places])])
        # A name stands for half of the whole or for nothing.
        named = [at for at in members if model.topic_names_[at]]
        enough = shares[named].sum() >= 0.5 * shares[members].sum()
        names.append(" / ".join(model.topic_names_[at] for at in named) or None if enough else None)
    model._groups = np.where(model._groups >= 0, numbers[model._groups], -1)
    return _described(model, X, components, anchors or None, names, [[int(at)] for at in numbers])


def _split(model: Any, topic: int, into: Any, X: Any) -> list[list[int]]:
    """Divide a topic in place by the method, applied to its documents; return the new numbers of the old."""
    if isinstance(into, bool) or not isinstance(into, int | np.integer) or into < 2:
        raise InvalidParameterError(f"into must be an integer of at least 2, got {into!r}.")
    used = model._used(model._read(X, reset=False))
    with warnings.catch_warnings():
        # Said once, of the new proportions.
        warnings.simplefilter("ignore", DataChangedWarning)
        proportions = model._proportions(used, np.float64)
    leads = (proportions.argmax(axis=1) == topic) & (proportions[:, topic] > 0)
    documents = sp.csr_array(used[np.flatnonzero(leads)])
    words: IntArray = np.array([], dtype=np.intp)
    if leads.any():
        with contextlib.suppress(InvalidDataError):
            words = used_words(documents, model.min_df, float(model.max_df))
    if into > min(documents.shape[0], len(words)):
        raise InvalidParameterError(
            f"Topic {topic} cannot be split into {into}: it leads in {documents.shape[0]} documents, which "
            f"share {len(words)} words. Ask for fewer parts, or split a larger topic."
        )
    inner = sp.csr_array(documents[:, words])
    name = METHODS.name_of(model.method)
    params = model._method_params(name)
    task = Task(
        inner, None if model._inverse is None else inverse_frequencies(inner), int(into),
        params={key: params[key] for key in params if key not in ("callback", "checkpoint")},
        balance=model.balance, rng=model.random_state, n_jobs=model.n_jobs,
    )  # fmt: skip
    topics = METHODS[name].run(task)
    weights = over_vocabulary(topics.components, words, used.shape[1])
    if name == "nmf":
        # In the weights of the whole collection, as the other topics: the method saw those of this topic.
        inside = document_weights(inner, topics.components, task.inverse, METHODS[name].encoding)
        inside = rows_of_sum_one(np.maximum(inside, 0.0))
        known = term_weights(documents, model._inverse, unit_rows=True)
        weights = unit_rows(least_squares_weights(sp.csr_array(known.T), np.ascontiguousarray(inside.T)).T)
    # The parts come after the other topics; every row of the topic is divided among the same parts.
    others = np.delete(np.arange(model.n_topics_), topic)
    numbers = [[at - (at > topic)] for at in range(model.n_topics_)]
    numbers[topic] = [len(others) + part for part in range(into)]
    rows = np.flatnonzero(model._groups == topic)
    model._groups = np.where(model._groups > topic, model._groups - 1, model._groups)
    model._groups[rows] = -1
    model._groups = np.concatenate([model._groups, np.tile(numbers[topic], len(rows))])
    model._base = np.vstack([model._base, *[weights] * len(rows)])
    model._parents = np.concatenate([model._parents, np.repeat(rows, into)])
    components = [*model.components_[others][:, model.word_indices_].astype(np.float64), *weights]
    anchors = None
    if model.anchor_indices_ is not None and topics.anchors is not None:
        anchors = [
            *np.searchsorted(model.word_indices_, model.anchor_indices_[others]),
            *words[topics.anchors],
        ]
    whole = model.topic_names_[topic]
    names = [model.topic_names_[at] for at in others]
    names += [None if whole is None else f"{whole} {part + 1}" for part in range(into)]
    return _described(model, X, components, anchors, names, numbers)


def _described(
    model: Any,
    X: Any,
    components: list[FloatArray],
    anchors: list[Any] | None,
    names: list[str | None],
    numbers: list[list[int]],
) -> list[list[int]]:
    """Set what follows from the topics; return the new numbers of every old topic."""
    counts = model._read(X, reset=False)
    used = model._used(counts)
    order = model._describe(
        used, model._proportions(used, counts.dtype), np.array(components),
        None if anchors is None else np.array(anchors), Certificate(), names=names,
    )  # fmt: skip
    ranks = np.argsort(order)
    return [sorted(ranks[places].tolist()) for places in numbers]


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
    return Certificate((statement,))


def _checked_name(topic: int, name: Any) -> str | None:
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise InvalidParameterError(f"The name of topic {topic} must be a word or None, got {name!r}.")
    return None if name is None else name.strip()
