"""Images of faces and objects, one image per row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nonneg.datasets.store import Home
from reproduction.data import store


def load_olivetti(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the Olivetti faces.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``olivetti_64x64/data.npz``; None searches ``NONNEG_DATA``, then the user's
        cache, then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (400, 4096) in [0, 1]; ``X[i].reshape(64, 64)`` is an upright image. `y` is the person.
    """
    return _faces(
        "olivetti_64x64",
        (64, 64),
        "Olivetti faces (AT&T Laboratories Cambridge): 400 images of 40 people, 64 x 64 pixels, one "
        "image per row, gray values divided by 255. The source stores no labels: ten consecutive images "
        "show one person.",
        data_home,
        dtype,
        names=_numbered("person", 40),
    )


def load_orl(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the ORL faces: the Olivetti faces, cropped to 32 x 32 pixels.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``orl_32x32/data.npz``; None searches ``NONNEG_DATA``, then the user's cache,
        then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (400, 1024) in [0, 1]; ``X[i].reshape(32, 32)`` is an upright image. `y` is the person.
    """
    return _faces(
        "orl_32x32",
        (32, 32),
        "ORL faces (AT&T Laboratories Cambridge, the Olivetti faces in Deng Cai's preparation): 400 images "
        "of 40 people, cropped to 32 x 32 pixels, one image per row, gray values divided by 255.",
        data_home,
        dtype,
        names=_numbered("person", 40),
    )


def load_yale_b(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the Extended Yale B faces.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``yaleB_32x32/data.npz``; None searches ``NONNEG_DATA``, then the user's
        cache, then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (2414, 1024) in [0, 1]; ``X[i].reshape(32, 32)`` is an upright image. `y` is the
        person.
    """
    return _faces(
        "yaleB_32x32",
        (32, 32),
        "Extended Yale B (Deng Cai's preparation): 2414 images of 38 people under many lighting "
        "directions, 32 x 32 pixels, one image per row, gray values divided by 255.",
        data_home,
        dtype,
        names=_numbered("person", 38),
    )


def load_coil20(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the COIL-20 objects.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``coil20/data.npz``; None searches ``NONNEG_DATA``, then the user's cache,
        then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (1440, 1024) in [0, 1]; ``X[i].reshape(32, 32)`` is an upright image. `y` is the
        object.
    """
    return _faces(
        "coil20",
        (32, 32),
        "COIL-20 (Columbia University): 20 objects on a turntable, 72 images each, 32 x 32 pixels, one "
        "image per row, gray values divided by 255.",
        data_home,
        dtype,
        names=_numbered("object", 20),
    )


def load_ck_plus(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the CK+ expressions.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``ckplus48/data.npz``; None searches ``NONNEG_DATA``, then the user's cache,
        then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (981, 2304) in [0, 1]; ``X[i].reshape(48, 48)`` is an upright image. `y` is the
        expression, not the person.
    """
    return _faces(
        "ckplus48",
        (48, 48),
        "Extended Cohn-Kanade expressions (CK+): 981 images, 48 x 48 pixels, one image per row, gray "
        "values divided by 255. The source names seven expressions by number; the words follow from their "
        "counts.",
        data_home,
        dtype,
        names=("anger", "disgust", "fear", "happy", "sadness", "surprise", "contempt"),
        columns_first=False,
    )


def load_cbcl_faces(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the CBCL faces, from which Lee and Seung learned parts.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``cbcl_faces/data.npz``; None searches ``NONNEG_DATA``, then the user's
        cache, then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (2429, 361) in (0, 1]; ``X[i].reshape(19, 19)`` is an upright image. There are no
        classes.
    """
    return _faces(
        "cbcl_faces",
        (19, 19),
        "CBCL faces (MIT Center for Biological and Computational Learning): 2429 faces, 19 x 19 pixels, "
        "one image per row, gray values in 256ths as stored. No classes.",
        data_home,
        dtype,
        largest=1,
    )


def load_swimmer(data_home: Home = None, *, dtype: npt.DTypeLike = np.float64) -> store.Dataset:
    """Return the noisy swimmers.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``swimmer/data.npz``; None searches ``NONNEG_DATA``, then the user's cache,
        then the source.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Dataset
        `X` of shape (256, 1024), integers from 0 to 24; ``X[i].reshape(32, 32)`` is an upright image.
        There are no classes: an image is a torso and four limbs in one of four positions each.
    """
    return _faces(
        "swimmer",
        (32, 32),
        "Swimmer (Donoho and Stodden, 2004; the noisy copy of T-ELF): 256 images of a torso and four "
        "limbs in four positions each, 32 x 32 pixels, one image per row, values from 0 to 24 as stored. "
        "No classes.",
        data_home,
        dtype,
        largest=1,
        pictures_first=False,
    )


def _faces(
    folder: str,
    shape: tuple[int, int],
    description: str,
    home: Home,
    dtype: npt.DTypeLike,
    *,
    names: tuple[str, ...] = (),
    largest: int = 255,
    columns_first: bool = True,
    pictures_first: bool = True,
) -> store.Dataset:
    arrays = store.read_arrays(f"{folder}/data.npz", home)
    pixels = arrays["X"] if pictures_first else arrays["X"].T
    images = pixels.reshape(-1, *shape)
    if columns_first:
        # The pixels are stored column after column; all these images are square.
        images = images.transpose(0, 2, 1)
    entries: Any = images.reshape(-1, shape[0] * shape[1]).astype(dtype)
    if largest != 1:
        entries = entries / np.asarray(largest, dtype=dtype)
    return store.Dataset(
        X=entries,
        y=store.classes(arrays.get("y"), len(entries)),
        names=names,
        description=description,
        feature_shape=shape,
    )


def _numbered(word: str, count: int) -> tuple[str, ...]:
    return tuple(f"{word} {number}" for number in range(count))
