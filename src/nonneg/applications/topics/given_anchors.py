"""Anchor words that a user chose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nonneg._typing import IntArray
from nonneg.applications.topics.term_weights import document_frequencies
from nonneg.exceptions import InvalidParameterError, UnknownNameError


def anchor_places(
    anchors: Sequence[Any], n_topics: int, vocabulary: Any, words: IntArray, counts: Any
) -> IntArray:
    """Return the places of chosen anchors among the used words."""
    if len(anchors) != n_topics:
        raise InvalidParameterError(
            f"anchors has {len(anchors)} words, but n_topics={n_topics}: one per topic is needed. Set "
            f"n_topics={len(anchors)}, or change anchors."
        )
    columns = [_column(anchor, vocabulary, counts.shape[1]) for anchor in anchors]
    if len(set(columns)) < len(columns):
        raise InvalidParameterError(f"An anchor is named twice in {list(anchors)}. Name each word once.")
    places = np.searchsorted(words, columns)
    for anchor, column, place in zip(anchors, columns, places, strict=True):
        if place == len(words) or words[place] != column:
            found = int(document_frequencies(counts)[column])
            raise InvalidParameterError(
                f"The anchor {anchor!r} is in {found} of {counts.shape[0]} documents and therefore not "
                f"used. Choose another word, or change min_df or max_df."
            )
    return places.astype(np.intp)


def _column(anchor: Any, vocabulary: Any, n_words: int) -> int:
    if isinstance(anchor, str):
        if vocabulary is None:
            raise InvalidParameterError(
                f"The anchor {anchor!r} is a word, but the words have no names. Pass columns, or a data "
                "frame whose columns are the words."
            )
        at = np.flatnonzero(vocabulary == anchor)
        if not len(at):
            raise (
                UnknownNameError.of("anchor", anchor, map(str, vocabulary))
                if len(vocabulary) <= 20
                else InvalidParameterError(
                    f"The anchor {anchor!r} is not among the {len(vocabulary)} words. Words are usually in "
                    f"lower case."
                )
            )
        return int(at[0])
    if not isinstance(anchor, int | np.integer) or isinstance(anchor, bool) or not 0 <= anchor < n_words:
        raise InvalidParameterError(f"Anchors are words or columns from 0 to {n_words - 1}, got {anchor!r}.")
    return int(anchor)
