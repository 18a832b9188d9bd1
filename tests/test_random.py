"""Every kind of seed is accepted, and streams are reproducible and independent."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._random import generator
from nonneg.exceptions import InvalidParameterError


def test_none_draws_fresh_entropy():
    assert generator(None).random() != generator(None).random()


def test_a_generator_is_used_as_it_is():
    rng = np.random.default_rng(0)
    assert generator(rng) is rng


def test_a_random_state_advances():
    legacy = np.random.RandomState(0)
    assert generator(legacy).random() != generator(legacy).random()


@pytest.mark.parametrize("wrong", [-1, 1.5, "seed", True, [1, 2]])
def test_other_seeds_are_refused(wrong):
    with pytest.raises(InvalidParameterError, match="A seed must be None, a nonnegative integer"):
        generator(wrong)
