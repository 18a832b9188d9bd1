"""Sections of topics: words and documents, how many, over time, the tree, similar topics."""

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
_ALIKE = 10.0  # topics that share this many of their 20 top words are drawn darkest
_LONGEST = 44  # letters of a drawings.label of the tree


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
    over_time = None if documents.times is None else _over_time(model, proportions, documents)
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
            "over_time": over_time,
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
    names = ("unit", "periods", "counts", "proportions", "smoothed", "bandwidth", "n_missing", "n_empty")
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
    if data["n_empty"]:
        text += f" {wording.counted(data['n_empty'], 'document')} without topic words."
    if data["n_copies"]:
        text += f" {wording.counted(data['n_copies'], 'document')} took no part in the search as copies."
    if data["n_set_aside"]:
        text += f" {wording.counted(data['n_set_aside'], 'document')} in groups too small for a topic."
    return f"{text} Topics by {wording.method(result['method'])}, in {wording.seconds(result['seconds'])}."


def _label(entry: Mapping[str, Any]) -> str:
    return entry["name"] or ", ".join(str(word) for word, _ in entry["words"][:3])


def sections(record: Record) -> list[Any]:
    """Return the sections of the page."""
    details = record.as_dict()
    topics = details["topics"]
    anchored = (
        "; the anchor word occurs in its topic only" if any(entry["anchor"] for entry in topics) else ""
    )
    said = f"Words are shaded by weight{anchored}. Below them are documents that are mostly about the topic."
    shares = np.array([entry["proportion"] for entry in topics])
    parts = [
        html.section(
            "The topics",
            html.paragraph(said),
            html.element("div", [_topic(one) for one in topics], class_="cards"),
        ),
        _selection(details["selection"]) if details["selection"] else None,
        html.section("Topic proportions", html.figure(drawings.strengths(shares, "topic"))),
        _courses(details["over_time"], topics) if details["over_time"] else None,
    ]
    if len(details["hierarchy"]) > 1:
        labels = [f"{_label(entry)}  {entry['topic']}" for entry in topics]
        parts.append(
            html.section(
                "Tree over the topics",
                html.paragraph(
                    "Topics with similar words are joined first. A vertical line through the tree cuts it "
                    "into groups; ",
                    html.element("code", "nonneg edit-topics --cut"),
                    " merges the topics of each.",
                ),
                html.figure(_tree(details["hierarchy"], labels)),
            )
        )  # fmt: skip
    parts.append(_similarity(np.array(details["shared_words"], dtype=float), topics))
    if details["edits"]:
        rows = [_edit(entry) for entry in details["edits"]]
        headings = ["change", "numbers before and after"]
        parts.append(html.section("Changes after the fit", html.table(headings, rows)))
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
    words = html.chips((word, round(100 * weight / heaviest)) for word, weight in entry["words"][:_N_CHIPS])
    count = wording.counted(entry["n_documents"], "document")
    note = f"The main topic of {count}."
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
    body = [html.element("div", headline, class_="headline"), html.paragraph(words)]
    body += [html.paragraph(note, note=True), *examples]
    return html.element("article", body, class_="card", id=f"topic-{entry['topic']}")


def _selection(selection: Mapping[str, Any]) -> Raw:
    """Draw what chose the number of topics: every measure that has a value for each candidate."""
    numbers = selection["candidates"]
    curves = [
        html.figure(
            drawings.candidate_curve(
                numbers, values, selection.get(f"{name}_error"), selection["n_topics"],
                "NPMI" if name == "npmi" else name.replace("_", " ").capitalize(), "topics",
            ),
            wide=False,
        )
        for name, values in selection.items()
        if name != "candidates" and not name.endswith("_error")
        and isinstance(values, list) and len(values) == len(numbers)
    ]  # fmt: skip
    return html.section(
        "How many topics", html.paragraph(selection["reason"]), html.side_by_side(*curves) if curves else None
    )


