"""Topics that a user merges, splits and renames; everything that depends on them is updated."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from nonneg._threads import threads
from nonneg._typing import FloatArray
from nonneg.applications.topics.documents import term_weights, unit_rows
from nonneg.applications.topics.methods import least_squares_weights
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.exceptions import DataChangedWarning, InvalidDataError, InvalidParameterError


class Change(NamedTuple):
    """Topics after a change."""

    components: list[FloatArray]  # over the used words
    anchors: list[int]  # their anchor words, or nothing
    names: list[str | None]
    numbers: list[list[int]]  # which of these every old topic is now


def edited(
    model: Any,
    X: Any,
    *,
    merge: Sequence[Sequence[Any]] = (),
    split: Mapping[Any, int] | None = None,
    rename: Mapping[Any, str | None] | None = None,
) -> Any:
    """Return a model with all of these changes, in this order; numbers are those of the model before."""
    check_is_fitted(model, "components_")
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
    new.topic_names_ = list(model.topic_names_)
    mapping = [[at] for at in range(model.n_topics_)]
    counts = model._read(X, reset=False) if taken else None
    with threads(model.n_jobs):
        if groups:
            mapping = _described(new, _merge(new, groups), counts)
        for topic, name in names.items():
            if name is not None and (not isinstance(name, str) or not name.strip()):
                raise InvalidParameterError(
                    f"The name of topic {topic} must be a word or None, got {name!r}."
                )
            new.topic_names_[mapping[topic][0]] = None if name is None else name.strip()
        for topic, into in parts.items():
            step = _described(new, _split(new, mapping[topic][0], into, counts), counts)
            mapping = [sorted(number for at in places for number in step[at]) for places in mapping]
    known = [name for name in new.topic_names_ if name is not None]
    if same := [name for name in known if known.count(name) > 1]:
        raise InvalidParameterError(f"Two topics would be called {same[0]!r}. Give each its own name.")
    if taken:
        # Neither was chosen by the data.
        new.n_topics, new.selection_ = new.n_topics_, None
        new.anchors = None if model.anchors is None else new.anchor_words_
        told = [f"topics {', '.join(map(str, group))} were merged" for group in groups]
        told += [f"topic {topic} was split into {into}" for topic, into in parts.items()]
        statement = Statement(
            "topics-edited",
            f"After the fit {' and '.join(told)} (numbers before this change). The certificate of the model "
            "before the change says what is known about the factorization.",
            float(len(taken)), None, Verdict.NOT_VERIFIABLE,
        )  # fmt: skip
        new.certificate_ = Certificate((statement,)).with_statements(new.certificate_)
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


def _merge(model: Any, groups: list[list[int]]) -> Change:
    """Merge topics in place."""
    first = np.arange(model.n_topics_)
    for group in groups:
        first[group] = group[0]
    numbers = np.unique(first, return_inverse=True)[1]
    change = Change([], [], [], [[int(at)] for at in numbers])
    for number in range(int(numbers.max()) + 1):
        members = np.flatnonzero(numbers == number)
        weights = model.components_[members][:, model.word_indices_].astype(np.float64)
        if len(members) > 1:
            # The mixture by shares, in the method's own scale.
            shares = model.topic_proportions_[members]
            weights = (shares if shares.any() else np.ones(len(members))) @ weights
            weights /= float(np.linalg.norm(weights) if model.method == "nmf" else weights.sum()) or 1.0
        change.components.append(weights.ravel())
        if model.anchor_indices_ is not None:
            # What was exclusive to a part is exclusive to the whole: the one that says most of it.
            places = np.searchsorted(model.word_indices_, model.anchor_indices_[members])
            change.anchors.append(int(places[np.argmax(change.components[-1][places])]))
        # A name stands for half of the whole or for nothing.
        named = [at for at in members if model.topic_names_[at]]
        enough = 2.0 * model.topic_proportions_[named].sum() >= model.topic_proportions_[members].sum()
        change.names.append(" / ".join(model.topic_names_[at] for at in named) or None if enough else None)
    model._groups = np.where(model._groups >= 0, numbers[model._groups], -1)
    return change


def _split(model: Any, topic: int, into: Any, counts: Any) -> Change:
    """Divide a topic in place by a model of its documents."""
    if isinstance(into, bool) or not isinstance(into, int | np.integer) or into < 2:
        raise InvalidParameterError(f"into must be an integer of at least 2, got {into!r}.")
    used = model._used(counts)
    with warnings.catch_warnings():
        # Said once, of the new proportions.
        warnings.simplefilter("ignore", DataChangedWarning)
        proportions = model._proportions(used, np.float64)
        leads = (proportions.argmax(axis=1) == topic) & (proportions[:, topic] > 0)
        documents = sp.csr_array(used[np.flatnonzero(leads)])
        inner = clone(model).set_params(
            n_topics=int(into), verbose=0,
            **dict.fromkeys(
                ("anchors", "seed_words", "vocabulary", "vectorizer", "stop_words", "callback", "checkpoint")
            ),
        )  # fmt: skip
        try:
            inside = inner.fit_transform(documents)
        except (InvalidParameterError, InvalidDataError) as error:
            raise InvalidParameterError(
                f"Topic {topic} cannot be split into {into}: it leads in {documents.shape[0]} documents. Ask "
                "for fewer parts, or split a larger topic."
            ) from error
    weights = inner.components_.astype(np.float64)
    if model.method == "nmf":
        # In the weights of the whole collection, as the other topics: the method saw those of this topic.
        known = term_weights(documents, model._inverse, unit_rows=True)
        weights = unit_rows(least_squares_weights(sp.csr_array(known.T), np.ascontiguousarray(inside.T)).T)
    # The parts come after the other topics; every row of the topic is divided among the same parts.
    others = np.delete(np.arange(model.n_topics_), topic)
    numbers = [[at - (at > topic)] for at in range(model.n_topics_)]
    numbers[topic] = [len(others) + part for part in range(into)]
    rows = np.flatnonzero(model._groups == topic)
    groups = np.where(model._groups == topic, -1, model._groups - (model._groups > topic))
    model._groups = np.concatenate([groups, np.tile(numbers[topic], len(rows))])
    model._base = np.vstack([model._base, *[weights] * len(rows)])
    model._parents = np.concatenate([model._parents, np.repeat(rows, into)])
    components = [*model.components_[others][:, model.word_indices_].astype(np.float64), *weights]
    anchors: list[int] = []
    if model.anchor_indices_ is not None:
        before = np.searchsorted(model.word_indices_, model.anchor_indices_[others])
        anchors = [*before, *inner.anchor_indices_]
    whole = model.topic_names_[topic]
    names = [model.topic_names_[at] for at in others]
    names += [None if whole is None else f"{whole} {part + 1}" for part in range(into)]
    return Change(components, anchors, names, numbers)


def _described(model: Any, change: Change, counts: Any) -> list[list[int]]:
    """Set what follows from the topics; return the new numbers of every old topic."""
    used = model._used(counts)
    order = model._describe(
        used, model._proportions(used, counts.dtype), np.array(change.components),
        np.array(change.anchors) if change.anchors else None, Certificate(), names=change.names,
    )  # fmt: skip
    ranks = np.argsort(order)
    return [sorted(ranks[places].tolist()) for places in change.numbers]
