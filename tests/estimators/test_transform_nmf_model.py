"""TransformNMF with a known transform: coefficients, scores, damaged files."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg import TransformNMF
from nonneg.exceptions import FileFormatError, ShapeError
from nonneg.transforms.initialization import dct_matrix


@pytest.fixture
def model():
    found = TransformNMF(2)
    found.n_features_in_, found.eps0_ = 4, 1e-3
    found.transform_, found.components_ = dct_matrix(4), np.full((2, 4), 0.25)
    return found


class OnlyConverts:
    """Converts to an array, and takes part in no NumPy function."""

    __array_function__ = None

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array, dtype)


def test_coefficients_have_the_shape_of_the_frames(model):
    Y = np.random.default_rng(0).standard_normal((2, 5, 4))
    np.testing.assert_allclose(model.analyze(Y), Y @ dct_matrix(4).T)
    assert model.analyze(Y[0]).shape == (5, 4)
    assert model.analyze(Y[:1]).shape == (1, 5, 4)
    np.testing.assert_allclose(model.synthesize(model.analyze(Y)), Y, atol=1e-12)
    assert model.analyze(OnlyConverts(Y[0])).shape == (5, 4)
    np.testing.assert_allclose(model.synthesize([1.0, 0.0, 0.0, 0.0]), dct_matrix(4)[0])
    for wrong in (np.ones(3), np.array(1.0), np.ones((4, 3))):
        with pytest.raises(ShapeError, match=r"of shape \(\.\.\., 4\)"):
            model.synthesize(wrong)


@pytest.mark.parametrize(
    ("off", "eps0", "good"), [(0.0, 0.0, True), (1e-4, 1e-3, True), (1e-2, 1e-3, False), (0.0, -1.0, False)]
)
def test_a_loaded_transform_is_orthogonal(model, off, eps0, good):
    model.transform_, model.eps0_ = model.transform_ + off, eps0
    if good:
        model._complete_loaded()
    else:
        with pytest.raises(FileFormatError, match="orthogonal transform of 4 atoms and eps0 >= 0"):
            model._complete_loaded()


def test_the_score_is_the_mean_over_frames(model):
    Y = np.random.default_rng(1).standard_normal((3, 5, 4))
    W = model.transform(Y)
    V, variances = np.mean((Y @ dct_matrix(4).T) ** 2, axis=0) + 1e-3, W @ model.components_ + 1e-3
    rows = (V / variances + np.log(variances)).mean(axis=1)
    assert model.score(Y) == pytest.approx(-rows.mean())
    weights = np.arange(1.0, 6.0)
    assert model.score(Y, sample_weight=weights) == pytest.approx(-weights @ rows / weights.sum())
