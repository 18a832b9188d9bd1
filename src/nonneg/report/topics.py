"""Blocks of topics: words and documents, how many, over time, the tree, similar topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import dendrogram

from nonneg._html import Raw
from nonneg._typing import FloatArray
from nonneg.metrics import top_words, topic_diversity
from nonneg.report import drawings, records, wording
from nonneg.report import elements as html
from nonneg.report.records import Record

_N_WORDS, _N_CHIPS, _N_EXAMPLES, _N_LETTERS = 20, 15, 3, 400
_N_DIVERSITY_WORDS = 25  # as Dieng, Ruiz & Blei (2020) count them
_LONGEST = 44  # letters of a name in the tree


def describe(
    model: Any,
    proportions: FloatArray,
    documents: Any,
    seconds: float,
    *,
    inputs: Mapping[str, Any] | None = None,
) -> Record:
    """Return the record of topics; `inputs` says where the documents are, for `nonneg edit-topics`."""
    used = model.topics_[:, model.word_indices_]
    examples = model.representative_documents(documents.contents, _N_EXAMPLES, proportions=proportions)
    words = model.top_words(_N_WORDS)
    # Words without weight are not words of a topic, even where it has fewer than _N_WORDS.
    sets = [set(own) for own in words]
    shared = np.array([[len(one & other) for other in sets] for one in sets], dtype=np.intp)
    topics = [
        {
            "topic": at,
            "name": model.topic_names_[at],
            "proportion": model.topic_proportions_[at],
            "n_documents": model.documents_per_topic_[at],
            "few_documents": bool(model.few_documents_[at]),
            "npmi": model.npmi_[at],
            "coherence": model.coherence_[at],
            "anchor": None if model.anchor_words_ is None else model.anchor_words_[at],
            "words": list(zip(own, np.sort(used[at])[::-1][: len(own)].tolist(), strict=True)),
            "examples": [_example(documents, int(row), proportions[row, at]) for row in examples[at]],
        }
        for at, own in enumerate(words)
    ]
    npmi = float("nan") if np.isnan(model.npmi_).all() else float(np.nanmean(model.npmi_))
    data = {
        "source": documents.source,
        "n_documents": len(proportions),
        "n_words": model.n_features_in_,
        "n_used": len(model.word_indices_),
        "n_empty": int((~(proportions.sum(axis=1) > 0)).sum()),
        "n_copies": int((model.duplicate_of_ != np.arange(len(model.duplicate_of_))).sum()),
        "n_set_aside": len(model.set_aside_),
        "kind": "texts" if documents.are_texts else "counts",
    }
    result = {
        "method": model.method,
        "n_topics": len(topics),
        "n_iter": model.n_iter_,
        "npmi": None if np.isnan(npmi) else npmi,
        "diversity": topic_diversity(top_words(used, _N_DIVERSITY_WORDS)),
        "coherence": float(model.coherence_.mean()),
        "similarity_count": int(np.triu(shared, 1).sum()),
        "seconds": seconds,
    }
    largest = max(topics, key=lambda entry: entry["proportion"])
    return Record(
        "topics",
        f"Topics of {documents.source}",
        f"{wording.counted(len(topics), 'topic')} in {wording.counted(len(proportions), 'document')}; the "
        f"largest ({_label(largest)}) makes up {wording.percent(largest['proportion'])}.",
        _lead(data, result),
        {
            "topics": len(topics),
            "documents": len(proportions),
            "mean NPMI": wording.number(result["npmi"], digits=2),
            "shared top words": result["similarity_count"],
            "time": seconds,
        },
        data,
        result,
        details={
            "topics": topics,
            "shared_words": shared,
            "selection": model.selection_,
            "hierarchy": model.hierarchy().merges,
            "over_time": None if documents.times is None else _over_time(model, proportions, documents),
            "edits": model.edits_,
            "inputs": inputs,
        },
        **records.of_estimator(model),
    )


def _example(documents: Any, row: int, proportion: float) -> dict[str, Any]:
    text = None
    if documents.are_texts:
        text = " ".join(documents.contents[row].split())
        if len(text) > _N_LETTERS:
            text = text[:_N_LETTERS].rsplit(" ", 1)[0] + " …"
    return {"name": documents.names[row], "row": row, "proportion": proportion, "text": text}


def _over_time(model: Any, proportions: FloatArray, documents: Any) -> dict[str, Any]:
    course = model.over_time(documents.contents, documents.times, proportions=proportions)
    names = ("unit", "periods", "counts", "proportions", "n_missing", "n_empty")
    wrong = [[documents.names[row], text] for row, text in course.unreadable]
    return {name: getattr(course, name) for name in names} | {"unreadable": wrong}


def missing_dates(over_time: Mapping[str, Any]) -> str | None:
    """Say how many documents have no date, and name an entry that is not one."""
    if not over_time["n_missing"]:
        return None
    count, wrong = over_time["n_missing"], over_time["unreadable"]
    which = f"; not a date: {wrong[0][1][:40]!r} ({wrong[0][0]})" if wrong else ""
    return f"{wording.counted(count, 'document')} without a date left out of the topics over time{which}"


def _lead(data: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    text = (
        f"{wording.counted(data['n_documents'], 'document')} ({data['kind']}) from {data['source']}, "
        f"{wording.number(data['n_used'])} of {wording.number(data['n_words'])} words used."
    )
    for name, what in (
        ("n_empty", "without topic words"),
        ("n_copies", "took no part in the search as copies"),
        ("n_set_aside", "in groups too small for a topic"),
    ):
        if data[name]:
            text += f" {wording.counted(data[name], 'document')} {what}."
    return f"{text} Topics by {wording.method(result['method'])}, in {wording.seconds(result['seconds'])}."


def _label(entry: Mapping[str, Any]) -> str:
    return entry["name"] or ", ".join(str(word) for word, _ in entry["words"][:3])


def table(record: Record) -> list[dict[str, Any]]:
    """Return the topics, one per row."""
    rows = [
        {
            "topic": entry["topic"],
            "name": entry["name"],
            "proportion": wording.percent(entry["proportion"]),
            "documents": f"{entry['n_documents']}{' (few)' * entry['few_documents']}",
            "NPMI": wording.number(entry["npmi"], digits=2),
            "anchor": entry["anchor"],
            "words": " ".join(str(word) for word, _ in entry["words"][:8]),
        }
        for entry in record.as_dict()["topics"]
    ]
    empty = [name for name in ("name", "anchor") if all(row[name] is None for row in rows)]
    return [{name: value for name, value in row.items() if name not in empty} for row in rows]


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    details = record.as_dict()
    topics, selection, course = details["topics"], details["selection"], details["over_time"]
    anchored = "; the anchor word occurs in its topic only" * any(entry["anchor"] for entry in topics)
    said = f"Words are shaded by weight{anchored}. Below them are documents that are mostly about the topic."
    cards = html.element("div", [_topic(one) for one in topics], class_="cards")
    parts = [html.section("The topics", said, cards)]
    if selection:
        parts.append(html.section("How many topics", selection["reason"], _selection_curves(selection)))
    if course:
        parts.append(_courses(course, topics))
    if len(details["hierarchy"]) > 1:
        parts.append(_tree(details["hierarchy"], [f"{_label(entry)}  {entry['topic']}" for entry in topics]))
    parts.append(_similarity(np.array(details["shared_words"]), topics))
    if details["edits"]:
        parts.append(html.section("Changes after the fit", [_edit(entry) for entry in details["edits"]]))
    return parts


def _topic(entry: Mapping[str, Any]) -> Raw:
    heaviest = max((weight for _, weight in entry["words"]), default=1.0) or 1.0
    name = f": {entry['name']}" if entry["name"] else ""
    headline = [
        html.element("h3", f"Topic {entry['topic']}{name}"),
        html.badge(wording.percent(entry["proportion"]), "open"),
        html.badge("rests on few documents", "caution") if entry["few_documents"] else None,
        html.badge(f"anchor: {entry['anchor']}", "good") if entry["anchor"] is not None else None,
    ]
    words = html.Names((word, 100 * weight / heaviest) for word, weight in entry["words"][:_N_CHIPS])
    note = f"The main topic of {wording.counted(entry['n_documents'], 'document')}."
    if entry["npmi"] is not None:
        note += f" NPMI of its words: {wording.number(entry['npmi'], digits=2)}."
    examples = [
        html.paragraph(
            html.element("b", one["name"]), f" {wording.percent(one['proportion'])}",
            [html.element("br"), one["text"]],
        )
        for one in entry["examples"]
        if one["text"] or not one["name"].startswith("row ")  # a bare number of a row tells nothing
    ]  # fmt: skip
    blocks = [html.paragraph(words), html.paragraph(note, note=True), *examples]
    return html.card(headline, *blocks, class_="card", id_=f"topic-{entry['topic']}")


def _selection_curves(selection: Mapping[str, Any]) -> Raw | None:
    """Draw what chose the number of topics: every measure that has a value for each candidate."""
    numbers = selection["candidates"]
    curves = [
        drawings.curve(
            numbers, values, ("topics", "NPMI" if name == "npmi" else name.replace("_", " ")),
            spread=selection.get(f"{name}_error"), mark=selection["n_topics"],
        )
        for name, values in selection.items()
        if name != "candidates" and not name.endswith("_error")
        and isinstance(values, list) and len(values) == len(numbers)
    ]  # fmt: skip
    return html.side_by_side(*curves)


def _courses(course: Mapping[str, Any], topics: Sequence[Mapping[str, Any]]) -> Raw:
    counts, periods = course["counts"], course["periods"]
    said = [
        f"{wording.counted(sum(counts), 'document')} by {course['unit']}, from {periods[0]} to {periods[-1]}."
    ]
    if missing := missing_dates(course):
        said.append(f"{missing}.")
    if course["n_empty"]:
        said.append(f"{wording.counted(course['n_empty'], 'document')} without a topic left out.")
    means = np.array(course["proportions"], dtype=float).T
    rows = [
        {
            "topic": entry["topic"],
            "words": _label(entry),
            "mean": wording.percent(entry["proportion"]),
            "peak": wording.percent(float(np.nanmax(shares))),
            "in": periods[int(np.nanargmax(shares))],
        }
        for entry, shares in zip(topics, means, strict=True)
    ]
    caption = "The mean share of each topic in the documents of a period. over_time.csv has the numbers."
    return html.section(
        "Topics over time",
        " ".join(said),
        html.legend("0 to the largest share of each topic"),
        html.figure(drawings.heat_map(np.nan_to_num(means), "period", periods, line="topic"), caption),
        rows,
    )


def _tree(merges: Any, labels: Sequence[str]) -> Raw:
    """Draw a tree over topics: leaves on the left, joined at their distance."""
    whole, (axes,) = drawings.panels(10.4, 0.27 * len(labels) + 0.8)
    named = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in labels]
    dendrogram(
        np.asarray(merges, dtype=float),
        orientation="right",
        labels=named,
        ax=axes,
        leaf_font_size=10,
        link_color_func=lambda _: drawings.ACCENT,
    )
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.spines["right"].set_visible(False)
    drawings.label(axes, "distance", grid=False)
    return html.section(
        "Tree over the topics",
        "Topics with similar words are joined first. A vertical line through the tree cuts it into groups; "
        "nonneg edit-topics --cut merges the topics of each.",
        html.figure(drawings.drawing(whole, "Tree over the topics")),
    )  # fmt: skip


def _similarity(shared: Any, topics: Sequence[Mapping[str, Any]]) -> Raw:
    pairs = [(int(shared[i, j]), i, j) for i in range(len(shared)) for j in range(i) if shared[i, j] > 0]
    rows = []
    for count, one, other in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))[:10]:
        words = {word for word, _ in topics[one]["words"]}
        common = [str(word) for word, _ in topics[other]["words"] if word in words]
        rows.append({"topics": f"{other} and {one}", "shared words": count, "which": ", ".join(common[:8])})
    said = f"The pairs that share most of their {_N_WORDS} top words."
    if not rows:
        said = f"No two topics share any of their {_N_WORDS} top words."
    return html.section("Similarity of the topics", said, rows)


def _edit(entry: Mapping[str, Any]) -> dict[str, str]:
    """Tell a change of topics, and how it changed their numbers."""
    said = [f"topics {' and '.join(map(str, group))} merged" for group in entry["merged"]]
    said += [f"topic {topic} split into {into}" for topic, into in entry["split"]]
    said += [
        f"topic {topic} called {name}" if name else f"the name of topic {topic} removed"
        for topic, name in entry["renamed"]
    ]
    moved = [
        f"{old} → {' and '.join(map(str, new))}" for old, new in enumerate(entry["mapping"]) if new != [old]
    ]
    return {"change": ", ".join(said), "numbers before and after": ", ".join(moved) or "as before"}
