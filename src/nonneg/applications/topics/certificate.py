"""Statements about topics: whether they differ, what they rest on, and what the words have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.metrics.topics import npmi_coherence, top_words

# Lau, Newman & Baldwin (2014) rate topics by ten words.
N_NPMI_WORDS = 10


def documents_per_topic(proportions: FloatArray) -> IntArray:
    """Return in how many documents each topic has the largest proportion."""
    filled = proportions[proportions.sum(axis=1) > 0]
    return np.bincount(np.argmax(filled, axis=1), minlength=proportions.shape[1]).astype(np.int64)


def topic_npmi(counts: Any, components: FloatArray) -> FloatArray:
    """Return the NPMI of the top words of every topic; NaN for a topic of a single word."""
    npmi = np.full(len(components), np.nan)
    for at, words in enumerate(top_words(components, N_NPMI_WORDS)):
        words = words[components[at, words] > 0]
        if len(words) > 1:
            npmi[at] = npmi_coherence(counts, [words])[0]
    return npmi


@dataclass(frozen=True)
class Support:
    """The documents that topics rest on, each group of copies counted once."""

    counts: IntArray  # documents whose main topic it is, topic by topic
    limit: float  # a topic with fewer rests on few
    n_copies: int = 0  # documents that are copies of others
    n_set_aside: int = 0  # documents of groups that are too small for a topic

    @property
    def few(self) -> Any:
        """Which topics rest on few documents."""
        return self.counts < self.limit


def topic_statements(
    components: FloatArray,
    words: IntArray,
    anchors: IntArray | None,
    names: Sequence[Any],
    n_empty: int,
    n: int,
    support: Support,
) -> list[Statement]:
    """Say whether topics differ, what they rest on, what was left out, and whether anchors are exclusive."""
    statements = [_differ(components, words), _supported(support), _covered(n_empty, n)]
    if support.n_copies or support.n_set_aside:
        statements.append(_left_out(support, n))
    if anchors is not None:
        statements.append(_exclusive(components, anchors, names))
    return statements


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


def _supported(support: Support) -> Statement:
    thin, least = np.flatnonzero(support.few), int(support.counts.min())
    limit, total = math.ceil(support.limit), int(support.counts.sum())
    listed = ", ".join(f"{topic} ({support.counts[topic]})" for topic in thin[:10])
    more = f" and {len(thin) - 10} more" if len(thin) > 10 else ""
    once = " Copies count once." if support.n_copies else ""
    return Statement(
        "topics-supported",
        f"Every topic is the main topic of at least {least} documents.{once}"
        if not len(thin)
        else f"Fewer than {limit} of {total} documents have one of these as their main topic: topic "
        f"{listed}{more}.{once} Fewer topics may suffice.",
        least,
        limit,
        Verdict.FAILS if len(thin) else Verdict.HOLDS,
        {"n_few": len(thin)},
    )


def _left_out(support: Support, n: int) -> Statement:
    took_part = n - support.n_copies - support.n_set_aside
    reasons = {
        "with the same words as an earlier one": support.n_copies,
        "in groups too small for a topic": support.n_set_aside,
    }
    left_out = " and ".join(f"{count} {why}" for why, count in reasons.items() if count)
    return Statement(
        "documents-used",
        f"Topics were found from {took_part} of {n} documents, without {left_out}.",
        took_part / n, None, Verdict.NOT_VERIFIABLE,
        {"n_copies": support.n_copies, "n_set_aside": support.n_set_aside},
    )  # fmt: skip


def _covered(n_empty: int, n: int) -> Statement:
    share = 1.0 - n_empty / n
    return Statement(
        "documents-covered",
        f"{n - n_empty} of {n} documents contain a word of a topic; the others have no topic.",
        share, 1.0, Verdict.HOLDS if n_empty == 0 else Verdict.FAILS, {"n_empty": n_empty},
    )  # fmt: skip


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


def seed_statement(components: FloatArray, seeds: Mapping[str, IntArray]) -> Statement:
    """Say how many seed words have their largest weight in their own topic; these are the first ones."""
    second, best = (
        np.sort(components, axis=0)[-2:] if len(components) > 1 else (0.0 * components[0], components[0])
    )
    # A word with the same weight in two topics, or with none, does not belong to either.
    alone = (components == best) & (best > second)
    shares = {name: float(np.mean(alone[at, places])) for at, (name, places) in enumerate(seeds.items())}
    worst = min(shares, key=lambda name: (shares[name], name))
    share = shares[worst]
    return Statement(
        "seeds-in-their-topics",
        f"Of the seed words of {worst!r}, {share:.0%} have their largest weight in that topic"
        + (", and no fewer in the others." if len(shares) > 1 else "."),
        share,
        0.5,
        Verdict.HOLDS if share >= 0.5 else Verdict.FAILS,
        {"mean_share": float(np.mean(list(shares.values())))},
    )


def weighted_statement() -> Statement:
    """Say that documents came with weights of words instead of counts."""
    return Statement(
        "documents-weighted",
        "Some entries are not whole numbers: they are taken for weights, such as TF-IDF, and used as they "
        "are. Pass counts to have the words weighted here.",
        None, None, Verdict.NOT_VERIFIABLE,
    )  # fmt: skip
