"""Seed words: a few words per topic, with which a user describes some of the topics."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._random import Seed
from nonneg._typing import FloatArray, IntArray
from nonneg._warnings import warn_user
from nonneg.applications.topics.term_weights import document_frequencies
from nonneg.applications.topics.topic_recovery import document_weights
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.estimators.nmf import NMF
from nonneg.exceptions import DataChangedWarning, InvalidParameterError


def seed_places(
    seed_words: Any, n_topics: int, vocabulary: Any, words: IntArray, counts: Any
) -> dict[str, IntArray]:
    """Return the places of seed words among the used words, by the name of their topic."""
    if not isinstance(seed_words, Mapping) or not seed_words:
        raise InvalidParameterError(
            "seed_words must be a dict from the names of topics to lists of words, such as "
            f"{{'sports': ['game', 'team']}}; got {seed_words!r}."
        )
    if len(seed_words) > n_topics:
        raise InvalidParameterError(
            f"seed_words names {len(seed_words)} topics, but n_topics={n_topics}. Raise n_topics, or leave "
            "some out."
        )
    known = {} if vocabulary is None else {str(word): at for at, word in enumerate(vocabulary)}
    place = {int(column): at for at, column in enumerate(words)}
    found: dict[str, IntArray] = {}
    absent: list[str] = []
    unused: list[str] = []
    for name, group in seed_words.items():
        places = []
        for word in _checked_group(name, group):
            column = _column(word, known, counts.shape[1])
            if column is None:
                absent.append(f"{word!r} ({name})")
            elif column not in place:
                n_documents = int(document_frequencies(counts)[column])
                unused.append(f"{word!r} ({name}; in {n_documents} documents)")
            elif place[column] not in places:
                places.append(place[column])
        if not places:
            raise InvalidParameterError(
                f"None of the seed words of {name!r} is among the {len(words)} words used (see min_df and "
                f"max_df): {', '.join(map(repr, group))}."
            )
        found[str(name).strip()] = np.array(sorted(places), dtype=np.intp)
    if absent or unused:
        said = [f"not among the {counts.shape[1]} words: {', '.join(absent)}"] * bool(absent)
        said += [f"too rare or too common to be used (see min_df and max_df): {', '.join(unused)}"] * bool(
            unused
        )
        warn_user(f"Seed words without effect; {'; '.join(said)}.", DataChangedWarning)
    return found


def _checked_group(name: Any, group: Any) -> Sequence[Any]:
    if not isinstance(name, str) or not name.strip():
        raise InvalidParameterError(f"seed_words: names of topics are words, got {name!r}.")
    if isinstance(group, str) or not hasattr(group, "__iter__"):
        raise InvalidParameterError(f"seed_words[{name!r}] must be a list of words, got {group!r}.")
    return list(group)


def _column(word: Any, known: Mapping[str, int], n_words: int) -> int | None:
    if isinstance(word, str):
        # Texts are counted in lower case as a rule.
        return known.get(word.strip(), known.get(word.strip().lower()))
    if isinstance(word, bool) or not isinstance(word, int | np.integer) or not 0 <= word < n_words:
        raise InvalidParameterError(f"Seed words are words or columns from 0 to {n_words - 1}, got {word!r}.")
    return int(word)


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


# How much seed words count: the squared norm of a document of them and of the words around them, relative to
# that of an average topic. The study of topic tools chose it; strengths from 3 to 30 hardly differ.
STRENGTH = 10.0


def guided_problem(
    X: Any, weights: Any, seeds: Sequence[IntArray], n_topics: int, rng: Seed
) -> tuple[Any, FloatArray, FloatArray]:
    """Return documents and one more for every group of seed words, and initial factors."""
    # The additional documents are the mean documents that contain the seed words, by how much they do: seed
    # words alone would become a topic of these words and no others, and as an initialization they are
    # forgotten in the iterations.
    contained = np.column_stack([np.asarray(weights[:, places].sum(axis=1)).ravel() for places in seeds])
    profiles = _unit_rows((weights.T @ contained).T)
    H = profiles
    if len(H) < n_topics:
        # The others begin with documents that are less like the profiles than those with seed words are.
        likeness = np.asarray(weights @ profiles.T)
        usual = [np.median(likeness[contained[:, at] > 0, at]) for at in range(len(seeds))]
        left = np.clip(1.0 - (likeness / np.maximum(usual, np.finfo(np.float64).tiny)).max(axis=1), 0.0, 1.0)
        rest = sp.csr_array(sp.diags_array(left) @ X)
        found = NMF(n_topics - len(H), random_state=rng, tol=1e-4, max_iter=50)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Maximum number of iterations")
            H = np.vstack([H, _unit_rows(found.fit(rest).components_)])
    size = np.sqrt(STRENGTH * np.sum(X.data**2) / n_topics)
    X = sp.csr_array(sp.vstack([X, sp.csr_array(size * profiles)], format="csr"))
    return X, document_weights(X, H), H


def _unit_rows(rows: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
