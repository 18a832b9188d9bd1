"""Parallel trials, one thread per process; only the parent writes records."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from reproduction.experiment import Setting

# BLAS and OpenMP read these when they are loaded, so they must be set before a process starts.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def results_of_processes(
    task: Callable[..., dict[str, Any]],
    settings: Sequence[Setting],
    *common: Any,
    n_processes: int,
    time_is_up: Callable[[], bool],
) -> Iterator[tuple[Setting, dict[str, Any]]]:
    """Call a function with each setting in new processes and yield the results as they complete."""
    waiting = list(settings)[::-1]
    running: dict[Future[dict[str, Any]], Setting] = {}
    strangers = set(multiprocessing.active_children())
    with _environment(dict.fromkeys(ONE_THREAD, "1")):
        # A forked process would share the locks of threads that it does not have.
        pool = ProcessPoolExecutor(
            min(n_processes, len(settings)),
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_leave_interruptions_to_the_parent,
        )
        try:
            while waiting or running:
                while waiting and len(running) < n_processes and not time_is_up():
                    setting = waiting.pop()
                    running[pool.submit(task, *common, dict(setting))] = setting
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - strangers:
                process.terminate()
            raise
        finally:
            pool.shutdown()


def _leave_interruptions_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
