"""The inverse square root of matrices as a sum of inverses."""

from __future__ import annotations

import math

import numpy as np

from nonneg._typing import FloatArray

# Where eigenvalues differ more, the nodes lose digits that matter.
LARGEST_RATIO = 1e8


def inverse_root_nodes(largest: float, enough: float) -> tuple[FloatArray, FloatArray]:
    """Return shifts s and scales c with A^(-1/2) = sum_j c_j (A + s_j I)^-1."""
    # The trapezoidal rule after a change of variables by elliptic functions: method 3 of Hale, Higham &
    # Trefethen (2008), Computing A^alpha, log(A), and related matrix functions by contour integrals.
    from scipy.special import ellipj, ellipk, ellipkm1

    # A hair above 1, where the elliptic functions are those of the circle.
    small = 1.0 / max(largest, 1.0 + 1e-12)
    period = float(ellipkm1(small))
    n = math.ceil(-math.log(enough) * period / (2.0 * math.pi * float(ellipk(small))))
    # The second half of the nodes follows from the first, where no digits are lost.
    half = (n + 1) // 2
    sine, cosine, delta, _ = ellipj((np.arange(half) + 0.5) * period / n, 1.0 - small)
    shifts = (sine / cosine) ** 2
    scales = 2.0 * period / (math.pi * n) * delta / cosine**2
    kept = n - half
    mirrored = 1.0 / (small * shifts[:kept])
    return (
        np.concatenate([shifts, mirrored]),
        np.concatenate([scales, scales[:kept] * mirrored * math.sqrt(small)]),
    )
