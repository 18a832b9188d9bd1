"""Newton steps for the Kullback-Leibler divergence on small dense tables: several iterations per call.

The iterations are those of `solvers.newton`, to rounding. On a table of 500 x 96 counts most of its time goes
into calls from Python and arrays that leave the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nonneg.kernels.newton_targets.array_api import LEAST_DIAGONAL

# Entries of the data, and of H, up to which iterations are done here. A pass of `solvers.newton_pass` over so
# many entries is one thread's work, too; H and the sums for it stay in a core's cache.
ENTRIES, ENTRIES_OF_H = 1 << 16, 1 << 12
# Entries times components from which compiling a pass for many threads pays: passes of some ten milliseconds.
LARGE = 2e7


def is_supported(data: Any, k: int) -> bool:
    """Tell whether the data are a small NumPy array without missing entries."""
    return (
        data.container == "dense"
        and data.observed is None
        and data.shape[0] * data.shape[1] <= ENTRIES
        and data.shape[1] * k <= ENTRIES_OF_H
    )


def is_large(data: Any, k: int) -> bool:
    """Tell whether the data are a large NumPy array without missing entries, for `tiles`."""
    rows = data.raw_rows() if data.container == "dense" and data.observed is None else None
    return isinstance(rows, np.ndarray) and float(rows.size) * k >= LARGE


def kl_newton_iterations(
    data: Any,
    state: Any,
    n_iter: int,
    *,
    penalties: Any,
    free: Any,
    lower_bound: float,
    unit: float,
    rules: Any,
    tries: int,
    row_tries: int,
) -> tuple[dict[str, Any], list[float]]:
    """Do some iterations; return the fields of the state that have changed, and the losses.

    Parameters
    ----------
    data : DenseMatrix
        The data, for which `is_supported` holds.
    state : NewtonState
        Where the iterations begin. It is not modified.
    n_iter : int
        How many.
    penalties : Penalties
        Penalties of both factors.
    free : array of int or None
        The components of H that may change; all by default.
    lower_bound, unit : float
        Lower bound of the model where it is divided by; about the sum of a row of the data.
    rules : array of float64
        The numbers that `descent` names, from INITIAL to DAMPING.
    tries, row_tries : int
        Maximum number of steps that are tried for H, and for a row of W.

    Returns
    -------
    changes : dict
        Fields of the state.
    losses : list of float
        The loss after each iteration.
    """
    from nonneg.kernels.hals.native import row_updates  # loaded with the first fit
    from nonneg.kernels.kl_newton.descent import descend

    n_rows, n = data.shape
    k = state.Ht.shape[1]
    dtype = state.Ht.dtype
    info = np.finfo(dtype)
    begun = state.gradient is not None
    known = state.W_before is not None and state.Ht_plain is not None

    def own(given: Any, shape: tuple[int, ...], kind: Any = dtype) -> Any:
        return np.zeros(shape, kind) if given is None else np.array(given, kind, order="C")

    W, before = own(state.W, (n_rows, k)), own(state.W_before, (n_rows, k))
    Ht, plain = own(state.Ht, (n, k)), own(state.Ht_plain, (n, k))
    sums = own(state.gradient.T if begun else None, (k, n))
    curvatures = own(state.diagonal.T if begun else None, (k + 1, n))
    gram, total = own(state.gram, (k, k)), own(state.total, (k,), np.float64)
    columns = own(state.columns, (n,), np.float64)
    steps = np.ones(n) if state.steps is None else own(state.steps, (n,), np.float64)
    now = np.array([state.loss, state.momentum, state.ceiling, float(known)])
    losses = np.empty(n_iter)
    weights = np.ones(n_rows, dtype) if data.weights is None else np.ascontiguousarray(data.weights, dtype)
    numbers = np.array(
        [
            penalties.l1_W,
            penalties.l2_W,
            lower_bound,
            info.smallest_normal * LEAST_DIAGONAL,
            info.smallest_normal,
            float(info.max) ** 0.25,
            unit,
        ],
        dtype,
    )
    turns = np.arange(k)
    descend(
        row_updates(dtype).address, np.ascontiguousarray(data.array), weights, float(data.total_weight()),
        turns, turns if free is None else np.asarray(free, dtype=np.int64), begun, rules, numbers,
        np.array([penalties.l1_H, penalties.l2_H], dtype=np.float64), tries, row_tries,
        W, before, Ht, plain, sums, curvatures, gram, total, columns, steps, now, losses,
        True if dtype == np.float32 else None,
    )  # fmt: skip
    known = now[3] > 0
    changes = {
        "W": W,
        "Ht": Ht,
        "loss": float(now[0]),
        "W_before": before if known else None,
        "Ht_plain": plain if known else None,
        "gradient": sums.T,
        "diagonal": curvatures.T,
        "gram": gram,
        "total": total.astype(dtype),
        "columns": columns,
        "steps": steps,
        "momentum": float(now[1]),
        "ceiling": float(now[2]),
    }
    return changes, losses.tolist()
