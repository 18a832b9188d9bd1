"""Claim: the Itakura-Saito loss of scikit-learn's 100 passes of `mu` is reached several times faster."""

from __future__ import annotations

from benchmarks import cases
from benchmarks.race import Bar, RaceClaim

CLAIM = RaceClaim(
    name="itakura_saito",
    title="Itakura-Saito loss, dense positive data: time to the loss of scikit-learn `mu` after 100 passes",
    loss="itakura-saito",
    cases=(cases.POSITIVE,),
    reference="scikit-learn mu",
    passes=100,
    bars=(Bar("worst", "dense", 3.0, 5.0),),
)
