"""What a cluster decides, with a client that only takes notes: what is kept, where copies are, what waits."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("distributed")

from nonneg._version import __version__
from nonneg.data import cluster as module
from nonneg.data import row_copies
from nonneg.data.block_tasks import Result, Rows
from nonneg.data.cluster import Cluster
from nonneg.data.connection import check_versions
from nonneg.exceptions import NonnegError


class Client:
    """Workers with their threads, and where results are."""

    def __init__(self, workers=(), memory=None, holders=()):
        self.threads, self.memory, self.holders = dict(workers), memory, dict(holders)
        self.submitted = []

    def scheduler_info(self):
        facts = {"memory_limit": self.memory}
        return {"workers": {name: facts | {"nthreads": count} for name, count in self.threads.items()}}

    def nthreads(self):
        return self.threads

    def who_has(self, futures):
        return self.holders

    def compute(self, made):
        return made

    def submit(self, function, value, **options):
        self.submitted.append((value, options["workers"]))
        return value


def future(key, status="finished"):
    return SimpleNamespace(key=key, status=status)


def cluster(client=None, n_chunks=10, group_size=1, **facts):
    """A cluster that has sent nothing yet."""
    found = object.__new__(Cluster)
    vars(found).update(
        client=client or Client(), entries=list(range(n_chunks)), weights=[None] * n_chunks,
        masks=[None] * n_chunks, group_size=group_size, blocks=None, places=[None] * n_chunks,
        ranks=range(n_chunks), workers={}, moved=[], is_lost=False, is_outgrown=False, _name="x",
        _count=iter(range(99)), _freed=[],
    )  # fmt: skip
    vars(found).update(facts)
    return found


@pytest.mark.parametrize(
    ("size", "n_groups", "last"), [(1, 10, [9]), (4, 3, [8, 9]), (5, 2, [5, 6, 7, 8, 9])]
)
def test_neighboring_chunks_are_groups(size, n_groups, last):
    found = cluster(group_size=size)
    assert found.n_groups == n_groups
    assert found._chunks([n_groups - 1]) == last
    assert found._chunks(range(n_groups)) == list(range(10))
    assert found.chunk_places == [(chunk // size, chunk % size) for chunk in range(10)]


@pytest.mark.parametrize(
    ("memory", "n_bytes", "kept"),
    [(100, 100, True), (100, 101, False), (None, 10**18, True), (0, 10**18, True)],
)
def test_chunks_are_kept_in_half_of_the_memory(memory, n_bytes, kept, monkeypatch):
    found = cluster(Client({"a": 1, "b": 1}, memory))
    for name in ("_finish", "_free"):
        monkeypatch.setattr(found, name, lambda futures: None)
    monkeypatch.setattr(found, "_make", lambda groups: [future(f"g{group}") for group in groups])
    assert found.keep(n_bytes) == kept
    assert (found.blocks is not None) == kept
    if kept:
        assert len(found.blocks) == found.n_groups
        assert found.workers == {"a": 1, "b": 1}


def test_tasks_are_bound_to_one_of_several_workers():
    several = cluster(workers={"a": 1, "b": 2})
    assert several._bound("a") == {"workers": ["a"], "allow_other_workers": True}
    assert several._bound("gone") == several._bound(None) == {}
    assert cluster(workers={"a": 1})._bound("a") == {}


@pytest.mark.parametrize(
    ("rows", "copies", "apart"),
    [
        (["a"], ["b"], True),
        (["a"], ["a"], False),
        (["a"], ["a", "b"], False),  # the copies are lost with the worker of the rows and one more
        (["a", "b"], ["b"], True),
        (["a"], [], False),
        ([], ["b"], False),
    ],
)
def test_rows_and_their_copies_are_on_different_workers(rows, copies, apart):
    client = Client(holders={"r0": ["c"], "k0": ["d"], "r1": rows, "k1": copies})
    found = cluster(client)
    made = Rows([future("r0"), future("r1")], [[0, 1], [2]])
    twins = Rows([future("k0"), future("k1")], [[0, 1], [2]])
    assert found._are_apart(made, twins) == apart


@pytest.mark.parametrize(
    ("states", "workers", "patient", "answer"),
    [
        (["finished", "finished"], {"a": 1}, True, True),
        (["finished", "pending"], {"a": 1}, False, None),
        (["finished", "pending"], {"a": 1}, True, False),  # after the longest wait
        (["finished", "lost"], {"a": 1}, True, False),
        (["error", "pending"], {"a": 1}, False, False),
        (["pending"], {"b": 1}, True, False),  # a worker is gone
        ([], {"a": 1}, False, None),
    ],
)
def test_copies_are_awaited(states, workers, patient, answer, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_WAIT", 0.01)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    found = cluster(Client(workers), workers={"a": 1})
    if states == ["pending"]:
        monkeypatch.setattr(module, "LONGEST_WAIT", 60.0)  # it is seen long before
    assert found._await([future("x", state) for state in states], patient) is answer


@pytest.mark.parametrize(
    ("before", "now", "size", "outgrown"),
    [
        ({"a": 1}, {"a": 1, "b": 1}, 1, False),
        ({"a": 1}, {"a": 1, "b": 1}, 5, False),
        ({"a": 1}, {"a": 1, "b": 2}, 5, True),
    ],
)
def test_workers_that_join_get_their_part(before, now, size, outgrown):
    keys = [future(f"g{at}") for at in range(-(-10 // size))]
    client = Client(now, holders={one.key: ["a"] for one in keys})
    found = cluster(client, group_size=size, workers=before, blocks=list(keys), places=["a"] * len(keys))
    found._follow_workers(now)
    assert found.workers == now
    assert found.is_outgrown == outgrown
    assert len(found.moved) == len(client.submitted) > 0
    assert all(target == ["b"] for _, target in client.submitted)
    assert found.places.count("b") == len(client.submitted)
    # The next pass finds all in place.
    client.submitted.clear()
    found._follow_workers(now)
    assert client.submitted == []


def test_groups_that_are_being_computed_again_are_looked_for_in_the_next_pass():
    keys = [future("g0"), future("g1")]
    client = Client({"a": 1, "b": 1}, holders={"g0": ["a"]})
    found = cluster(client, 2, workers={"a": 1}, blocks=list(keys), places=["a", "a"])
    found._follow_workers({"a": 1, "b": 1})
    assert found.places == ["a", None]
    assert client.submitted == []
    client.holders["g1"] = ["a"]
    found._follow_workers({"a": 1, "b": 1})
    assert found.places == ["a", "b"]
    none = cluster(client, 2, workers={"a": 1}, blocks=list(keys), places=["a", "a"])
    none._follow_workers({})
    assert none.places == ["a", "a"]


def test_a_cluster_without_workers_is_given_up(monkeypatch):
    found, freed = cluster(Client({"a": 1})), []
    monkeypatch.setattr(found, "_free", freed.append)
    waits = []

    def wait(futures, timeout):
        waits.append(timeout)
        if len(waits) == 7:
            return
        raise TimeoutError

    monkeypatch.setattr(module, "wait", wait)
    found._finish(["future"])
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert freed == [["future"]] * 6
    waits.clear()
    monkeypatch.setattr(module, "NO_WORKERS", -1.0)
    found.client.threads = {}
    with pytest.raises(NonnegError, match="The cluster has had no workers for -1 s"):
        found._finish(["future"])
    assert waits == [1.0]


@pytest.mark.parametrize(
    ("n_workers", "depth", "there", "apart", "detached"),
    [
        (2, 1, True, True, True),  # every pass of two workers with few groups
        (1, 9, True, True, False),
        (1, 10, True, True, True),
        (1, 9, True, False, True),
        (1, 9, False, True, True),
        (1, 10, None, True, False),
    ],
)
def test_rows_are_copied_when_it_is_due(n_workers, depth, there, apart, detached, monkeypatch):
    found = cluster(n_chunks=2, workers=dict.fromkeys("abc"[:n_workers], 1))
    copies = Rows([], [])
    made = Rows([], [], depth, frozenset({copies}))
    settled, asked = [], []
    monkeypatch.setattr(found, "_await", lambda items, patient: asked.append(patient) or there)
    monkeypatch.setattr(found, "_are_apart", lambda rows, twins: apart)
    monkeypatch.setattr(found, "_settle", settled.append)
    monkeypatch.setattr(found, "_detach", lambda rows: "copied")
    assert found._secured(made) == ("copied" if detached else made)
    assert asked == [n_workers == 2 or depth == 10]
    assert settled == ([copies] if there and apart else [])


def test_sums_are_of_neighbors_on_one_worker(monkeypatch):
    """Data in memory already stay where they are, and their ranks follow their workers."""
    blocks = [future(f"g{at}") for at in range(4)]
    client = Client({"a": 1, "b": 1}, 10**9, {f"g{at}": ["ab"[at % 2]] for at in range(4)})
    found = cluster(client, 4)
    monkeypatch.setattr(module, "futures_of", lambda entries: ["in memory"])
    monkeypatch.setattr(found, "_make", lambda groups: [blocks[group] for group in groups])
    for name in ("_finish", "_free"):
        monkeypatch.setattr(found, name, lambda futures: None)
    assert found.keep(8)
    assert found.places == ["a", "b", "a", "b"]
    assert np.argsort(found.ranks).tolist() == [0, 2, 1, 3]
    assert found.group_size == 1


@pytest.mark.torch
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_rows_come_back_to_where_they_were(library, monkeypatch, torch):
    array = np.arange(6.0).reshape(3, 2)
    rows = {4: (array if library == "numpy" else torch.asarray(array), array[:, :1])}
    kept = row_copies.packed(Result(rows, {}))
    assert kept[1] == (None if library == "numpy" else ("torch", "cpu"))
    assert all(isinstance(one, np.ndarray) for one in kept[0][4])
    monkeypatch.setattr(row_copies, "stored", lambda: kept)
    found = row_copies.unpacked()
    assert list(found.rows) == [4]
    assert isinstance(found.rows[4][0], np.ndarray if library == "numpy" else torch.Tensor)
    np.testing.assert_array_equal(np.asarray(found.rows[4][0]), array)


def test_rows_of_this_worker_are_taken_from_its_memory(monkeypatch):
    data = {name: Result({at: (name,)}, {}) for at, name in enumerate(("a", "b", "twin"))}
    monkeypatch.setattr(row_copies, "get_worker", lambda: SimpleNamespace(data=data, loop=None))
    assert row_copies.take_over("a b twin").rows == {0: ("a",), 1: ("b",)}
    del data["b"]
    assert row_copies.take_over("a b twin").rows == {2: ("twin",)}
    # Neither is complete here: they are fetched while the worker goes on.
    del data["twin"]
    calls = []
    monkeypatch.setattr(row_copies, "secede", lambda: calls.append("secede"))
    monkeypatch.setattr(row_copies, "sync", lambda loop, function, worker, *names: names)
    assert row_copies.take_over("a b twin") == (["a", "b"], "twin")
    assert calls == ["secede"]


class Task:
    """A task of the scheduler."""

    def __init__(self, key, state, loose=True, bound=("w",), dependencies=()):
        self.key, self.state, self.loose_restrictions = key, state, loose
        self.worker_restrictions, self.dependencies = set(bound), set(dependencies)


def test_tasks_that_are_done_or_forgotten_may_run_anywhere():
    deep = Task("deep", "released")
    tasks = {
        "memory": Task("memory", "memory", dependencies=[deep]),
        "forgotten": Task("forgotten", "no-worker"),
        "running": Task("running", "processing"),
        "strict": Task("strict", "memory", loose=False),
        "free": Task("free", "no-worker", bound=()),
        "other": Task("other", "memory"),
    }
    moved = []
    scheduler = SimpleNamespace(
        tasks=tasks, transitions=lambda wanted, stimulus_id: moved.append((wanted, stimulus_id))
    )
    asked = [key for key in tasks if key != "other"]
    row_copies.free_tasks([*asked, "unknown"], scheduler)
    bound = {key for key, task in tasks.items() if task.worker_restrictions}
    assert bound == {"running", "strict", "other"}
    assert deep.worker_restrictions is None
    ((wanted, reason),) = moved
    assert wanted == {"forgotten": "processing"}
    assert reason.startswith("nonneg-free-")


class Processes:
    """What workers and the scheduler answer when they are asked for a version."""

    def __init__(self, answers, scheduler=__version__):
        self.answers, self.scheduler, self.n_asked = answers, scheduler, 0

    def run(self, *asked, on_error):
        self.n_asked += 1
        return dict(self.answers)

    def run_on_scheduler(self, *asked):
        if isinstance(self.scheduler, Exception):
            raise self.scheduler
        return self.scheduler


def test_a_cluster_has_this_version_everywhere():
    good = Processes({"w1": __version__, "w2": __version__})
    check_versions(good)
    check_versions(good)
    assert good.n_asked == 1  # once for each client
    lost = ImportError("no nonneg")
    for answers, scheduler, said in (
        (
            {"w1": "0.0.1", "w2": __version__},
            __version__,
            f"have a version of nonneg other than {__version__}: w1\\.",
        ),
        ({"w1": lost, "w2": "0.0.1"}, __version__, r"cannot import nonneg: w1\."),
        ({"w1": __version__}, lost, r"cannot import nonneg: the scheduler\."),
        ({"w1": __version__}, "0.0.1", r"other than .*: the scheduler\."),
        (dict.fromkeys("abcde", lost), __version__, "cannot import nonneg: a, b, c"),
    ):
        with pytest.raises(NonnegError, match=said):
            check_versions(Processes(answers, scheduler))
