"""The board of a team, not compiled: which chunks are claimed, how long helpers wait, and what is left."""

from __future__ import annotations

import os

import numba
import pytest

from nonneg.kernels import team
from nonneg.kernels.machine_code import MachineCode

BOARD = 1000


class Memory:
    """What threads share, with the operations of compiled code on it."""

    def __init__(self, monkeypatch):
        self.words, self.calls, self.waits, self.yields = {}, [], 0, 0
        for name in ("load", "store", "replace", "count_down", "relax", "call", "let_others_run"):
            monkeypatch.setattr(team, name, getattr(self, name))
        for name in ("_take_part", "_is_done", "_serve", "_lead"):
            function = getattr(team, name)
            monkeypatch.setattr(team, name, getattr(function, "py_func", function))

    def at(self, place):
        return self.words[BOARD + 8 * place]

    def put(self, *, left=0, pending=0, limit=0, task=(7, 8, 25, 10)):
        for place, value in ((team.LEFT, left), (team.PENDING, pending), (team.LIMIT, limit)):
            self.words[BOARD + 8 * place] = value
        for place, value in enumerate(task):
            self.words[BOARD + 8 * (team.TASK + place)] = value

    def load(self, address):
        return self.words[address]

    def store(self, address, value):
        self.words[address] = value

    def replace(self, address, old, new):
        if self.words[address] != old:
            return False
        self.words[address] = new
        return True

    def count_down(self, address):
        self.words[address] -= 1

    def relax(self):
        self.waits += 1

    def call(self, function, arguments, start, stop):
        self.calls.append((function, arguments, start, stop))

    def let_others_run(self, function):
        assert function == 5
        self.yields += 1


@pytest.fixture
def memory(monkeypatch):
    return Memory(monkeypatch)


def test_who_leads_alone_works_on_all_chunks_from_the_last_one(memory):
    assert team._lead(BOARD, 7, 8, 25, 10, 3, 4, 0)
    assert memory.calls == [(7, 8, 20, 25), (7, 8, 10, 20), (7, 8, 0, 10)]
    assert [memory.at(place) for place in (team.LEFT, team.PENDING, team.LIMIT)] == [0, 0, 3]
    memory.calls.clear()
    assert team._lead(BOARD, 7, 8, 20, 10, 3, 4, 0)
    assert memory.calls == [(7, 8, 10, 20), (7, 8, 0, 10)]


def test_a_chunk_is_claimed_once(memory, monkeypatch):
    memory.put(left=3, pending=3)

    def late(address, old, new):  # another thread was faster, once
        monkeypatch.setattr(team, "replace", memory.replace)
        memory.words[address] -= 1
        return False

    monkeypatch.setattr(team, "replace", late)
    assert team._take_part(BOARD)
    assert memory.calls == [(7, 8, 10, 20)]
    assert (memory.at(team.LEFT), memory.at(team.PENDING)) == (1, 2)
    assert team._take_part(BOARD)
    assert not team._take_part(BOARD)
    assert len(memory.calls) == 2


@pytest.mark.parametrize(("patience", "yields"), [(3, 0), (63, 0), (64, 1), (130, 2)])
def test_who_waits_lets_others_run_now_and_then(patience, yields, memory):
    memory.put(pending=1)
    assert not team._is_done(BOARD, patience, 5)
    assert (memory.waits, memory.yields) == (patience, yields)
    assert not team._is_done(BOARD, patience, 0)  # nothing to call
    assert memory.yields == yields
    memory.put(pending=0)
    assert team._is_done(BOARD, patience, 5)
    assert memory.waits == 2 * patience


def test_waiting_ends_with_the_last_chunk(memory, monkeypatch):
    memory.put(pending=2)
    monkeypatch.setattr(team, "relax", lambda: memory.count_down(BOARD + 8 * team.PENDING))
    assert not team._is_done(BOARD, 2, 0)
    assert team._is_done(BOARD, 1, 0)


def test_helpers_beyond_the_limit_do_not_take_part(memory):
    memory.put(left=3, pending=3, limit=1)
    team._serve(BOARD, 1, 130, 5)
    assert not memory.calls
    assert (memory.waits, memory.yields) == (130, 2)
    team._serve(BOARD, 0, 10, 0)
    assert memory.calls == [(7, 8, 20, 25), (7, 8, 10, 20), (7, 8, 0, 10)]
    # Work begins the patience anew: two chunks more than the last one and its ten turns.
    assert (memory.waits, memory.yields) == (130 + 2 + 10, 2)


class Noted:
    """A task that notes the ranges it was called on."""

    def __init__(self):
        self.ranges = []

    def dispatcher(self, address, start, stop):
        assert address == 4
        self.ranges.append((start, stop))


class Whole(Noted, MachineCode):
    """The same as machine code, which cuts ranges itself."""


@pytest.mark.parametrize("n_threads", [1, 2])
def test_without_compilation_ranges_are_shared_by_the_pool(n_threads, monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    for n_rows, expected in ((25, [(0, 10), (10, 20), (20, 25)]), (10, [(0, 10)]), (0, [])):
        task = Noted()
        team.run_at(task, 4, n_rows, 10, operations=1e12, n_threads=n_threads)
        assert sorted(task.ranges) == expected


def test_machine_code_gets_all_rows_of_one_thread_at_once():
    task = Whole()
    team.run_at(task, 4, 25, 10, operations=1e12, n_threads=1)
    team.run_at(task, 4, 0, 10, operations=1e12, n_threads=1)
    assert task.ranges == [(0, 25)]


@pytest.mark.skipif(os.name != "posix", reason="another function there")
def test_there_is_a_function_that_lets_others_run():
    assert team._yielding() > 0
