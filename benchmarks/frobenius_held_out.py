"""Claim: the same speed on dense data that had no part in the choice of any constant, of no look-alikes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reproduction import data as datasets

from benchmarks.cases import Case
from benchmarks.race import Bar, RaceClaim


def _real(load: Callable[..., Any], source: str) -> Callable[[Any], tuple[Any, str]]:
    return lambda dtype: (load(dtype=dtype).X, f"real ({source})")


CLAIM = RaceClaim(
    name="frobenius_held_out",
    title="Frobenius loss, data held out: time to the loss of scikit-learn `cd` after 200 passes",
    loss="frobenius",
    # As many components as the data have people, expressions, classes of ground or endmembers.
    cases=(
        Case("faces 2414x1024 k=38", "dense", 38, _real(datasets.load_yale_b, "Extended Yale B")),
        Case("faces 400x1024 k=40", "dense", 40, _real(datasets.load_orl, "ORL faces")),
        Case("expressions 981x2304 k=7", "dense", 7, _real(datasets.load_ck_plus, "CK+")),
        Case("scene 2500x103 k=9", "dense", 9, _real(datasets.load_pavia_u_crop, "Pavia University, a crop")),
        Case("scene 2500x184 k=3", "dense", 3, _real(datasets.load_moffett, "Moffett Field, a crop")),
    ),
    reference="scikit-learn cd",
    passes=200,
    bars=(Bar("median", "dense", 13.0, 15.0, 8.0), Bar("worst", "dense", 10.0, 12.0, 5.0)),
)
