"""The clock of iterations."""

from __future__ import annotations

import threading
import time

import numba
import numpy as np
import pytest

from nonneg.kernels import clock
from nonneg.kernels.jit import jit


def test_preparations_stop_the_clock_once():
    started, wall = clock.seconds(), time.perf_counter()
    with clock.preparing(), clock.preparing():
        stopped = clock.seconds()
        time.sleep(0.05)
        assert clock.seconds() == pytest.approx(stopped, abs=1e-6)
    with pytest.raises(KeyError), clock.preparing():
        raise KeyError
    time.sleep(0.02)
    passed, whole = clock.seconds() - started, time.perf_counter() - wall
    assert 0.02 <= passed <= whole - 0.05


def test_preparations_of_several_threads_count_once():
    def prepare():
        with clock.preparing():
            time.sleep(0.05)

    threads = [threading.Thread(target=prepare) for _ in range(4)]
    started, wall = clock.seconds(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed, whole = clock.seconds() - started, time.perf_counter() - wall
    assert -1e-9 <= passed <= whole - 0.05


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="about compiled code")
def test_compilation_is_no_part_of_an_iteration():
    @jit()
    def added(numbers):
        return numbers.sum() + 1

    started, wall = clock.seconds(), time.perf_counter()
    assert added(np.ones(3)) == 4
    passed, whole = clock.seconds() - started, time.perf_counter() - wall
    assert passed < whole / 4
    started = clock.seconds()
    added(np.ones(3))
    assert clock.seconds() > started
