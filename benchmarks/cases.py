"""The data of the races: real data sets from ``NONNEG_DATA``, or synthetic look-alikes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from reproduction import data as datasets
from reproduction.data import store
from sklearn.datasets import load_digits

SEED = 20240601

INIT_STREAM = 1
"""Initial factors have their own random stream. With the data's seed alone they would repeat the numbers
that made the synthetic data, and equal the planted factors up to scale."""


@dataclass(frozen=True)
class Case:
    """One matrix and its rank."""

    name: str  # short name, the row of the tables
    kind: str  # how the entries are held
    n_components: int  # the rank
    load: Callable[[Any], tuple[Any, str]]  # takes a dtype, returns the matrix and where it comes from
    quick: bool = False  # whether the case belongs to the quick run
    n_init: int = 1  # number of initializations to race from; the median counts


def random_init(X: Any, n_components: int, seed: int = SEED) -> tuple[Any, Any]:
    """Return the initialization of every contender, by scikit-learn's rule for random ones."""
    rng = np.random.default_rng([seed, INIT_STREAM])
    scale = np.sqrt(X.mean(dtype=np.float64) / n_components)
    W = np.abs(scale * rng.standard_normal((X.shape[0], n_components)))
    H = np.abs(scale * rng.standard_normal((n_components, X.shape[1])))
    return W.astype(X.dtype), H.astype(X.dtype)


def _digits(dtype: Any) -> tuple[Any, str]:
    return load_digits().data.astype(dtype), "real (embedded in scikit-learn)"


def _faces(dtype: Any) -> tuple[Any, str]:
    if store.is_available("olivetti_64x64"):
        return datasets.load_olivetti(dtype=dtype).X, "real (Olivetti faces)"
    return datasets.faces_like(rng=SEED, dtype=dtype).X, "look-alike (faces_like)"


def _scene(dtype: Any) -> tuple[Any, str]:
    if store.is_available("indian_pines"):
        return datasets.load_indian_pines(dtype=dtype).X, "real (Indian Pines)"
    return datasets.scene_like(rng=SEED).X.astype(dtype), "look-alike (scene_like)"


def _cbcl(dtype: Any) -> tuple[Any, str]:
    if store.is_available("cbcl_faces"):
        return datasets.load_cbcl_faces(dtype=dtype).X, "real (CBCL faces)"
    return datasets.faces_like(243, 10, 19, rng=SEED, dtype=dtype).X, "look-alike (faces_like)"


def _objects(dtype: Any) -> tuple[Any, str]:
    if store.is_available("coil20"):
        return datasets.load_coil20(dtype=dtype).X, "real (COIL-20)"
    return datasets.faces_like(20, 72, 32, rng=SEED, dtype=dtype).X, "look-alike (faces_like)"


def _mutations(dtype: Any) -> tuple[Any, str]:
    if store.is_available("brca_sbs96_wgs"):
        return datasets.load_brca_sbs96().X.astype(dtype), "real (mutations of breast cancers)"
    X = datasets.low_rank_plus_noise(793, 96, 8, noise="poisson", level=0.3, rng=SEED, dtype=dtype).X
    return X, "look-alike (low rank, poisson noise)"


@cache
def _cells() -> tuple[Any, str]:
    if store.is_available("pbmc3k"):
        counts, source = sp.csr_array(datasets.load_pbmc3k().X), "real (PBMC 3k)"
    else:
        counts = sp.csr_array(datasets.text_like(2700, 13714, 9, mean_length=900.0, rng=SEED).X)
        source = "look-alike (text_like)"
    # The usual preparation: equal totals, then logarithms.
    totals = np.asarray(counts.sum(axis=1)).ravel()
    scaled = sp.csr_array(sp.diags_array(np.median(totals) / np.maximum(totals, 1.0)) @ counts)
    return scaled.log1p(), f"{source}, logarithms"


def _expression(dtype: Any) -> tuple[Any, str]:
    X, source = _cells()
    return X.astype(dtype), source


