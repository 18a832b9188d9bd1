"""Compressed iterations: used where they pay, and never seen in the result."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.data import low_rank_plus_noise
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from nonneg import NMF, factorize
from nonneg.data import as_data_matrix
from nonneg.data.spectral import compressed, leading_range
from nonneg.solvers import acceleration

EMBEDDED = {
    "wine": (load_wine, 3),
    "breast cancer": (load_breast_cancer, 2),
    "digits": (load_digits, 5),
}


@pytest.fixture
def everywhere(monkeypatch):
    """Accelerate small data too, and note what was built."""
    monkeypatch.setattr(acceleration, "SMALLEST", 0.0)
    built = []
    original = acceleration.compressed
    monkeypatch.setattr(
        acceleration, "compressed", lambda *given, **options: built.append(1) or original(*given, **options)
    )
    return built


@pytest.fixture(scope="module")
def X():
    return low_rank_plus_noise(300, 120, 5, noise="gaussian", level=0.1, rng=1).X


def is_monotone(history, X):
    """Tell whether the loss never increases by more than its rounding, which is that of the norm of X."""
    return bool(np.all(np.diff(history.loss) <= 1e-13 * np.sum(X**2)))


@pytest.mark.parametrize("name", EMBEDDED)
def test_the_final_loss_is_that_of_a_plain_fit(name, everywhere):
    load, k = EMBEDDED[name]
    X = load().data
    options = {"tol": 1e-9, "max_iter": 3000, "solver": "hals"}
    plain = factorize(X, k, accelerate=False, **options)
    assert not everywhere
    result = factorize(X, k, **options)
    assert everywhere
    assert result.loss <= plain.loss * (1 + 1e-5)
    assert is_monotone(result.history, X)
    assert result.certificate["stationarity"].number <= max(
        1e-4, 2 * plain.certificate["stationarity"].number
    )


def test_history_holds_exact_losses_and_counts_work(X, everywhere):
    seen = []

    def callback(progress):
        state = progress.state
        seen.append(0.5 * np.sum((X - state.W @ state.Ht.T) ** 2))

    result = factorize(X, 5, tol=0, max_iter=30, callback=callback)
    assert everywhere
    np.testing.assert_allclose(result.history.loss, seen, rtol=1e-10)
    assert result.history.n_iter[0] == 1
    assert len(result.history) < result.n_iter == result.history.n_iter[-1] <= 30
    plain = factorize(X, 5, tol=0, max_iter=30, accelerate=False)
    assert result.loss <= plain.loss * (1 + 1e-5)


def test_small_data_are_not_accelerated(X):
    fast, plain = (factorize(X, 5, max_iter=20, accelerate=accelerate) for accelerate in (True, False))
    np.testing.assert_array_equal(fast.W, plain.W)
    assert fast.history.n_iter == plain.history.n_iter


@pytest.mark.covering(1)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"alpha_W": 0.001, "l1_ratio": 0.5}, marks=pytest.mark.slow),
        {"sample_weight": np.linspace(0.5, 2.0, 300)},
        {"shuffle": True, "rng": 3},
    ],
    ids=["plain", "penalties", "weights", "shuffle"],
)
def test_every_option_ends_where_a_plain_fit_does(X, everywhere, dtype, options):
    double = dtype == np.float64
    plain = factorize(X, 5, accelerate=False, max_iter=3000, tol=1e-9, **options)
    result = factorize(X.astype(dtype), 5, max_iter=3000, tol=1e-9, **options)
    assert everywhere
    assert result.W.dtype == dtype
    # In float32 a loss is known to some roundings of the squared norm, and steps that gain less are not seen.
    tolerance = {"rel": 1e-6} if double else {"abs": 32 * np.finfo(np.float32).eps / 2 * np.sum(X**2)}
    assert result.loss == pytest.approx(plain.loss, **tolerance)


@pytest.mark.covering(0)
@pytest.mark.parametrize("unit", [2.0**-200, 2.0**-18, 2.0**18, 2.0**60])
def test_the_unit_of_X_does_not_matter(X, everywhere, unit):
    one = factorize(X, 4, max_iter=400, tol=1e-9)
    assert everywhere
    everywhere.clear()
    other = factorize(X * unit, 4, max_iter=400, tol=1e-9)
    assert other.loss / unit**2 == pytest.approx(one.loss, rel=1e-6)
    # Fourth powers of numbers far from one are beyond float32: all iterations are exact there.
    assert bool(everywhere) is (2.0**-20 < unit < 2.0**20)


def test_an_interrupted_fit_is_resumed(X, everywhere, tmp_path):
    options = {"tol": 0.0, "max_iter": 25}
    whole = factorize(X, 5, **options)
    factorize(X, 5, checkpoint=tmp_path, callback=lambda progress: progress.n_iter >= 7, **options)
    resumed = factorize(X, 5, checkpoint=tmp_path, **options)
    assert resumed.history.n_iter == whole.history.n_iter
    np.testing.assert_allclose(resumed.W, whole.W, rtol=1e-12, atol=1e-12)


def test_frozen_components_and_missing_entries_take_plain_iterations(X, everywhere):
    H = np.abs(np.random.default_rng(0).standard_normal((5, X.shape[1])))
    result = factorize(X, 5, H=H, init="random", rng=0, frozen_components=[0], max_iter=5)
    np.testing.assert_array_equal(result.H[0], H[0])
    NMF(4, max_iter=3, tol=0, missing="mask").fit(
        np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    )
    assert not everywhere


def test_the_same_for_any_number_of_threads(X, everywhere):
    runs = [factorize(X, 5, tol=0.0, max_iter=60, n_jobs=n_jobs) for n_jobs in (1, 2, 3)]
    for run in runs[1:]:
        # To the last digit: rounding in float32 decides which extrapolations are accepted.
        np.testing.assert_array_equal(run.history.loss, runs[0].history.loss)
        np.testing.assert_array_equal(run.W, runs[0].W)
        np.testing.assert_array_equal(run.H, runs[0].H)


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, 300)])
def test_compressed_data_are_a_projection(X, weights):
    data = as_data_matrix(X, weights=weights)
    V = leading_range(data, 12)
    np.testing.assert_allclose(V.T @ V, np.eye(12), atol=1e-12)
    small = compressed(data, 12, dtype=np.float64)
    expected = X @ V @ V.T
    rng = np.random.default_rng(0)
    Ht, W = rng.random((120, 3)), rng.random((300, 3))
    scaled = W if weights is None else W * weights[:, None]
    np.testing.assert_allclose(small.times(Ht), expected @ Ht, rtol=1e-10)
    np.testing.assert_allclose(small.transposed_times(W), expected.T @ scaled, rtol=1e-10)
    np.testing.assert_allclose(small.weighted_gram(W), W.T @ scaled, rtol=1e-10)
    np.testing.assert_allclose(small.take_rows([3, 5]), expected[[3, 5]], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        small.select(slice(2, 9)).dense_rows(0, 7), expected[2:9], rtol=1e-9, atol=1e-9
    )
    squares = expected**2 if weights is None else expected**2 * weights[:, None]
    assert small.squared_norm() == pytest.approx(squares.sum())
    totals = expected if weights is None else expected * weights[:, None]
    assert small.total() == pytest.approx(totals.sum())
    assert small.extremes() == pytest.approx((expected.min(), expected.max()))
    best = np.linalg.svd(X, compute_uv=False)[12:]
    dask = pytest.importorskip("dask.array")
    growing = X * np.linspace(1.0, 9.0, 300)[:, None]  # the largest entry is in the last block
    for rows in (growing, dask.from_array(growing, chunks=(100, -1))):
        high = compressed(as_data_matrix(rows, weights=weights), 12, dtype=np.float64).extremes()[1]
        assert high == pytest.approx(growing.max(), rel=0.2)
    if weights is None:
        assert np.linalg.norm(expected - X) <= 1.1 * np.linalg.norm(best)


def test_chunked_data_save_passes(X, everywhere):
    da = pytest.importorskip("dask.array")
    options = {"max_iter": 30, "tol": 0}
    weights = np.linspace(0.5, 2.0, 300)
    chunked = factorize(da.from_array(X, chunks=(100, -1)), 5, sample_weight=weights, **options)
    assert everywhere
    assert len(chunked.history) < chunked.n_iter
    everywhere.clear()
    local = factorize(X, 5, sample_weight=weights, accelerate=False, **options)
    assert chunked.loss <= local.loss * (1 + 1e-6)


def test_data_in_a_file_save_passes(X, everywhere, tmp_path, monkeypatch):
    from nonneg import open_matrix
    from nonneg.data.streamed import StreamedMatrix

    np.save(tmp_path / "X.npy", X)
    reads = []
    original = StreamedMatrix.map_reduce_rows
    monkeypatch.setattr(
        StreamedMatrix, "map_reduce_rows", lambda *given, **more: reads.append(1) or original(*given, **more)
    )
    weights = np.linspace(0.5, 2.0, 300)
    options = {"tol": 0, "init": "random", "rng": 0, "sample_weight": weights}
    target = factorize(X, 5, accelerate=False, max_iter=20, **options).loss

    def reads_to_target(accelerate):
        reads.clear()
        stored = open_matrix(tmp_path / "X.npy", memory=100_000)
        result = factorize(
            stored, 5, accelerate=accelerate, callback=lambda p: p.history.loss[-1] <= target, **options
        )
        assert result.loss <= target
        return len(reads)

    assert reads_to_target(True) < 0.7 * reads_to_target(False)
    assert everywhere
