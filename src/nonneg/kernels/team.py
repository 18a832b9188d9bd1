"""Compiled tasks on several threads that do not need the interpreter.

A thread that waits for the interpreter's lock cannot begin: with sixteen of them a hand-over through Python
took 0.2 ms on an Intel Xeon, and an iteration has about ten. Here helpers stay in compiled code, claim
chunks of a task by an atomic counter, and look for the next task for a moment before they sleep. Nobody waits
for a helper to come: the calling thread takes chunks too, and who comes late finds none left.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import threading
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

import nonneg._threads as _threads
from nonneg._lazy import cached_property
from nonneg.kernels.clock import preparing
from nonneg.kernels.jit import in_python, jit
from nonneg.kernels.machine_code import MachineCode

# Entries of the board, on lines of the cache of their own: chunks that nobody has claimed, chunks that are
# not done, how many helpers may claim, and the task.
LEFT, PENDING, LIMIT, TASK = 0, 16, 32, 48
FUNCTION, ARGUMENTS, N_ROWS, SIZE = range(4)
# Seconds that a helper looks for the next task: iterations have serial parts of a few tenths of a
# millisecond, and waking all helpers takes as long. The same for the calling thread before it sleeps.
PATIENCE = 1e-3
SIGNATURE = (types.int64, types.int64, types.int64)

# Arrays of other types are left to NumPy.
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))

_WORD = ir.IntType(64)
_FORM = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)


def _word(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _WORD.as_pointer())


@intrinsic
def load(typing_context, address):
    """Read a number that other threads write."""

    def generate(context, builder, signature, arguments):
        return builder.load_atomic(_word(builder, arguments[0]), "acquire", 8)

    return types.int64(types.int64), generate


@intrinsic
def store(typing_context, address, value):
    """Write a number that other threads read."""

    def generate(context, builder, signature, arguments):
        builder.store_atomic(arguments[1], _word(builder, arguments[0]), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def replace(typing_context, address, old, new):
    """Write a number if the present one is `old`; tell whether it was."""

    def generate(context, builder, signature, arguments):
        address, old, new = arguments
        pair = builder.cmpxchg(_word(builder, address), old, new, "acq_rel", "acquire")
        return builder.extract_value(pair, 1)

    return types.boolean(types.int64, types.int64, types.int64), generate


@intrinsic
def count_down(typing_context, address):
    """Subtract one."""

    def generate(context, builder, signature, arguments):
        builder.atomic_rmw("sub", _word(builder, arguments[0]), ir.Constant(_WORD, 1), "acq_rel")
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def relax(typing_context):
    """Tell the core that the thread is waiting."""
    machine = platform.machine().lower()

    def generate(context, builder, signature, arguments):
        empty, hint = ir.FunctionType(ir.VoidType(), []), ir.FunctionType(ir.VoidType(), [ir.IntType(32)])
        if machine in ("x86_64", "amd64"):
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), empty), [])
        elif machine in ("aarch64", "arm64"):  # the hint "yield"
            function = builder.module.declare_intrinsic("llvm.aarch64.hint", (), hint)
            builder.call(function, [ir.Constant(ir.IntType(32), 1)])
        return context.get_dummy_value()

    return types.void(), generate


@in_python(lambda function, *values: _FORM(int(function))(*map(int, values)))
@intrinsic
def call(typing_context, function, arguments, start, stop):
    """Call a compiled function by its address."""

    def generate(context, builder, signature, values):
        form = ir.FunctionType(ir.VoidType(), [_WORD] * 3)
        builder.call(builder.inttoptr(values[0], form.as_pointer()), values[1:])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


@intrinsic
def let_others_run(typing_context, function):
    """Call the system's function for that by its address."""

    def generate(context, builder, signature, values):
        form = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(values[0], form.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@in_python(lambda address: ctypes.c_void_p(int(address)))
@intrinsic
def pointer(typing_context, address):
    """Return an address as a pointer, for `numba.carray`."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@jit()
def _take_part(board):
    """Claim a chunk and work on it; False if none is left."""
    while True:
        left = load(board + 8 * LEFT)
        if left <= 0:
            return False
        if replace(board + 8 * LEFT, left, left - 1):
            break
    # The task stays on the board until the chunk that was claimed is done.
    task = board + 8 * TASK
    size = load(task + 8 * SIZE)
    start = size * (left - 1)
    stop = min(start + size, load(task + 8 * N_ROWS))
    call(load(task + 8 * FUNCTION), load(task + 8 * ARGUMENTS), start, stop)
    count_down(board + 8 * PENDING)
    return True


@jit()
def _serve(board, number, patience, others):
    """Take part in tasks until none has come for a while."""
    idle = 0
    while idle < patience:
        if number < load(board + 8 * LIMIT) and _take_part(board):
            idle = 0
        idle += 1
        relax()
        if others and idle % 64 == 0:
            let_others_run(others)


@jit()
def _is_done(board, patience, others):
    """Wait for a while; tell whether all chunks are done."""
    for idle in range(patience):
        if load(board + 8 * PENDING) <= 0:
            return True
        relax()
        if others and idle % 64 == 63:
            let_others_run(others)
    return False


@jit()
def _lead(board, function, arguments, n_rows, size, limit, patience, others):
    """Put a task on the board and work on it; tell whether all chunks are done."""
    n_chunks = (n_rows + size - 1) // size
    task = board + 8 * TASK
    store(task + 8 * FUNCTION, function)
    store(task + 8 * ARGUMENTS, arguments)
    store(task + 8 * N_ROWS, n_rows)
    store(task + 8 * SIZE, size)
    store(board + 8 * LIMIT, limit)
    store(board + 8 * PENDING, n_chunks)
    store(board + 8 * LEFT, n_chunks)
    while _take_part(board):
        pass
    return _is_done(board, patience, others)


def _yielding() -> int:
    """Return the address of the function that lets other threads run, 0 where there is none."""
    with contextlib.suppress(AttributeError, OSError):
        if os.name == "nt":
            return ctypes.cast(ctypes.windll.kernel32.SwitchToThread, ctypes.c_void_p).value or 0  # type: ignore[attr-defined]
        return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0
    return 0


class _Helper:
    def __init__(self, team: Team, number: int) -> None:
        self.team, self.number = team, number
        self.asleep = False
        self.ready = threading.Lock()
        self.ready.acquire()
        threading.Thread(target=self._work, name="nonneg", daemon=True).start()

    def _work(self) -> None:
        _threads.enter_worker()
        team = self.team
        while True:
            _serve(team.board, self.number, team.patience, team.others)
            self.asleep = True
            self.ready.acquire()

    def wake(self) -> None:
        self.asleep = False
        self.ready.release()


class Team:
    """Helpers in compiled code, for one calling thread at a time."""

    def __init__(self) -> None:
        self._memory = np.zeros(64 + 16, dtype=np.int64)
        address = self._memory.ctypes.data
        self.board = address + -address % 128
        self.others = _yielding()
        self.n_cores = _threads.available_threads()
        with preparing():
            self.patience = 1000
            turns = 1 << 14
            _serve(self.board, 0, 1, self.others)  # load or compile
            begun = time.perf_counter()
            _serve(self.board, 0, turns, self.others)
            self.patience = max(100, int(PATIENCE * turns / (time.perf_counter() - begun)))
        self.helpers: list[_Helper] = []
        self.missed = 0.0

    def run(
        self, function: int, arguments: Any, n_rows: int, size: int, *, n_threads: int, seconds: float
    ) -> None:
        """Call the function on chunks of `size` rows; one thread would take about `seconds`."""
        wanted = min(n_threads, self.n_cores) - 1
        while len(self.helpers) < wanted:
            self.helpers.append(_Helper(self, len(self.helpers)))
        if asleep := [helper for helper in self.helpers[:wanted] if helper.asleep]:
            # They are woken once what they would have saved is what waking them takes: one small task is not
            # worth it, but an iteration has many.
            self.missed += seconds
            if self.missed > 2.0 * len(asleep) * _threads.waking_seconds():
                self.missed = 0.0
                for helper in asleep:
                    helper.wake()
        done = _lead(self.board, function, arguments, n_rows, size, n_threads - 1, self.patience, self.others)
        interruption = None
        while not done:
            try:
                time.sleep(0)
                done = _is_done(self.board, self.patience, self.others)
            except KeyboardInterrupt as error:  # the arrays are still written to
                interruption = error
        if interruption is not None:
            raise interruption


_team: Team | None = None


def _forget() -> None:
    # A forked child has the board without the helpers.
    global _team
    _team = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Task:
    """A compiled function of the address of its arguments and of a range of rows."""

    def __init__(self, function: Callable[[int, int, int], None]) -> None:
        self.dispatcher = jit(no_cfunc_wrapper=False)(function)

    @cached_property
    def address(self) -> int:
        """Where the machine code is."""
        with preparing():
            self.dispatcher.compile(SIGNATURE)
        found = self.dispatcher.overloads[SIGNATURE]
        return found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)


def run(
    task: Task | MachineCode,
    numbers: list[int],
    arrays: tuple[Any, ...],
    n_rows: int,
    *,
    chunk_size: int,
    operations: float,
    parts: int = 1,
    n_threads: int | None = None,
) -> bool:
    """Run a task on several threads; False, and nothing done, where it is worth one thread only.

    The task finds the numbers and then the addresses of the arrays in an array of integers. Every thread
    gets about `parts` chunks; whether others use the team changes nothing else.
    """
    n_threads = n_threads or _threads.team_size(operations)
    blocks = -(-n_rows // chunk_size)
    if n_threads < 2 or blocks < 2:
        return False
    size = chunk_size * -(-blocks // min(blocks, parts * n_threads))
    arguments = np.array([*numbers, size, *(array.ctypes.data for array in arrays)], dtype=np.int64)
    run_at(task, arguments.ctypes.data, n_rows, size, operations=operations, n_threads=n_threads)
    return True


def run_at(
    task: Task | MachineCode, address: int, n_rows: int, size: int, *, operations: float, n_threads: int
) -> None:
    """Run a task whose arguments lie at an address, on ranges of `size` rows."""
    global _team
    if n_threads < 2 or n_rows <= size:
        # Machine code cuts a range itself.
        step = n_rows if isinstance(task, MachineCode) else size
        for begin in range(0, n_rows, max(step, 1)):
            stop = min(begin + step, n_rows)
            task.dispatcher(address, begin, stop)
        return
    if numba.config.DISABLE_JIT or not _threads.enter_team(n_threads):

        def work(start: int, stop: int) -> None:
            for begin in range(start, stop, size):
                task.dispatcher(address, begin, min(begin + size, stop))

        _threads.parallel_for(work, n_rows, chunk_size=size, operations=operations)
        return
    try:
        if _team is None:
            _team = Team()
        seconds = operations / _threads.RATE
        _team.run(task.address, address, n_rows, size, n_threads=n_threads, seconds=seconds)
    finally:
        _threads.leave_team()
