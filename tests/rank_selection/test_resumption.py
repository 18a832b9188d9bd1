"""A search for the rank that was stopped resumes after its last candidate, and ends with the same digits."""

from __future__ import annotations

import pytest

from nonneg import compare_ranks, estimate_rank
from nonneg.exceptions import FileFormatError, InvalidParameterError
from nonneg.iteration.progress import StepCounter


@pytest.fixture
def X(rng):
    return rng.gamma(1.0, size=(70, 4)) @ rng.gamma(1.0, size=(4, 24)) + 0.3 * rng.random((70, 24))


@pytest.fixture
def stop_after(monkeypatch):
    """Let Ctrl-C come after a number of parts, of all methods together."""
    done = StepCounter.done

    def stop(count):
        said = []

        def counted(self, what, parts=1):
            said.append(f"{self.name} {what}")
            done(self, what, parts)
            if len(said) == count:
                raise KeyboardInterrupt

        monkeypatch.setattr(StepCounter, "done", counted)
        return said

    return stop


def test_a_stopped_search_resumes(X, stop_after, tmp_path):
    options = {"rng": 0, "method_params": {"n_folds": 2}}
    everything = stop_after(None)
    whole = compare_ranks(X, **options)
    n_parts = len(everything)
    assert n_parts > 8
    for count in (3, 4, n_parts // 2):
        stop_after(count)
        with pytest.raises(KeyboardInterrupt):
            compare_ranks(X, checkpoint=tmp_path, **options)
    last = stop_after(None)
    again = compare_ranks(X, checkpoint=tmp_path, **options)
    assert again.as_dict() == whole.as_dict()
    assert any("resumed" in line for line in last)
    assert len([line for line in last if "resumed" not in line]) < n_parts - 2
    # Everything is known now: nothing is fitted any more.
    finished = stop_after(None)
    assert compare_ranks(X, checkpoint=tmp_path, **options).as_dict() == whole.as_dict()
    assert all("resumed" in line for line in finished)


def test_another_search_does_not_resume(X, stop_after, tmp_path):
    options = {"method": "cross-validation", "candidates": [2, 3, 4], "checkpoint": tmp_path}
    first = estimate_rank(X, rng=0, method_params={"n_folds": 3}, **options)
    for other in ({"rng": 1}, {"rng": 0, "method_params": {"n_folds": 4}}):
        said = stop_after(None)
        estimate_rank(X, **{"method_params": {"n_folds": 3}} | other, **options)
        assert not any("resumed" in line for line in said)
    assert estimate_rank(X.copy(), rng=0, method_params={"n_folds": 3}, **options).rank == first.rank


def test_a_damaged_checkpoint_is_refused(X, tmp_path):
    options = {"method": "cross-validation", "candidates": [2, 3], "checkpoint": tmp_path, "rng": 0}
    estimate_rank(X, **options)
    (path,) = tmp_path.rglob("run.npz")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(FileFormatError, match="Delete it to start over"):
        estimate_rank(X, **options)


def test_the_folder_is_checked(X):
    with pytest.raises(InvalidParameterError, match="checkpoint must be None or the path of a folder, got 3"):
        compare_ranks(X, checkpoint=3)
