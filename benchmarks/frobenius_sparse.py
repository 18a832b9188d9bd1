"""Claim: on sparse text, the Frobenius loss of scikit-learn's 200 passes of `cd` is reached much sooner."""

from __future__ import annotations

from benchmarks import cases
from benchmarks.race import Bar, RaceClaim

CLAIM = RaceClaim(
    name="frobenius_sparse",
    title="Frobenius loss, sparse data: time to the loss of scikit-learn `cd` after 200 passes",
    loss="frobenius",
    cases=(cases.TEXT, cases.CELLS, cases.STORIES),
    reference="scikit-learn cd",
    passes=200,
    bars=(Bar("worst", "sparse", 5.0, 8.0),),
    others=("pyplanc anlsbpp", "pyplanc hals", "nmf-rs hals"),
)
