"""Anchors and their midpoints: the adversarial setting of the MERIT paper."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nonneg._random import Seed, generator
from nonneg.datasets.dataset import check_numbers
from nonneg.datasets.separable import SeparableData


def middle_points(
    n_features: int = 50,
    n_components: int = 10,
    *,
    snr: float | None = None,
    rng: Seed = None,
    dtype: npt.DTypeLike = np.float64,
) -> SeparableData:
    """Return K anchors and the K (K - 1) / 2 midpoints of all pairs, which the noise pushes outward.

    The setting of figures 2 and 3 of the MERIT paper and of section 4.1 of Gillis & Luce (2018). Anchors have
    uniform entries scaled to sum to one. The noise is not random: every midpoint moves away from the mean
    of the anchors, in proportion to its distance from it, and the anchors stay clean.
    """
    check_numbers(middle_points, locals())
    rng = generator(rng)
    H = rng.random((n_components, n_features))
    H /= H.sum(axis=1, keepdims=True)
    first, second = np.triu_indices(n_components, k=1)
    n_samples = n_components + len(first)
    W = np.zeros((n_samples, n_components))
    W[:n_components] = np.eye(n_components)
    middle = np.arange(n_components, n_samples)
    W[middle, first] = W[middle, second] = 0.5
    clean = W @ H
    noise = np.zeros_like(clean)
    if snr is not None and len(first):
        outward = clean[n_components:] - H.mean(axis=0)
        size = np.linalg.norm(clean) / 10.0 ** (snr / 20.0)
        noise[n_components:] = outward * (size / np.linalg.norm(outward))
    order = rng.permutation(n_samples)
    X = (clean + noise)[order]
    anchors = np.argsort(order)[:n_components].astype(np.intp)
    return SeparableData(X.astype(dtype), H.astype(dtype), W[order].astype(dtype), anchors)
