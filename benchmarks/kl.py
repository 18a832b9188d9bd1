"""Claim: the Kullback-Leibler loss of scikit-learn's 100 passes of `mu` is reached sooner."""

from __future__ import annotations

from benchmarks import cases
from benchmarks.race import Bar, RaceClaim
from benchmarks.update_rules import RULES

CLAIM = RaceClaim(
    name="kl",
    title="Kullback-Leibler loss: time to the loss of scikit-learn `mu` after 100 passes",
    loss="kullback-leibler",
    cases=(cases.COUNTS, cases.TALL_COUNTS, cases.DIGITS, cases.TEXT_COUNTS),
    reference="scikit-learn mu",
    passes=100,
    bars=(Bar("worst", "dense", 1.8, 3.0), Bar("worst", "sparse", 12.0, 25.0)),
    others=("nmf-rs brunet", *RULES),
)
