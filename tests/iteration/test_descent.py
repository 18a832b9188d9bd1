"""Looking ahead changes when work is queued, never what is decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from nonneg.iteration import loop
from nonneg.iteration.loop import Descent, read_later, unchanged


@dataclass(frozen=True)
class Point:
    x: float
    loss: object
    length: float = 2.5
    W: ClassVar = np.zeros((1, 1))
    Ht: ClassVar = np.zeros((1, 1))


class Late:
    """A number that counts how often it is waited for."""

    waits = 0

    def __init__(self, value):
        self.value = value

    def __float__(self):
        Late.waits += 1
        return self.value


def parabola(events, number):
    def candidates(state):
        length = state.length
        for _ in range(3):
            x = state.x - length * state.x

            def move(begin, x=x):
                events.append(("try", x))
                return {"x": x, "loss": number(0.5 * x * x), "note": x}

            changes = yield Point(state.x, state.loss, 1.2 * length), move
            assert changes["note"] == x
            length /= 4
        yield Point(state.x, state.loss, 0.1), unchanged

    return candidates


def tried(*points):
    for point in points:
        yield point, unchanged


def run(step, n=12):
    state, path = Point(3.0, 4.5), []
    for _ in range(n):
        state, measures = step(state)
        path.append((state.x, state.length, measures["loss"]))
        assert isinstance(state.loss, float)
    return path


def test_the_path_is_the_same_with_and_without(monkeypatch):
    monkeypatch.setattr(loop, "DeviceNumber", Late)
    plain, ahead, blind = [], [], []
    expected = run(Descent(parabola(plain, float), "array"))
    assert run(Descent(parabola(ahead, Late), "array")) == expected
    assert run(Descent(parabola(blind, Late), "streamed")) == expected
    assert plain == blind
    assert any(length < 1 for _, length, _ in expected)  # some first candidates were rejected
    losses = [loss for *_, loss in expected]
    assert losses == sorted(losses, reverse=True)
    assert len(ahead) > len(plain)  # the price of a wrong guess


def test_the_next_iteration_is_queued_before_the_loss_is_read(monkeypatch):
    monkeypatch.setattr(loop, "DeviceNumber", Late)
    events = []

    class Watched(Late):
        def __float__(self):
            if events[-1] != ("read", self.value):
                events.append(("read", self.value))
            return self.value

    step = Descent(parabola(events, Watched), "array")
    state, _ = step(Point(3.0, 4.5, 0.5))
    assert [kind for kind, _ in events] == ["try", "try", "read"]
    assert events[-1][1] == 0.5 * 1.5**2
    del events[:]
    step(state)
    assert [kind for kind, _ in events] == ["try", "read"]  # its first candidate was there already
    del events[:]
    step(Point(3.0, 4.5, 0.5))  # another state is not the one that was expected
    assert [kind for kind, _ in events] == ["try", "try", "read"]


def test_a_state_that_no_candidate_improves_stays():
    state = Point(3.0, 4.5)
    after, measures = Descent(lambda given: tried(Point(4.0, 8.0), Point(5.0, float("nan"))), "dense")(state)
    assert after == state
    assert measures == {"loss": 4.5}


def test_numbers_on_the_host_are_read_at_once():
    assert read_later(np.float64(2.0)) == 2.0
    assert type(read_later(np.float64(2.0))) is float


@pytest.mark.torch
def test_a_number_on_a_gpu_is_read_without_waiting_for_later_work(torch):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    value = read_later(torch.tensor(3.5, dtype=torch.float64, device="cuda"))
    assert isinstance(value, loop.DeviceNumber)
    assert float(value) == 3.5


@pytest.mark.torch
def test_a_number_of_torch_is_read_as_it_is(torch):
    assert float(loop.DeviceNumber(torch.tensor(3.5, dtype=torch.float64))) == 3.5


def test_an_equal_loss_is_accepted_and_the_first_that_is_not_higher_taken():
    state = Point(3.0, 4.5)
    better = [Point(9.0, 4.6), Point(4.0, 4.5), Point(5.0, 1.0)]
    after, measures = Descent(lambda given: tried(*better), "dense")(state)
    assert (after.x, measures) == (4.0, {"loss": 4.5})
