"""Statements about topics: whether they differ, what they rest on, and what the words have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.certificates.bounds import upper
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
    covered = f"Documents with no word of a topic, which belong to none: {n_empty:,} of {n:,}."
    statements = [
        _differ(components, words),
        _supported(n_documents, min_documents),
        Statement(
            "documents-covered", covered if n_empty else f"All {n:,} documents contain a word of a topic.",
            1.0 - n_empty / n, 1.0, Verdict.HOLDS if n_empty == 0 else Verdict.FAILS, {"n_empty": n_empty},
        ),
    ]  # fmt: skip
    return statements if anchors is None else [*statements, _exclusive(components, anchors, names)]


def _differ(components: FloatArray, words: IntArray) -> Statement:
    sets = [{int(word) for word in row if components[at, word] > 0} for at, row in enumerate(words)]
    # A topic may have fewer words than are listed: two with the same three words do not differ.
    pairs = [
        (len(one & other) / max(1, min(len(one), len(other))), len(one & other), first, second)
        for (first, one), (second, other) in combinations(enumerate(sets), 2)
    ]
    share, n_shared, first, second = max(pairs, key=lambda pair: pair[0], default=(0.0, 0, 0, 0))
    most = f"over half of their top words: at most {upper(100 * share, 2)}%" if n_shared else "a top word"
    sentence = f"No two topics share {most}."
    if share > 0.5:
        sentence = f"Topics {first} and {second} share {share:.0%} of their top words ({n_shared})."
    return Statement(
        "topics-differ", sentence, share, 0.5, Verdict.HOLDS if share <= 0.5 else Verdict.FAILS,
        {"similarity_count": sum(pair[1] for pair in pairs), "n_top_words": words.shape[1]},
    )  # fmt: skip


def _supported(n_documents: IntArray, limit: int) -> Statement:
    few, least = np.flatnonzero(n_documents < limit), int(n_documents.min())
    sentence = f"Every topic is the main topic of at least {least} documents."
    if len(few):
        listed = ", ".join(f"{topic} ({n_documents[topic]})" for topic in few)
        sentence = f"Topics that are the main topic of fewer than {limit} documents: {listed}."
    verdict = Verdict.FAILS if len(few) else Verdict.HOLDS
    return Statement("topics-supported", sentence, least, limit, verdict, {"n_few": len(few)})


def _exclusive(components: FloatArray, anchors: IntArray, names: Sequence[Any]) -> Statement:
    weights = components[:, anchors]
    own = np.diagonal(weights) / np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
    worst = int(np.argmin(own))
    lost = own[worst] < 0.5
    advice = " An anchor method, such as method='spa', keeps topics at their anchors." if lost else ""
    return Statement(
        "anchors-exclusive",
        "If topics are separable, an anchor word belongs to its topic alone. The least exclusive one, "
        f"{names[worst]!r}, has {100 * own[worst]:.0f}% of its weight in its own topic.{advice}",
        float(own[worst]), 0.5, Verdict.FAILS if lost else Verdict.HOLDS,
        {"mean_share": float(own.mean())},
    )  # fmt: skip


def seed_statement(components: FloatArray, seeds: Mapping[str, IntArray], words: Sequence[Any]) -> Statement:
    """Say how many seed words have their largest weight in their own topic; these are the first ones."""
    second, best = np.sort(np.vstack([0.0 * components[:1], components]), axis=0)[-2:]
    # A word with the same weight in two topics, or with none, does not belong to either.
    alone = (components == best) & (best > second)
    inside = {name: alone[at, places] for at, (name, places) in enumerate(seeds.items())}
    means = {name: float(own.mean()) for name, own in inside.items()}
    worst = min(means, key=lambda name: (means[name], name))
    lost = [repr(words[place]) for name in seeds for place in seeds[name][~inside[name]]]
    sentence = f"Of the seed words of {worst!r}, {means[worst]:.0%} have their largest weight in that topic"
    sentence += ", and no fewer in the others." if len(means) > 1 else "."
    if lost:
        sentence += f" Not so {', '.join(lost)}: leave them out, or take words of these topics alone."
    verdict = Verdict.HOLDS if means[worst] >= 0.5 else Verdict.FAILS
    quantities = {"mean_share": float(np.mean(list(means.values())))}
    return Statement("seeds-in-their-topics", sentence, means[worst], 0.5, verdict, quantities)


WEIGHTED = Statement(
    "documents-weighted",
    "Some entries are not whole numbers: they are taken for weights, such as TF-IDF, and used as they are. "
    "Pass counts to have the words weighted here.",
    None, None, Verdict.NOT_VERIFIABLE,
)  # fmt: skip
