"""Data sets that had no part in choosing an initialization."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.signal
import scipy.sparse as sp
from sklearn.datasets import load_digits

from nonneg import datasets
from reproduction.cr1.real_sets import RealSet, load_set

TEXTS = ("tr11", "tr41", "re0", "fbis")


def _rows(loader: str, k: int) -> Callable[[], RealSet]:
    return lambda: RealSet(getattr(datasets, loader)().X, None, k)


def _digits() -> RealSet:
    return RealSet(load_digits().data, None, 16)


def _cells() -> RealSet:
    # The usual preparation: equal totals, then logarithms.
    counts = sp.csr_array(datasets.load_pbmc3k().X)
    totals = np.asarray(counts.sum(axis=1)).ravel()
    scaled = sp.csr_array(sp.diags_array(np.median(totals) / totals) @ counts)
    return RealSet(scaled.log1p(), None, 9)


def _spectrogram() -> RealSet:
    found = datasets.load_armstrong()
    sound = found.signals[0, : 30 * found.rate]
    _, _, bins = scipy.signal.stft(sound, nperseg=1024, noverlap=512)
    return RealSet(np.ascontiguousarray(np.abs(bins).T), None, 12)


OTHERS: dict[str, Callable[[], RealSet]] = {
    "digits": _digits,
    "CBCL faces": _rows("load_cbcl_faces", 49),
    "swimmer": _rows("load_swimmer", 17),
    "leukemia": _rows("load_leukemia", 5),
    "BRCA signatures": _rows("load_brca_sbs96", 8),
    "PBMC 3k": _cells,
    "Samson": _rows("load_samson", 3),
    "Moffett": _rows("load_moffett", 3),
    "spectrogram": _spectrogram,
    **{name: partial(load_set, name) for name in TEXTS},
}
"""Name -> loader. K: as many as classes, spectra or parts; 49 for CBCL, as in Lee & Seung (1999)."""
OTHER_FOLDERS = (
    "cbcl_faces",
    "swimmer",
    "leukemia_all_aml",
    "brca_sbs96_wgs",
    "pbmc3k",
    "samson",
    "moffett",
    "audio_armstrong",
    *(f"cluto_{name}" for name in TEXTS),
)
