"""Topics by OCTIS' scores: coherence (NPMI), diversity and inverted rank-biased overlap of ten top words.

    python -m benchmarks.others.octis [--octis FOLDER] [--methods NAME ...] [--seeds 3] [--write]

Terragni et al. (2021), "OCTIS: Comparing and optimizing topic models is simple", EACL. FOLDER is
`preprocessed_datasets` of OCTIS' repository: its texts, which have passed its preprocessing, in its
vocabularies; words co-occur in windows of ten words. Without it the collections are counts of words without
their order (`cluto_re0`, `bbc` and `hitech_bmme` under NONNEG_DATA): a document is the window, and words in
fewer than five documents or in more than half of them are left out. Every method gets the same words.
gensim's models run where they are named and installed, and so do BERTopic and Turftopic's KeyNMF, which read
texts: `--encoder` is the name or the folder of their language model.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from reproduction.data import load_bbc, load_cluto, load_hitech
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from benchmarks.others.records import merge
from benchmarks.tables import markdown
from nonneg.applications import TopicModel
from nonneg.metrics import normalized_mutual_information, npmi_coherence, top_words, topic_diversity

COUNTED: dict[str, Callable[[], Any]] = {
    "re0": lambda: load_cluto("re0"),
    "BBC": load_bbc,
    "hitech": load_hitech,
}
READ = ("BBC_News", "M10")
N_WORDS = 10
# The probability of looking at the next word, the length of a window, and what OCTIS adds to the share of
# windows that have both words, so that its logarithm exists.
PERSISTENCE, WINDOW, EPSILON = 0.9, 10, 1e-12
KEYS = ("collection", "method", "topics", "seed")
SCORES = ("NPMI", "diversity", "inverted RBO", "NMI with classes")
Fit = tuple[Any, Any]  # weights of words in topics, and of topics in documents


@dataclass
class Collection:
    """Documents, their classes, and the windows in which words occur."""

    counts: sp.csr_matrix
    y: np.ndarray
    windows: sp.csr_matrix
    texts: list[str]
    words: list[str]
    embeddings: Any = None
    encoder: Any = None


def counted(name: str) -> Collection:
    """Return a collection of counts."""
    data = COUNTED[name]()
    counts = sp.csr_array(data.X).astype(np.float64)
    present = np.asarray((counts > 0).sum(axis=0)).ravel()
    counts = sp.csr_array(counts[:, (present >= 5) & (present <= 0.5 * counts.shape[0])])
    filled = np.diff(counts.indptr) > 0
    counts = sp.csr_matrix(counts[filled])
    return Collection(counts, data.y[filled], counts, [], [])


def read(folder: Path, encoder: str | None) -> Collection:
    """Return a collection of OCTIS, with what the language model makes of its texts."""
    lines = (folder / "corpus.tsv").read_text("utf-8").splitlines()
    texts, _, classes = zip(*(line.split("\t") for line in lines), strict=True)
    words = (folder / "vocabulary.txt").read_text("utf-8").split()
    vectorizer = CountVectorizer(vocabulary=words, token_pattern=r"\S+", lowercase=False)
    cut = (text.split() for text in texts)
    parts = (
        " ".join(tokens[at : at + WINDOW]) for tokens in cut for at in range(max(len(tokens) - WINDOW, 0) + 1)
    )
    windows = (vectorizer.transform(parts) > 0).astype(float)
    counts = sp.csr_matrix(vectorizer.transform(texts).astype(np.float64))
    found = Collection(counts, np.unique(classes, return_inverse=True)[1], windows, list(texts), words)
    if encoder:
        from sentence_transformers import SentenceTransformer

        found.encoder = SentenceTransformer(encoder)
        found.embeddings = found.encoder.encode(found.texts)
    return found


def npmi(windows: sp.csr_matrix, words: np.ndarray) -> float:
    """Return the mean over topics of OCTIS' coherence, which is gensim's "c_npmi"."""
    values = []
    for topic in words:
        part = windows[:, topic]
        share = (part.T @ part).toarray() / windows.shape[0]
        alone = np.diag(share)
        pairs = np.triu_indices(len(topic), 1)
        both = share[pairs] + EPSILON
        values.append(np.mean(np.log(both / np.outer(alone, alone)[pairs]) / -np.log(both)))
    return float(np.mean(values))


def inverted_rbo(words: np.ndarray) -> float:
    """Return one minus the mean rank-biased overlap of the top words of two topics (Webber et al., 2010)."""
    return 1.0 - float(np.mean([_overlap(one, other) for one, other in combinations(words.tolist(), 2)]))


def _overlap(one: list[int], other: list[int]) -> float:
    # Of two lists of equal length: their agreement at the end counts for all that would follow.
    shared = [len({*one[:depth]} & {*other[:depth]}) / depth for depth in range(1, len(one) + 1)]
    weights = (1.0 - PERSISTENCE) * PERSISTENCE ** np.arange(len(one))
    return float(weights @ shared + shared[-1] * PERSISTENCE ** len(one))


def ours(method: str) -> Callable[[Collection, int, int], Fit]:
    """Return a method of `TopicModel` with its defaults."""

    def fit(data: Collection, k: int, seed: int) -> Fit:
        model = TopicModel(k, method=method, random_state=seed)
        W = model.fit_transform(data.counts)
        return model.topics_, W

    return fit


def sklearn_nmf(data: Collection, k: int, seed: int) -> Fit:
    """Factorize scikit-learn's TF-IDF weights."""
    model = NMF(k, random_state=seed)
    W = model.fit_transform(TfidfTransformer().fit_transform(data.counts))
    return model.components_, W


