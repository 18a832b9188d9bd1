"""Claim: on dense data, the Frobenius loss of scikit-learn's 200 passes of `cd` is reached much sooner."""

from __future__ import annotations

from benchmarks import cases
from benchmarks.race import Bar, RaceClaim

CLAIM = RaceClaim(
    name="frobenius_dense",
    title="Frobenius loss, dense data: time to the loss of scikit-learn `cd` after 200 passes",
    loss="frobenius",
    cases=(cases.DIGITS, cases.FACES, cases.SCENE, cases.LOW_RANK, cases.CONES),
    reference="scikit-learn cd",
    passes=200,
    bars=(Bar("median", "dense", 3.5, 5.0), Bar("worst", "dense", 1.5, 3.0)),
    others=("pyplanc anlsbpp", "pyplanc hals", "nmf-rs hals", "nmf-rs ehals"),
)
