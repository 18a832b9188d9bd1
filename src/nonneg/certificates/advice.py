"""Severity of a statement that fails and advice to the user, in the user's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Advice(NamedTuple):
    """Remedy for a statement that fails; a headline where the result should not be used as it is."""

    todo: str
    headline: str = ""


NOT_CONVERGED = "The fit has not converged."

# Statements without a headline are cautions: the answer may be good all the same, and often nothing is wrong.
ADVICE = {
    # Convergence. A tolerance that was asked for and met is a caution at most.
    "stationarity": Advice("Lower tol or raise max_iter where precision matters."),
    "skew-gradient": Advice("Raise max_iter, or lower tol.", NOT_CONVERGED),
    "restarts-converged": Advice("Raise max_iter if components differ between restarts."),
    "eigenvectors": Advice(
        "Use fewer communities, or a connected graph.", "The eigenvectors are inaccurate."
    ),
    "orthogonality": Advice("Use float64 data.", "The transform is not orthogonal."),
    "descent": Advice("Use float64 data, or report this as a bug.", "The objective increased."),
    "decomposition": Advice("Use float64 data."),
    # Errors beside a bound: nothing need be wrong.
    "eckart-young-bound": Advice("If the error matters, use more components or restarts: n_init."),
    "consensus-error": Advice("Use another number of components, or a stricter density_threshold."),
    "cluster-bound": Advice("Use float64 data: the bound holds for any clustering, up to rounding."),
    "largest-angle-bound": Advice("Use float64 data: the bound holds for any clustering, up to rounding."),
    # Assumptions of methods with guarantees.
    "geometric-assumption": Advice("Use n_init=10, or NMF with init='cr1' where samples are mixtures."),
    "exact-clustering-bound": Advice("Nothing to do: the bound needs well-separated cones."),
    "cones-in-orthant": Advice("Nothing to do: some cones reach beyond nonnegative data."),
    "sufficiently-scattered": Advice("Use fewer components or purer samples: others may fit as well."),
    "noise-fit": Advice("Set noise or lam if you know the noise level, or use more components."),
    "anchor-margin": Advice("Use method='auto', or merge near-duplicates with merge=0.001."),
    "conditioning": Advice("Ask for fewer anchors: one is a mixture of the others."),
    "isolated-samples": Advice("Look at these samples: they are corrupt, or a component of their own."),
    "number-of-anchors": Advice("Set n_components, and compare the results for nearby numbers."),
    "warm-start": Advice("Use another init, or pass your own features."),
    "decode-consistency": Advice("Use NMF if the features look wrong: the noise hides the weights."),
    "mixing-on-halves": Advice("Use more samples: two halves of them do not agree on the features."),
    "weight-moments": Advice("Use balance=True of purify: some features are much rarer or weaker."),
    "weight-correlation": Advice("Compare with NMF: correlated weights look like mixed features."),
    "noise-level": Advice("Compare with NMF: the noise hides the weights."),
    "balancing": Advice("Compare with balance=False."),
    "explained": Advice("Compare with NMF: the iterations moved the features away from the data."),
    "gaussian-bound": Advice("Use method='tl', or more realizations."),
    "factored-covariances": Advice("Use float64 data."),
    "ratio-condition": Advice("Compare with method='cross-validation'."),
    # Applications.
    "topics-differ": Advice("Use fewer topics, or merge the two."),
    "topics-supported": Advice("Raise min_df to 5 or 10 (rare words make such topics), or merge them."),
    "documents-covered": Advice("Leave them out, or lower min_df if they are many."),
    "anchors-exclusive": Advice("Use method='nmf', or choose other anchor words."),
    "seeds-in-their-topics": Advice("Choose seed words that occur in the same documents."),
    "column-balance": Advice("Use scale='max', or leave some columns out."),
    "stability": Advice("Do not interpret components that are not stable, or use another number of them."),
    "number-of-communities": Advice("Compare with the other numbers."),
    "reached-nodes": Advice("Fit small connected components on their own if they matter."),
    "inside-cone": Advice("Use method='nmf' if few nodes belong to one community alone."),
    "pure-pixels": Advice("Compare with method='min-volume', which needs no pure pixels, and another k."),
    "endmember-brightness": Advice("Use fewer endmembers, or leave the pixels of that endmember out (mask)."),
}
INFEASIBLE = Advice("Do not use them; check what wrote to them.", "The factors are not nonnegative.")
# How a run ended: by itself, or early on purpose, which it says among the quantities of the statement.
ENDED = {
    "max_iter": Advice("Raise max_iter.", NOT_CONVERGED),
    "stalled": Advice("Use another solver or init: no step of this one lowers the loss any further."),
    "cones": Advice("Nothing to do: cones are not iterated. NMF with init='cr1' continues from them."),
    "separation": Advice("Nothing to do: masks hardly depend on small changes of single components."),
}

# Numbers for readers of the papers: printed on request, or if one of them fails and there is something to do.
DETAILS = frozenset({
    "size-angles", "cluster-bound", "largest-angle-bound", "cones-in-orthant", "expected-error",
    "limiting-error", "streamed-radius", "anchor-margin", "conditioning", "support", "largest-residual",
    "eigenvectors", "orthogonality", "descent", "decomposition", "factored-covariances", "gaussian-bound",
    "distance-from-joint-fit", "decode-consistency", "mixing-on-halves", "weight-moments", "noise-level",
    "weight-correlation",
})  # fmt: skip
# A theorem that applies is worth a line; one that does not says nothing about the answer.
THEOREMS = frozenset({"exact-clustering-bound", "recovery-bound", "lemma-1", "theorem-3"})


def advice_for(name: str, quantities: Mapping[str, Any]) -> Advice:
    """Return what to do if the statement of this name fails."""
    if quantities.get("n_infeasible"):
        return INFEASIBLE
    ends = [ENDED[end] for key in ("ended_by", "by_design") if (end := quantities.get(key)) in ENDED]
    return ends[0] if ends else ADVICE.get(name, Advice(""))
