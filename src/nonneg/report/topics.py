"""Record of topics: words and documents, how many, over time, the tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nonneg._arrays import to_numpy
from nonneg._typing import FloatArray
from nonneg.applications.topics.over_time import topics_over_time
from nonneg.report import drawings, words
from nonneg.report.record import Record, block, of_estimator, picked

_N_WORDS, _N_CHIPS, _N_EXAMPLES, _N_LETTERS = 20, 15, 3, 400
_COLUMNS = {
    "topic": "topic",
    "name": "name",
    "proportion": ("proportion", words.percent),
    "n_documents": "documents",
    "npmi": ("NPMI", "{:.2f}".format),
    "anchor": "anchor",
    "words": ("words", lambda top: " ".join(str(word) for word, _ in top[:8])),
}
_TREE = (
    "Topics with similar words are joined first. A vertical line through the tree cuts it into groups; "
    "nonneg edit-topics --cut merges the topics of each."
)


def describe(
    model: Any,
    documents: Any,
    seconds: float,
    *,
    proportions: Any = None,
    inputs: Mapping[str, Any] | None = None,
) -> Record:
    """Return the record of topics; `inputs` says where the documents are, for `nonneg edit-topics`."""
    shares = to_numpy(model.transform(documents.contents) if proportions is None else proportions)
    weights, k = np.sort(model.topics_, axis=1)[:, ::-1].tolist(), model.n_topics_
    examples = model.representative_documents(documents.contents, _N_EXAMPLES)
    tops = zip(model.top_words(_N_WORDS), weights, strict=True)
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
        words=[list(zip(top, own, strict=False)) for top, own in tops],
        examples=[
            [_example(documents, int(row), shares[row, at]) for row in rows]
            for at, rows in enumerate(examples)
        ],
    )
    data = {
        "source": documents.source,
        "kind": "texts" if documents.are_texts else "counts",
        "n_documents": len(shares),
        "n_words": model.n_features_in_,
        "n_used": len(model.word_indices_),
        "n_empty": int((~(shares.sum(axis=1) > 0)).sum()),
    }
    result = {
        **picked(model, "method", "n_topics_", "n_iter_"),
        "mean_npmi": None if np.isnan(model.npmi_).all() else float(np.nanmean(model.npmi_)),
        "coherence": float(model.coherence_.mean()),
        "seconds": seconds,
    }
    course = None if documents.times is None else _over_time(model, shares, documents)
    merges, selection = model.hierarchy(), model.selection_
    anchored = "; the anchor word occurs in its topic only" * any(entry["anchor"] for entry in topics)
    told = f"Words are shaded by weight{anchored}. Below them are documents that are mostly about the topic."
    sections = [["The topics", told, block("cards", cards=[_card(entry) for entry in topics])]]
    if selection:
        measures = {"modularity": selection["modularity"], "NPMI": selection["npmi"]}
        errors = {"modularity": selection["modularity_error"]}
        curves = drawings.curves(selection["candidates"], measures, "topics", k, errors)
        sections.append(["How many topics", selection["reason"], curves])
    if course:
        sections.append(["Topics over time", *_course(course)])
    if len(merges) > 1:
        leaves = [f"{entry['label']}  {entry['topic']}" for entry in topics]
        sections.append(["Tree over the topics", _TREE, block("tree", merges=merges, names=leaves)])
    n_documents = words.counted(len(shares), "document")
    largest = max(topics, key=lambda entry: entry["proportion"])
    return Record(
        "topics",
        f"Topics of {documents.source}",
        f"{words.counted(k, 'topic')} in {n_documents}; the largest ({largest['label']}) makes up "
        f"{words.percent(largest['proportion'])}.",
        words.lead(f"{n_documents} with {words.number(data['n_used'])} words", data, model.method, result),
        {name: (data | result)[name] for name in ("n_topics", "n_documents", "mean_npmi", "seconds")},
        data,
        result,
        details={
            "topics": topics,
            **picked(model, "selection_", "edits_"),
            "hierarchy": merges,
            "over_time": course,
            "inputs": inputs,
        },
        remarks=[selection["reason"]] if selection else [],
        table=words.rows_of(topics, _COLUMNS),
        sections=sections,
        **of_estimator(model),
    )


def _example(documents: Any, row: int, proportion: float) -> dict[str, Any]:
    text = " ".join(documents.contents[row].split()) if documents.are_texts else None
    if text is not None and len(text) > _N_LETTERS:
        text = text[:_N_LETTERS].rsplit(" ", 1)[0] + " …"
    return {"name": documents.names[row], "row": row, "proportion": proportion, "text": text}


def _over_time(model: Any, proportions: FloatArray, documents: Any) -> dict[str, Any]:
    course = topics_over_time(proportions, documents.times, model.topic_labels())
    wrong = [[documents.names[row], text] for row, text in course.unreadable]
    own = picked(course, "unit", "periods", "counts", "proportions", "n_missing", "n_empty")
    return own | {"unreadable": wrong}


def missing_dates(over_time: Mapping[str, Any]) -> str | None:
    """Say how many documents have no date, and name an entry that is not one."""
    if not over_time["n_missing"]:
        return None
    count, wrong = over_time["n_missing"], over_time["unreadable"]
    which = f"; not a date: {wrong[0][1][:40]!r} ({wrong[0][0]})" if wrong else ""
    return f"{words.counted(count, 'document')} without a date left out of the topics over time{which}"


def _card(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the card of a topic."""
    badges = [(words.percent(entry["proportion"]), "open")]
    badges += [("rests on few documents", "caution")] * entry["few_documents"]
    badges += [(f"anchor: {entry['anchor']}", "good")] * (entry["anchor"] is not None)
    main = f"The main topic of {words.counted(entry['n_documents'], 'document')}." * bool(
        entry["n_documents"]
    )
    if not np.isnan(entry["npmi"]):
        main += f" NPMI of its words: {words.number(entry['npmi'], digits=2)}."
    examples = [
        f"{one['name']} ({words.percent(one['proportion'])}){': ' if one['text'] else ''}{one['text'] or ''}"
        for one in entry["examples"]
        if one["text"] or not one["name"].startswith("row ")  # a bare number of a row tells nothing
    ]
    chips = words.shaded(entry["words"][:_N_CHIPS])
    return {
        "title": f"Topic {entry['topic']}{': ' if entry['name'] else ''}{entry['name'] or ''}",
        "badges": badges,
        "blocks": [block("names", names=chips), block("note", text=main), *examples],
    }


def _course(course: Mapping[str, Any]) -> list[Any]:
    """Return the blocks of the topics over time."""
    periods, missing = course["periods"], missing_dates(course)
    means = np.nan_to_num(np.array(course["proportions"], dtype=float).T)
    return [
        f"{words.counted(int(np.sum(course['counts'])), 'document')} by {course['unit']}, from {periods[0]} "
        f"to {periods[-1]}.{f' {missing}.' if missing else ''}",
        drawings.factor_map(
            means, "period", periods,
            "The mean share of each topic in the documents of a period. over_time.csv has the numbers",
            sort=False,
        ),
    ]  # fmt: skip
