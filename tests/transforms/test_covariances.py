"""Virtual realizations: same covariances, fewer rows; bad input with clear errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.transforms.cases import composite_frames

from nonneg import joint_diagonalize, learn_transform
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NonFiniteDataError,
    ShapeError,
)
from nonneg.transforms import covariances_of, frame_covariances
from nonneg.transforms.certificate import covariance_statement
from nonneg.transforms.rotations.group import random_orthogonal


def sinusoids(n_realizations: int) -> np.ndarray:
    """Frames with random phases: covariances of rank 4, whatever the number of realizations."""
    rng = np.random.default_rng(0)
    t = np.arange(30)
    phases = rng.uniform(0, 2 * np.pi, (n_realizations, 1, 1, 2))
    gains = rng.random((8, 1, 2))
    waves = np.cos(2 * np.pi * np.array([0.07, 0.19]) * t[:, None] + phases)
    return np.sum(gains * waves, axis=-1)


@pytest.mark.parametrize("n_realizations", [20, 200])
def test_variances_of_any_transform_are_kept(n_realizations: int) -> None:
    Y = sinusoids(n_realizations)
    data = frame_covariances(Y)
    assert data.rank == 4
    assert data.n_realizations == n_realizations
    assert data.n_frames == 8
    transform = random_orthogonal(30, 0)
    expected = np.mean((Y @ transform.T) ** 2, axis=0)
    assert np.abs(data.variances(transform) - expected).max() < 1e-14 * expected.max()
    assert data.error < 1e-14
    sigma = np.einsum("rni,rnj->nij", data.virtual, data.virtual)
    assert np.abs(sigma - np.einsum("sni,snj->nij", Y, Y) / n_realizations).max() < 1e-14
    # What was left out bounds the change of any variance.
    assert data.discarded.shape == (8,)
    assert (data.discarded >= 0).all()
    assert data.discarded.max() < 1e-12


def test_the_rows_do_not_grow_with_the_realizations() -> None:
    sizes = {S: frame_covariances(composite_frames(S, 6, 5, 2)).virtual.size for S in (5, 50, 500)}
    assert sizes[5] == sizes[50] == sizes[500]


def test_one_realization_and_full_rank_are_taken_as_they_are() -> None:
    Y = composite_frames(3, 6, 5, 2)
    data = frame_covariances(Y)
    assert np.array_equal(data.virtual, Y / np.sqrt(3))
    assert data.error == 0.0
    alone = frame_covariances(Y[0])
    assert np.array_equal(alone.virtual, Y[:1])
    assert alone.n_realizations == 1


def test_given_covariances_are_factored() -> None:
    Y = composite_frames(9, 6, 5, 2)
    sigma = np.einsum("sni,snj->nij", Y, Y) / 9
    data, expected = covariances_of(sigma), frame_covariances(Y)
    transform = random_orthogonal(5, 1)
    assert np.allclose(data.variances(transform), expected.variances(transform), rtol=1e-12)
    assert data.n_realizations is None


def test_single_precision_stays() -> None:
    Y = composite_frames(9, 6, 5, 2).astype(np.float32)
    assert frame_covariances(Y).virtual.dtype == np.float32
    assert frame_covariances(np.rint(Y).astype(np.int16)).virtual.dtype == np.float64


@pytest.mark.parametrize(
    ("dtype", "off", "accepted"),
    [(np.float64, 1e-11, True), (np.float64, 1e-6, False), (np.float32, 1e-5, True)],
)
def test_rounding_of_symmetric_matrices_is_evened_out(dtype: Any, off: float, accepted: bool) -> None:
    given = np.stack([2.0 * np.eye(3)] * 2).astype(dtype)
    given[1, 0, 2] += off
    if not accepted:
        with pytest.raises(InvalidDataError, match="matrix 1 differs from its transpose by 1e-06"):
            covariances_of(given)
        return
    virtual = covariances_of(given).virtual
    assert virtual.dtype == dtype
    expected = 0.5 * (given + np.swapaxes(given, 1, 2))
    np.testing.assert_allclose(np.einsum("rni,rnj->nij", virtual, virtual), expected, atol=1e-6)


@pytest.mark.torch
def test_tensors_that_need_gradients_are_detached() -> None:
    torch = pytest.importorskip("torch")
    Y = torch.asarray(composite_frames(2, 6, 5, 2), dtype=torch.float64).requires_grad_()
    assert not frame_covariances(Y).virtual.requires_grad


GOOD = composite_frames(2, 6, 5, 2)


def spoiled(value: float) -> np.ndarray:
    Y = GOOD.copy()
    Y[1, 3, 2] = value
    return Y


@pytest.mark.parametrize(
    ("Y", "error", "words"),
    [
        (GOOD[:0], InvalidDataError, "at least one realization"),
        (GOOD[:, :, :1], InvalidDataError, "two samples"),
        (GOOD[:, :1], InvalidDataError, "at least 2 frames"),
        (0.0 * GOOD, InvalidDataError, "silent"),
        (np.ones((2, 6, 5)) * np.arange(1.0, 7.0)[:, None], InvalidDataError, "constant"),
        (spoiled(np.nan), NonFiniteDataError, "realization 1, frame 3, sample 2"),
        (spoiled(np.inf), NonFiniteDataError, "frame 3"),
        (1e200 * GOOD, InvalidDataError, "overflow in float64"),
        (1e100 * GOOD, InvalidDataError, "products of powers overflow in float64. Divide the data"),
        (1e-170 * GOOD, InvalidDataError, "products of powers vanish in float64. Multiply the data"),
        ((1e12 * GOOD).astype(np.float32), InvalidDataError, "overflow in float32"),
        (GOOD[0, 0], ShapeError, "n_frames, frame_length"),
        (GOOD[None], ShapeError, r"got \(1, 2, 6, 5\)"),
        ([[1.0, 2.0], [1.0]], ShapeError, "the same length"),
        (1j * GOOD, DataTypeError, "real numbers"),
        (np.array([["a", "b"], ["c", "d"]]), DataTypeError, "real numbers"),
    ],
)
def test_bad_frames(Y: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        learn_transform(Y, 2)


def test_a_silent_frame_among_others_is_no_obstacle() -> None:
    Y = composite_frames(3, 12, 5, 2)
    Y[:, 4] = 0.0
    for method in ("tl", "jd"):
        result = learn_transform(Y, 2, method=method, eps0=1e-6, max_iter=15, rng=0)
        assert np.isfinite(result.objective)
        assert np.isfinite(result.W).all()
    # Without eps0 the logarithm of its power is minus infinity.
    with pytest.raises(InvalidParameterError, match="frame 4 has rank 0"):
        learn_transform(np.concatenate([Y] * 3), 2, eps0=0.0)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (np.ones((4, 3)), ShapeError, "n_matrices"),
        (np.ones((4, 3, 2)), ShapeError, r"got \(4, 3, 2\)"),
        (np.zeros((4, 3, 3)), InvalidDataError, "zero"),
        (np.triu(np.ones((4, 3, 3))), InvalidDataError, "symmetric"),
        (
            np.stack([np.eye(3)] * 2 + [np.eye(3) + np.eye(3, k=1)]),
            InvalidDataError,
            "matrix 2 differs .* by 1",
        ),
        (np.stack([np.eye(3), np.diag([1.0, np.nan, 1.0])]), NonFiniteDataError, "leave out the matrix"),
        (1e200 * np.stack([np.eye(3)] * 4), InvalidDataError, "overflow in float64"),
        (np.ones((4, 1, 1)), InvalidDataError, "matrices of at least two rows"),
        (np.stack([np.eye(3), -np.eye(3)]), InvalidDataError, "Covariance 1 has the negative eigenvalue"),
        (np.eye(3)[None], InvalidDataError, "two matrices.*numpy.linalg.eigh"),
        (
            np.stack([np.eye(3), np.diag([1.0, 1.0, 0.0])]),
            InvalidParameterError,
            "full rank 3, that of matrix 1 has rank 2",
        ),
    ],
)
def test_bad_covariances(given: np.ndarray, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        joint_diagonalize(given)


def test_chunked_arrays_are_refused_by_name() -> None:
    da = pytest.importorskip("dask.array")
    with pytest.raises(DataTypeError, match=r"got a Dask array\. Compute it"):
        learn_transform(da.from_array(GOOD), 2)
    with pytest.raises(DataTypeError, match=r"got a Dask array\. Compute it"):
        joint_diagonalize(da.from_array(np.stack([np.eye(3)] * 4)))


@pytest.mark.parametrize(
    ("discarded", "eps0", "bound"), [(0.0, 0.0, "0"), (0.1, 0.0, "inf"), (0.1, 0.2, "0.5")]
)
def test_the_certificate_bounds_what_was_left_out(discarded, eps0, bound):
    data = SimpleNamespace(virtual=np.zeros(1), discarded=np.array([discarded]), error=0.0, rank=2)
    statement = covariance_statement(data, eps0)
    assert f"change L by at most {bound} for any transform" in statement.sentence
    assert statement.holds
