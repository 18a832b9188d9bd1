"""Word counts of documents about a few topics, with Zipf's law for the words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.datasets.dataset import PlantedData


def text_like(
    n_documents: int = 9394,
    n_words: int = 36771,
    n_topics: int = 30,
    *,
    mean_length: float = 184.0,
    rng: Seed = None,
    dtype: npt.DTypeLike = np.float64,
) -> PlantedData:
    """Return sparse counts of words in documents, each mostly about one topic.

    Parameters
    ----------
    n_documents : int, default 9394
        Rows of X.
    n_words : int, default 36771
        Columns of X.
    n_topics : int, default 30
        Number of topics.
    mean_length : float, default 184
        Mean number of words per document; lengths are log-normal, at least 1.
    rng : None, int or numpy.random.Generator
        Random number generator or seed.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    PlantedData
        `X` is a CSR array of counts, `H` the topics (each row a distribution over the words), `W` the
        expected number of words from each topic, `labels` the main topic of each document.

    Notes
    -----
    Time and memory are linear in the total number of words.
    """
    import scipy.sparse

    rng = generator(rng)
    topics = _topics(n_topics, n_words, rng)
    labels = rng.integers(n_topics, size=n_documents)
    shares = rng.dirichlet(np.full(n_topics, 0.05), size=n_documents) * 0.4
    shares[np.arange(n_documents), labels] += 0.6
    spread = 0.9
    lengths = np.maximum(rng.lognormal(np.log(mean_length) - spread**2 / 2, spread, size=n_documents), 1.0)
    lengths = np.rint(lengths).astype(np.int64)
    words_by_topic = rng.multinomial(lengths, shares)
    documents, words = _tokens(words_by_topic, topics, rng)
    ones = np.ones(documents.size, dtype=dtype)
    X = scipy.sparse.coo_array((ones, (documents, words)), shape=(n_documents, n_words)).tocsr()
    X.sum_duplicates()
    W = lengths[:, None] * shares
    return PlantedData(X=X, H=topics.astype(dtype), W=W.astype(dtype), labels=labels)


def _topics(count: int, n_words: int, rng: np.random.Generator) -> FloatArray:
    """Return distributions that tilt one Zipf law: a word is frequent in a few topics, rare in the others."""
    zipf = (np.arange(n_words) + 20.0) ** -1.1
    tilt = rng.gamma(0.2, size=(count, n_words))
    topics = zipf[rng.permutation(n_words)] * tilt
    topics /= topics.sum(axis=1, keepdims=True)
    return topics


def _tokens(
    words_by_topic: npt.NDArray[np.int64], topics: FloatArray, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the document and the word of every token, drawn topic by topic."""
    n_documents, n_topics = words_by_topic.shape
    documents, words = [], []
    for topic in range(n_topics):
        counts = words_by_topic[:, topic]
        documents.append(np.repeat(np.arange(n_documents, dtype=np.int32), counts))
        cumulated = np.cumsum(topics[topic])
        drawn = np.searchsorted(cumulated, rng.random(int(counts.sum())), side="right")
        words.append(np.minimum(drawn, topics.shape[1] - 1).astype(np.int32))
    return np.concatenate(documents), np.concatenate(words)
