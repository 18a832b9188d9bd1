"""The second stage of JD+NMF: factors of the variances that a fixed transform gives (Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from array_api_compat import array_namespace

from nonneg._typing import Array, IntArray
from nonneg.transforms.options import TransformOptions
from nonneg.transforms.transform_learning import Measures, factors_and_inverse, fit_measures


@dataclass(frozen=True)
class FactorState:
    """A batch of factorizations of the same variances."""

    activations: Array  # the paper's H, transposed
    components: Array  # the paper's W, transposed; rows have l1 norm one
    lanes: IntArray  # which starts these are
    n_done: int = 0  # iterations done

    @property
    def batch(self) -> int:
        """How many there are."""
        return int(self.activations.shape[0])

    def part(self, kept: slice) -> FactorState:
        """Return some of them."""
        return replace(
            self,
            activations=self.activations[kept, ...],
            components=self.components[kept, ...],
            lanes=self.lanes[kept],
        )


def advance_factors(state: FactorState, V: Array, options: TransformOptions) -> tuple[FactorState, Measures]:
    """Make `n_nmf_updates` updates of the factors with the transform fixed."""
    xp = array_namespace(state.activations)
    V = xp.broadcast_to(V, (state.batch, *V.shape[1:]))
    activations, components, inverse = factors_and_inverse(V, state.activations, state.components, options)
    measures = fit_measures(V, inverse, activations, options)
    loss = measures["I"] if options.objective == "C" else measures["loss"]
    new = replace(state, activations=activations, components=components, n_done=state.n_done + 1)
    return new, measures | {"loss": loss}
