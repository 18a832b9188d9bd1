"""Device of the points of an experiment."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.device import ENVIRONMENT_VARIABLE, chosen_device, describe_device, to_device, use_device

from nonneg.exceptions import InvalidParameterError


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)


def test_without_a_device_the_points_stay():
    X = np.ones((2, 3))
    assert to_device(X) is X
    assert describe_device() is None
    with use_device(None):
        assert chosen_device() is None


@pytest.mark.torch
def test_points_go_to_the_device_that_was_asked_for():
    torch = pytest.importorskip("torch")
    X = np.arange(6.0).reshape(2, 3)
    with use_device("cpu"):
        tensor = to_device(X)
        assert isinstance(tensor, torch.Tensor)
        np.testing.assert_array_equal(tensor.numpy(), X)
        assert describe_device() == f"cpu, torch {torch.__version__}"
    assert chosen_device() is None


@pytest.mark.torch
def test_an_unknown_device_is_explained():
    pytest.importorskip("torch")
    with pytest.raises(InvalidParameterError, match="'abacus' cannot be used"), use_device("abacus"):
        pass
    assert chosen_device() is None


@pytest.mark.torch
@pytest.mark.parametrize("method", ["merit", "fast-gradient"])
def test_tensors_give_the_anchors_of_arrays(method):
    pytest.importorskip("torch")
    from reproduction.merit.anchor_trials import run

    setting = {"data": "middle", "n": 55, "n_features": 50, "n_anchors": 10, "snr": 17, "method": method}
    setting |= {"first_draw": 0, "n_draws": 1}
    (plain,) = run(setting)
    with use_device("cpu"):
        (placed_there,) = run(setting)
    assert {key: plain[key] for key in plain if key != "s"} == {
        key: placed_there[key] for key in plain if key != "s"
    }
