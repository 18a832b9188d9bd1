"""How far from its minimum an objective can be: the duality gap of Frank-Wolfe and its kin."""

from __future__ import annotations

import math

from nonneg.certificates.certificate import Statement, Verdict


def duality_gap_statement(objective: float, gap: float, *, tol: float = 0.0) -> Statement:
    """State that the objective is within the duality gap of its minimum."""
    if math.isnan(gap):
        return Statement(
            "duality-gap", "The duality gap was not measured.", None, None, Verdict.NOT_VERIFIABLE
        )
    share = gap / objective if objective > 0 else float("nan")
    part = f" ({100 * share:.3g}% of it)" if math.isfinite(share) else ""
    sentence = (
        f"The objective, {objective:.6g}, is at most {max(gap, 0.0):.4g}{part} above the smallest possible."
    )
    verdict = Verdict.HOLDS if tol == 0 or gap <= tol else Verdict.FAILS
    if tol > 0:
        sentence += f" A gap of {tol:.3g} was asked for."
    quantities = {"objective": objective, "lower_bound": objective - gap, "relative_gap": share}
    return Statement("duality-gap", sentence, gap, tol if tol > 0 else None, verdict, quantities)
