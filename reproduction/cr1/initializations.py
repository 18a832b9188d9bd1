"""The four initializations that the paper compares on real data, with the choices of its programs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray, IntArray
from nonneg.cones.rank_one import cone_rank_one
from nonneg.data import DataMatrix, as_data_matrix
from nonneg.exceptions import UnknownNameError
from nonneg.initializers.nndsvd import nndsvd_init
from reproduction.cr1.plain_algorithms import uniform_init
from reproduction.cr1.spherical_kmeans import spherical_kmeans

INITS = ("rand", "cr1-nmf", "spkm", "nndsvd")
DETERMINISTIC = ("nndsvd",)
SPKM_PASSES = 10
"""Passes of spherical k-means as an initialization."""


@dataclass(frozen=True)
class Samples:
    """Data in both orientations, so that an algorithm can begin with either factor."""

    X: Any  # the entries
    rows: DataMatrix  # of X, one sample per row
    columns: DataMatrix  # of its transpose, one feature per row; the paper's V

    @classmethod
    def of(cls, X: Any) -> Samples:
        """Hold entries."""
        turned = np.ascontiguousarray(X.T) if isinstance(X, np.ndarray) else X.T.tocsr()
        return cls(X, as_data_matrix(X), as_data_matrix(turned))


@dataclass(frozen=True)
class Initialization:
    """Initial factors: X is about W H."""

    W: FloatArray  # coefficients; the transpose of the paper's H
    Ht: FloatArray  # the basis; the paper's W
    seconds: float  # what it took to make them


def seeded(kind: str, run: int) -> np.random.Generator:
    """Return the generator of an initialization in a run, independent of the other initializations."""
    return np.random.default_rng([run, *kind.encode()])


def make_init(
    kind: str, samples: Samples, k: int, rng: np.random.Generator, *, first: int | None = None
) -> Initialization:
    """Make one of the four initializations."""
    # cr1-nmf takes a random first point, and the mean of its positive coefficients is added to all of them,
    # because multiplicative updates would leave it where it is (Lemma 15). spkm takes k random samples as its
    # first centers, does ten passes, and has random coefficients. nndsvd keeps its zeros.
    n_samples = samples.rows.shape[0]
    if kind == "rand":
        started = time.perf_counter()
        W, Ht = uniform_init(samples.rows.shape, k, rng)
        return Initialization(W, Ht, time.perf_counter() - started)
    if kind == "cr1-nmf":
        first = int(rng.integers(n_samples)) if first is None else first
        started = time.perf_counter()
        found = cone_rank_one(samples.X, k, first=first, bounds=False)
        seconds = time.perf_counter() - started
        lengths = np.linalg.norm(found.H, axis=1)
        W, Ht = found.W * lengths, found.H.T / np.where(lengths > 0, lengths, 1.0)
        return Initialization(W + W[W > 0].mean(), Ht, seconds)
    if kind == "spkm":
        chosen = rng.permutation(n_samples)[:k]
        started = time.perf_counter()
        Ht = spherical_kmeans(
            samples.rows,
            k,
            rng=rng,
            max_passes=SPKM_PASSES,
            tol=-np.inf,
            first=unit_rows(samples.X, chosen).T,
        )
        seconds = time.perf_counter() - started
        return Initialization(rng.random((n_samples, k)), Ht, seconds)
    if kind == "nndsvd":
        started = time.perf_counter()
        W, Ht = nndsvd_init(samples.rows, k, name="nndsvd")
        return Initialization(W, Ht, time.perf_counter() - started)
    raise UnknownNameError.of("initialization", kind, INITS)


def unit_rows(X: Any, chosen: IntArray) -> FloatArray:
    """Return some samples, scaled to unit length."""
    picked: Any = X[chosen]
    rows = np.asarray(picked.toarray() if hasattr(picked, "toarray") else picked, dtype=float)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
