"""The Indian Pines scene: 145 x 145 pixels, 200 spectral bands, 16 land covers."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from nonneg.datasets import store

DESCRIPTION = (
    "Indian Pines (AVIRIS, Indiana, 1992), water absorption bands removed: 145 x 145 pixels, one pixel a "
    "row, 200 bands, sensor values from 955 to 9604 as stored. 16 land covers; pixels without one have y = "
    "-1."
)

COVERS = (
    "Alfalfa",
    "Corn-notill",
    "Corn-mintill",
    "Corn",
    "Grass-pasture",
    "Grass-trees",
    "Grass-pasture-mowed",
    "Hay-windrowed",
    "Oats",
    "Soybean-notill",
    "Soybean-mintill",
    "Soybean-clean",
    "Wheat",
    "Woods",
    "Buildings-Grass-Trees-Drives",
    "Stone-Steel-Towers",
)


def load_indian_pines(
    data_home: str | os.PathLike[str] | None = None, *, dtype: npt.DTypeLike = np.float64
) -> store.Dataset:
    """Return the Indian Pines scene from the local store.

    Parameters
    ----------
    data_home : path or None
        The folder that holds ``indian_pines/data.npz``; None asks the environment variable ``NONNEG_DATA``.
    dtype : dtype, default float64
        The type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (21025, 200), one pixel a row, in the order of the rows of the scene.
    """
    arrays = store.read_arrays("indian_pines/data.npz", data_home)
    scene = arrays["X"]
    return store.Dataset(
        X=scene.reshape(-1, scene.shape[2]).astype(dtype),
        y=arrays["gt"].ravel().astype(np.intp) - 1,
        names=COVERS,
        description=DESCRIPTION,
        sample_shape=(scene.shape[0], scene.shape[1]),
    )