@cache
def _stories() -> tuple[Any, str]:
    if store.is_available("bbc"):
        return datasets.load_bbc().X, "real (BBC)"
    return datasets.text_like(2225, 9635, 5, rng=SEED).X, "look-alike (text_like)"


def _stories_tfidf(dtype: Any) -> tuple[Any, str]:
    counts, source = _stories()
    return datasets.tfidf(counts).astype(dtype), f"{source}, TF-IDF"


def _low_rank(
    noise: str, level: float, size: tuple[int, int, int] = (2000, 1000, 20)
) -> Callable[[Any], tuple[Any, str]]:
    def load(dtype: Any) -> tuple[Any, str]:
        X = datasets.low_rank_plus_noise(*size, noise=noise, level=level, rng=SEED, dtype=dtype).X
        return X, f"generated (low rank, {noise} noise)"

    return load


def _cones(dtype: Any) -> tuple[Any, str]:
    X = datasets.circular_cones(10_000, 1600, 40, rng=SEED).X
    return X.astype(dtype, copy=False), "generated (circular cones)"


def _small_cones(dtype: Any) -> tuple[Any, str]:
    X = datasets.circular_cones(1000, 400, 20, rng=SEED).X
    return X.astype(dtype, copy=False), "generated (circular cones)"


@cache
def _counts() -> tuple[Any, str]:
    if store.is_available("tdt2"):
        return datasets.load_tdt2().X, "real (TDT2)"
    return datasets.text_like(rng=SEED).X, "look-alike (text_like)"


def _text_counts(dtype: Any) -> tuple[Any, str]:
    counts, source = _counts()
    return counts.astype(dtype), f"{source}, counts"


def _text_tfidf(dtype: Any) -> tuple[Any, str]:
    counts, source = _counts()
    return datasets.tfidf(counts).astype(dtype), f"{source}, TF-IDF"


# Small and with many local minima, so one initialization says little.
DIGITS = Case("digits 1797x64 k=16", "dense", 16, _digits, quick=True, n_init=9)
FACES = Case("faces 400x4096 k=40", "dense", 40, _faces)
SCENE = Case("scene 21025x200 k=16", "dense", 16, _scene)
LOW_RANK = Case("low rank 2000x1000 k=20", "dense", 20, _low_rank("gaussian", 0.1), quick=True)
CONES = Case("cones 10000x1600 k=40", "dense", 40, _cones)
SMALL_CONES = Case("cones 1000x400 k=20", "dense", 20, _small_cones, quick=True)
TEXT = Case("text 9394x36771 k=30", "sparse", 30, _text_tfidf, quick=True)
CBCL = Case("faces 2429x361 k=49", "dense", 49, _cbcl)
OBJECTS = Case("objects 1440x1024 k=20", "dense", 20, _objects)
MUTATIONS = Case("mutations 793x96 k=8", "dense", 8, _mutations, quick=True, n_init=9)
CELLS = Case("cells 2700x13714 k=9", "sparse", 9, _expression)
STORIES = Case("stories 2225x9635 k=5", "sparse", 5, _stories_tfidf, quick=True)
COUNTS = Case("low rank counts 2000x1000 k=20", "dense", 20, _low_rank("poisson", 0.3), quick=True)
TALL_COUNTS = Case(
    "low rank counts 20000x500 k=40", "dense", 40, _low_rank("poisson", 0.3, (20_000, 500, 40))
)
TEXT_COUNTS = Case("text counts 9394x36771 k=30", "sparse", 30, _text_counts, quick=True)
POSITIVE = Case("positive 2000x1000 k=20", "dense", 20, _low_rank("gamma", 0.5), quick=True)

ALL = {
    case.name: case
    for case in (
        DIGITS,
        FACES,
        SCENE,
        CBCL,
        OBJECTS,
        MUTATIONS,
        LOW_RANK,
        CONES,
        TEXT,
        CELLS,
        STORIES,
        COUNTS,
        TALL_COUNTS,
        TEXT_COUNTS,
        POSITIVE,
    )
}
