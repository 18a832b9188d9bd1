"""What can be said about the mixtures in an image."""

from __future__ import annotations

import math

import numpy as np

from nonneg.applications.hyperspectral.abundances import NEAR_ONE, Mixtures
from nonneg.certificates.certificate import Statement, Verdict

PURE, VOLUME, BOTH, EDGES = (
    "pure pixels",
    "minimum volume",
    "pure pixels and minimum volume",
    "pure pixels and edges",
)
HOW = {
    PURE: "averages of nearly pure pixels",
    VOLUME: "the smallest simplex around the pixels",
    BOTH: "nearly pure pixels and the smallest simplex, averaged",
    EDGES: "nearly pure pixels and the facets where pixels thin out, averaged",
}
BOUND_FACTOR = 2.0
ENOUGH_PIXELS = 0.5


def image_statements(mixtures: Mixtures, n_endmembers: int, constraint: str) -> list[Statement]:
    """State how well linear mixtures explain an image."""
    error = math.sqrt(mixtures.squared_residual / mixtures.squared_norm)
    energies = np.clip(np.linalg.eigvalsh(mixtures.gram)[::-1], 0.0, None)
    # Products of bands carry half the digits: each eigenvalue may be wrong by rounding of the largest one.
    rounding = 4.0 * n_endmembers * math.sqrt(len(energies)) * float(np.finfo(np.float64).eps)
    rest = float(energies[n_endmembers:].sum()) / mixtures.squared_norm
    bound = math.sqrt(max(rest - rounding, 0.0))
    facts = {"relative_error": error, "lower_bound": bound, "n_pixels": mixtures.n_pixels}
    ratio = error / bound if bound > 1e-7 else None
    word = "spectrum" if n_endmembers == 1 else "spectra"
    if ratio is None:
        sentence = (
            f"The mixtures leave {100 * error:.3g}% of the image (in norm); {n_endmembers} {word} can "
            "explain all of it up to rounding."
        )
        verdict = Verdict.HOLDS if error < 1e-6 else Verdict.NOT_VERIFIABLE
    else:
        sentence = (
            f"The mixtures leave {100 * error:.3g}% of the image (in norm), {ratio:.3g} "
            f"times what any {n_endmembers} {word} must leave ({100 * bound:.3g}%)."
        )
        verdict = Verdict.HOLDS if ratio <= BOUND_FACTOR else Verdict.FAILS
    found = [Statement("eckart-young-bound", sentence, ratio, BOUND_FACTOR, verdict, facts)]
    if constraint == "sum-to-one":
        share = mixtures.n_near_one / mixtures.n_pixels
        near = (
            f"For {100 * share:.3g}% of the pixels nonnegative weights sum to between {1 - NEAR_ONE:g} and "
            f"{1 + NEAR_ONE:g} without the constraint; where they do not, the brightness differs from "
            "that of the pure pixels, which constraint='normalized' allows for."
        )
        holds = Verdict.HOLDS if share >= ENOUGH_PIXELS else Verdict.FAILS
        quantities = {"n_pixels": mixtures.n_near_one}
        found.append(Statement("sum-to-one", near, share, ENOUGH_PIXELS, holds, quantities))
    return found


def pure_statement(misfit: float, excess: float, limit: float, how: str) -> Statement:
    """State whether there are pure pixels, by what their mixtures leave."""
    sentence = (
        f"Mixtures of the purest pixels leave {misfit:.3g} noise deviations per facet, {excess:.3g} times "
        f"what pure ones would leave (limit {limit:g}). The endmembers are those of {HOW[how]}."
    )
    verdict = Verdict.HOLDS if excess <= limit else Verdict.FAILS
    return Statement("pure-pixels", sentence, excess, limit, verdict)
