"""The Olivetti faces: 400 pictures of 40 people, 64 x 64 pixels."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from nonneg.datasets import store

DESCRIPTION = (
    "Olivetti faces (AT&T Laboratories Cambridge): 400 pictures of 40 people, 64 x 64 pixels, one picture a "
    "row, grey values divided by 255. The source stores no labels: ten consecutive pictures show one person."
)


def load_olivetti(
    data_home: str | os.PathLike[str] | None = None, *, dtype: npt.DTypeLike = np.float64
) -> store.Dataset:
    """Return the Olivetti faces from the local store.

    Parameters
    ----------
    data_home : path or None
        The folder that holds ``olivetti_64x64/data.npz``; None asks the environment variable ``NONNEG_DATA``.
    dtype : dtype, default float64
        The type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (400, 4096) in [0, 1]; ``X[i].reshape(64, 64)`` is an upright picture. `y` is the person.
    """
    arrays = store.read_arrays("olivetti_64x64/data.npz", data_home)
    # The pixels are stored column after column.
    upright = arrays["X"].reshape(-1, 64, 64).transpose(0, 2, 1).reshape(-1, 64 * 64)
    return store.Dataset(
        X=upright.astype(dtype) / np.asarray(255, dtype=dtype),
        y=arrays["y"].astype(np.intp),
        names=tuple(f"person {number}" for number in range(40)),
        description=DESCRIPTION,
        feature_shape=(64, 64),
    )
