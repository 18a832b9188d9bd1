"""Statements about topics: whether they differ, what they rest on, and what the words have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.metrics.topics import npmi_coherence, top_words

# Lau, Newman & Baldwin (2014) rate topics by ten words.
N_NPMI_WORDS = 10


def topic_npmi(counts: Any, components: FloatArray) -> FloatArray:
    """Return the NPMI of the top words of every topic; NaN for a topic of a single word."""
    npmi = np.full(len(components), np.nan)
    for at, words in enumerate(top_words(components, N_NPMI_WORDS)):
        words = words[components[at, words] > 0]
        if len(words) > 1:
            npmi[at] = npmi_coherence(counts, [words])[0]
    return npmi


def topic_statements(
    components: FloatArray,
    words: IntArray,
    anchors: IntArray | None,
    names: Sequence[Any],
    n_empty: int,
    n_documents: IntArray,
    min_documents: int,
) -> list[Statement]:
    """Say whether topics differ, what they rest on, and whether anchors are exclusive."""
    n = n_empty + int(n_documents.sum())
    statements = [
        _differ(components, words),
        _supported(n_documents, min_documents),
        Statement(
            "documents-covered",
            f"{n - n_empty} of {n} documents contain a word of a topic; the others have no topic.",
            1.0 - n_empty / n, 1.0, Verdict.HOLDS if n_empty == 0 else Verdict.FAILS, {"n_empty": n_empty},
        ),
    ]  # fmt: skip
    return statements if anchors is None else [*statements, _exclusive(components, anchors, names)]


def _differ(components: FloatArray, words: IntArray) -> Statement:
    sets = [{int(word) for word in row if components[at, word] > 0} for at, row in enumerate(words)]
    shared = np.array([[len(one & other) for other in sets] for one in sets])
    # A topic may have fewer words than are listed: two with the same three words do not differ.
    sizes = np.array([len(one) for one in sets])
    upper, shorter = np.triu(shared, 1), np.minimum(sizes[:, None], sizes)
    parts = upper / np.maximum(shorter, 1)
    first, second = np.unravel_index(int(np.argmax(parts)), parts.shape)
    largest, most, size = float(parts.max()), int(upper[first, second]), int(shorter[first, second])
    few = largest <= 0.5
    return Statement(
        "topics-differ",
        f"No two topics share more than half of their top words: at most {most} of {size}."
        if few
        else f"Topics {first} and {second} share {most} of their {size} top words: fewer topics may suffice.",
        largest,
        0.5,
        Verdict.HOLDS if few else Verdict.FAILS,
        {"similarity_count": int(upper.sum()), "n_top_words": words.shape[1]},
    )


def _supported(n_documents: IntArray, limit: int) -> Statement:
    few = np.flatnonzero(n_documents < limit)
    listed = ", ".join(f"{topic} ({n_documents[topic]})" for topic in few[:10])
    more = f" and {len(few) - 10} more" if len(few) > 10 else ""
    least = int(n_documents.min())
    return Statement(
        "topics-supported",
        f"Every topic is the main topic of at least {least} documents."
        if not len(few)
        else f"Fewer than {limit} of {n_documents.sum()} documents have one of these as their main topic: "
        f"topic {listed}{more}. Fewer topics may suffice.",
        least,
        limit,
        Verdict.FAILS if len(few) else Verdict.HOLDS,
        {"n_few": len(few)},
    )


def _exclusive(components: FloatArray, anchors: IntArray, names: Sequence[Any]) -> Statement:
    weights = components[:, anchors]
    shares = np.diagonal(weights) / np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
    worst = int(np.argmin(shares))
    lost = shares[worst] < 0.5
    advice = " An anchor method, such as method='spa', keeps topics at their anchors." if lost else ""
    return Statement(
        "anchors-exclusive",
        "If topics are separable, an anchor word belongs to its topic alone. The least exclusive one, "
        f"{names[worst]!r}, has {100 * shares[worst]:.0f}% of its weight in its own topic.{advice}",
        float(shares[worst]), 0.5, Verdict.FAILS if lost else Verdict.HOLDS,
        {"mean_share": float(shares.mean())},
    )  # fmt: skip


def seed_statement(components: FloatArray, seeds: Mapping[str, IntArray], words: Sequence[Any]) -> Statement:
    """Say how many seed words have their largest weight in their own topic; these are the first ones."""
    second, best = np.sort(np.vstack([0.0 * components[:1], components]), axis=0)[-2:]
    # A word with the same weight in two topics, or with none, does not belong to either.
    alone = (components == best) & (best > second)
    inside = {name: alone[at, places] for at, (name, places) in enumerate(seeds.items())}
    shares = {name: float(own.mean()) for name, own in inside.items()}
    worst = min(shares, key=lambda name: (shares[name], name))
    lost = [repr(words[place]) for name in seeds for place in seeds[name][~inside[name]]]
    sentence = f"Of the seed words of {worst!r}, {shares[worst]:.0%} have their largest weight in that topic"
    sentence += ", and no fewer in the others." if len(shares) > 1 else "."
    if lost:
        sentence += f" Not so {', '.join(lost)}: leave them out, or take words of these topics alone."
    return Statement(
        "seeds-in-their-topics",
        sentence,
        shares[worst],
        0.5,
        Verdict.HOLDS if shares[worst] >= 0.5 else Verdict.FAILS,
        {"mean_share": float(np.mean(list(shares.values())))},
    )


WEIGHTED = Statement(
    "documents-weighted",
    "Some entries are not whole numbers: they are taken for weights, such as TF-IDF, and used as they are. "
    "Pass counts to have the words weighted here.",
    None, None, Verdict.NOT_VERIFIABLE,
)  # fmt: skip
