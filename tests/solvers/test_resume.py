"""A run taken up from its checkpoint equals the uninterrupted one, for every solver and container."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.contracts.cases import BRANCHES, MAIN_CASES, PENALTIES, entries, initial, run, with_forms
from tests.references.containers import TORCH, as_container, plain

from nonneg.exceptions import FileFormatError, InterruptedFitWarning
from nonneg.iteration import StopReason


def same(first, second):
    np.testing.assert_array_equal(plain(first.W), plain(second.W))
    np.testing.assert_array_equal(plain(first.H), plain(second.H))
    assert first.history.loss == second.history.loss
    assert first.history.n_iter == second.history.n_iter
    assert first.loss == second.loss


@pytest.mark.covering(2)
@pytest.mark.parametrize(("name", "beta"), BRANCHES)
@pytest.mark.parametrize("cut", [1, 9])
def test_a_resumed_run_equals_the_uninterrupted_one(name, beta, cut, tmp_path):
    X = entries(beta)
    options = {**PENALTIES, "sample_weight": np.arange(24) % 3 + 0.5, "init": "random", "rng": 1}
    run(X, name, beta, max_iter=cut, checkpoint=tmp_path, **options)
    resumed = run(X, name, beta, max_iter=20, checkpoint=tmp_path, **options)
    same(resumed, run(X, name, beta, max_iter=20, **options))
    assert resumed.n_iter == 20


@pytest.mark.covering(1)
@pytest.mark.parametrize(("name", "beta", "form"), with_forms(MAIN_CASES, ["csr", TORCH, "dask"]))
def test_a_run_is_taken_up_by_every_container(name, beta, form, tmp_path):
    X = as_container(entries(beta), form)
    run(X, name, beta, max_iter=3, checkpoint=tmp_path, **initial())
    resumed = run(X, name, beta, max_iter=6, checkpoint=tmp_path, **initial())
    whole = run(X, name, beta, max_iter=6, **initial())
    same(resumed, whole)
    assert type(resumed.W) is type(whole.W)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["hals", "anls"])
def test_an_interrupted_run_is_taken_up(name, dtype, tmp_path):
    X = entries(2.0, dtype=dtype)

    def interrupt(progress):
        if progress.n_iter == 7:
            raise KeyboardInterrupt

    with pytest.warns(InterruptedFitWarning, match="after 7 iterations"):
        first = run(X, name, 2.0, checkpoint=tmp_path, callback=interrupt, **initial())
    assert first.stop_reason is StopReason.INTERRUPTED
    same(first, run(X, name, 2.0, max_iter=7, **initial()))
    same(run(X, name, 2.0, checkpoint=tmp_path, **initial()), run(X, name, 2.0, **initial()))


def test_missing_entries_and_frozen_rows_are_taken_up(tmp_path):
    X = entries(2.0)
    options = {
        "mask": np.random.default_rng(1).random(X.shape) < 0.8,
        "frozen_components": [1],
        **initial(),
    }
    run(X, "hals", 2.0, max_iter=5, checkpoint=tmp_path, **options)
    same(
        run(X, "hals", 2.0, max_iter=9, checkpoint=tmp_path, **options),
        run(X, "hals", 2.0, max_iter=9, **options),
    )


# Zeros and ones: sums of reordered entries are equal to the last bit.
BINARY = (entries(2.0) > 0).astype(float)
OTHERS = {
    "other entries": {"X": entries(2.0)},
    "the same rows in another order": {"X": BINARY[::-1]},
    "the same columns in another order": {"X": BINARY[:, ::-1]},
    "another left start": {"W": initial(seed=8)["W"]},
    "another right start": {"H": initial(seed=8)["H"]},
    "weights": {"sample_weight": np.arange(24) % 2 + 0.5},
    "a mask of zeros": {"mask": (BINARY > 0) | (np.random.default_rng(0).random(BINARY.shape) < 0.5)},
    "penalties": {"alpha_W": 0.1},
    "frozen rows": {"frozen_components": [0]},
    "another solver": {"name": "anls"},
    "single precision": {"X": BINARY.astype(np.float32)},
    "the order of the components": {"shuffle": True, "rng": 2},
}


@pytest.mark.parametrize("what", OTHERS)
def test_the_run_of_something_else_is_not_taken_up(what, tmp_path):
    def fit(X, name, **options):
        return run(X, name, 2.0, **options)

    base = {"X": BINARY, "name": "hals", **initial()}
    other = {**base, **OTHERS[what]}
    fit(**base, max_iter=5, checkpoint=tmp_path)
    same(fit(**other, max_iter=7, checkpoint=tmp_path), fit(**other, max_iter=7))


def test_a_broken_checkpoint_is_refused_by_name(tmp_path):
    X = entries(2.0)
    run(X, "hals", 2.0, max_iter=3, checkpoint=tmp_path, **initial())
    path = tmp_path / "run.npz"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FileFormatError, match=r"run\.npz cannot be read.*Delete it"):
        run(X, "hals", 2.0, max_iter=5, checkpoint=tmp_path, **initial())


@pytest.mark.parametrize("changed", ["state_W", "state_Ht", "state_Ht_plain"])
def test_a_checkpoint_with_factors_of_another_form_is_refused(changed, tmp_path):
    # Compiled code reads as many rows as the data have: a forged file would make it read beyond the end.
    X = entries(2.0)
    run(X, "hals", 2.0, max_iter=3, checkpoint=tmp_path, **initial())
    with np.load(tmp_path / "run.npz") as stored:
        arrays = dict(stored)
    arrays[changed] = arrays[changed][:2]
    np.savez(tmp_path / "run.npz", **arrays)
    with pytest.raises(FileFormatError, match=rf"{changed[6:]} does not fit the data.*Delete it"):
        run(X, "hals", 2.0, max_iter=5, checkpoint=tmp_path, **initial())


def test_a_checkpoint_without_a_number_is_refused(tmp_path):
    X = entries(2.0)
    run(X, "hals", 2.0, max_iter=3, checkpoint=tmp_path, **initial())
    with np.load(tmp_path / "run.npz") as stored:
        arrays = dict(stored)
    about = json.loads(bytes(arrays["about"]))
    about["numbers"]["loss"] = None
    np.savez(tmp_path / "run.npz", **arrays | {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)})
    with pytest.raises(FileFormatError, match=r"loss is not a number.*Delete it"):
        run(X, "hals", 2.0, max_iter=5, checkpoint=tmp_path, **initial())
