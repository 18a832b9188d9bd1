"""Largest cosines to centroids from products, for arrays of any namespace."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def update_cosines(products: Any, inverse_norms: Any, nearest: Any) -> Any:
    """Return the largest cosines, in float64, from products of the rows with the new centroids."""
    xp = array_namespace(products)
    cosines = xp.astype(xp.max(products, axis=1, keepdims=True) * inverse_norms, xp.float64)
    return xp.where(cosines > nearest, cosines, nearest)


def nearest_centroids(products: Any, inverse_norms: Any) -> tuple[Any, Any]:
    """Return labels and cosines from the products of the rows with all centroids."""
    xp = array_namespace(products)
    labels = xp.astype(xp.argmax(products, axis=1), xp.int64)[:, None]
    labels = xp.where(inverse_norms > 0, labels, -xp.ones_like(labels))
    return labels, xp.max(products, axis=1, keepdims=True) * inverse_norms
