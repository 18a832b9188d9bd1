"""Saved runs: equal when taken up, refused when broken, left alone when of something else."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from nonneg.exceptions import FileFormatError, InterruptedFitWarning, OutputError
from nonneg.iteration import Checkpoint, History, RelativeMeasure, StopReason, iterate
from nonneg.iteration.checkpoint import FILE_NAME, checkpoint_key


@dataclass(frozen=True)
class State:
    """Arrays, numbers and nothing."""

    x: np.ndarray
    loss: float = float("inf")
    restarts: int = 0
    extra: np.ndarray | None = None


def step(state):
    x = state.x * 0.7 + 0.01
    new = State(x, float((x**2).sum()), state.restarts + 1, x[:1])
    return new, {"loss": new.loss}


START = State(np.arange(5.0))


def run(folder, n, *, key="a", interval=0.0, **options):
    return iterate(step, START, max_iter=n, checkpoint=Checkpoint(folder, key, interval=interval), **options)


def test_a_run_taken_up_equals_the_uninterrupted_one(tmp_path):
    run(tmp_path, 4)
    resumed = run(tmp_path, 9)
    whole = iterate(step, START, max_iter=9)
    np.testing.assert_array_equal(resumed.state.x, whole.state.x)
    np.testing.assert_array_equal(resumed.state.extra, whole.state.extra)
    assert resumed.state.loss == whole.state.loss
    assert resumed.state.restarts == 9
    assert resumed.history.loss == whole.history.loss
    assert resumed.history.n_iter == list(range(1, 10))
    assert resumed.history.seconds == sorted(resumed.history.seconds)
    assert resumed.n_iter == 9


def test_an_interrupted_run_is_saved_and_taken_up(tmp_path):
    def interrupt(progress):
        if progress.n_iter == 3:
            raise KeyboardInterrupt

    with pytest.warns(InterruptedFitWarning):
        run(tmp_path, 9, callback=interrupt, interval=1e9)
    resumed = run(tmp_path, 9)
    np.testing.assert_array_equal(resumed.state.x, iterate(step, START, max_iter=9).state.x)
    assert resumed.history.n_iter == list(range(1, 10))


def test_a_run_that_had_ended_is_not_continued(tmp_path):
    rule = RelativeMeasure("loss", 0.3)
    first = run(tmp_path, 50, stop=rule)
    assert first.stop_reason is StopReason.CONVERGED
    again = run(tmp_path, 50, stop=rule)
    assert again.stop_reason is StopReason.CONVERGED
    assert again.n_iter == first.n_iter
    np.testing.assert_array_equal(again.state.x, first.state.x)


def test_a_limit_below_what_was_done_gives_what_was_done(tmp_path):
    run(tmp_path, 6)
    assert run(tmp_path, 2).n_iter == 6


def test_the_run_of_something_else_is_not_taken_up(tmp_path):
    run(tmp_path, 4)
    other = run(tmp_path, 2, key="b")
    assert other.n_iter == 2
    assert other.history.n_iter == [1, 2]


def test_nothing_saved_is_nothing_to_take_up(tmp_path):
    assert Checkpoint(tmp_path / "none", "a").load(START) is None
    assert not (tmp_path / "none").exists()


def broken(tmp_path, content):
    (tmp_path / FILE_NAME).write_bytes(content)


@pytest.mark.parametrize("size", [0, 1, 30, 100, -30, -1])
def test_a_truncated_file_is_refused_by_name(tmp_path, size):
    run(tmp_path, 3)
    whole = (tmp_path / FILE_NAME).read_bytes()
    broken(tmp_path, whole[:size])
    with pytest.raises(FileFormatError, match=r"run\.npz cannot be read.*Delete it to start over"):
        run(tmp_path, 5)


def test_a_file_with_spoiled_bytes_is_refused(tmp_path):
    run(tmp_path, 3)
    content = bytearray((tmp_path / FILE_NAME).read_bytes())
    for place in range(60, len(content), 97):
        spoiled = content.copy()
        spoiled[place : place + 40] = b"\xff" * len(spoiled[place : place + 40])
        broken(tmp_path, bytes(spoiled))
        try:
            found = Checkpoint(tmp_path, "a").load(START)
        except FileFormatError:
            continue
        # Bytes that do not matter, such as a date, may differ.
        assert found is None or found[1] == 3


def test_a_file_of_another_kind_is_refused(tmp_path):
    for save in (
        lambda path: np.save(path, np.ones(3)),
        lambda path: np.savez(path, other=np.ones(3)),
        lambda path: np.savez(path, about=np.frombuffer(b"[1, 2]", dtype=np.uint8)),
        lambda path: np.savez(path, about=np.frombuffer(b'{"key": "a"}', dtype=np.uint8)),
        lambda path: path.write(b"some text"),
    ):
        with (tmp_path / FILE_NAME).open("wb") as stream:
            save(stream)
        with pytest.raises(FileFormatError, match="cannot be read") as error:
            run(tmp_path, 5)
        assert "allow_pickle" not in str(error.value)


def test_a_state_of_another_shape_of_class_is_refused(tmp_path):
    @dataclass(frozen=True)
    class Other:
        y: float = 1.0

    run(tmp_path, 3)
    with pytest.raises(FileFormatError, match="cannot be read"):
        Checkpoint(tmp_path, "a").load(Other())


def test_nothing_that_needs_pickle_is_read(tmp_path):
    with (tmp_path / FILE_NAME).open("wb") as stream:
        np.savez(stream, about=np.array([{"key": "a"}], dtype=object))
    with pytest.raises(FileFormatError, match="cannot be read"):
        run(tmp_path, 5)


def test_a_full_disk_is_said_and_the_old_file_stays_whole(tmp_path, largest_file):
    run(tmp_path, 3)
    before = (tmp_path / FILE_NAME).read_bytes()
    with (
        largest_file(200),
        pytest.raises(OutputError, match=r"could not be written.*The previous one is intact"),
    ):
        run(tmp_path, 5)
    assert (tmp_path / FILE_NAME).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_ctrl_c_while_writing_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch):
    run(tmp_path, 3)
    before = (tmp_path / FILE_NAME).read_bytes()

    def interrupted(stream, array, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("numpy.lib.format.write_array", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Checkpoint(tmp_path, "a").save(START, 4, 1.0, History())
    assert (tmp_path / FILE_NAME).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="could not be written"):
        run(tmp_path / "file" / "folder", 2)


@dataclass(frozen=True)
class Factors:
    """As states of solvers: factors, what begins with their names, sums and numbers."""

    W: np.ndarray
    Ht: np.ndarray
    W_plain: np.ndarray | None = None
    gram: np.ndarray | None = None
    loss: float = 1.0


STORED = Factors(np.ones((4, 2)), np.ones((3, 2)))


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({}, None),
        ({"W_plain": np.ones((4, 2)), "gram": np.ones((2, 2))}, None),
        ({"gram": np.ones(3)}, None),
        ({"gram": np.ones((5, 2))}, "gram does not fit"),
        ({"W": np.ones((5, 2))}, "W does not fit"),
        ({"W": np.ones((4, 3))}, "W does not fit"),
        ({"Ht": np.ones((4, 2))}, "Ht does not fit"),
        ({"W_plain": np.ones((3, 2))}, "W_plain does not fit"),
        ({"Ht": None}, "Ht does not fit"),
        ({"loss": None}, "loss is not a number"),
        ({"loss": "much"}, "loss is not a number"),
    ],
    ids=str,
)
def test_factors_must_fit_the_data(tmp_path, changed, wrong):
    Checkpoint(tmp_path, "a").save(replace(STORED, **changed), 3, 0.5, History())
    if wrong is None:
        state, n_iter, _, _ = Checkpoint(tmp_path, "a").load(STORED)
        assert n_iter == 3
        assert state.loss == 1.0
        np.testing.assert_array_equal(state.W, STORED.W)
        return
    with pytest.raises(FileFormatError, match=wrong):
        Checkpoint(tmp_path, "a").load(STORED)


FACTS = ("hals", 2.0, {"tol": 1e-4}, None, [0, 2], np.arange(6.0).reshape(2, 3))


def test_a_key_is_the_same_for_the_same_facts():
    assert checkpoint_key(*FACTS) == checkpoint_key(*FACTS[:-1], FACTS[-1].copy())
    assert checkpoint_key({"b", "a"}) == checkpoint_key({"a", "b"})
    assert checkpoint_key(FACTS[-1][:, :2]) == checkpoint_key(FACTS[-1][:, :2].copy())


@pytest.mark.parametrize(
    "other",
    [
        ("mu", *FACTS[1:]),
        (*FACTS[:2], {"tol": 1e-5}, *FACTS[3:]),
        (*FACTS[:-1], FACTS[-1] + 1e-12),
        (*FACTS[:-1], FACTS[-1].reshape(3, 2)),
        (*FACTS[:-1], FACTS[-1].astype(np.int64)),
    ],
    ids=["method", "tol", "entries", "shape", "dtype"],
)
def test_a_key_differs_where_a_fact_differs(other):
    assert checkpoint_key(*other) != checkpoint_key(*FACTS)


def test_a_checkpoint_is_made_from_facts_where_a_folder_is_given(tmp_path):
    assert Checkpoint.of(None, *FACTS) is None
    assert Checkpoint.of(str(tmp_path), *FACTS, interval=2.0).key == checkpoint_key(*FACTS)


@pytest.mark.torch
def test_tensors_are_saved_without_being_told_how(tmp_path):
    torch = pytest.importorskip("torch")
    tensor = torch.arange(4.0)
    assert checkpoint_key(tensor) == checkpoint_key(tensor.numpy())
    point = Checkpoint(tmp_path, "a", from_numpy=lambda name, array: torch.asarray(array))
    point.save(replace(START, x=tensor), 1, 0.5, History())
    assert torch.equal(point.load(START)[0].x, tensor)
