"""Majorization-equalization for any array library, a batch at once."""

from __future__ import annotations

from array_api_compat import array_namespace

from nonneg._typing import Array


def update_factors(
    V: Array, eps0: float, activations: Array, components: Array, n_updates: int, l1: float = 0.0
) -> tuple[Array, Array, Array]:
    """Update the factors, and return the inverse of their model."""
    # A step goes to where the majorizer is as high as at its beginning, so that the divergence never rises;
    # the penalty is part of the majorizer's linear term.
    xp = array_namespace(V)
    data = V + eps0
    floor = float(xp.finfo(data.dtype).smallest_normal)
    for _ in range(n_updates):
        other = xp.matrix_transpose(components)
        inverse = 1.0 / (activations @ components + eps0)
        ratio = data * inverse * inverse
        activations = activations * ((ratio @ other) / (inverse @ other + (l1 + floor)))
        other = xp.matrix_transpose(activations)
        inverse = 1.0 / (activations @ components + eps0)
        ratio = data * inverse * inverse
        below = other @ inverse + floor
        if l1:
            below = below + l1 * xp.sum(other, axis=2, keepdims=True)
        components = components * ((other @ ratio) / below)
        # W H does not change; a component that vanished stays as it is.
        sizes = xp.sum(components, axis=2, keepdims=True)
        safe = xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        components = components / safe
        activations = activations * xp.matrix_transpose(safe)
    return activations, components, 1.0 / (activations @ components + eps0)
