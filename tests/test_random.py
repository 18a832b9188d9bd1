"""Every kind of seed is accepted, and streams are reproducible and independent."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._random import generator
from nonneg.exceptions import InvalidParameterError


@pytest.mark.parametrize(
    "make",
    [
        lambda: 7,
        lambda: np.int32(7),
        lambda: np.uint64(7),
        lambda: np.random.default_rng(7),
        lambda: np.random.RandomState(7),
        lambda: np.random.SeedSequence(7),
    ],
)
def test_the_same_seed_of_every_kind_gives_the_same_numbers(make):
    first, second = generator(make()), generator(make())
    assert isinstance(first, np.random.Generator)
    np.testing.assert_array_equal(first.standard_normal(5), second.standard_normal(5))


def test_none_draws_fresh_entropy():
    assert generator(None).random() != generator(None).random()


def test_a_generator_is_used_as_it_is():
    rng = np.random.default_rng(0)
    assert generator(rng) is rng


def test_a_random_state_advances():
    legacy = np.random.RandomState(0)
    assert generator(legacy).random() != generator(legacy).random()


def test_an_integer_means_numpy_s_own_stream():
    assert generator(3).random() == np.random.default_rng(3).random()


@pytest.mark.parametrize("wrong", [-1, 1.5, "seed", True, [1, 2]])
def test_other_seeds_are_refused(wrong):
    with pytest.raises(InvalidParameterError, match="A seed must be None, a nonnegative integer"):
        generator(wrong)
