"""Columns of measures."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from nonneg.iteration import History


def test_a_measure_that_is_absent_is_nan_there():
    history = History()
    history.record(1, 0.1, {"loss": 3.0})
    history.record(2, 0.2, {"loss": 2, "gap": np.float32(0.5)})
    history.record(3, 0.3, {"gap": 0.25})
    assert history.names == ["n_iter", "seconds", "loss", "gap"]
    assert history.loss[:2] == [3.0, 2.0]
    assert math.isnan(history.loss[2])
    assert math.isnan(history["gap"][0])
    assert history["gap"][1:] == [0.5, 0.25]
    assert all(type(value) is float for value in history["gap"])
    assert len(history) == 3
    assert "gap" in history
    assert "other" not in history


def test_no_loss_is_an_empty_column():
    assert History().loss == []


def test_an_unknown_measure_is_an_error():
    with pytest.raises(KeyError, match="gap"):
        History()["gap"]


def test_batches_and_everything_else_are_ready_for_json():
    history = History()
    history.record(1, 0.5, {"loss": np.array([1.0, 2.0]), "rate": np.float64(3.0)})
    text = json.dumps(history.as_dict())
    again = History(json.loads(text))
    assert again.as_dict() == history.as_dict()
    assert again["loss"] == [[1.0, 2.0]]


def test_a_copy_of_the_columns_does_not_share_them():
    history = History()
    history.record(1, 0.5, {"loss": 1.0})
    other = History(history.as_dict())
    other.record(2, 0.6, {"loss": 0.5})
    assert len(history) == 1
    assert history.loss == [1.0]


def test_it_describes_itself():
    history = History()
    history.record(7, 0.5, {"loss": 1.25})
    assert "1 iterations" in repr(history)
    assert "1.25" in repr(history)


def test_a_run_that_continued_counts_on():
    history, more = History(), History()
    history.record(1, 0.5, {"loss": 3.0})
    history.record(2, 1.0, {"loss": 2.0})
    more.record(1, 0.25, {"gap": 0.1})
    more.record(3, 0.75, {"loss": 1.0})
    history.extend(more)
    assert history.n_iter == [1, 2, 3, 5]
    assert history.seconds == [0.5, 1.0, 1.25, 1.75]
    assert history.loss[3] == 1.0
    assert math.isnan(history.loss[2])
    assert history["gap"][2] == 0.1
    other = History()
    other.extend(more)
    assert (other.n_iter, other.seconds) == ([1, 3], [0.25, 0.75])


def test_an_array_without_axes_is_a_number():
    history = History()
    history.record(1, 0.5, {"loss": np.array(2.0), "each": np.array([2.0])})
    assert type(history.loss[0]) is float
    assert isinstance(history["each"][0], np.ndarray)
