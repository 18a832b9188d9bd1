"""Claim: scikit-learn's other solver, `mu`, is left further behind than `cd` (its own loss is the target)."""

from __future__ import annotations

from benchmarks import cases
from benchmarks.race import RaceClaim

CLAIM = RaceClaim(
    name="frobenius_mu",
    title="Frobenius loss: time to the loss of scikit-learn `mu` after 100 passes",
    loss="frobenius",
    cases=(cases.DIGITS, cases.FACES, cases.LOW_RANK, cases.TEXT),
    reference="scikit-learn mu",
    passes=100,
    bars=(),
    others=("nmf-rs lee",),
)
