"""Block majorization-minimization, accelerated by the curvature that past iterates show.

W is minimized exactly. H minimizes the majorizer: the least-squares term plus the tangent of the log-det,
a quadratic. The plain sequence creeps, and so does one with momentum: a sample inside the simplex does not
resist a change of it, so that the curvature of the objective is far below that of the majorizer. A
limited-memory BFGS step learns it from the last iterates and starts from the majorizer's, so that its first
step is the plain one. Where no such step lowers the objective, the plain one is taken.

Leplat, Ang & Gillis (2019), ICASSP. Hien, Phan & Gillis (2023), Journal of Machine Learning Research 24
(block majorization). Golub & Pereyra (2003), Inverse Problems 19(2) (variable projection).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonneg._typing import FloatArray
from nonneg.iteration import Checkpoint, History, Progress, Run, iterate
from nonneg.iteration.loop import Stalled
from nonneg.iteration.progress import Reporter
from nonneg.minvol.problem import Fit, Problem

# Pairs of differences that a step remembers, as is usual.
MEMORY = 10
# Tries of a step: its whole length, then this share of it.
TRIES, SHORTER = 3, 0.3
# The decrease of an accepted step relative to what its slope promises (Armijo's rule).
SUFFICIENT = 1e-4
# A pair with less curvature than this share of the majorizer's is rounding.
FLAT = 1e-10
# A run has stalled in rounding if this many iterations gained less than this share of the weight.
WINDOW, LEAST_GAIN = 10, 1e-7


@dataclass(frozen=True)
class State(Fit):
    """The factors, and differences of successive iterates and of their gradients, one pair per row."""

    Ht: FloatArray
    moves: FloatArray
    bends: FloatArray


@dataclass(frozen=True)
class Stationary:
    """Stop when the projected gradient is at most `tol` times that of the volume term."""

    tol: float
    weight: float  # of the volume

    sentence = "the gradient reached the tolerance `tol`, or the objective no longer decreased"

    def __call__(self, history: History) -> bool:
        if self.tol <= 0 or not len(history):
            return False
        losses = history.loss
        idle = len(losses) > WINDOW and losses[-1 - WINDOW] - losses[-1] <= LEAST_GAIN * self.weight
        return bool(history["kkt_residual"][-1] <= self.tol) or idle


def minimize_volume(
    problem: Problem,
    Ht: FloatArray,
    *,
    max_iter: int,
    tol: float,
    callback: Callable[[Progress], bool | None] | None = None,
    progress: Reporter | None = None,
    checkpoint: Checkpoint | None = None,
) -> Run[State]:
    """Minimize the objective from some H."""
    Ht = np.maximum(Ht, 0.0) if problem.nonnegative else np.array(Ht, dtype=np.float64)
    none = np.zeros((0, Ht.size))

    def step(state: State) -> tuple[State, Mapping[str, Any]]:
        new = advance(problem, state)
        return new, {"loss": new.loss, "kkt_residual": problem.imbalance(new.Ht, new)}

    return iterate(
        step,
        State(**vars(problem.fit(Ht)), Ht=Ht, moves=none, bends=none),
        max_iter=max_iter,
        stop=Stationary(tol, problem.lam),
        callback=callback,
        progress=progress,
        checkpoint=checkpoint,
    )


def advance(problem: Problem, state: State) -> State:
    """Return the next iterate, whose objective is smaller."""
    Ht = state.Ht
    gradient = problem.gradient(Ht, state)
    inverse = np.linalg.pinv(problem.system(state), hermitian=True)
    moves, bends = state.moves, state.bends
    accepted = _searched(problem, state, gradient, inverse)
    if accepted is None:
        # The memory is from another region: go on from the plain update.
        moves, bends = moves[:0], bends[:0]
        new = problem.minimize_majorizer(Ht, state)
        accepted = new, problem.fit(new, state.W)
        if not accepted[1].loss < state.loss:
            raise Stalled
    new, fit = accepted
    move = new - Ht
    bend = problem.gradient(new, fit) - gradient
    if np.sum(move * bend) > FLAT * np.sum(bend * (bend @ inverse)):
        moves = np.vstack([moves, move.reshape(1, -1)])[-MEMORY:]
        bends = np.vstack([bends, bend.reshape(1, -1)])[-MEMORY:]
    return State(**vars(fit), Ht=new, moves=moves, bends=bends)


def _searched(
    problem: Problem, state: State, gradient: FloatArray, inverse: FloatArray
) -> tuple[FloatArray, Fit] | None:
    """Return an iterate along the quasi-Newton direction that lowers the objective enough, if any."""
    Ht = state.Ht
    # Entries that the sign keeps at zero do not take part.
    held = (Ht <= 0) & (gradient > 0) if problem.nonnegative else np.zeros(Ht.shape, dtype=bool)
    slope = np.where(held, 0.0, gradient)
    direction = np.where(held, 0.0, -_applied(state, slope, inverse))
    for power in range(TRIES):
        new = Ht + SHORTER**power * direction
        new = np.maximum(new, 0.0) if problem.nonnegative else new
        fit = problem.fit(new, state.W)
        promised = float(np.sum(gradient * (new - Ht)))
        if promised < 0 and fit.loss < state.loss + SUFFICIENT * promised:
            return new, fit
    return None


def _applied(state: State, slope: FloatArray, inverse: FloatArray) -> FloatArray:
    """Return the product of the inverse Hessian of limited-memory BFGS with a gradient."""
    # Nocedal & Wright (2006), Numerical Optimization, Algorithm 7.4.
    q = slope.reshape(-1)
    pairs = list(zip(state.moves, state.bends, strict=True))
    steps = []
    for move, bend in reversed(pairs):
        steps.append(float(move @ q) / float(move @ bend))
        q = q - steps[-1] * bend
    q = (q.reshape(slope.shape) @ inverse).reshape(-1)
    if pairs:
        move, bend = pairs[-1]
        scaled = (bend.reshape(slope.shape) @ inverse).reshape(-1)
        # The majorizer's curvature is never too small.
        q = q * max(float(move @ bend) / float(bend @ scaled), 1.0)
    for (move, bend), share in zip(pairs, reversed(steps), strict=True):
        q = q + move * (share - float(bend @ q) / float(move @ bend))
    return q.reshape(slope.shape)
