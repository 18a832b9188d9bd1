"""Topics that a user merges, splits and renames; everything that depends on them is updated."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from nonneg._arguments import checked_count
from nonneg._threads import threads
from nonneg._typing import FloatArray
from nonneg.applications.topics.documents import term_weights, unit_rows
from nonneg.applications.topics.methods import least_squares_weights
from nonneg.certificates.certificate import Certificate, Statement, Verdict
from nonneg.exceptions import DataChangedWarning, InvalidDataError, InvalidParameterError


def edited(
    model: Any,
    X: Any,
    *,
    merge: Sequence[Collection[Any]] = (),
    split: Sequence[tuple[Any, int]] = (),
    rename: Mapping[Any, str | None] | None = None,
) -> Any:
    """Return a model with all of these changes; numbers are those of the model before."""
    check_is_fitted(model, "components_")
    groups = [sorted({topic_number(model, topic) for topic in group}) for group in merge]
    groups = [group for group in groups if len(group) > 1]
    parts = {topic_number(model, topic): into for topic, into in split}
    names: dict[int, str | None] = {}
    for topic, name in (rename or {}).items():
        if name is not None and (not isinstance(name, str) or not name.strip()):
            raise InvalidParameterError(f"The name of a topic must be a word or None, got {name!r}.")
        names[topic_number(model, topic)] = None if name is None else name.strip()
    named = [*(topic for group in groups for topic in group), *parts]
    if twice := sorted({topic for topic in named if named.count(topic) > 1}):
        raise InvalidParameterError(
            f"Topics {twice} are in two groups, or both merged and split. Do one after the other."
        )
    new = copy.copy(model)
    edit = {
        "merged": groups,
        "split": [[topic, into] for topic, into in parts.items()],
        "renamed": [[topic, name] for topic, name in names.items()],
        "mapping": [[at] for at in range(model.n_topics_)],
    }
    new.edits_ = [*model.edits_, edit]
    new.topic_names_ = [names.get(at, name) for at, name in enumerate(model.topic_names_)]
    if named:
        with threads(model.n_jobs):
            _regroup(new, edit, model, model._read(X, reset=False), names)
        edits = [f"topics {', '.join(map(str, group))} were merged" for group in groups]
        edits += [f"topic {topic} was split into {into}" for topic, into in parts.items()]
        statement = Statement(
            "topics-edited",
            f"After the fit {' and '.join(edits)} (numbers before this change). The certificate of the model "
            "before the change says what is known about the factorization.",
            float(len(named)), None, Verdict.NOT_VERIFIABLE,
        )  # fmt: skip
        new.certificate_ = Certificate((statement,)).with_statements(new.certificate_)
    known = [name for name in new.topic_names_ if name is not None]
    if same := [name for name in known if known.count(name) > 1]:
        raise InvalidParameterError(f"Two topics would be called {same[0]!r}. Give each its own name.")
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


def _regroup(
    new: Any, edit: dict[str, Any], model: Any, counts: Any, names: Mapping[int, str | None]
) -> None:
    """Merge and split the topics of a copy of a model, and set what follows; complete the mapping."""
    used, words, mapping = model._used(counts), model.word_indices_, edit["mapping"]
    split = dict(edit["split"])
    merged = [topic for group in edit["merged"] for topic in group]
    others = [[at] for at in range(model.n_topics_) if at not in split and at not in merged]
    components, anchors, labels = [], [], []
    for number, members in enumerate([*others, *edit["merged"]]):
        proportions = model.topic_proportions_[members]
        # The mixture by proportions, in the method's own scale.
        weights = model.components_[members][:, words].astype(np.float64)
        if len(members) > 1:
            weights = (proportions if proportions.any() else np.ones(len(members))) @ weights
            weights /= float(np.linalg.norm(weights) if model.method == "nmf" else weights.sum()) or 1.0
        components.append(weights.ravel())
        if model.anchor_indices_ is not None:
            # What was exclusive to a part is exclusive to the whole: the one that says most of it.
            places = np.searchsorted(words, model.anchor_indices_[members])
            anchors.append(int(places[np.argmax(components[-1][places])]))
        # A name stands for half of the whole or for nothing, unless it is new.
        named = [at for at in members if model.topic_names_[at]]
        enough = 2.0 * model.topic_proportions_[named].sum() >= proportions.sum()
        name = " / ".join(model.topic_names_[at] for at in named) or None if enough else None
        labels.append(next((names[at] for at in members if at in names), name))
        for at in members:
            mapping[at] = [number]
    # The parts of split topics come after the others, and after the rows of the base.
    for topic in sorted(split):
        weights, own = _parts(model, topic, split[topic], used)
        mapping[topic] = list(range(len(components), len(components) + len(weights)))
        new._base = np.vstack([new._base, weights])
        components += [*weights]
        anchors += [] if own is None else own.tolist()
        whole = new.topic_names_[topic]
        labels += [None if whole is None else f"{whole} {part + 1}" for part in range(len(weights))]
    order = new._describe(
        used, new._proportions(used, counts.dtype), np.array(components),
        np.array(anchors) if anchors else None, Certificate(), names=labels,
    )  # fmt: skip
    edit["mapping"] = [np.argsort(order)[places].tolist() for places in mapping]
    # Neither was chosen by the data.
    new.n_topics, new.selection_ = new.n_topics_, None
    new.anchors = None if model.anchors is None else new.anchor_words_


def _parts(model: Any, topic: int, into: Any, used: Any) -> tuple[FloatArray, Any]:
    """Return the parts of a topic over the used words, by a model of its documents, and their anchors."""
    into = checked_count("into", into, 2)
    with warnings.catch_warnings():
        # Said once, of the new proportions.
        warnings.simplefilter("ignore", DataChangedWarning)
        proportions = model._proportions(used, np.float64)
        leads = (proportions.argmax(axis=1) == topic) & (proportions[:, topic] > 0)
        documents = sp.csr_array(used[np.flatnonzero(leads)])
        inner = clone(model).set_params(
            n_topics=into, verbose=0,
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
        known = unit_rows(term_weights(documents, model._inverse))
        weights = unit_rows(least_squares_weights(sp.csr_array(known.T), np.ascontiguousarray(inside.T)).T)
    return weights, inner.anchor_indices_
