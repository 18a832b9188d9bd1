"""Purification and NMF from the same initialization, on data whose parts are known."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nonneg import select_anchors
from nonneg._typing import FloatArray
from nonneg.data import as_data_matrix
from nonneg.metrics import match_components
from nonneg.purification import purify
from nonneg.purification.initialization import initial_features
from nonneg.solvers import factorize
from reproduction.artifacts import Measured, Table, Verdict
from reproduction.grouping import grouped, mean_and_spread
from reproduction.purification.planted_runs import short

METHODS = {
    "start": "the common initialization",
    "purification": "purification",
    "nmf": "NMF, Frobenius",
    "nmf-kl": "NMF, Kullback-Leibler",
}
FOUND = 0.9
"""A part counts as found where the cosine with its partner is at least this."""
NMF_ITERATIONS, NMF_TOL = 500, 1e-6


def found_parts(
    X: FloatArray, n: int, *, init: str = "nmf", seed: int = 0, kl: bool = True
) -> dict[str, tuple[FloatArray, dict[str, Any]]]:
    """Find parts by purification and by NMF from one initialization."""
    init_H = initial_features(
        as_data_matrix(X), n, init, seed, lambda points, k: select_anchors(points, k, method="spa").anchors
    )
    began = time.perf_counter()
    result = purify(X, init_H, check_init="report")
    taken = time.perf_counter() - began
    facts = {"seconds": short(taken), "n_iter": result.n_iter, "estimate": short(result.init_quality.level)}
    found: dict[str, tuple[FloatArray, dict[str, Any]]] = {
        "start": (init_H, {}),
        "purification": (np.asarray(result.H), facts),
    }
    positive = np.maximum(X, 0.0)
    # Entries that are exactly zero would stay so in multiplicative updates.
    first = np.maximum(init_H, 1e-6 * float(np.abs(init_H).max()))
    weights = np.maximum(positive @ np.linalg.pinv(first), 1e-6)
    for name, loss in {"nmf": "frobenius", "nmf-kl": "kullback-leibler"}.items():
        if name == "nmf-kl" and not kl:
            continue
        began = time.perf_counter()

        def late(now: Any, *, name: str = name, began: float = began) -> bool:
            return name == "nmf-kl" and now.n_iter >= 20 and time.perf_counter() - began > taken

        fitted = factorize(
            positive,
            n,
            beta_loss=loss,
            W=weights,
            H=first,
            max_iter=NMF_ITERATIONS,
            tol=NMF_TOL,
            callback=late,
        )
        seconds = time.perf_counter() - began
        found[name] = np.asarray(fitted.H), {"seconds": short(seconds), "n_iter": fitted.n_iter}
    return found


def scores(true: FloatArray, features: FloatArray) -> dict[str, Any]:
    """Compare features with known parts."""
    cosines = match_components(true, np.maximum(features, 0.0)).cosines
    return {
        "mean": short(float(cosines.mean())),
        "smallest": short(float(cosines.min())),
        "found": short(float((cosines >= FOUND).mean())),
    }


def comparison_table(
    caption: str, records: Sequence[Mapping[str, Any]], keys: Mapping[str, str], measures: Mapping[str, str]
) -> Table:
    """Return one row per case and method with means over draws."""
    rows = []
    for place, group in grouped(records, *keys, "method").items():
        row: dict[str, Any] = dict(zip(keys, place[:-1], strict=True)) | {"method": METHODS[place[-1]]}
        for key in measures:
            row[key] = Measured(*mean_and_spread([record.get(key) for record in group]))
        rows.append(row | {"draws": len(group)})
    return Table(caption, {**keys, "method": "method", **measures, "draws": "draws"}, rows, 3)


def mean_of(records: Sequence[Mapping[str, Any]], key: str, **where: Any) -> float | None:
    """Return the mean of an entry over the records that have given entries."""
    chosen = [record for record in records if all(record.get(name) == value for name, value in where.items())]
    return mean_and_spread([record.get(key) for record in chosen])[0]


def nearest_verdict(
    where: str,
    records: Sequence[Mapping[str, Any]],
    cases: Sequence[Mapping[str, Any]],
    n_draws: int,
    key: str = "mean",
) -> Verdict:
    """Say whether purification is closer to the known parts than NMF in all of some cases."""
    wins, told, known = [], [], True
    for case in cases:
        chosen = [record for record in records if all(record.get(k) == v for k, v in case.items())]
        ours = mean_of(chosen, key, method="purification")
        others = [mean_of(chosen, key, method=name) for name in ("nmf", "nmf-kl")]
        best = max((other for other in others if other is not None), default=None)
        runs = [record for record in chosen if record["method"] == "purification"]
        known = known and len(runs) >= n_draws and None not in others
        if ours is not None and best is not None:
            wins.append(ours > best)
            told.append(f"{ours:.3f} against {best:.3f}")
    return Verdict(
        f"{where}: purification is closer to the known parts than NMF",
        all(wins) if known else None,
        "; ".join(told) or "no trials",
    )
