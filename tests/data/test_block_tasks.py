"""Which chunks a task has, the sums of what it returns, and large chunks in pieces."""

from __future__ import annotations

from dataclasses import dataclass

import cloudpickle
import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import factorize
from nonneg.data.block_tasks import (
    Result,
    Rows,
    Work,
    add_results,
    as_result,
    flattened,
    hosted,
    make_block,
    make_blocks,
    mapped,
    run_blocks,
    size_of,
    sum_tree,
    take,
    total_of,
)
from nonneg.data.placement import bundles, group_size, moves, passes_at_risk, shares

da = pytest.importorskip("dask.array")


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.gamma(0.5, size=(64, 3)) @ rng.gamma(0.5, size=(3, 8)) + 0.01 * rng.random((64, 8))


def test_groups_are_few_for_each_thread_and_even():
    two, eight = {"a": 1, "b": 1}, {str(number): 1 for number in range(8)}
    assert [group_size(n, two) for n in (1, 8, 16, 10, 1000)] == [1, 1, 2, 1, 64]
    assert [group_size(n, eight) for n in (32, 64, 128, 1000, 100_000)] == [1, 2, 4, 16, 512]
    assert shares(10, {"a": 1, "b": 2}) == [("a", range(3)), ("b", range(3, 10))]


def test_a_pass_is_one_task_for_each_thread():
    assert bundles(["a"] * 4 + ["b"] * 4, {"a": 1, "b": 2}) == [[0, 1, 2, 3], [4, 5], [6, 7]]
    # Groups of a lost worker are spread.
    assert bundles(["a", None, "gone", "a"], {"a": 1}) == [[0, 3], [1], [2]]


def test_repeated_passes_take_the_time_of_one():
    found = [passes_at_risk(4 * n, {str(number): 1 for number in range(n)}) for n in (2, 3, 4, 5, 8, 100)]
    assert found == [1, 2, 2, 4, 4, 4]
    assert passes_at_risk(2, {"a": 4, "b": 4}) == 1


@pytest.mark.parametrize("n_chunks", [1, 6, 13, 16])
def test_sums_have_the_same_digits_in_any_order(n_chunks):
    rng = np.random.default_rng(n_chunks)
    values = 10.0 ** rng.uniform(-8, 8, n_chunks)
    single = [Result({}, {(0, index): (value,)}) for index, value in enumerate(values)]
    (expected,) = total_of(add_results(*single))
    assert expected == pytest.approx(values.sum(), rel=1e-14)
    for _ in range(5):
        cuts = sorted(rng.integers(0, n_chunks + 1, 3))
        order = rng.permutation(n_chunks)
        parts = [part for part in np.split(order, cuts) if len(part)]
        sums = [add_results(*(single[index] for index in part)) for part in parts]
        assert total_of(add_results(*sums)) == (expected,)
    if n_chunks == 16:  # whole subtrees come as one number
        assert list(add_results(*single[8:]).sums) == [(3, 1)]


@pytest.mark.parametrize("beta_loss", [2, 1])
def test_large_chunks_are_worked_on_in_pieces(X, monkeypatch, beta_loss):
    array = da.from_array(X, chunks=(32, 8))
    options = {"max_iter": 5, "tol": 0, "init": "random", "rng": 0, "beta_loss": beta_loss}
    weights = np.linspace(1, 2, 64)
    expected = factorize(array, 2, sample_weight=weights, **options)
    monkeypatch.setattr("nonneg.data.block_tasks.PART_BYTES", 300)
    block = make_block(0, X, None, None)
    assert [part.shape[0] for part in block.parts] == [5] * 12 + [4]
    assert len(cloudpickle.dumps(block)) < 1.5 * X.nbytes
    found = factorize(array, 2, sample_weight=weights, **options)
    np.testing.assert_allclose(found.W.compute(), expected.W.compute(), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.H, expected.H, rtol=1e-8, atol=1e-10)


def test_moves_follow_the_threads():
    assert moves(["a"] * 4 + ["b"] * 4, {"a": 1, "b": 1}) == []
    moved = moves(["a"] * 9, {"a": 1, "b": 2})
    assert len(moved) == 6
    assert {worker for _, worker in moved} == {"b"}
    assert moves(["a", "a", "b"], {"a": 1, "b": 1}) == []


