"""The perturbed functions differ from the ones of the library, and are as good."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse.linalg


def test_decompositions_still_decompose(perturbed_lapack, rng, xp):
    A = rng.standard_normal((30, 5, 4))
    S = A.mT @ A
    before = np.linalg.svd(A)[0], np.linalg.eigh(S)[1], np.linalg.qr(A)[0]
    perturbed_lapack()
    after = xp.linalg.svd(xp.asarray(A))[0], xp.linalg.eigh(xp.asarray(S))[1], xp.linalg.qr(xp.asarray(A))[0]
    for one, other in zip(before, after, strict=True):
        other = np.asarray(other)
        flipped = np.sign(np.sum(one * other, axis=-2))
        assert set(np.unique(flipped)) == {-1.0, 1.0}
    U, s, Vt = (np.asarray(part) for part in xp.linalg.svd(xp.asarray(A), full_matrices=False))
    np.testing.assert_allclose((U * s[:, None, :]) @ Vt, A, atol=1e-13)
    values, V = (np.asarray(part) for part in xp.linalg.eigh(xp.asarray(S)))
    np.testing.assert_allclose((V * values[:, None, :]) @ V.mT, S, atol=1e-13)
    for mode in ("reduced", "complete"):
        Q, R = (np.asarray(part) for part in xp.linalg.qr(xp.asarray(A), mode=mode))
        np.testing.assert_allclose(Q @ R, A, atol=1e-13)
        np.testing.assert_array_equal(np.tril(R, -1), 0)
    np.testing.assert_array_equal(values, np.asarray(xp.linalg.eigh(xp.asarray(S))[0]))


def test_scipy_and_sparse_functions(perturbed_lapack, rng):
    A = rng.standard_normal((30, 20))
    S = A.T @ A

    def vectors():
        # Without a first vector, ARPACK draws one, and the signs are random anyway.
        few = {"k": 12, "v0": np.ones(20)}
        found = scipy.sparse.linalg.eigsh(S, **few)[1], scipy.sparse.linalg.svds(A, **few)[0]
        return scipy.linalg.eigh(S)[1], *found

    before = vectors()
    perturbed_lapack()
    after = vectors()
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(np.abs(one), np.abs(other), atol=1e-9)
        assert (np.sum(one * other, axis=0) < 0).any()
    Q, R, order = scipy.linalg.qr(A, mode="economic", pivoting=True)
    np.testing.assert_allclose(Q @ R, A[:, order], atol=1e-13)
    (R,) = scipy.linalg.qr(A, mode="r")
    np.testing.assert_allclose(R.T @ R, S, atol=1e-12)
    np.testing.assert_allclose(np.abs(np.linalg.qr(A, mode="r")), np.abs(R[:20]), atol=1e-13)


def test_values_move_by_few_units_in_the_last_place(perturbed_lapack):
    S = np.diag([0.0, 1.0, 3.0])
    perturbed_lapack()
    moved = np.concatenate([np.linalg.eigvalsh(S + i * np.eye(3)) - [i, 1 + i, 3 + i] for i in range(9)])
    assert moved.any()
    assert np.abs(moved).max() <= 2 * np.spacing(11.0)
