"""The solvers by name, and what each accepts; error messages, documentation and tests read it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nonneg._registry import Entry, Registry
from nonneg.data import DataMatrix
from nonneg.exceptions import InvalidParameterError, UnknownNameError, UnsupportedError, UnsupportedInputError
from nonneg.iteration import RelativeDecrease, SlowDecrease, least_squares_rule
from nonneg.iteration.stopping import StoppingRule

LOSSES = {
    "frobenius": 2.0,
    "kullback-leibler": 1.0,
    "itakura-saito": 0.0,
    "kl": 1.0,
    "is": 0.0,
}
LOCAL = frozenset({"dense", "sparse"})
EVERYWHERE = frozenset({"dense", "sparse", "array", "dask", "streamed"})


# The quantity compared with `tol`, by stopping rule.
TOL: dict[Any, str] = {
    least_squares_rule: "sum of absolute projected gradients, relative to the first iteration, or decrease "
    "of the error per iteration, relative to the first error",
    SlowDecrease: "decrease of the error per iteration, relative to the first error",
    RelativeDecrease: "decrease of the error in 10 iterations, relative to the first error",
}


@dataclass(frozen=True)
class Solver(Entry):
    """A solver and the problems it accepts; all take row weights, frozen components and penalties."""

    betas: tuple[float, float]  # the lowest and the highest beta it minimizes
    # The containers it takes, of files "streamed". Sparse tensors and CuPy's sparse matrices are
    # "sparse-array", which a solver takes if it takes "array" and minimizes the loss on sparse data.
    inputs: frozenset[str] = EVERYWHERE
    sparse_betas: tuple[float, float] | None = (2.0, 2.0)  # the betas it minimizes on sparse data
    missing: tuple[float, float] | None = None  # the betas for which it takes missing entries
    signed: bool = False  # whether it takes negative entries of X
    rule: Callable[[float], StoppingRule] = least_squares_rule  # returns the stopping rule, given `tol`
    positive_init: bool = False  # whether zeros of the initialization stay zeros, so it should have none

    @property
    def tol(self) -> str:
        """The quantity compared with `tol`."""
        return TOL[self.rule]

    def minimizes(self, beta: float) -> bool:
        """Tell whether it minimizes the beta-divergence."""
        return _is_within(beta, self.betas)

    def takes(self, container: str, beta: float) -> bool:
        """Tell whether it takes data in a container for a beta-divergence."""
        if container == "sparse-array" and "array" not in self.inputs:
            return False
        return _is_within(beta, self.sparse_betas) if "sparse" in container else container in self.inputs

    def takes_missing(self, beta: float) -> bool:
        """Tell whether it takes missing entries for a beta-divergence."""
        return _is_within(beta, self.missing)


def _is_within(beta: float, betas: tuple[float, float] | None) -> bool:
    return betas is not None and betas[0] <= beta <= betas[1]


_ENTRIES = {
    "hals": Solver(
        "nonneg.solvers.hals:hals",
        "accelerated HALS, extrapolated with restarts",
        (2.0, 2.0),
        missing=(2.0, 2.0),
        signed=True,
    ),
    "anls": Solver(
        "nonneg.solvers.anls:anls",
        "alternating nonnegative least squares by block principal pivoting, extrapolated",
        (2.0, 2.0),
        signed=True,
    ),
    "mu": Solver(
        "nonneg.solvers.mu:multiplicative",
        "multiplicative updates with the exponent that guarantees descent",
        (-math.inf, math.inf),
        sparse_betas=(1.0, 2.0),
        missing=(1.0, 1.0),
        rule=RelativeDecrease,
        positive_init=True,
    ),
    "kl-cd": Solver(
        "nonneg.solvers.kl_cd:kl_coordinate_descent",
        "coordinate descent over the nonzeros, with Newton steps that cannot overshoot",
        (1.0, 1.0),
        inputs=LOCAL,
        sparse_betas=(1.0, 1.0),
        rule=SlowDecrease,
    ),
    "newton": Solver(
        "nonneg.solvers.newton:scaled_newton",
        "Newton steps on rows and columns with shared correlations, one pass over the data per iteration",
        (-math.inf, math.inf),
        sparse_betas=(1.0, 2.0),
        missing=(-math.inf, math.inf),
        rule=SlowDecrease,
    ),
}
SOLVERS = Registry("solver", _ENTRIES)

# Solvers behind scikit-learn's name for coordinate descent.
COORDINATE_DESCENT = {2.0: "hals", 1.0: "kl-cd"}


def beta_of(loss: str | float) -> float:
    """Return the beta of a loss given by name or number."""
    if isinstance(loss, str):
        UnknownNameError.check("beta_loss", loss, LOSSES, other="a number")
        return LOSSES[loss]
    try:
        beta = float(loss)
    except (TypeError, ValueError):
        beta = math.nan
    if not abs(beta) < 1024:  # 2^1024 is infinite
        raise InvalidParameterError(
            f"beta_loss must be a name or a number between -1024 and 1024, got {loss!r}."
        )
    return beta


def loss_name(beta: float) -> str:
    """Return the name of a beta-divergence."""
    # The long names come first.
    return next((name for name in LOSSES if LOSSES[name] == beta), f"beta-divergence (beta={beta:g})")


def _automatic(data: DataMatrix, k: int, beta: float) -> str:
    """Choose a solver by loss, shape and container."""
    if beta != 2.0:
        zeros = beta == 1.0 and data.container == "sparse" and not data.has_missing
        return "kl-cd" if zeros else "newton"
    # Where a product with the data costs little compared with the row subproblems, exact steps pay:
    # coordinate descent would need many passes over strongly correlated components. The container does not
    # matter, so that all of them take the same steps.
    shape = round(data.counted_rows()), data.shape[1]
    narrow = min(shape) <= 32 * k and max(shape) >= 64 * min(shape)
    return "anls" if narrow and not data.has_missing else "hals"


def choose_solver(name: str, data: DataMatrix, k: int, beta: float) -> str:
    """Return the solver to run, or say why the chosen one cannot."""
    container = data.container
    if name == "auto":
        name = _automatic(data, k, beta)
    elif name == "cd":
        if beta not in COORDINATE_DESCENT:
            raise UnsupportedError(
                f"Invalid beta_loss parameter: solver 'cd' does not handle beta_loss = {loss_name(beta)!r}. "
                f"Use {_able(beta)}."
            )
        name = COORDINATE_DESCENT[beta]
    name = SOLVERS.name_of(name, also=("auto", "cd"))
    solver = SOLVERS[name]
    if not solver.minimizes(beta):
        raise UnsupportedError(
            f"solver={name!r} does not minimize beta_loss={loss_name(beta)!r}. "
            f"Solvers that do: {_able(beta)}."
        )
    if not solver.takes(container, beta):
        able = _able(beta, container)
        if container.startswith("sparse") and not able:
            raise UnsupportedInputError(
                f"beta_loss={loss_name(beta)!r} on sparse data would need every zero to be stored. Use "
                f"X.{'toarray' if container == 'sparse' else 'to_dense'}() if it fits in memory, or a "
                "beta_loss between 1 and 2."
            )
        raise UnsupportedInputError(
            f"solver={name!r} does not take {container} data. Solvers that do: {able}."
        )
    if data.has_missing and not solver.takes_missing(beta):
        able = [other for other in _able(beta, container) if SOLVERS[other].takes_missing(beta)]
        raise UnsupportedError(
            f"solver={name!r} with beta_loss={loss_name(beta)!r} does not take missing entries. "
            f"Solvers that do for this loss: {able}."
        )
    return name


def _able(beta: float, container: str = "dense") -> list[str]:
    return [
        name for name, solver in SOLVERS.items() if solver.minimizes(beta) and solver.takes(container, beta)
    ]
