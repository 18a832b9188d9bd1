"""Claim: on dense data, the Frobenius loss of scikit-learn's 200 passes of `cd` is reached much sooner."""

from __future__ import annotations

from benchmarks import cases
from benchmarks.race import Bar, RaceClaim

CLAIM = RaceClaim(
    name="frobenius_dense",
    title="Frobenius loss, dense data: time to the loss of scikit-learn `cd` after 200 passes",
    loss="frobenius",
    cases=(
        cases.DIGITS,
        cases.FACES,
        cases.SCENE,
        cases.CBCL,
        cases.OBJECTS,
        cases.MUTATIONS,
        cases.LOW_RANK,
        cases.CONES,
    ),
    reference="scikit-learn cd",
    passes=200,
    bars=(Bar("median", "dense", 6.0, 10.0, 5.0), Bar("worst", "dense", 3.0, 4.0, 2.5)),
    others=("pyplanc anlsbpp", "pyplanc hals", "nmf-rs hals", "nmf-rs ehals"),
)
