"""Simulated recordings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nonneg.datasets.store import Home
from nonneg.exceptions import UnknownNameError
from reproduction.data import store


def load_nonstationary440(
    data_home: Home = None, *, simulation: int = 1, dtype: npt.DTypeLike = np.float64
) -> store.Recording:
    """Return simulated mixtures of two sources around 440 Hz.

    Parameters
    ----------
    data_home : path or None
        The folder that contains ``audio_nonstationary440/sim1.npz`` and the others; None searches
        ``NONNEG_DATA``, then the user's cache, then the source.
    simulation : {1, 2, 3, 4, 5}, default 1
        The simulation.
    dtype : dtype, default float64
        Data type of the entries, float32 or float64.

    Returns
    -------
    Recording
        `signals` of shape (10, 15000), ten realizations; `sources` of shape (2, 10, 15000), whose sum they
        are.
    """
    if simulation not in range(1, 6):
        raise UnknownNameError.of("simulation", simulation, "12345")
    arrays = store.read_arrays(f"audio_nonstationary440/sim{simulation}.npz", data_home)
    return store.Recording(
        signals=arrays["ys"].astype(dtype),
        rate=int(arrays["fs"].item()),
        sources=np.stack([arrays["ys1"], arrays["ys2"]]).astype(dtype),
        description=(
            f"Simulated mixtures of two non-stationary sources around 440 Hz, simulation {simulation}."
        ),
    )
