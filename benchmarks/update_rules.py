"""Published accelerations of multiplicative updates for Kullback-Leibler, as peers without a package.

Plain NumPy, as their authors' code: products by BLAS, one array of the size of X for the ratios.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.contender import CannotRunError, Outcome, Peer, Task, quiet, stopwatch

Rule = Callable[[Any, Any, Any, int], tuple[Any, Any]]


def joint_majorization(X: Any, W: Any, H: Any, passes: int) -> tuple[Any, Any]:
    """Update both factors from one array of ratios.

    Marmin, Goulart & Févotte (2023), Signal Processing 209, arXiv:2106.15214.
    """
    tiny = np.finfo(X.dtype).tiny
    for _ in range(passes):
        ratios = X / np.maximum(W @ H, tiny)
        of_W, of_H = W * (ratios @ H.T), H * (W.T @ ratios)
        # The minimizer of the joint majorizer: one cycle reaches it.
        W = of_W / np.maximum(H.sum(axis=1), tiny)
        H = of_H / np.maximum(W.sum(axis=0), tiny)[:, None]
    return W, H


def extrapolated_majorization(X: Any, W: Any, H: Any, passes: int) -> tuple[Any, Any]:
    """Update each factor from an extrapolated point.

    Hien, Leplat & Gillis (2025), arXiv:2401.06646 (BMMe): Nesterov's weights, bounded by
    1e4 / (t^0.75 ||step||) here.
    """
    tiny = np.finfo(X.dtype).tiny
    W_old, H_old, eta = W, H, 1.0

    def moved(new: Any, old: Any, weight: float, turn: int) -> Any:
        step = new - old
        length = float(np.linalg.norm(step))
        if length > 0:
            weight = min(weight, 1e4 / turn**0.75 / length)
        return new + weight * np.maximum(step, 0)

    for turn in range(1, passes + 1):
        after = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * eta * eta))
        weight, eta = (eta - 1.0) / after, after
        there = moved(W, W_old, weight, turn)
        ratios = X / np.maximum(there @ H, tiny)
        W_old, W = W, there * (ratios @ H.T) / np.maximum(H.sum(axis=1), tiny)
        there = moved(H, H_old, weight, turn)
        ratios = X / np.maximum(W @ there, tiny)
        H_old, H = H, there * (W.T @ ratios) / np.maximum(W.sum(axis=0), tiny)[:, None]
    return W, H


def second_order_majorization(X: Any, W: Any, H: Any, passes: int) -> tuple[Any, Any]:
    """Take diagonally scaled gradient steps; the row sums of the Hessian matrix bound it with least trace.

    Pham, Cohen & Chonavel (2026), TMLR, arXiv:2303.17992 (mSOM). Entries stay above a small number, as there.
    """
    smallest = 1e-15

    def step(X: Any, factor: Any, other: Any) -> Any:
        # Rows of `factor`; X is about factor' other.
        model = np.maximum(other.T @ factor, smallest)
        ratios = X / model
        gradient = other.sum(axis=1)[:, None] - other @ ratios
        ratios *= other.sum(axis=0)[:, None]
        ratios /= model
        return np.maximum(factor - gradient / np.maximum(other @ ratios, smallest), smallest)

    Wt, turned = np.ascontiguousarray(W.T), X.T
    for _ in range(passes):
        Wt = step(turned, Wt, H)
        H = step(X, H, Wt)
    return np.ascontiguousarray(Wt.T), H


def of(rule: Rule) -> Peer:
    """Return an update rule as a peer."""

    def run(task: Task, passes: int) -> Outcome:
        if task.loss != "kullback-leibler":
            raise CannotRunError(f"it is written for kullback-leibler here, not for {task.loss}")
        if scipy.sparse.issparse(task.X):
            raise CannotRunError("it is written for dense data here")
        with quiet(), stopwatch() as seconds:
            W, H = rule(task.X, task.W.copy(), task.H.copy(), passes)
            taken = seconds()
        return Outcome(W, H, taken, passes)

    return run


RULES: dict[str, Peer] = {
    "joint majorization": of(joint_majorization),
    "extrapolated majorization": of(extrapolated_majorization),
    "second-order majorization": of(second_order_majorization),
}
