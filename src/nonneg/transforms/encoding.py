"""Frames and a learned model: averages over neighbors, variances of coefficients, activations, likelihood."""

from __future__ import annotations

import math

import numpy as np
from array_api_compat import array_namespace

from nonneg._typing import Array
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidParameterError
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode_beta
from nonneg.transforms.covariances import check_unit

# eps0="auto", in units of the mean variance of a coefficient. Sounds lie in few atoms, each far above the
# mean; with a smaller share faint atoms count as much as loud ones, and more restarts end in worse minima.
AUTOMATIC_EPS0 = 0.1


def automatic_eps0(Y: Array) -> float:
    """Return the offset that "auto" stands for: a tenth of the mean square of the frames."""
    xp = array_namespace(Y)
    if (largest := float(xp.max(xp.abs(Y)))) > 0:
        check_unit(largest, str(Y.dtype), "The largest sample")
    return AUTOMATIC_EPS0 * float(xp.mean(xp.square(Y)))


def averaged_frames(Y: Array, width: int) -> Array:
    """Make realizations of a frame from its neighbors, for variances that change slowly."""
    if width == 1:
        return Y
    n_frames = int(Y.shape[1])
    if width > n_frames:
        raise InvalidParameterError(
            f"average_frames={width} is more than the number of frames {n_frames}. Use fewer."
        )
    first = np.clip(np.arange(n_frames) - (width - 1) // 2, 0, n_frames - width)
    return array_namespace(Y).concat([Y[:, first + shift, :] for shift in range(width)], axis=0)


def coefficient_variances(Y: Array, transform: Array) -> Array:
    """Return the mean square of every coefficient over the realizations."""
    xp = array_namespace(Y)
    total = None
    # One realization at a time: no array with all coefficients.
    for realization in range(int(Y.shape[0])):
        squares = xp.square(Y[realization] @ transform.T)
        total = squares if total is None else total + squares
    return total / Y.shape[0]


def encode(V: Array, components: Array, eps0: float) -> Array:
    """Return the activations of variances, each frame on its own."""
    # Variances are divided by squares of variances, which vanish or overflow in some units.
    unit, own = (_power_of_two(part) for part in (V, components))
    data = as_data_matrix(V / unit)
    W = encode_beta(data, components.T / own, beta=0.0, penalties=Penalties(), offset=eps0 / unit)
    return W * (unit / own)


def _power_of_two(values: Array) -> float:
    """Return a unit in which no value is above one, and that adds no rounding."""
    largest = float(array_namespace(values).max(values))
    # Down to the smallest number by which all others can be divided.
    return 2.0 ** max(math.frexp(largest)[1], -1000) if 0 < largest < math.inf else 1.0


def mean_objectives(V: Array, activations: Array, components: Array, eps0: float) -> Array:
    """Return the mean of C over the coefficients of every frame."""
    model = activations @ components + eps0
    xp = array_namespace(model)
    return xp.mean((V + eps0) / model + xp.log(model), axis=1)
