"""Record of topics: words and documents, how many, over time, the tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nonneg._arrays import to_numpy
from nonneg.applications.topics.over_time import topics_over_time
from nonneg.report import drawings, words
from nonneg.report.record import Record, block, of_estimator, picked

_N_WORDS, _N_EXAMPLES, _N_LETTERS = 20, 3, 400
_SHOWN = ("topic", "name", "proportion", "n_documents", "npmi", "anchor", "words")
_TREE = (
    "Topics with similar words are joined first. A vertical line through the tree cuts it into groups; "
    "nonneg edit-topics --cut merges the topics of each."
)


def describe(model: Any, documents: Any, seconds: float, proportions: Any, **inputs: Any) -> Record:
    """Return the record of topics; `inputs` say how the documents were read, for `nonneg edit-topics`."""
    portions, k = to_numpy(proportions), model.n_topics_
    weights = np.sort(model.topics_, axis=1)[:, ::-1].tolist()
    topics = words.entries_of(
        topic=range(k),
        name=model.topic_names_,
        label=model.topic_labels(),
        proportion=model.topic_proportions_.tolist(),
        n_documents=model.documents_per_topic_.tolist(),
        few_documents=model.few_documents_.tolist(),
        npmi=model.npmi_.tolist(),
        coherence=model.coherence_.tolist(),
        anchor=[None] * k if model.anchor_words_ is None else model.anchor_words_,
        words=[
            list(zip(top, own, strict=False))
            for top, own in zip(model.top_words(_N_WORDS), weights, strict=True)
        ],
    )
    data = {
        "source": documents.source,
        "n_documents": len(portions),
        "n_words": model.n_features_in_,
        "n_used": len(model.word_indices_),
    }
    result = {
        **picked(model, "method", "n_topics_", "n_iter_"),
        "mean_npmi": None if np.isnan(model.npmi_).all() else float(np.nanmean(model.npmi_)),
        "coherence": float(model.coherence_.mean()),
        "seconds": seconds,
    }
    examples: list[Any] = [
        {"topic": at, "document": documents.names[row], "proportion": words.percent(portions[row, at])}
        | ({"text": _beginning(documents.contents[row])} if documents.are_texts else {})
        for at, rows in enumerate(model.representative_documents(documents.contents, _N_EXAMPLES))
        for row in rows.tolist()
        # A bare number of a row tells nothing.
        if documents.are_texts or not documents.names[row].startswith("row ")
    ]
    table, n_documents = words.rows_of(topics, *_SHOWN), words.counted(len(portions), "document")
    merges, selection = model.hierarchy(), model.selection_
    course = over_time = None
    if documents.times is not None:
        periods = topics_over_time(portions, documents.times, model.topic_labels())
        wrong = [[documents.names[row], text] for row, text in periods.unreadable]
        measured = picked(periods, "unit", "periods", "counts", "proportions", "n_missing")
        course = {"unreadable": wrong, **measured}
        means, names = np.nan_to_num(periods.proportions.T), periods.periods
        over_time = [
            "Topics over time",
            f"The mean share of each topic in the documents of a {periods.unit}: over_time.csv.",
            missing_dates(course),
            drawings.factor_map(means, "topic", f"{names[0]} to {names[-1]}", sort=False),
        ]
    measures = selection and {"modularity": selection["modularity"], "NPMI": selection["npmi"]}
    curves = selection and drawings.curves(
        selection["candidates"], measures, "topics", k, selection["modularity_error"]
    )
    leaves = [f"{entry['label']}  {entry['topic']}" for entry in topics]
    largest = max(topics, key=lambda entry: entry["proportion"])
    return Record(
        "topics",
        f"Topics of {documents.source}",
        f"{words.counted(k, 'topic')} in {n_documents}; the largest ({largest['label']}) makes up "
        f"{words.percent(largest['proportion'])}.",
        ["n_topics", "n_documents", "mean_npmi", "seconds"],
        data,
        result,
        details={
            "topics": topics,
            "examples": examples,
            **picked(model, "selection_", "edits_"),
            "hierarchy": merges,
            "over_time": course,
            "inputs": inputs,
        },
        remarks=[selection and selection["reason"]],
        table=table,
        sections=[
            ["The topics", "Words are shaded by weight.", block("cards", rows=table, key="topic")],
            examples and ["Documents that are mostly about a topic", examples],
            selection and ["How many topics", selection["reason"], curves],
            over_time,
            len(merges) > 1 and ["Tree over the topics", _TREE, block("tree", merges=merges, names=leaves)],
        ],
        **of_estimator(model),
    )


def _beginning(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _N_LETTERS else f"{text[:_N_LETTERS].rsplit(' ', 1)[0]} …"


def missing_dates(over_time: Mapping[str, Any]) -> str | None:
    """Say how many documents have no date, and name an entry that is not one."""
    count, wrong = over_time["n_missing"], over_time["unreadable"]
    which = f"; not a date: {wrong[0][1][:40]!r} ({wrong[0][0]})" if wrong else ""
    note = f"{words.counted(count, 'document')} without a date left out of the topics over time{which}."
    return note if count else None
