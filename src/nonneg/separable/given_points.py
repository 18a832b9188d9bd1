"""What a user gave as `init`, as rows of the points that a method sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nonneg._arrays import to_numpy
from nonneg._random import Seed
from nonneg._typing import IntArray
from nonneg.data import DataMatrix
from nonneg.exceptions import InvalidParameterError, UnknownNameError, UnsupportedError
from nonneg.separable.merit.initialization import checked_anchors, checked_coefficients
from nonneg.separable.preprocessing import Prepared
from nonneg.separable.registry import METHODS


def init_among(init: Any, points: Prepared, data: DataMatrix, n_components: int | None, rng: Seed) -> Any:
    """Return the start of a convex method in terms of its points."""
    if init is None:
        return None
    if isinstance(init, str):
        return _found_by(init, points, data, n_components, rng)
    n_samples = data.shape[0]
    if hasattr(init, "anchors"):
        init = init.anchors
    if sp.issparse(init) or np.ndim(init) == 2:
        return checked_coefficients(init if sp.issparse(init) else to_numpy(init), n_samples, points.kept)
    rows = checked_anchors(to_numpy(init) if hasattr(init, "device") else init, n_samples)
    return rows if points.kept is None else _positions(rows, points)


def _found_by(name: str, points: Prepared, data: DataMatrix, n_components: int | None, rng: Seed) -> IntArray:
    greedy = {key: method for key, method in METHODS.items() if method.kind == "greedy"}
    if name not in {alias for key, method in greedy.items() for alias in (key, *method.aliases)}:
        raise UnknownNameError.of("init", name, greedy)
    if n_components is None:
        raise InvalidParameterError(
            f"init={name!r} needs n_components, the number of points to pick. Pass it, or the anchors "
            "themselves as init."
        )
    entry = METHODS.find(name)
    # As for a search: projections of points that were not negative are taken.
    if not entry.signed and data.extremes()[0] < 0:
        able = sorted(key for key, method in greedy.items() if method.signed)
        raise UnsupportedError(f"init={name!r} takes no negative entries, and X has some. {able} do.")
    found: IntArray = entry.run(points.data, n_components, **({"rng": rng} if entry.seeded else {})).anchors
    return found


def _positions(rows: IntArray, points: Prepared) -> IntArray:
    kept = points.kept
    assert kept is not None
    places = np.minimum(np.searchsorted(kept, rows), len(kept) - 1)
    gone = rows[kept[places] != rows]
    if gone.size:
        steps = sorted(name for name in points.facts if name != "reduce")
        raise InvalidParameterError(
            f"init names sample {gone[0]}, which the steps {steps} left out of the search. Name another."
        )
    return places.astype(np.intp)