def at_odd_byte(array):
    room = np.empty(array.nbytes + 1, dtype=np.uint8)
    moved = room[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


def test_what_came_at_odd_bytes_is_moved_before_it_is_added_up(X):
    """Arrays of a message begin anywhere, and NumPy adds such numbers in another order."""

    def function(block, W, *, Ht):
        assert W.flags.aligned
        assert Ht.flags.aligned
        return (W,), (block.times(Ht).sum(),)

    H, block = np.random.default_rng(1).random((8, 3)), make_block(0, X, None, None)
    work = Work(function, [(0, 0)], {"Ht": at_odd_byte(H)}, [0])
    rows = as_result(0, [at_odd_byte(X[:, :3].copy())])
    result = run_blocks(work, "1 1", (block,), rows)
    np.testing.assert_array_equal(result.rows[0][0], X[:, :3])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_block_that_moves_is_aligned(X, form):
    buffers = []
    sent = cloudpickle.dumps(make_block(0, form(X), None, None), 5, buffers.append)
    came = [at_odd_byte(np.frombuffer(buffer.raw(), dtype=np.uint8).view(np.uint16)) for buffer in buffers]
    block = cloudpickle.loads(sent, buffers=[one.view(np.uint8) for one in came])
    assert block.values.flags.aligned
    np.testing.assert_array_equal(block.values, make_block(0, form(X), None, None).values)


def test_lists_are_joined_in_the_order_of_the_chunks():
    rng = np.random.default_rng(0)
    for n_chunks in (2, 7, 16):
        single = [Result({}, {(0, index): ([index],)}) for index in range(n_chunks)]
        for _ in range(4):
            results = [single[index] for index in rng.permutation(n_chunks)]
            assert total_of(add_results(*results)) == (list(range(n_chunks)),)


@pytest.mark.parametrize("n_results", [1, 7, 8, 9, 64, 65, 200])
def test_a_tree_of_tasks_adds_up_all_results(n_results):
    values = np.random.default_rng(n_results).random(n_results)
    single = [f"r{index}" for index in range(n_results)]
    tasks, last = sum_tree("x", single)
    known = {name: Result({}, {(0, at): (values[at],)}) for at, name in enumerate(single)}

    def computed(key):
        if key not in known:
            function, *parts = tasks[key]
            assert len(parts) <= 8
            known[key] = function(*map(computed, parts))
        return known[key]

    assert total_of(computed(last)) == pytest.approx((values.sum(),))
    # Beside the sums of at most eight, the small results of all but the first of each.
    assert sum("small" in key for key in tasks) == n_results - -(-n_results // 8)
    assert len(tasks) == len(set(tasks))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("hidden", [False, True])
def test_blocks_know_their_sizes(form, hidden, X):
    mask = np.arange(X.size).reshape(X.shape) > 3 if hidden else None
    block = make_block(5, form(X), None, mask)
    n_bytes = X.nbytes
    if form is sp.csr_array:
        csr = block.matrix.csr
        n_bytes = 2 * (csr.data.nbytes + csr.indices.nbytes)  # with the transpose
    assert block.__sizeof__() == n_bytes * (2 if hidden else 1)
    assert size_of(block) == (block.__sizeof__(), None)
    assert block.chunk == 5


def test_chunks_of_which_four_parts_would_be_left_are_cut(X, monkeypatch):
    for limit, n_parts in ((64 * 16 - 1, 4), (64 * 16, 1)):  # rows of 64 bytes, one more than fits
        monkeypatch.setattr("nonneg.data.block_tasks.PART_BYTES", limit)
        assert len(make_block(0, X, None, None).parts) == n_parts
    monkeypatch.setattr("nonneg.data.block_tasks.PART_BYTES", 1)
    weights = np.arange(64.0)
    parts = make_block(0, X, weights, None).parts
    np.testing.assert_array_equal(np.concatenate([part.weights for part in parts]), weights)
    for whole in (make_block(0, sp.csr_array(X), None, None), make_block(0, X, None, X > 0.1)):
        assert len(whole.parts) == 1


def test_groups_of_blocks_and_their_rows(X):
    blocks = make_blocks(3, [X[:5], X[5:9]], [None, np.ones(4)], [None, None])
    assert [block.chunk for block in blocks] == [3, 4]
    np.testing.assert_array_equal(take(blocks, 1, [2, 0]), X[[7, 5]])
    assert hosted(blocks, 0) is blocks[0]
    rows = Rows(["a", "b", "c"], [[0, 1], [2], [3, 4]])
    assert rows.of([4, 0, 1, 3]) == ["c", "a"]
    assert flattened([["a", "b"], [], ["c"]]) == ["2 0 1", "a", "b", "c"]


@pytest.mark.torch
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.filterwarnings("ignore:Sparse")
def test_blocks_of_tensors_come_to_the_host(sparse, X, torch):
    X = np.where(X > 0.2, X, 0.0)
    weights, mask = np.arange(1.0, 65.0), np.arange(X.size).reshape(X.shape) % 5 > 0
    entries = torch.asarray(X).to_sparse_csr() if sparse else torch.asarray(X)
    for weight, seen in ((None, None), (weights, mask)):
        block = hosted((make_block(7, entries, weight, seen),), 0)
        assert block.chunk == 7
        assert isinstance(block.values, np.ndarray)
        expected = X if seen is None else np.where(seen, X, 0.0)
        np.testing.assert_array_equal(block.matrix.dense_rows(0, 64), expected)
        assert block.matrix.observed_weight() == (512 if seen is None else np.sum(weights[:, None] * seen))
    assert take((make_block(0, entries, None, None),), 0, [3]).tolist() == X[[3]].tolist()


def test_arrays_inside_of_anything_are_mapped():
    array, same = np.ones(2), np.zeros(1)
    pair = Result({0: (array,)}, {}, ())
    found = mapped(
        lambda one: one + 1, {"a": [array, 3, "x"], "b": (array, None), "c": pair, "d": np.float64(2)}
    )
    np.testing.assert_array_equal(found["a"][0], 2)
    assert found["a"][1:] == [3, "x"]
    assert isinstance(found["b"], tuple)
    assert isinstance(found["c"], Result)
    np.testing.assert_array_equal(found["c"].rows[0][0], 2)
    assert found["d"] == 2.0

    @dataclass(frozen=True)
    class Facts:
        values: np.ndarray
        word: str = "w"

    facts = Facts(same)
    assert mapped(lambda one: one, facts) is facts
    assert mapped(lambda one: one + 4, facts).values == 4
    assert mapped(lambda one: one, Facts) is Facts
