"""Topics by OCTIS' scores: coherence (NPMI), diversity and inverted rank-biased overlap of ten top words.

    python -m benchmarks.others.octis [--topics 20] [--seeds 1] [--gensim]

Terragni et al. (2021), "OCTIS: Comparing and optimizing topic models is simple", EACL. The collections are
counts of words without their order (`cluto_re0`, `bbc` and `hitech_bmme` under NONNEG_DATA), so that
words co-occur in documents, not in windows of ten words. Words in fewer than five documents or in more than
half of them are left out for every method. `--gensim` runs gensim's models beside it, where it is installed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from reproduction.data import load_bbc, load_cluto, load_hitech
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer

from benchmarks.tables import markdown
from nonneg.applications import TopicModel
from nonneg.metrics import normalized_mutual_information, npmi_coherence, top_words, topic_diversity

CORPORA: dict[str, Callable[[], Any]] = {
    "re0": lambda: load_cluto("re0"),
    "BBC": load_bbc,
    "hitech": load_hitech,
}
N_WORDS = 10
# The probability of looking at the next word, as in OCTIS.
PERSISTENCE = 0.9
Fit = tuple[Any, Any]  # weights of words in topics, and of topics in documents


def inverted_rbo(words: np.ndarray) -> float:
    """Return one minus the mean rank-biased overlap of the top words of two topics (Webber et al., 2010)."""
    return 1.0 - float(np.mean([_overlap(one, other) for one, other in combinations(words.tolist(), 2)]))


def _overlap(one: list[int], other: list[int]) -> float:
    # Of two lists of equal length: their agreement at the end counts for all that would follow.
    shared = [len({*one[:depth]} & {*other[:depth]}) / depth for depth in range(1, len(one) + 1)]
    weights = (1.0 - PERSISTENCE) * PERSISTENCE ** np.arange(len(one))
    return float(weights @ shared + shared[-1] * PERSISTENCE ** len(one))


def ours(method: str) -> Callable[[Any, int, int], Fit]:
    """Return a method of `TopicModel` with its defaults."""

    def fit(counts: Any, k: int, seed: int) -> Fit:
        model = TopicModel(k, method=method, random_state=seed)
        W = model.fit_transform(counts)
        return model.topics_, W

    return fit


def sklearn_nmf(counts: Any, k: int, seed: int) -> Fit:
    """Factorize scikit-learn's TF-IDF weights."""
    model = NMF(k, random_state=seed)
    W = model.fit_transform(TfidfTransformer().fit_transform(counts))
    return model.components_, W


def sklearn_lda(counts: Any, k: int, seed: int) -> Fit:
    """Fit latent Dirichlet allocation to counts."""
    model = LatentDirichletAllocation(k, random_state=seed)
    W = model.fit_transform(counts)
    return model.components_, W


def gensim_model(name: str) -> Callable[[Any, int, int], Fit]:
    """Return a model of gensim with ten passes over the documents."""

    def fit(counts: Any, k: int, seed: int) -> Fit:
        from gensim.matutils import Sparse2Corpus
        from gensim.models import LdaModel
        from gensim.models.nmf import Nmf

        corpus = Sparse2Corpus(counts, documents_columns=False)
        words = {at: str(at) for at in range(counts.shape[1])}
        kind = {"Nmf": Nmf, "LdaModel": LdaModel}[name]
        model = kind(corpus, num_topics=k, id2word=words, random_state=seed, passes=10)
        W = np.zeros((counts.shape[0], k))
        for row, document in enumerate(corpus):
            for topic, weight in model.get_document_topics(document, minimum_probability=0.0):
                W[row, topic] = weight
        return model.get_topics(), W

    return fit


METHODS: dict[str, Callable[[Any, int, int], Fit]] = {
    "nonneg, nmf": ours("nmf"),
    "nonneg, kl": ours("kl"),
    "scikit-learn NMF": sklearn_nmf,
    "scikit-learn LDA": sklearn_lda,
}
PEERS = {"gensim Nmf": gensim_model("Nmf"), "gensim LDA": gensim_model("LdaModel")}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--gensim", action="store_true")
    options = parser.parse_args()
    rows = []
    for corpus, load in CORPORA.items():
        data = load()
        counts = sp.csr_array(data.X).astype(np.float64)
        present = np.asarray((counts > 0).sum(axis=0)).ravel()
        counts = sp.csr_array(counts[:, (present >= 5) & (present <= 0.5 * counts.shape[0])])
        filled = np.diff(counts.indptr) > 0
        counts, y = sp.csr_matrix(counts[filled]), data.y[filled]
        for name, fit in (METHODS | (PEERS if options.gensim else {})).items():
            scores, seconds = [], 0.0
            for seed in range(options.seeds):
                started = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # limits of iterations, documents without topics
                    topics, W = fit(counts, options.topics, seed)
                seconds += (time.perf_counter() - started) / options.seeds
                words = top_words(topics, N_WORDS)
                scores.append((
                    npmi_coherence(counts, words).mean(), topic_diversity(words), inverted_rbo(words),
                    normalized_mutual_information(y, W.argmax(axis=1), unlabeled=-1),
                ))  # fmt: skip
            rows.append(
                [corpus, name, *(f"{value:.3f}" for value in np.mean(scores, axis=0)), f"{seconds:.1f}"]
            )
            sys.stderr.write(" ".join(rows[-1]) + "\n")
    head = ("collection", "method", "NPMI", "diversity", "inverted RBO", "NMI with classes", "seconds")
    sys.stdout.write(markdown(head, rows) + "\n")


if __name__ == "__main__":
    main()
