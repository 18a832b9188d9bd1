"""Frank-Wolfe as a loop: any oracle, any step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from nonneg.iteration import Checkpoint, StopReason
from nonneg.iteration.loop import Stalled
from nonneg.leastsquares.simplex import simplex_least_squares
from nonneg.separable.merit.frank_wolfe import frank_wolfe, open_loop_size


@dataclass(frozen=True)
class Point:
    x: np.ndarray
    vertex: int | None = None
    gap: float = float("nan")
    t: int = 0


class LeastSquares:
    """0.5 ||A x - b||^2 over the simplex."""

    def __init__(self, rng):
        self.A, self.b, self.asked = rng.random((12, 5)), rng.random(12), 0

    def oracle(self, point):
        self.asked += 1
        residual = self.A @ point.x - self.b
        slope = self.A.T @ residual
        vertex = int(np.argmin(slope))
        gap = float(slope @ point.x - slope[vertex])
        return replace(point, vertex=vertex, gap=gap), {"gap": gap, "loss": 0.5 * residual @ residual}

    def exact(self, point):
        change = self.A @ (np.eye(5)[point.vertex] - point.x)
        return float(np.clip(-(change @ (self.A @ point.x - self.b)) / (change @ change), 0, 1))

    @staticmethod
    def take_step(point, size):
        x = (1 - size) * point.x + size * np.eye(5)[point.vertex]
        return Point(x, t=point.t + 1)

    def run(self, rule, **options):
        step_rule = {"exact": self.exact, "open": lambda point: open_loop_size(point.t)}[rule]
        return frank_wolfe(
            Point(np.full(5, 0.2)),
            oracle=self.oracle,
            step_rule=step_rule,
            take_step=self.take_step,
            has_vertices=lambda point: point.vertex is not None,
            **options,
        )

    def best(self):
        x = simplex_least_squares(self.A.T @ self.A, (self.A.T @ self.b)[None])[0]
        return 0.5 * np.sum((self.A @ x - self.b) ** 2)


@pytest.mark.parametrize("rule", ["exact", "open"])
def test_reaches_the_minimum_within_its_gap(rule, rng):
    problem = LeastSquares(rng)
    run = problem.run(rule, max_iter=400)
    best = problem.best()
    for loss, gap in zip(run.history.loss, run.history["gap"], strict=True):
        assert best - 1e-12 <= loss <= best + gap + 1e-12
    assert run.history["gap"][-1] <= 0.02
    assert run.state.gap == run.history["gap"][-1]
    # One question more than steps: the answer to the last point is its gap.
    assert problem.asked == 401


def test_the_first_open_loop_step_forgets_the_start():
    assert open_loop_size(0) == 1.0
    assert open_loop_size(2) == 0.5


def test_ends_at_a_point_that_is_good_enough(rng):
    problem = LeastSquares(rng)
    run = problem.run("exact", max_iter=1000, converged=lambda point: point.gap <= 0.05)
    assert run.stop_reason is StopReason.CONVERGED
    assert run.state.gap <= 0.05 < run.history["gap"][-2]


def test_a_start_that_is_good_enough_takes_no_step(rng):
    run = LeastSquares(rng).run("open", max_iter=10, converged=lambda point: True)
    assert run.n_iter == 0
    assert run.stop_reason is StopReason.CONVERGED
    assert np.array_equal(run.state.x, np.full(5, 0.2))
    assert run.state.vertex is not None


def test_no_iterations_still_give_an_answer(rng):
    run = LeastSquares(rng).run("open", max_iter=0)
    assert run.n_iter == 0
    assert run.state.gap > 0


def test_a_rule_that_stalls_ends_the_run(rng):
    problem = LeastSquares(rng)

    def stall(point):
        if point.t == 3:
            raise Stalled
        return 0.1

    run = frank_wolfe(
        Point(np.full(5, 0.2)),
        oracle=problem.oracle,
        step_rule=stall,
        take_step=problem.take_step,
        has_vertices=lambda point: point.vertex is not None,
        max_iter=10,
    )
    assert run.n_iter == 3
    assert run.stop_reason is StopReason.STALLED


def test_a_resumed_run_equals_an_uninterrupted_one(rng, tmp_path):
    problem = LeastSquares(rng)
    whole = problem.run("open", max_iter=20)
    for n_iter in (7, 20):
        parts = problem.run("open", max_iter=n_iter, checkpoint=Checkpoint(tmp_path, "key", interval=0))
    assert np.array_equal(whole.state.x, parts.state.x)
    assert whole.history["gap"] == parts.history["gap"]


class Said:
    """A line that remembers its end."""

    def update(self, progress, max_iter):
        """Not looked at."""

    def close(self, sentence):
        self.sentence = sentence


def test_the_line_says_what_ended_the_run():
    def ended(**options):
        said = Said()
        run = LeastSquares(np.random.default_rng(0)).run("exact", progress=said, **options)
        return run, said.sentence

    run, sentence = ended(max_iter=5)
    assert sentence == StopReason.MAX_ITER.value
    # A gap that is met at a start, on the way, and by the very last step that is allowed.
    for gap, most in [(np.inf, 5), (run.history["gap"][2], 5), (run.state.gap, 5)]:
        again, sentence = ended(max_iter=most, converged=lambda point, gap=gap: point.gap <= gap)
        assert again.stop_reason is StopReason.CONVERGED
        assert sentence == "the duality gap is small enough"
    # A further rule tells its own sentence, or that a rule was met.
    assert ended(max_iter=5, stop=lambda history: len(history) == 2)[1] == StopReason.CONVERGED.value