def _courses(course: Mapping[str, Any], topics: Sequence[Mapping[str, Any]]) -> Raw:
    counts, periods = course["counts"], course["periods"]
    said = [
        f"{wording.counted(sum(counts), 'document')} by {course['unit']}, from {periods[0]} to {periods[-1]}."
    ]
    if missing := missing_dates(course):
        said.append(f"{missing}.")
    if course["n_empty"]:
        said.append(f"{wording.counted(course['n_empty'], 'document')} without a topic left out.")
    said.append(
        "Dots are means, larger for more documents; the line is smoothed over neighboring periods "
        f"(Gaussian kernel of {wording.number(course['bandwidth'])} periods, chosen by leave-one-out)."
        if course["bandwidth"]
        else "Too few periods to smooth."
    )
    whole, (axes,) = drawings.panels(10.4, 2.0)
    axes.bar(np.arange(len(periods)), counts, width=0.85, color=drawings.ACCENT)
    axes.set_xlim(-0.6, max(len(periods), 8) - 0.4)  # few bars stay slim
    _period_axis(axes, periods, 10)
    drawings.label(axes, y="documents")
    bars = drawings.drawing(whole, f"Documents per {course['unit']}")
    cards = []
    for at, entry in enumerate(topics):
        raw, smooth = ([row[at] for row in course[name]] for name in ("proportions", "smoothed"))
        peak = max((value, -place) for place, value in enumerate(smooth) if value is not None)
        curve = _course(periods, counts, raw, smooth, f"topic {entry['topic']}")
        heading = html.element("h3", f"Topic {entry['topic']}: {_label(entry)}")
        caption = f"Peak: {wording.percent(peak[0])} in {periods[-peak[1]]}."
        cards.append(html.figure([heading, curve], caption, wide=False))
    return html.section(
        "Topics over time",
        html.paragraph(" ".join(said)),
        html.figure(bars, "Number of documents."),
        html.side_by_side(*cards),
    )


def _course(periods: Sequence[str], counts: Sequence[int], raw: Any, smooth: Any, name: str) -> Raw:
    """Draw the share of a topic: dots in the size of the number of documents, and a smooth line."""
    whole, (axes,) = drawings.panels(5.2, 2.3)
    places = np.arange(len(periods))
    dots, line = (100 * np.array([np.nan if one is None else one for one in row]) for row in (raw, smooth))
    most = max(max(counts, default=1), 1)
    axes.scatter(
        places, dots, s=4 + 26 * np.asarray(counts) / most, color=drawings.INK, alpha=0.35, linewidths=0
    )
    axes.plot(places, line, color=drawings.ACCENT, linewidth=2, solid_capstyle="round")
    axes.set_ylim(bottom=0.0)
    _period_axis(axes, periods, 5)
    drawings.label(axes, y="share, %")
    return drawings.drawing(whole, f"Share of {name} by period")


def _period_axis(axes: Any, periods: Sequence[str], n_labels: int) -> None:
    # Periods have no gaps, so that their numbers are a scale of time.
    ticks = range(0, len(periods), -(-len(periods) // n_labels))
    axes.set_xticks(list(ticks), [periods[at] for at in ticks], parse_math=False)


def _tree(merges: Any, labels: Sequence[str]) -> Raw:
    """Draw a tree over topics: leaves on the left, joined at their distance."""
    tree = dendrogram(np.asarray(merges, dtype=float), no_plot=True)
    whole, (axes,) = drawings.panels(10.4, 0.27 * len(labels) + 0.8)
    for places, distances in zip(tree["icoord"], tree["dcoord"], strict=True):
        axes.plot(distances, places, color=drawings.ACCENT, linewidth=1.6, solid_joinstyle="round")
    named = [labels[at] for at in tree["leaves"]]
    named = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in named]
    # SciPy puts the leaves at 5, 15, 25, ...
    axes.set_yticks(10 * np.arange(len(named)) + 5, named, parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(10 * len(named), 0)
    axes.set_xlim(left=0.0)
    drawings.label(axes, "distance", grid=False)
    return drawings.drawing(whole, "Tree over the topics")


def _similarity(shared: FloatArray, topics: Sequence[Mapping[str, Any]]) -> Raw:
    heading = "Similarity of the topics"
    # A topic shares all of its words with itself: that would hide what it shares with others.
    np.fill_diagonal(shared, 0.0)
    darkest = max(float(shared.max(initial=0.0)), _ALIKE)
    if not shared.any():
        return html.section(heading, html.paragraph("No two topics share any of their 20 top words."))
    pairs = [(int(shared[i, j]), i, j) for i in range(len(shared)) for j in range(i) if shared[i, j] > 0]
    rows = []
    for count, one, other in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))[:10]:
        words = {word for word, _ in topics[one]["words"]}
        common = [str(word) for word, _ in topics[other]["words"] if word in words]
        rows.append([f"{other} and {one}", count, ", ".join(common[:8])])
    names = [str(at) for at in range(len(topics))]
    return html.section(
        heading,
        html.legend(f"0 to {wording.number(darkest)} words"),
        html.figure(
            drawings.heat_map(shared, "topic", names, line="topic", largest=darkest),
            "Number of top words, out of 20, that two topics share.",
        ),
        html.table(["topics", ">shared words", "which"], rows),
    )


def _edit(entry: Mapping[str, Any]) -> tuple[str, str]:
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
    return ", ".join(said), ", ".join(moved) or "as before"
