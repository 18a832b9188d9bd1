"""Continue where the workers of a cluster lost rows of W with all their copies."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix
from nonneg.exceptions import LostRowsError, NonnegWarning
from nonneg.iteration import History, Run
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode


def solve(
    run: Callable[..., Run[Any]],
    data: DataMatrix,
    W: SampleArray,
    Ht: Array,
    *,
    beta: float,
    penalties: Penalties,
    max_iter: int,
    **options: Any,
) -> Run[Any]:
    """Run a solver; if W is lost, resume from the checkpoint, or recompute W for the last H."""
    history, done = History(), 0
    while True:
        try:
            found = run(data, W, Ht, beta=beta, penalties=penalties, max_iter=max_iter - done, **options)
            break
        except LostRowsError as lost:
            before = lost.run
            if before is None:
                raise
            saved = options.get("checkpoint") is not None and options["checkpoint"].has_rows()
            then = "The fit resumes from its checkpoint." if saved else "W is recomputed for the current H."
            warnings.warn(
                f"All copies of some rows of W were lost with their workers in iteration "
                f"{done + before.n_iter + 1}. {then}",
                NonnegWarning,
                stacklevel=4,
            )
            if not saved:
                Ht = before.state.Ht
                W, _ = encode(data, Ht, beta=beta, penalties=penalties)
                history.extend(before.history)
                done += before.n_iter
    if not done:
        return found
    history.extend(found.history)
    return replace(found, n_iter=done + found.n_iter, history=history)
