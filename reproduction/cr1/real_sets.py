"""The real sets at hand, each in place of one of the paper's, and the number of components for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from nonneg._typing import IntArray
from nonneg.exceptions import FileFormatError, UnknownNameError
from reproduction import data as datasets
from reproduction.data.store import DatasetNotFoundError, homes, read_archive


@dataclass(frozen=True)
class RealSet:
    """A data set, one sample per row as in `nonneg`; the paper's V is the transpose."""

    X: Any  # the entries
    y: IntArray | None  # the class of each sample
    k: int  # the number of components
    grid: tuple[int, ...] | None = None  # height and width of a sample that is a picture


PICTURES: dict[str, tuple[str, int]] = {
    "olivetti_64x64": ("load_olivetti", 40),
    "orl_32x32": ("load_orl", 40),
    "ckplus48": ("load_ck_plus", 97),
    "yaleB_32x32": ("load_yale_b", 38),
    "coil20": ("load_coil20", 20),
}
"""Folder -> loader and K: the number of people or things; for CK+, whose people are not named, that of CK."""
SCENES: dict[str, tuple[str, int]] = {
    "indian_pines": ("load_indian_pines", 16),
    "paviaU_sub50": ("load_pavia_u_crop", 9),
}
"""Folder -> loader and K: the number of covers in the scene."""
DOCUMENTS = ("tr11", "tr12", "tr23", "tr41", "re0", "fbis", "classic", "k1a", "la1")
"""Names of collections of CLUTO; K is the number of classes."""
FILMS = "orl_films"
"""The name of films made of the ORL faces."""
TIMED = ("olivetti_64x64", "ckplus48", "yaleB_32x32", "coil20", "indian_pines", "paviaU_sub50", FILMS)
"""The sets on which initializations are timed and errors compared."""
ADDED: dict[str, tuple[str, int]] = {
    "ck": ("CK", 97),
    "faces94": ("faces94", 153),
    "georgia_tech": ("Georgia Tech", 50),
    "paviaU": ("PaviaU", 9),
}
"""Sets of the paper that are not public: folder -> its name in the paper, and K.

Who has one puts ``data.npz`` into a folder of this name in the data home (``NONNEG_DATA``): `X` with one
sample per row, images (n, height, width) or, for PaviaU, the cube (height, width, bands), nonnegative; and
`y`, the class of each sample, if there are any. The tables then have its rows too.
"""
FOLDERS = (*TIMED[:-1], "orl_32x32")
"""The folders of the data home from which they come."""
N_FRAMES = 20
DIGITS = "digits"
"""The name of scikit-learn's handwritten digits, whose images may be shown."""
QUICK = "quick"
"""The name of a small made-up set, for the quick setting."""


def timed_sets() -> tuple[str, ...]:
    """Return the sets on which initializations are timed, with those that were added."""
    return (*TIMED, *(name for name in ADDED if _added_file(name) is not None))


def _added_file(name: str) -> Path | None:
    files = (home / name / "data.npz" for home in homes())
    return next((file for file in files if file.is_file()), None)


def _added(name: str) -> RealSet:
    file = _added_file(name)
    if file is None:
        raise DatasetNotFoundError(
            f"The data set {name} is not public and not on this machine: put data.npz, with X and y, into "
            f"a folder {name} of the data home."
        )
    arrays = read_archive(file)
    X = np.asarray(arrays.get("X", np.empty(0)), dtype=np.float64)
    if X.ndim not in (2, 3) or not np.isfinite(X).all() or (X < 0).any():
        raise FileFormatError(
            f"{file} must have an array X of nonnegative numbers with two or three axes, got shape {X.shape}."
        )
    y = arrays.get("y")
    if name == "paviaU":  # one sample per band, as for the other scenes
        return RealSet(np.ascontiguousarray(X.reshape(-1, X.shape[-1]).T), None, ADDED[name][1])
    grid = X.shape[1:] if X.ndim == 3 else None
    return RealSet(X.reshape(len(X), -1), None if y is None else np.asarray(y), ADDED[name][1], grid)


def load_set(name: str) -> RealSet:
    """Load a set."""
    if name in ADDED:
        return _added(name)
    if name == QUICK:
        return _made_up()
    if name == DIGITS:
        digits = load_digits()
        return RealSet(digits.data / 16.0, digits.target, 10, (8, 8))
    if name == FILMS:
        return _films()
    if name in PICTURES:
        loader, k = PICTURES[name]
        found = getattr(datasets, loader)()
        return RealSet(found.X, found.y, k, found.feature_shape)
    if name in SCENES:
        loader, k = SCENES[name]
        found = getattr(datasets, loader)()
        return RealSet(np.ascontiguousarray(found.X.T), None, k)
    if name not in DOCUMENTS:
        raise UnknownNameError.of("set", name, [*PICTURES, *SCENES, FILMS, *DOCUMENTS])
    found = datasets.load_cluto(name)
    return RealSet(weighted(found.X), found.y, len(np.unique(found.y)))


def weighted(counts: Any, *, logarithmic: bool = True, smooth: bool = False) -> Any:
    """Weight documents as the paper's programs do, and leave out words that vanish."""
    found = datasets.tfidf(counts, logarithmic=logarithmic, smooth=smooth)
    return without_empty_columns(found)


def without_empty_columns(X: Any) -> Any:
    """Leave out features that no sample has: no factorization depends on them."""
    present = np.asarray(X.sum(axis=0)).ravel() > 0
    return X.tocsc()[:, np.flatnonzero(present)].tocsr()


def _films() -> RealSet:
    """Make a film of each person in ORL: frames from one picture to another, as in the paper's CK set."""
    pictures = load_set("orl_32x32")
    assert pictures.y is not None
    rng = np.random.default_rng(7)
    frames = []
    for person in np.unique(pictures.y):
        first, second = pictures.X[np.flatnonzero(pictures.y == person)[:2]]
        share = np.linspace(0.0, 1.0, N_FRAMES)[:, None]
        brightness = rng.uniform(0.9, 1.1, size=(N_FRAMES, 1))
        frames.append(brightness * ((1 - share) * first + share * second))
    X = np.concatenate(frames)
    X += 0.02 * rng.random(X.shape)
    return RealSet(X, np.repeat(np.arange(len(frames)), N_FRAMES), pictures.k, pictures.grid)


def _made_up() -> RealSet:
    made = datasets.circular_cones(90, 64, 4, size_angle=0.15, rng=5)
    noise = 0.02 * np.random.default_rng(6).random(made.X.shape)
    return RealSet(made.X + noise, made.labels, 4, (8, 8))
