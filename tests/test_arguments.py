"""`verbose` and `checkpoint`: checked in the same words by everything that takes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nonneg
from nonneg import compare_ranks
from nonneg._arguments import checked_checkpoint, checked_verbose
from nonneg.applications import MixedMembership, SourceSeparation, TopicModel
from nonneg.exceptions import InvalidParameterError

RNG = np.random.default_rng(0)
X = RNG.random((20, 6))
Y = RNG.standard_normal((5, 12, 4))
COVARIANCES = np.einsum("rni,rnj->nij", Y, Y)
RECORDING = RNG.standard_normal(2000)
EDGES = np.ones((12, 12)) - np.eye(12)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "factorize": lambda **given: nonneg.factorize(X, 2, max_iter=2, **given),
    "purify": lambda **given: nonneg.purify(X, X[:2], max_iter=2, check_init="report", **given),
    "learn_transform": lambda **given: nonneg.learn_transform(Y, 2, eps0=1e-3, max_iter=2, **given),
    "joint_diagonalize": lambda **given: nonneg.joint_diagonalize(COVARIANCES, max_iter=2, **given),
    "select_anchors": lambda **given: nonneg.select_anchors(X, 2, max_iter=2, **given),
    "NMF": lambda **given: nonneg.NMF(2, max_iter=2, **given).fit(X),
    "MinVolNMF": lambda **given: nonneg.MinVolNMF(2, max_iter=2, **given).fit(X),
    "SeparableNMF": lambda **given: nonneg.SeparableNMF(2, max_iter=2, **given).fit(X),
    "PurificationNMF": lambda **given: nonneg.PurificationNMF(2, max_iter=2, **given).fit(X),
    "PurificationNMF.partial_fit": lambda **given: nonneg.PurificationNMF(2, **given).partial_fit(X),
    "TransformNMF": lambda **given: nonneg.TransformNMF(2, max_iter=2, **given).fit(Y),
    "SourceSeparation": lambda **given: SourceSeparation(2, max_iter=2, **given).fit(RECORDING),
}
WITHOUT_CHECKPOINT: dict[str, Callable[..., Any]] = {
    "fast-gradient": lambda **given: nonneg.select_anchors(X, 2, method="fast-gradient", max_iter=2, **given),
    "estimate_rank": lambda **given: nonneg.estimate_rank(X, k_max=3, **given),
    "compare_ranks": lambda **given: compare_ranks(X, k_max=3, **given),
    "TopicModel": lambda **given: TopicModel(2, **given).fit(np.round(10 * X)),
    "MixedMembership": lambda **given: MixedMembership(2, **given).fit(EDGES),
}


@pytest.mark.parametrize("value", [np.ones(2), "yes", -1, 0.5, None], ids=repr)
@pytest.mark.parametrize("name", [*FUNCTIONS, *WITHOUT_CHECKPOINT])
def test_verbose_is_a_number_or_a_flag(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"verbose.* must be"):
        (FUNCTIONS | WITHOUT_CHECKPOINT)[name](verbose=value)


@pytest.mark.parametrize("value", [3, True, b"folder", np.ones(2)], ids=repr)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_checkpoint_is_a_path(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"checkpoint.* must be"):
        FUNCTIONS[name](checkpoint=value)


def test_what_is_good_is_taken(tmp_path: Path) -> None:
    assert [checked_verbose(value) for value in (0, 2, True, np.True_, np.int32(1))] == [0, 2, 1, 1, 1]
    assert checked_checkpoint(None) is None
    assert checked_checkpoint(str(tmp_path)) == checked_checkpoint(tmp_path) == tmp_path
    nonneg.factorize(X, 2, max_iter=2, verbose=False, checkpoint=str(tmp_path))
    assert any(tmp_path.iterdir())
