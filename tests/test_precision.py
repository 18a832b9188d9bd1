"""Precision of products of float32 tensors: PyTorch's setting is changed for a block, and restored."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from nonneg._devices import chosen_products, float32_products
from nonneg.exceptions import InvalidParameterError

NEW, OLD = ("fp32_precision", ("ieee", "tf32")), ("allow_tf32", (False, True))


def test_an_unknown_name_is_refused():
    with (
        pytest.raises(InvalidParameterError, match="precision must be 'float32' or 'tf32', got 'tf16'"),
        float32_products("tf16"),
    ):
        pass


@pytest.mark.parametrize(("name", "values"), [NEW, OLD], ids=["new", "old"])
@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("wanted", [0, 1])
def test_the_setting_of_pytorch_is_what_was_chosen_and_then_what_it_was(
    name, values, before, wanted, monkeypatch
):
    matmul = SimpleNamespace(**{name: values[before]})
    backends = SimpleNamespace(cuda=SimpleNamespace(matmul=matmul))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(backends=backends))
    with float32_products("tf32"):  # the inner block counts
        with float32_products(("float32", "tf32")[wanted]), chosen_products():
            assert vars(matmul) == {name: values[wanted]}
        with chosen_products():
            assert vars(matmul) == {name: values[1]}
    assert vars(matmul) == {name: values[before]}
    with pytest.raises(RuntimeError), float32_products(("float32", "tf32")[wanted]), chosen_products():
        raise RuntimeError
    assert vars(matmul) == {name: values[before]}


@pytest.mark.parametrize("unset", ["none", "ieee"])
def test_full_precision_under_any_name_is_left_alone(unset, monkeypatch):
    class Fixed:
        fp32_precision = property(lambda self: unset)  # setting it is an error

    backends = SimpleNamespace(cuda=SimpleNamespace(matmul=Fixed()))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(backends=backends))
    with chosen_products():
        pass


def test_without_pytorch_there_is_nothing_to_set(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with float32_products("tf32"), chosen_products():
        pass
