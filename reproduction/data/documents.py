"""Text collections: word counts, one document per row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nonneg import datasets
from nonneg.datasets.store import Home
from nonneg.exceptions import UnknownNameError
from reproduction.data import store
from reproduction.data.weighting import tfidf

CLUTO = {
    "classic": "abstracts of four collections (CACM, CISI, Cranfield, MEDLINE)",
    "fbis": "Foreign Broadcast Information Service (TREC)",
    "k1a": "web pages of Yahoo (WebACE)",
    "la1": "Los Angeles Times (TREC)",
    "re0": "newswire of Reuters-21578",
    "tr11": "TREC",
    "tr12": "TREC",
    "tr23": "TREC",
    "tr41": "TREC",
}
"""The CLUTO collections and their documents."""


def load_tdt2(
    data_home: Home = None,
    *,
    weighting: str = "counts",
    class_subsets: bool = True,
    dtype: npt.DTypeLike = np.float64,
) -> store.Dataset:
    """Return the TDT2 articles.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``tdt2/X.npz`` and its companions; None searches ``NONNEG_DATA``, then the
        user's cache, then the source.
    weighting : {"counts", "tfidf"}, default "counts"
        Word counts, or their weights by `reproduction.data.tfidf`.
    class_subsets : bool, default True
        Whether to load the draws of topics, 600 small files at the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` is a CSR array of shape (9394, 36771), `y` the topic. ``extras["class_subsets"]`` maps a number of
        topics to 50 draws of that many, one per row, as the MERIT paper used them.
    """
    return _documents(
        "tdt2",
        "TDT2 (NIST Topic Detection and Tracking, 1998; the 30 largest topics in Deng Cai's preparation): "
        "9394 news articles, one per row, counts of 36771 words, 1224135 of them not zero. The source gives "
        "neither words nor names of topics.",
        data_home,
        weighting,
        dtype,
        subsets=class_subsets,
    )


def load_reuters21578(
    data_home: Home = None,
    *,
    weighting: str = "counts",
    class_subsets: bool = True,
    dtype: npt.DTypeLike = np.float64,
) -> store.Dataset:
    """Return the Reuters-21578 articles.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``reuters21578/X.npz`` and its companions; None searches ``NONNEG_DATA``,
        then the user's cache, then the source.
    weighting : {"counts", "tfidf"}, default "counts"
        Word counts, or their weights by `reproduction.data.tfidf`.
    class_subsets : bool, default True
        Whether to load the draws of topics, 600 small files at the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` is a CSR array of shape (8293, 18933), `y` the topic. `extras` has the keys ``"class_subsets"`` (a
        number of topics to 50 draws of that many, as the MERIT paper used them), ``"train"`` and ``"test"``
        (the documents of the usual split).
    """
    return _documents(
        "reuters21578",
        "Reuters-21578 (articles with one topic, Deng Cai's preparation): 8293 documents, one per row, "
        "counts of 18933 words, 65 topics. The source gives neither words nor names of topics.",
        data_home,
        weighting,
        dtype,
        subsets=class_subsets,
    )


def load_bbc(
    data_home: Home = None, *, weighting: str = "counts", dtype: npt.DTypeLike = np.float64
) -> store.Dataset:
    """Return the BBC news articles of `nonneg.datasets`, with TF-IDF weights if asked for."""
    articles = datasets.load_bbc(data_home)
    X = articles.X.astype(dtype)
    return replace(articles, X=tfidf(X) if weighting == "tfidf" else X)


def load_cluto(
    name: str, data_home: Home = None, *, weighting: str = "counts", dtype: npt.DTypeLike = np.float64
) -> store.Dataset:
    """Return a collection of documents of the CLUTO toolkit.

    Parameters
    ----------
    name : {"classic", "fbis", "k1a", "la1", "re0", "tr11", "tr12", "tr23", "tr41"}
        The collection.
    data_home : path or None
        The folder that contains ``cluto_NAME/X.npz`` and ``cluto_NAME/labels.npz``; None searches
        ``NONNEG_DATA``, then the user's cache, then the source.
    weighting : {"counts", "tfidf"}, default "counts"
        Word counts, or their weights by `reproduction.data.tfidf`.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` is a CSR array with one document per row (tr11: 414 x 6429), `y` the class. Words without any
        count are kept, as in the source.
    """
    if name not in CLUTO:
        raise UnknownNameError.of("name", name, CLUTO)
    description = (
        f"{name} of the CLUTO toolkit: {CLUTO[name]}. One document per row, counts of words. The source "
        "gives neither words nor names of classes."
    )
    return _documents(f"cluto_{name}", description, data_home, weighting, dtype)


def load_hitech(
    data_home: Home = None, *, weighting: str = "counts", dtype: npt.DTypeLike = np.float64
) -> store.Dataset:
    """Return the hitech articles, in the version with 10080 words.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``hitech_bmme/X.npz`` and ``hitech_bmme/labels.npz``; None searches
        ``NONNEG_DATA``, then the user's cache, then the source.
    weighting : {"counts", "tfidf"}, default "counts"
        Word counts, or their weights by `reproduction.data.tfidf`.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` is a CSR array of shape (2301, 10080), `y` the class.
    """
    return _documents(
        "hitech_bmme",
        "hitech (San Jose Mercury, TREC; the version with 10080 words that papers on NMF use): 2301 "
        "articles, one per row, counts of words, 6 classes. The source gives neither words nor names of "
        "classes.",
        data_home,
        weighting,
        dtype,
    )


def _documents(
    folder: str,
    description: str,
    home: Home,
    weighting: str,
    dtype: npt.DTypeLike,
    *,
    names: tuple[str, ...] = (),
    vocabulary: bool = False,
    subsets: bool = False,
) -> store.Dataset:
    if weighting not in {"counts", "tfidf"}:
        raise UnknownNameError.of("weighting", weighting, ["counts", "tfidf"])
    counts = store.read_sparse(f"{folder}/X.npz", home).astype(dtype)
    labels = store.read_arrays(f"{folder}/labels.npz", home)
    words = store.read_arrays(f"{folder}/vocab.npz", home)["vocab"] if vocabulary else ()
    draws = store.read_arrays(f"{folder}/class_subsets.npz", home) if subsets else {}
    extras: dict[str, Any] = {
        split: labels[f"{split}_idx"].astype(np.intp)
        for split in ("train", "test")
        if f"{split}_idx" in labels
    }
    if subsets:
        extras["class_subsets"] = {int(key[1:]): rows.astype(np.intp) for key, rows in draws.items()}
    return store.Dataset(
        X=tfidf(counts) if weighting == "tfidf" else counts,
        y=labels["y"].astype(np.intp),
        names=names,
        description=description
        if weighting == "counts"
        else f"{description} TF-IDF weights, rows of unit length.",
        feature_names=tuple(map(str, words)),
        extras=extras,
    )