def sklearn_lda(data: Collection, k: int, seed: int) -> Fit:
    """Fit latent Dirichlet allocation to counts."""
    model = LatentDirichletAllocation(k, random_state=seed)
    W = model.fit_transform(data.counts)
    return model.components_, W


def gensim_model(name: str) -> Callable[[Collection, int, int], Fit]:
    """Return a model of gensim with ten passes over the documents."""

    def fit(data: Collection, k: int, seed: int) -> Fit:
        from gensim.matutils import Sparse2Corpus
        from gensim.models import LdaModel
        from gensim.models.nmf import Nmf

        corpus = Sparse2Corpus(data.counts, documents_columns=False)
        words = {at: str(at) for at in range(data.counts.shape[1])}
        kind = {"Nmf": Nmf, "LdaModel": LdaModel}[name]
        model = kind(corpus, num_topics=k, id2word=words, random_state=seed, passes=10)
        W = np.zeros((data.counts.shape[0], k))
        for row, document in enumerate(corpus):
            for topic, weight in model.get_document_topics(document, minimum_probability=0.0):
                W[row, topic] = weight
        return model.get_topics(), W

    return fit


def bertopic(data: Collection, k: int, seed: int) -> Fit:
    """Fit BERTopic, reduced to k topics; the documents that it leaves out are a topic without words."""
    from bertopic import BERTopic
    from umap import UMAP

    # Its own default, but for the seed.
    umap = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed)
    vectorizer = CountVectorizer(vocabulary=data.words, token_pattern=r"\S+", lowercase=False)
    model = BERTopic(nr_topics=k + 1, umap_model=umap, vectorizer_model=vectorizer)
    topics, _ = model.fit_transform(data.texts, data.embeddings)
    left_out = min(topics) < 0
    W = np.eye(max(topics) + 2)[np.asarray(topics)]
    return model.c_tf_idf_[int(left_out) :], W


def keynmf(data: Collection, k: int, seed: int) -> Fit:
    """Fit Turftopic's KeyNMF."""
    from turftopic import KeyNMF

    vectorizer = CountVectorizer(vocabulary=data.words, token_pattern=r"\S+", lowercase=False)
    model = KeyNMF(k, encoder=data.encoder, vectorizer=vectorizer, random_state=seed)
    W = model.fit_transform(data.texts, embeddings=data.embeddings)
    topics = np.zeros((k, len(data.words)))
    column = {word: at for at, word in enumerate(data.words)}
    topics[:, [column[word] for word in model.get_vocab()]] = model.components_
    return topics, W


METHODS: dict[str, Callable[[Collection, int, int], Fit]] = {
    "nonneg, nmf": ours("nmf"),
    "nonneg, kl": ours("kl"),
    "scikit-learn NMF": sklearn_nmf,
    "scikit-learn LDA": sklearn_lda,
}
READERS = {"BERTopic": bertopic, "KeyNMF": keynmf}
PEERS = {"gensim Nmf": gensim_model("Nmf"), "gensim LDA": gensim_model("LdaModel"), **READERS}


def tables(rows: list[dict[str, Any]]) -> str:
    """Return means over the seeds: of the collections with texts, and of those of counts."""
    parts = []
    for collections in (READ, COUNTED):
        lines = []
        for key in product(collections, (*METHODS, *PEERS)):
            group = [row for row in rows if (row["collection"], row["method"]) == key]
            if group:
                means = [f"{np.mean([row[score] for row in group]):.3f}" for score in SCORES]
                lines.append([*key, str(len(group)), *means])
        if lines:
            parts.append(markdown(("collection", "method", "seeds", *SCORES), lines))
    return "\n\n".join(parts)


def main() -> None:
    """Run and print, or also write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--octis", type=Path)
    parser.add_argument("--encoder", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--methods", nargs="+", default=[*METHODS], choices=[*METHODS, *PEERS])
    parser.add_argument("--collections", nargs="+")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    methods = {name: (METHODS | PEERS)[name] for name in options.methods}
    encoder = options.encoder if methods.keys() & READERS else None
    rows: list[dict[str, Any]] = []
    for name in options.collections or (READ if options.octis else COUNTED):
        data = read(options.octis / name, encoder) if options.octis else counted(name)
        for method, fit in methods.items():
            for seed in range(options.seeds):
                started = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # limits of iterations, documents without topics
                    topics, W = fit(data, options.topics, seed)
                seconds = time.process_time() - started
                words = top_words(topics, N_WORDS)
                agreement = normalized_mutual_information(data.y, W.argmax(axis=1), unlabeled=-1)
                coherence = (
                    npmi(data.windows, words) if data.texts else npmi_coherence(data.counts, words).mean()
                )
                scores = coherence, topic_diversity(words), inverted_rbo(words), agreement
                rows.append(
                    dict(zip(KEYS, (name, method, options.topics, seed), strict=True))
                    | {key: round(float(value), 4) for key, value in zip(SCORES, scores, strict=True)}
                    | {"words found": len(words), "CPU seconds": round(seconds, 1)}
                )
                sys.stderr.write(f"{rows[-1]}\n")
    if options.write:
        rows = merge("octis", rows, KEYS)
    sys.stdout.write(tables(rows) + "\n")


if __name__ == "__main__":
    main()
