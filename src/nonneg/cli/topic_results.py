"""The files of a search for topics."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.applications.topics.files import Documents
from nonneg.cli.result_files import MODEL, REPORT, RESULT, versions, write_answer, write_memberships
from nonneg.metrics.topics import npmi_coherence, top_words
from nonneg.report.folder import replaced_folder
from nonneg.report.records import plain
from nonneg.report.tables import markdown_table
from nonneg.report.topic_page import build_topic_page

TOPICS, DOCUMENTS, WEIGHTS = "topics.csv", "documents.csv", "topics.npy"
FILES = frozenset({TOPICS, DOCUMENTS, WEIGHTS, RESULT, MODEL, REPORT})
"""All names a search may write."""
N_WORDS, N_EXAMPLES, N_LETTERS = 20, 3, 400


def write_topic_results(
    folder: Path, model: Any, memberships: FloatArray, documents: Documents, *, seconds: float
) -> tuple[dict[str, Any], list[Path]]:
    """Write all files at once, or none."""
    record = _record(model, memberships, documents, seconds)
    with replaced_folder(folder, FILES) as fresh:
        with (fresh / TOPICS).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["topic", "share", "coherence", "anchor", "words"])
            for entry in record["topics"]:
                words = " ".join(str(word) for word, _ in entry["words"])
                writer.writerow([entry["topic"], entry["share"], entry["coherence"], entry["anchor"], words])
        write_memberships(fresh / DOCUMENTS, memberships, documents.names)
        np.save(fresh / WEIGHTS, model.topics_, allow_pickle=False)
        written = write_answer(folder, fresh, record, lambda: build_topic_page(record), model=model)
    return record, written


def topic_table(record: dict[str, Any]) -> str:
    """Lay the topics out as a table for the terminal."""
    rows = [
        {
            "topic": entry["topic"],
            "share": f"{entry['share']:.1%}",
            "anchor": entry["anchor"],
            "words": " ".join(str(word) for word, _ in entry["words"][:8]),
        }
        for entry in record["topics"]
    ]
    headings = {"topic": "topic", "share": "share", "anchor": "anchor", "words": "words"}
    if all(row["anchor"] is None for row in rows):
        headings.pop("anchor")
    return markdown_table(rows, headings).rstrip("\n")


def _record(model: Any, memberships: FloatArray, documents: Documents, seconds: float) -> dict[str, Any]:
    used = model.topics_[:, model.word_indices_]
    best = top_words(used, N_WORDS)
    npmi = _npmi(model, documents, best)
    examples = model.example_documents(documents.contents, N_EXAMPLES, memberships=memberships)
    names = model.top_words(N_WORDS)
    shared = _shared(names)
    topics = []
    for at, words in enumerate(names):
        weights = np.sort(used[at])[::-1][: len(words)]
        topics.append(
            {
                "topic": at,
                "share": float(model.topic_shares_[at]),
                "coherence": float(model.coherence_[at]),
                "npmi": npmi[at],
                "anchor": None if model.anchor_words_ is None else model.anchor_words_[at],
                "words": [(word, float(weight)) for word, weight in zip(words, weights, strict=True)],
                "examples": [_example(documents, int(row), memberships[row, at]) for row in examples[at]],
            }
        )
    parameters = model.get_params()
    shown = ("callback", "vectorizer", "vocabulary")
    return dict(
        plain(
            {
                "format": 1,
                "title": f"Topics of {documents.source}",
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "data": {
                    "source": documents.source,
                    "n_documents": len(memberships),
                    "n_words": model.n_features_in_,
                    "n_used": len(model.word_indices_),
                    "n_empty": int(np.sum(~(memberships.sum(axis=1) > 0))),
                    "kind": "texts" if documents.are_texts else "counts",
                },
                "parameters": {name: value for name, value in parameters.items() if name not in shown},
                "topics": topics,
                "shared_words": shared,
                "result": {
                    "method": model.method,
                    "n_topics": len(topics),
                    "n_iter": model.n_iter_,
                    "coherence": float(np.mean(model.coherence_)),
                    "similarity_count": int(np.sum(np.triu(shared, 1))),
                    "seconds": seconds,
                },
                "certificate": [statement.as_dict() for statement in model.certificate_],
                "versions": versions(),
            }
        )
    )


def _shared(names: list[list[Any]]) -> Any:
    # Words without weight are no words of a topic, even where it has fewer than were asked for.
    sets = [set(words) for words in names]
    return np.array([[len(one & other) for other in sets] for one in sets], dtype=np.intp)


def _npmi(model: Any, documents: Documents, best: Any) -> list[float]:
    from nonneg.applications.topics.reading import read_documents

    if best.shape[1] < 2:
        return [float("nan")] * len(best)
    counts = read_documents(model, documents.contents, reset=False)[:, model.word_indices_]
    return [float(value) for value in npmi_coherence(counts, best)]


def _example(documents: Documents, row: int, share: float) -> dict[str, Any]:
    text = None
    if documents.are_texts:
        text = " ".join(documents.contents[row].split())
        text = (
            text
            if len(text) <= N_LETTERS
            else text[:N_LETTERS].rsplit(" ", 1)[0] + " \N{HORIZONTAL ELLIPSIS}"
        )
    return {"name": documents.names[row], "row": row, "share": float(share), "text": text}
