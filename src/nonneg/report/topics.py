"""Record and page of topics: words and documents, how many, over time, the tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import dendrogram

from nonneg._html import Raw, element
from nonneg._typing import FloatArray
from nonneg.applications.topics.over_time import topics_over_time
from nonneg.report import drawings
from nonneg.report import elements as html
from nonneg.report.record import Record, of_estimator, picked

_N_WORDS, _N_CHIPS, _N_EXAMPLES, _N_LETTERS = 20, 15, 3, 400
_LONGEST = 44  # letters of a name in the tree
_COLUMNS = {
    "topic": "topic",
    "name": "name",
    "proportion": ("proportion", html.percent),
    "n_documents": "documents",
    "npmi": ("NPMI", "{:.2g}".format),
    "anchor": "anchor",
    "words": ("words", lambda words: " ".join(str(word) for word, _ in words[:8])),
}


def describe(
    model: Any,
    proportions: FloatArray,
    documents: Any,
    seconds: float,
    *,
    inputs: Mapping[str, Any] | None = None,
) -> Record:
    """Return the record of topics; `inputs` says where the documents are, for `nonneg edit-topics`."""
    weights = np.sort(model.topics_, axis=1)[:, ::-1]
    examples = model.representative_documents(documents.contents, _N_EXAMPLES, proportions=proportions)
    topics = [
        {
            "topic": at,
            "name": model.topic_names_[at],
            "label": label,
            "proportion": model.topic_proportions_[at],
            "n_documents": int(model.documents_per_topic_[at]),
            "few_documents": bool(model.few_documents_[at]),
            "npmi": model.npmi_[at],
            "coherence": model.coherence_[at],
            "anchor": None if model.anchor_words_ is None else model.anchor_words_[at],
            "words": list(zip(words, weights[at].tolist(), strict=False)),
            "examples": [_example(documents, int(row), proportions[row, at]) for row in examples[at]],
        }
        for at, (words, label) in enumerate(zip(model.top_words(_N_WORDS), model.topic_labels(), strict=True))
    ]
    n_documents, k = len(proportions), len(topics)
    data = {
        "source": documents.source,
        "kind": "texts" if documents.are_texts else "counts",
        "n_documents": n_documents,
        "n_words": model.n_features_in_,
        "n_used": len(model.word_indices_),
        "n_empty": int((~(proportions.sum(axis=1) > 0)).sum()),
    }
    result = {
        **picked(model, "method", "n_topics_", "n_iter_"),
        "mean_npmi": None if np.isnan(model.npmi_).all() else float(np.nanmean(model.npmi_)),
        "coherence": float(model.coherence_.mean()),
        "seconds": seconds,
    }
    empty = html.noted((data["n_empty"], "document", "without topic words"))
    largest = max(topics, key=lambda entry: entry["proportion"])
    return Record(
        "topics",
        f"Topics of {documents.source}",
        f"{html.counted(k, 'topic')} in {html.counted(n_documents, 'document')}; the largest "
        f"({largest['label']}) makes up {html.percent(largest['proportion'])}.",
        f"{html.counted(n_documents, 'document')} ({data['kind']}) from {documents.source}, "
        f"{html.number(data['n_used'])} of {html.number(data['n_words'])} words used.{empty} Topics by "
        f"{model.method}, in {html.seconds(seconds)}.",
        {name: (data | result)[name] for name in ("n_topics", "n_documents", "mean_npmi", "seconds")},
        data,
        result,
        details={
            "topics": topics,
            **picked(model, "selection_", "edits_"),
            "hierarchy": model.hierarchy().merges,
            "over_time": None if documents.times is None else _over_time(model, proportions, documents),
            "inputs": inputs,
        },
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
    return f"{html.counted(count, 'document')} without a date left out of the topics over time{which}"


def table(record: Record) -> list[dict[str, Any]]:
    """Return the topics, one per row."""
    return html.rows_of(record.as_dict()["topics"], _COLUMNS)


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    details = record.as_dict()
    topics, selection, course = details["topics"], details["selection"], details["over_time"]
    anchored = "; the anchor word occurs in its topic only" * any(entry["anchor"] for entry in topics)
    told = f"Words are shaded by weight{anchored}. Below them are documents that are mostly about the topic."
    parts = [html.section("The topics", told, html.cards(map(_topic, topics)))]
    if selection:
        # Every measure that has a value for each candidate, and its standard error.
        candidates = selection["candidates"]
        measures = {
            name.replace("_", " ").replace("npmi", "NPMI"): values
            for name, values in selection.items()
            if isinstance(values, list) and len(values) == len(candidates) and name != "candidates"
        }
        errors = {
            name.removesuffix(" error"): measures.pop(name) for name in [*measures] if name.endswith(" error")
        }
        curves = drawings.curves(candidates, measures, "topics", selection["n_topics"], errors)
        parts.append(html.section("How many topics", selection["reason"], curves))
    if course:
        parts.append(_course(course))
    if len(details["hierarchy"]) > 1:
        parts.append(_tree(details["hierarchy"], [f"{one['label']}  {one['topic']}" for one in topics]))
    return parts


def _topic(entry: Mapping[str, Any]) -> list[Any]:
    """Return the card of a topic."""
    words, weights = zip(*entry["words"][:_N_CHIPS], strict=True) if entry["words"] else ((), ())
    headline = [
        element("h3", f"Topic {entry['topic']}{': ' if entry['name'] else ''}{entry['name'] or ''}"),
        html.badge(html.percent(entry["proportion"]), "open"),
        html.badge("rests on few documents", "caution") if entry["few_documents"] else None,
        html.badge(f"anchor: {entry['anchor']}", "good") if entry["anchor"] is not None else None,
    ]
    main = f"The main topic of {html.counted(entry['n_documents'], 'document')}." * bool(entry["n_documents"])
    if entry["npmi"] is not None:
        main += f" NPMI of its words: {html.number(entry['npmi'], digits=2)}."
    examples = [
        element(
            "p", element("b", one["name"]), f" {html.percent(one['proportion'])}",
            [element("br"), one["text"]],
        )
        for one in entry["examples"]
        if one["text"] or not one["name"].startswith("row ")  # a bare number of a row tells nothing
    ]  # fmt: skip
    return [headline, element("p", html.Names.strongest(weights, words, _N_CHIPS)), html.note(main), examples]


def _course(course: Mapping[str, Any]) -> Raw:
    """Return the section of the topics over time."""
    periods, means = course["periods"], np.array(course["proportions"], dtype=float).T
    said = [
        f"{html.counted(sum(course['counts']), 'document')} by {course['unit']}, from {periods[0]} to "
        f"{periods[-1]}.{html.noted((course['n_empty'], 'document', 'without a topic left out'))}"
    ]
    said += [f"{missing}."] if (missing := missing_dates(course)) else []
    return html.section(
        "Topics over time",
        " ".join(said),
        html.legend("0 to the largest share of each topic"),
        html.figure(
            drawings.heat_map(np.nan_to_num(means), "period", periods, line="topic"),
            "The mean share of each topic in the documents of a period. over_time.csv has the numbers.",
        ),
    )


def _tree(merges: Any, labels: Sequence[str]) -> Raw:
    """Draw a tree over topics: leaves on the left, joined at their distance."""
    figure, axes = drawings.panel(10.4, 0.27 * len(labels) + 0.8)
    named = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in labels]
    dendrogram(
        np.asarray(merges, dtype=float), orientation="right", labels=named, ax=axes, leaf_font_size=10,
        link_color_func=lambda _: drawings.ACCENT,
    )  # fmt: skip
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.spines["right"].set_visible(False)
    drawings.label(axes, "distance", grid=False)
    return html.section(
        "Tree over the topics",
        "Topics with similar words are joined first. A vertical line through the tree cuts it into groups; "
        "nonneg edit-topics --cut merges the topics of each.",
        html.figure(drawings.drawing(figure, "Tree over the topics")),
    )
