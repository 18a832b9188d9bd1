"""Scores of topics: coherence of their words, and overlap of topics.

Topics are given by their top words, documents by the words that they contain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg._arguments import checked_count, is_number
from nonneg._typing import FloatArray, IntArray
from nonneg.exceptions import InvalidDataError, InvalidParameterError, NonFiniteDataError, ShapeError
from nonneg.metrics.arguments import sequences, sparse_table, table


def top_words(topics: Any, n_words: int = 20) -> IntArray:
    """Return the top words of every topic.

    Parameters
    ----------
    topics : array-like or sparse matrix of shape (n_topics, n_words)
        The weight of each word in each topic.
    n_words : int, default 20
        Number of words; fewer where the vocabulary is smaller.

    Returns
    -------
    array of int of shape (n_topics, n_words)
        Indices of words in order of decreasing weight; ties go to the lower index.
    """
    # As floats: unsigned numbers have no negatives to be sorted by.
    weights = table(topics, "topics", "(n_topics, n_words)")
    if np.isnan(weights).any():
        raise NonFiniteDataError("Expected weights of words, got NaN. Remove such topics or words first.")
    return np.argsort(-weights, axis=1, kind="stable")[:, : checked_count("n_words", n_words)]


def umass_coherence(documents: Any, words: Any, *, smoothing: float = 0.01) -> FloatArray:
    r"""Return the UMass coherence of topics: how often their words occur in the same documents.

    Parameters
    ----------
    documents : array-like or sparse matrix of shape (n_documents, n_words)
        Counts or weights; the word occurs where the entry is not zero.
    words : array-like of int of shape (n_topics, n)
        The top words of every topic, the most important first, as `top_words` returns them.
    smoothing : float, default 0.01
        Added to the counts of pairs, so that the logarithm exists for pairs that never co-occur.

    Returns
    -------
    array of shape (n_topics,)
        At most about 0; larger is better. Sums grow with the number of words: compare equal numbers.

    Notes
    -----
    .. math:: 2 \sum_{n < m} \ln \frac{df(n, m) + \varepsilon}{df(n)}

    with n the more important word of a pair, df(n) the number of documents with it and df(n, m) with both.
    The factor 2 and the smoothing of 0.01 are those of the MERIT paper's tables.

    References
    ----------
    .. [1] Mimno et al. (2011), EMNLP, equation (1).
    """
    if not (is_number(smoothing) and smoothing > 0):
        raise InvalidParameterError(f"smoothing must be a number above 0, got {smoothing!r}.")
    both, _ = _co_occurrences(documents, words)
    coherence = np.empty(len(both))
    for at, pairs in enumerate(both):
        first, second = np.triu_indices(len(pairs), 1)
        coherence[at] = 2.0 * np.sum(np.log((pairs[first, second] + smoothing) / pairs[first, first]))
    return coherence


def npmi_coherence(documents: Any, words: Any) -> FloatArray:
    r"""Return the mean normalized pointwise mutual information of the pairs of top words of every topic.

    Parameters
    ----------
    documents : array-like or sparse matrix of shape (n_documents, n_words)
        Counts or weights; the word occurs where the entry is not zero.
    words : array-like of int of shape (n_topics, n)
        The top words of every topic, at least two, as `top_words` returns them.

    Returns
    -------
    array of shape (n_topics,)
        From -1 (no pair ever co-occurs) through 0 (independent) to 1 (they only occur together).

    Notes
    -----
    :math:`\ln \frac{p(n, m)}{p(n) p(m)} / -\ln p(n, m)` with fractions of documents; -1 for a pair that
    never co-occurs, 1 for one that is in every document.

    References
    ----------
    .. [1] Bouma (2009), GSCL; Lau, Newman & Baldwin (2014), EACL.
    """
    both, n_documents = _co_occurrences(documents, words)
    coherence = np.empty(len(both))
    for at, pairs in enumerate(both):
        first, second = np.triu_indices(len(pairs), 1)
        if not len(first):
            raise InvalidParameterError("Expected at least two top words per topic, got one.")
        together = pairs[first, second] / n_documents
        expected = pairs[first, first] * pairs[second, second] / n_documents**2
        met = (together > 0) & (together < 1)
        values = np.where(together >= 1, 1.0, -1.0)
        values[met] = np.log(together[met] / expected[met]) / -np.log(together[met])
        coherence[at] = values.mean()
    return coherence


def cv_coherence(documents: Any, words: Any, *, window_size: int = 110) -> FloatArray:
    r"""Return the C_v coherence of topics: whether their words occur in similar contexts.

    Parameters
    ----------
    documents : sequence of sequences of str
        The tokens of every document, in order.
    words : sequence of sequences of str
        The top words of every topic, at least two.
    window_size : int, default 110
        The length of the sliding window. A shorter document is one window.

    Returns
    -------
    array of shape (n_topics,)
        At most 1; larger is better.

    Notes
    -----
    Each word has a vector: its normalized pointwise mutual information with all top words of the topic, by
    fractions of windows. C_v is the mean cosine between the vectors of the words and their sum. Among the
    measures that Röder et al. compare, it agrees best with human ratings.

    References
    ----------
    .. [1] Röder, Both & Hinneburg (2015), WSDM.
    """
    size = checked_count("window_size", window_size)
    both, n_windows = _window_pairs(
        sequences(documents, "documents", "tokens"), sequences(words, "words", "words"), size
    )
    return np.array([_cosine_to_sum(pairs / n_windows) for pairs in both])


def _cosine_to_sum(together: FloatArray) -> float:
    """Return the mean cosine between the NPMI vectors of words and the sum of them."""
    # A pair that never co-occurs has p = 0: the logarithms are taken of p + 1e-12, as by Röder et al.
    if len(together) < 2:
        raise InvalidParameterError("Expected at least two top words per topic, got one.")
    alone = np.diagonal(together)
    with np.errstate(divide="ignore", invalid="ignore"):
        npmi = np.log((together + 1e-12) / np.outer(alone, alone)) / -np.log(together + 1e-12)
    npmi[together >= 1.0] = 1.0
    total = npmi.sum(axis=0)
    lengths = np.linalg.norm(npmi, axis=1) * np.linalg.norm(total)
    return float(np.mean((npmi @ total) / np.where(lengths > 0, lengths, 1.0)))


def _window_pairs(documents: list[Any], words: list[Any], size: int) -> tuple[list[FloatArray], int]:
    """Return in how many sliding windows each pair of top words occurs, topic by topic."""
    chosen = [[str(word) for word in topic] for topic in words]
    places = {word: at for at, word in enumerate(dict.fromkeys(word for topic in chosen for word in topic))}
    counts, n_windows = np.zeros((len(places), len(places))), 0
    for document in documents:
        tokens = [places.get(token, -1) for token in document]
        last = max(1, len(tokens) - size + 1)
        n_windows += last
        vocabulary = np.unique([token for token in tokens if token >= 0])
        if not len(vocabulary):
            continue
        # A token at p is in the windows that begin from p - size + 1 to p: ends of runs, then a running sum.
        runs = np.zeros((last + 1, len(vocabulary)))
        for p, token in enumerate(tokens):
            if token >= 0:
                column = int(np.searchsorted(vocabulary, token))
                runs[max(0, p - size + 1), column] += 1
                runs[min(p, last - 1) + 1, column] -= 1
        inside = (np.cumsum(runs[:-1], axis=0) > 0).astype(np.float64)
        counts[np.ix_(vocabulary, vocabulary)] += inside.T @ inside
    for word, at in places.items():
        if not counts[at, at]:
            raise InvalidDataError(
                f"The top word {word!r} is in no document, so its coherence is not defined. Use the "
                "documents that the topics were fitted to, or leave such words out."
            )
    rows = [[places[word] for word in topic] for topic in chosen]
    return [counts[np.ix_(row, row)] for row in rows], n_windows


def topic_diversity(words: Any) -> float:
    """Return the fraction of distinct words among the top words of all topics.

    Parameters
    ----------
    words : array-like of int of shape (n_topics, n)
        The top words of every topic, as `top_words` returns them; 25 per topic in [1]_.

    Returns
    -------
    float
        1 if no two topics share a top word, 1 / n_topics if all topics are the same.

    References
    ----------
    .. [1] Dieng, Ruiz & Blei (2020), TACL 8.
    """
    chosen = _checked_words(words)
    if not chosen.size:
        raise ShapeError(f"Expected at least one top word, got an array of shape {chosen.shape}.")
    return len(np.unique(chosen)) / chosen.size


def _checked_words(words: Any) -> IntArray:
    hint = "`nonneg.metrics.top_words` computes an array of integers from topics."
    array = table(words, "words", "(n_topics, n)", as_float=False, hint=hint)
    if array.dtype.kind not in "iu":
        raise ShapeError(f"Expected `words` as an array of integers, got type {array.dtype}. {hint}")
    return array.astype(np.intp)


def _co_occurrences(documents: Any, words: Any) -> tuple[list[Any], int]:
    """Return the number of documents with both words of each pair, topic by topic, and that of all."""
    chosen = _checked_words(words)
    present = sparse_table(documents, "documents", "(n_documents, n_words)").tocsc()
    if present.shape[0] == 0:
        raise ShapeError(f"Expected documents of shape (n_documents, n_words), got {present.shape}.")
    if chosen.size and not (chosen.min() >= 0 and chosen.max() < present.shape[1]):
        raise InvalidParameterError(
            f"Top words must be integers from 0 to {present.shape[1] - 1}, the columns of the documents; got "
            f"{int(chosen.min())} to {int(chosen.max())}."
        )
    both = []
    for topic in chosen:
        columns = (present[:, topic] != 0).astype(np.float64)
        pairs = np.asarray((columns.T @ columns).todense())
        alone = np.diagonal(pairs)
        if not (alone > 0).all():
            lost = int(topic[np.argmin(alone)])
            raise InvalidDataError(
                f"Word {lost} is a top word but in no document, so its coherence is not defined. Use "
                "the documents that the topics were fitted to, or leave such words out."
            )
        both.append(pairs)
    return both, int(present.shape[0])
