"""Majorization-equalization of the factors (Algorithm 3, with eps0 on data and model), a batch at once."""

from __future__ import annotations

from array_api_compat import array_namespace

from nonneg._typing import Array


def update_factors(
    V: Array, activations: Array, components: Array, eps0: float, n_updates: int, *, l1: float = 0.0
) -> tuple[Array, Array]:
    """Decrease I(V | activations components) by multiplicative steps with exponent 1."""
    # A step goes to where the majoriser is as high as at its beginning, so that the divergence never rises;
    # the penalty is part of the majoriser's linear term.
    xp = array_namespace(V)
    if n_updates < 1:
        return activations, components
    V = V + eps0
    floor = float(xp.finfo(V.dtype).smallest_normal)
    for _ in range(n_updates):
        other = xp.matrix_transpose(components)
        inverse = 1.0 / (activations @ components + eps0)
        ratio = V * inverse * inverse
        activations = activations * ((ratio @ other) / (inverse @ other + (l1 + floor)))
        other = xp.matrix_transpose(activations)
        inverse = 1.0 / (activations @ components + eps0)
        ratio = V * inverse * inverse
        below = other @ inverse + floor
        if l1:
            below = below + l1 * xp.sum(other, axis=2, keepdims=True)
        components = components * ((other @ ratio) / below)
        # W H does not change; a component that vanished stays as it is.
        sizes = xp.sum(components, axis=2, keepdims=True)
        safe = xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        components = components / safe
        activations = activations * xp.matrix_transpose(safe)
    return activations, components
