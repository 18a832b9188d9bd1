"""Propose and judge: several methods propose anchors, and the residual of the samples decides between them.

No method is best on all data. SPA and SNPA are the cheapest; smoothed SPA stands noise that is uneven, and
outliers; MERIT finds anchors among samples that noise pushed outward. What they propose is compared by the
number that the problem itself asks for: the sum of squares that the samples leave against the convex hull of
the anchors. Up to a few thousand samples all of them are judged, and the smallest sum wins. Beyond, a fixed
sample of the rows is judged, and a cheaper method wins where its sum is within the standard error of the
difference: that of a sample without replacement (Cochran, Sampling Techniques, 1977, section 2.6), which is
zero where all rows are judged.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nonneg._arrays import numpy_dtype, to_float64
from nonneg._typing import FloatArray
from nonneg.certificates.certificate import Statement, Verdict
from nonneg.data import DataMatrix
from nonneg.exceptions import FileFormatError, NonnegError, NonnegWarning, OutputError
from nonneg.iteration import Progress
from nonneg.iteration.progress import announce
from nonneg.separable.merit import merit
from nonneg.separable.merit_exact import evenly_spaced, merit_exact
from nonneg.separable.preprocessing import rows_of
from nonneg.separable.result import SelectionResult
from nonneg.separable.smoothed import smoothed_spa
from nonneg.separable.snpa import snpa
from nonneg.separable.spa import spa
from nonneg.separable.weights import squared_residuals

# Samples that are judged, and that MERIT explains: the squared distance of a sample has a deviation of about
# its size, so that the standard error of their mean is one or two percent. Beyond this number MERIT as
# published, whose work grows with its square, does not propose.
MANY = 5000
# Means that agree to this fraction are equal up to rounding.
SAME = 1e-9
# Second differences of the curve over the number of anchors: one stands out if it is this many times any
# other. With less, two numbers explain the curve about as well.
CLEAR_BEND = 2.0


def auto(
    data: DataMatrix,
    n_components: int,
    *,
    max_iter: int | None = None,
    tol: float | None = None,
    verbose: int = 0,
    callback: Callable[[Progress], bool | None] | None = None,
    checkpoint: Any = None,
) -> SelectionResult:
    """Return the proposal that leaves the smallest residual, or a cheaper one that is as good."""
    # For the convex methods, each of which has its own default.
    limits = {key: value for key, value in (("max_iter", max_iter), ("tol", tol)) if value is not None}
    options = {**limits, "verbose": verbose, "callback": callback}
    judge = Judge.of(data)
    proposals: dict[str, SelectionResult] = {}
    squares: dict[str, FloatArray] = {}
    refused: dict[str, str] = {}
    fewer: list[SelectionResult] = []
    for name, propose in _methods(data.shape[0], options, checkpoint).items():
        try:
            with warnings.catch_warnings():
                # What a method warns of belongs to its own proposal; the judge sees what that is worth.
                warnings.simplefilter("ignore", NonnegWarning)
                proposal = propose(data, n_components)
        except (OutputError, FileFormatError):
            raise  # a checkpoint that cannot be read or written is no matter of the method
        except NonnegError as error:
            refused[name] = str(error)
            continue
        if proposal.n_components < n_components:
            fewer.append(proposal)
            continue
        proposals[name] = proposal
        squares[name] = judge.squares(data, proposal)
        if float(squares[name].mean()) <= judge.rounding:
            break  # nothing is left that another method could explain
    if not proposals:
        if fewer:
            return max(fewer, key=lambda proposal: proposal.n_components)
        raise NonnegError(f"No method proposed anchors: {refused}.")
    best = min(squares, key=lambda name: float(squares[name].mean()))
    chosen = next(name for name in squares if judge.as_good(squares[name], squares[best]))
    statement = _judged(squares, best, chosen, judge)
    announce(f"anchors: {statement.sentence}", verbose)
    # A method that averages proposes the samples at its vertices.
    result = replace(proposals[chosen], components=None, members=None)
    residuals = {name: math.sqrt(float(parts.mean())) for name, parts in squares.items()}
    return replace(
        result,
        certificate=result.certificate.with_statements([statement]),
        details={**result.details, "proposals": {name: p.anchors for name, p in proposals.items()}}
        | {"residuals": residuals, "chosen": chosen},
    )


def _methods(n_samples: int, options: Mapping[str, Any], checkpoint: Any) -> Mapping[str, Any]:
    # From the cheapest on.
    def saved(name: str) -> dict[str, Any]:
        return {**options, "checkpoint": None if checkpoint is None else Path(checkpoint) / name}

    methods = {
        "spa": spa,
        "snpa": snpa,
        "smoothed-spa": smoothed_spa,
        "merit-exact": lambda data, k: merit_exact(data, k, n_explained=MANY, **saved("merit-exact")),
        "merit": lambda data, k: merit(data, k, recovery=False, **saved("merit")),
    }
    return methods if n_samples <= MANY else {name: methods[name] for name in list(methods)[:-1]}


@dataclass(frozen=True)
class Judge:
    """The samples whose distances from a hull are compared."""

    samples: DataMatrix
    n_samples: int  # of the data
    rounding: float  # mean squares up to this are rounding errors

    @classmethod
    def of(cls, data: DataMatrix) -> Judge:
        """Return all samples, or evenly spaced ones where there are many."""
        n = data.shape[0]
        judged = data if n <= MANY else rows_of(data, evenly_spaced(n, MANY))
        eps = float(np.finfo(numpy_dtype(data.dtype)).eps)
        return cls(judged, n, (64.0 * eps) ** 2 * judged.squared_norm() / judged.shape[0])

    def squares(self, data: DataMatrix, proposal: SelectionResult) -> FloatArray:
        """Return the squared distances of the samples from the hull of the anchors of a proposal."""
        return squared_residuals(self.samples, to_float64(data.take_rows(proposal.anchors)))

    def as_good(self, squares: FloatArray, best: FloatArray) -> bool:
        """Tell whether the mean of squares exceeds another one by no more than the sampling error."""
        excess, n = squares - best, len(squares)
        error = math.sqrt((1.0 - n / self.n_samples) / n) * float(excess.std(ddof=1)) if n > 1 else 0.0
        # Equal sets of anchors may differ in the order of their sums.
        return float(excess.mean()) <= error + SAME * float(best.mean())


def _judged(squares: Mapping[str, FloatArray], best: str, chosen: str, judge: Judge) -> Statement:
    sizes = {name: math.sqrt(float(parts.mean())) for name, parts in squares.items()}
    n = judge.samples.shape[0]
    of_all = "" if n == judge.n_samples else f" ({n} of {judge.n_samples} samples, evenly spaced)"
    listed = ", ".join(f"{name} {size:.6g}" for name, size in sizes.items())
    why = f"mixtures of its anchors leave the least of the samples, of {len(sizes)} methods"
    if len(sizes) == 1:
        why = "mixtures of its anchors leave nothing but rounding errors; no other method was asked"
    elif chosen != best:
        why = f"it is cheaper than {best}, which leaves the least, and equal within the standard error"
    distances = f"root mean square distances of the samples from the hull of the anchors{of_all}: {listed}"
    sentence = f"{chosen} was chosen: {why} ({distances})."
    quantities: dict[str, Any] = {"chosen": chosen, "best": best, "n_judged": n, **sizes}
    return Statement("candidates", sentence, sizes[chosen], None, Verdict.HOLDS, quantities)


@dataclass(frozen=True)
class NumberOfAnchors:
    """The curve of the judge over the number of anchors, and the number where it bends most."""

    number: int
    curve: FloatArray  # the root mean square distance from the hull of the first 1, 2, ... anchors of SNPA
    bends: FloatArray  # second differences of its logarithm, for 2, 3, ... anchors
    exact: bool  # whether that number of anchors leaves rounding errors alone

    def statement(self) -> Statement:
        """State what the curve says about the number."""
        k, curve = self.number, self.curve
        quantities = {"k": k, **{f"residual_{number + 1}": float(size) for number, size in enumerate(curve)}}
        if self.exact:
            before = f"; {k - 1} leave {curve[k - 2]:.4g}" if k > 1 else ""
            anchors = "1 anchor explains" if k == 1 else f"{k} anchors explain"
            sentence = f"{anchors} all judged samples up to rounding{before}."
            number = float(curve[k - 1])
            return Statement("number-of-anchors", sentence, number, None, Verdict.HOLDS, quantities)
        shown = ", ".join(f"{number + 1}: {size:.3g}" for number, size in enumerate(curve[: k + 3]))
        at = slice(max(k - 2, 0), k - 1)
        own, others = self.bends[at], np.delete(self.bends, at)
        most = float(others.max(initial=0.0))
        clear = bool((own >= CLEAR_BEND * most).any())
        ratio = float(own[0] / most) if len(own) and most > 0 else None
        sentence = f"Residual by the number of anchors: {shown}, ... "
        sentence += (
            f"The curve bends most at {k}, which does not prove that number."
            if clear
            else f"No number stands out; the curve {'bends most' if len(own) else 'ends'} at {k}."
        )
        verdict = Verdict.NOT_VERIFIABLE if clear else Verdict.FAILS
        return Statement("number-of-anchors", sentence, ratio, CLEAR_BEND, verdict, quantities)


def number_of_anchors(data: DataMatrix) -> NumberOfAnchors:
    """Return the number of anchors at which the curve of the judge bends most."""
    judge = Judge.of(data)
    most, n_anchors = min(data.shape[0], data.shape[1] + 2), 16
    while True:
        anchors = snpa(data, min(n_anchors, most)).anchors
        points = to_float64(data.take_rows(anchors))
        means: list[float] = []
        for k in range(1, len(anchors) + 1):
            means.append(float(squared_residuals(judge.samples, points[:k]).mean()))
            if means[-1] <= judge.rounding:
                return NumberOfAnchors(k, np.sqrt(means), np.empty(0), exact=True)
        curve = np.sqrt(means)
        drops = -np.diff(np.log(curve))
        # The gain of anchor k minus that of the next: the last anchor has no next.
        bends = drops[:-1] - drops[1:]
        number = int(np.argmax(bends)) + 2 if len(bends) else len(curve)
        # Where the bend is near the end, look further.
        if len(anchors) < n_anchors or n_anchors >= most or 2 * number <= n_anchors:
            return NumberOfAnchors(number, curve, bends, exact=False)
        n_anchors *= 2
