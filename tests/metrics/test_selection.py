"""How well anchors were found."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.exceptions import InvalidParameterError
from nonneg.metrics import anchors_found, relative_approximation, success_rate


def test_share_of_anchors():
    assert anchors_found([1, 5, 9], [9, 2, 1]) == pytest.approx(2 / 3)
    assert anchors_found(np.array([4]), [4]) == 1.0
    with pytest.raises(InvalidParameterError, match="at least one true anchor"):
        anchors_found([], [1])


def test_a_success_is_exactly_the_true_set_in_any_order():
    trials = [([1, 2, 3], [3, 1, 2]), ([1, 2, 3], [1, 2]), ([1, 2], [1, 2, 3]), ([7], np.array([7]))]
    assert success_rate(trials) == 0.5
    assert success_rate(trials[:3]) == pytest.approx(1 / 3)
    with pytest.raises(InvalidParameterError, match="at least one trial"):
        success_rate([])


def test_relative_approximation():
    X = np.array([[3.0, 0.0], [0.0, 4.0]])
    assert relative_approximation(X, np.eye(2), X) == 1.0
    assert relative_approximation(X, np.zeros((2, 1)), np.ones((1, 2))) == 0.0
    assert relative_approximation(X, [[1.0], [0.0]], [[3.0, 0.0]]) == pytest.approx(1 - 4 / 5)
