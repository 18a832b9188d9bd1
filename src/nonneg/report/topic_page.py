"""The report of a search for topics: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nonneg.report import figures, topic_figures, wording
from nonneg.report.rendering import drawing, render

N_CHIPS = 15
ALIKE = 10.0
"""Topics that share this many of their 20 top words are drawn darkest."""


def topic_sentence(record: Mapping[str, Any]) -> str:
    """Describe the result in one sentence."""
    data, k = record["data"], record["result"]["n_topics"]
    largest = max(record["topics"], key=lambda entry: entry["proportion"])
    words = _label(largest)
    topics = "1 topic" if k == 1 else f"{wording.number(k)} topics"
    return (
        f"{topics} in {wording.number(data['n_documents'])} documents; the largest ({words}) makes up "
        f"{wording.percent(largest['proportion'])}."
    )


def build_topic_page(record: Mapping[str, Any]) -> str:
    """Write the report of a search for topics."""
    topics = record["topics"]
    proportions = np.array([entry["proportion"] for entry in topics])
    # A topic shares all of its words with itself: that would hide what it shares with others.
    shared = np.array(record["shared_words"], dtype=float)
    np.fill_diagonal(shared, 0.0)
    most = float(shared.max(initial=0.0))
    context = {
        "title": record["title"],
        "answer": topic_sentence(record),
        "outcome": _outcome(record),
        "tiles": _tiles(record),
        "topics": [_topic(entry) for entry in topics],
        "anchored": any(entry["anchor"] is not None for entry in topics),
        "proportions": drawing(figures.strengths(proportions, "topic")),
        "shared": drawing(
            figures.heat_map(
                shared,
                "topic",
                [str(at) for at in range(len(topics))],
                line="topic",
                largest=max(most, ALIKE),
            )
        )
        if most > 0
        else None,
        "darkest": wording.number(max(most, ALIKE)),
        "pairs": _pairs(shared, topics),
        "selection": _selection(record.get("selection")),
        "over_time": _over_time(record),
        "tree": drawing(
            topic_figures.tree(
                record["hierarchy"], [f"{_label(entry)}  {entry['topic']}" for entry in topics]
            )
        )
        if len(record["hierarchy"]) > 1
        else None,
        "edits": [_edit(entry) for entry in record["edits"]],
        "certificate": [wording.statement(entry) for entry in record.get("certificate", [])],
        "facts": _facts(record),
        "versions": record.get("versions", {}),
    }
    return render("topics.html", context)


def _topic(entry: Mapping[str, Any]) -> dict[str, Any]:
    heaviest = max((weight for _, weight in entry["words"]), default=1.0) or 1.0
    return {
        "number": entry["topic"],
        "name": entry["name"],
        "proportion": wording.percent(entry["proportion"]),
        "documents": wording.number(entry["n_documents"]),
        "few": entry["few_documents"],
        "npmi": wording.number(entry["npmi"], digits=2),
        "anchor": entry["anchor"],
        "words": [(word, round(100 * weight / heaviest)) for word, weight in entry["words"][:N_CHIPS]],
        "examples": [
            {
                "name": example["name"],
                "proportion": wording.percent(example["proportion"]),
                "text": example["text"],
            }
            for example in entry["examples"]
        ],
    }


def _label(entry: Mapping[str, Any]) -> str:
    return entry["name"] or ", ".join(str(word) for word, _ in entry["words"][:3])


def _over_time(record: Mapping[str, Any]) -> dict[str, Any] | None:
    found = record["over_time"]
    if found is None:
        return None
    counts, periods = found["counts"], found["periods"]
    said = [
        f"{wording.counted(sum(counts), 'document')} by {found['unit']}, from {periods[0]} to {periods[-1]}."
    ]
    if found["n_missing"]:
        wrong = found["unreadable"]
        told = f", {len(wrong)} of them with an entry that is not a date" if wrong else ""
        first = f" ({wrong[0][0]}: “{wrong[0][1][:40]}”)" if wrong else ""
        said.append(
            f"{wording.counted(found['n_missing'], 'document')} without a date left out{told}{first}."
        )
    if found["n_empty"]:
        said.append(f"{wording.counted(found['n_empty'], 'document')} without a topic left out.")
    said.append(
        "Dots are means, larger for more documents; the line is smoothed over neighboring periods "
        f"(Gaussian kernel of {wording.number(found['bandwidth'])} periods, chosen by leave-one-out)."
        if found["bandwidth"]
        else "Too few periods to smooth."
    )
    courses = []
    for at, entry in enumerate(record["topics"]):
        raw, smooth = ([row[at] for row in found[name]] for name in ("proportions", "smoothed"))
        peak = max((value, -place) for place, value in enumerate(smooth) if value is not None)
        courses.append(
            {
                "number": entry["topic"],
                "label": _label(entry),
                "peak": f"{wording.percent(peak[0])} in {periods[-peak[1]]}",
                "figure": drawing(
                    topic_figures.course(periods, counts, raw, smooth, f"topic {entry['topic']}")
                ),
            }
        )
    return {
        "sentences": said,
        "documents": drawing(topic_figures.documents_per_period(periods, counts, found["unit"])),
        "courses": courses,
    }


def _edit(entry: Mapping[str, Any]) -> dict[str, Any]:
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
    return {"sentence": ", ".join(said), "numbers": ", ".join(moved)}


def _outcome(record: Mapping[str, Any]) -> str:
    data, result = record["data"], record["result"]
    empty = data["n_empty"]
    rest = f" {wording.number(empty)} documents contain no topic words." if empty else ""
    if data["n_copies"]:
        rest += f" {wording.number(data['n_copies'])} copies of other documents took no part in the search."
    if data["n_set_aside"]:
        rest += f" {wording.number(data['n_set_aside'])} documents are in groups too small for a topic."
    return (
        f"{wording.number(data['n_documents'])} documents ({data['kind']}) from {data['source']}, "
        f"{wording.number(data['n_used'])} of {wording.number(data['n_words'])} words used.{rest} Topics by "
        f"{wording.method(result['method'])}, in {wording.seconds(result['seconds'])}."
    )


def _tiles(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    data, result = record["data"], record["result"]
    return [
        ("topics", wording.number(result["n_topics"])),
        ("documents", wording.number(data["n_documents"])),
        ("mean NPMI", wording.number(result["npmi"], digits=2)),
        ("shared top words", wording.number(result["similarity_count"])),
        ("time", wording.seconds(result["seconds"])),
    ]


def _selection(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Draw what chose the number of topics."""
    if not found:
        return None
    k, numbers = found["n_topics"], found["candidates"]
    none = [0.0] * len(numbers)
    curves = [("modularity", "Modularity", found["modularity_error"]), ("npmi", "NPMI", none)]
    return {
        "reason": found["reason"],
        "curves": [
            drawing(figures.candidate_curve(numbers, found[name], spread, k, label, what="topics"))
            for name, label, spread in curves
        ],
    }


def _pairs(shared: Any, topics: Any) -> list[dict[str, Any]]:
    """List the pairs of topics that share most words."""
    found = [(int(shared[i, j]), i, j) for i in range(len(shared)) for j in range(i) if shared[i, j] > 0]
    rows = []
    for count, one, other in sorted(found, key=lambda pair: (-pair[0], pair[1], pair[2]))[:10]:
        words = [word for word, _ in topics[one]["words"]]
        common = [str(word) for word, _ in topics[other]["words"] if word in words]
        rows.append({"one": other, "other": one, "count": count, "words": ", ".join(common[:8])})
    return rows


def _facts(record: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    data = [wording.fact(name, value) for name, value in record["data"].items()]
    result = [
        wording.fact(name, value, digits=6) for name, value in record["result"].items() if value is not None
    ]
    parameters = [(name, wording.number(value)) for name, value in record.get("parameters", {}).items()]
    return [("Documents", data), ("Result", result), ("Parameters", parameters)]
