"""Continuation of a run where the workers of a cluster lost rows of W with all their copies."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix
from nonneg.exceptions import LostRowsError, NonnegWarning
from nonneg.iteration import History, Run
from nonneg.solvers.encoding import encode


def continued(
    lost: LostRowsError,
    run: Callable[..., Run[Any]],
    data: DataMatrix,
    W: SampleArray,
    Ht: Array,
    *,
    max_iter: int,
    **options: Any,
) -> Run[Any]:
    """Continue from the checkpoint, or from the last H, for which W is recomputed."""
    history, done = History(), 0
    while True:
        before = lost.run
        if before is None:
            raise lost
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
            W, _ = encode(data, Ht, beta=options["beta"], penalties=options["penalties"])
            history.extend(before.history)
            done += before.n_iter
        try:
            rest = run(data, W, Ht, max_iter=max_iter - done, **options)
            break
        except LostRowsError as again:
            lost = again
    if not done:
        return rest
    history.extend(rest.history)
    return replace(rest, n_iter=done + rest.n_iter, history=history)
