"""The Gaussian composite model: frames that a hidden transform turns into independent Gaussian variables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.fft

from nonneg._random import Seed, generator
from nonneg._typing import FloatArray
from nonneg.exceptions import InvalidParameterError


@dataclass(frozen=True)
class GaussianCompositeData:
    """Realizations of frames with the transform and the variances behind them.

    Attributes
    ----------
    Y : array of shape (n_realizations, n_frames, frame_length)
        One frame per row.
    transform : array of shape (frame_length, frame_length)
        The true orthogonal transform, one atom per row.
    W : array of shape (n_frames, n_components)
        The true activations: the paper's H, transposed.
    H : array of shape (n_components, frame_length)
        The true components, rows of sum 1: the paper's W, transposed.
    """

    Y: FloatArray
    transform: FloatArray
    W: FloatArray
    H: FloatArray


@dataclass(frozen=True)
class GaussianCompositeModel:
    """A distribution of frames from which any number of realizations can be drawn.

    Attributes
    ----------
    transform : array of shape (frame_length, frame_length)
        The true orthogonal transform.
    W : array of shape (n_frames, n_components)
        The true activations.
    H : array of shape (n_components, frame_length)
        The true components.
    """

    transform: FloatArray
    W: FloatArray
    H: FloatArray

    @property
    def variances(self) -> FloatArray:
        """Variances of the transformed frames, W H."""
        return self.W @ self.H

    def draw(
        self, n_realizations: int = 1, rng: Seed = None, dtype: npt.DTypeLike = np.float64
    ) -> GaussianCompositeData:
        """Draw independent realizations of all frames."""
        if n_realizations < 1:
            raise InvalidParameterError(f"n_realizations must be at least 1, got {n_realizations}.")
        scales = np.sqrt(self.variances)
        transformed = generator(rng).normal(size=(n_realizations, *scales.shape)) * scales
        # A frame y with transform @ y given: as rows, the inverse of an orthogonal matrix is the matrix.
        Y = transformed @ self.transform
        return GaussianCompositeData(*(array.astype(dtype) for array in (Y, self.transform, self.W, self.H)))


def gaussian_composite_model(
    n_frames: int = 50,
    frame_length: int = 10,
    n_components: int = 5,
    *,
    shape: float = 1.0,
    scale: float = 2.0,
    transform: FloatArray | None = None,
    rng: Seed = None,
) -> GaussianCompositeModel:
    """Return a model whose factors have Gamma(shape, scale) entries (section V-A of the paper).

    The transform is the type-II DCT by default. Components sum to 1 and activations carry the scale.
    """
    if min(n_frames, frame_length, n_components) < 1:
        raise InvalidParameterError(
            "n_frames, frame_length and n_components must be at least 1, got "
            f"{n_frames}, {frame_length} and {n_components}."
        )
    rng = generator(rng)
    H = rng.gamma(shape, scale, size=(n_components, frame_length))
    W = rng.gamma(shape, scale, size=(n_frames, n_components))
    sums = H.sum(axis=1)
    if transform is None:
        transform = scipy.fft.dct(np.eye(frame_length), type=2, norm="ortho", axis=0)
    return GaussianCompositeModel(np.array(transform, dtype=np.float64), W * sums, H / sums[:, None])


def gaussian_composite(
    n_realizations: int = 1,
    n_frames: int = 50,
    frame_length: int = 10,
    n_components: int = 5,
    *,
    shape: float = 1.0,
    scale: float = 2.0,
    transform: FloatArray | None = None,
    rng: Seed = None,
) -> GaussianCompositeData:
    """Draw realizations of a new Gaussian composite model; see `gaussian_composite_model`."""
    rng = generator(rng)
    model = gaussian_composite_model(
        n_frames, frame_length, n_components, shape=shape, scale=scale, transform=transform, rng=rng
    )
    return model.draw(n_realizations, rng)
