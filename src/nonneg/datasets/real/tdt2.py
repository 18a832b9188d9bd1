"""The TDT2 news articles: 9394 documents, 36771 words, 30 topics."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from nonneg.datasets import store
from nonneg.datasets.weighting import tfidf
from nonneg.exceptions import UnknownNameError

DESCRIPTION = (
    "TDT2 (NIST Topic Detection and Tracking, 1998; the 30 largest topics in Deng Cai's preparation): 9394 "
    "news articles, one a row, counts of 36771 words, 1224135 of them not zero. The source gives neither "
    "words nor names of topics."
)


def load_tdt2(
    data_home: str | os.PathLike[str] | None = None,
    *,
    weighting: str = "counts",
    dtype: npt.DTypeLike = np.float64,
) -> store.Dataset:
    """Return the TDT2 articles from the local store.

    Parameters
    ----------
    data_home : path or None
        The folder that holds ``tdt2/X.npz`` and ``tdt2/labels.npz``; None asks the environment variable
        ``NONNEG_DATA``.
    weighting : {"counts", "tfidf"}, default "counts"
        Counts as they are, or weighted by `nonneg.datasets.tfidf`.
    dtype : dtype, default float64
        The type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` is a CSR array of shape (9394, 36771), `y` the topic.
    """
    if weighting not in {"counts", "tfidf"}:
        raise UnknownNameError.of("weighting", weighting, ["counts", "tfidf"])
    counts = store.read_sparse("tdt2/X.npz", data_home).astype(dtype)
    labels = store.read_arrays("tdt2/labels.npz", data_home)["y"]
    return store.Dataset(
        X=tfidf(counts) if weighting == "tfidf" else counts,
        y=labels.astype(np.intp),
        names=(),
        description=DESCRIPTION
        if weighting == "counts"
        else f"{DESCRIPTION} TF-IDF weights, rows of unit length.",
    )
