"""Hyperspectral images, one pixel per row, in row-major order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nonneg._typing import IntArray
from nonneg.datasets.store import Home
from reproduction.data import store

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


def load_indian_pines(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the Indian Pines scene.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``indian_pines/data.npz``; None searches ``NONNEG_DATA``, then the user's
        cache, then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (21025, 200), one pixel per row.
    """
    arrays = store.read_arrays("indian_pines/data.npz", data_home)
    return _scene(
        arrays["X"],
        "Indian Pines (AVIRIS, Indiana, 1992), water absorption bands removed: 145 x 145 pixels, one pixel "
        "per row, 200 bands, sensor values from 955 to 9604 as stored. 16 land covers; pixels without one "
        "have y = -1.",
        dtype,
        y=arrays["gt"].ravel().astype(np.intp) - 1,
        names=COVERS,
    )


def load_pavia_u_crop(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return a crop of 50 x 50 pixels of the Pavia University scene.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``paviaU_sub50/data.npz``; None searches ``NONNEG_DATA``, then the user's
        cache, then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (2500, 103), one pixel per row. There are no classes, because the position of the crop in
        the scene is not stated.
    """
    return _scene(
        store.read_arrays("paviaU_sub50/data.npz", data_home)["X"],
        "A crop of Pavia University (ROSIS): 50 x 50 pixels, one pixel per row, 103 bands, sensor values as "
        "stored. The source states neither the position of the crop in the scene nor classes.",
        dtype,
    )


def load_pavia_u_classes(data_home: Home = None) -> IntArray:
    """Return the land covers of the full Pavia University scene.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``paviaU_gt/data.npz``; None searches ``NONNEG_DATA``, then the user's cache,
        then the source.

    Returns
    -------
    array of int of shape (610, 340)
        Nine covers, from 0; -1 where there is none. The spectra of the full scene are not in the store.
    """
    return store.read_arrays("paviaU_gt/data.npz", data_home)["gt"].astype(np.intp) - 1


def load_moffett(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the Moffett Field crop with its published endmembers.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``moffett/data.npz``; None searches ``NONNEG_DATA``, then the user's cache,
        then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (2500, 184), one pixel per row. `extras` has ``"endmembers"`` of shape (3, 184) and
        ``"abundances"`` of shape (2500, 3); `y` is the most abundant one.
    """
    arrays = store.read_arrays("moffett/data.npz", data_home)
    rows, columns, _ = arrays["A_img"].shape
    # Pixels are stored column after column, the abundances as an image.
    cube = arrays["Y"].T.reshape(columns, rows, -1).transpose(1, 0, 2)
    return _unmixing(
        cube,
        arrays["A_img"],
        arrays["M"].T,
        "A crop of Moffett Field (AVIRIS): 50 x 50 pixels, one pixel per row, 184 bands, reflectances as "
        "stored; three endmembers, which the source does not name, and their abundances.",
        dtype,
    )


def _scene(
    cube: Any,
    description: str,
    dtype: npt.DTypeLike,
    *,
    y: Any = None,
    names: tuple[str, ...] = (),
    extras: dict[str, Any] | None = None,
) -> store.Dataset:
    rows, columns, bands = cube.shape
    return store.Dataset(
        X=cube.reshape(-1, bands).astype(dtype),
        y=store.classes(y, rows * columns),
        names=names,
        description=description,
        sample_shape=(rows, columns),
        extras=extras or {},
    )


def _unmixing(
    cube: Any,
    abundances: Any,
    endmembers: Any,
    description: str,
    dtype: npt.DTypeLike,
    names: tuple[str, ...] = (),
) -> store.Dataset:
    shares = abundances.reshape(-1, abundances.shape[2]).astype(dtype)
    extras = {"endmembers": endmembers.astype(dtype), "abundances": shares}
    return _scene(cube, description, dtype, y=shares.argmax(axis=1), names=names, extras=extras)
