"""Ways that fits take on a GPU end as those of a processor; the kernels for tiles are stand-ins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.iteration import captured, lookahead
from nonneg.iteration.captured import Captured
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers import beta_encoding, hals, mu, newton, newton_pass, row_newton
from nonneg.solvers.beta_encoding import encode_beta
from nonneg.solvers.newton_pass import RowPass
from nonneg.solvers.row_newton import capped_squares, damped_squares, shared_correlations

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
PENALTIES = Penalties(0.01, 0.02, 0.03, 0.04)


class TileSums:
    """What the kernels for tiles return, from the whole model."""

    @staticmethod
    def _model(x, left, right, loss):
        return x + loss.offset, left @ right.T + loss.offset

    @classmethod
    def newton_sums(
        cls, x, left, right, loss, *, mask=None, weights=None, damping=None, capped=False, exact=None,
        want_loss=False, traced=False,
    ):  # fmt: skip
        entries, v = cls._model(x, left, right, loss)
        slope, curvature = row_newton.beta_kernels.newton_terms(
            entries, v, mask, loss.beta, loss.lower_bound, curvature_bound=loss.curvature_bound, exact=exact
        )
        if weights is not None:
            slope, curvature = slope * weights, curvature * weights
        squares = right * right
        if damping is not None:
            squares = capped_squares(right) if capped else damped_squares(right)
        losses = cls.losses(x, left, right, loss, mask=mask, weights=weights) if want_loss else None
        return slope @ right, curvature @ squares, curvature.sum(1) if traced else None, losses

    @classmethod
    def losses(cls, x, left, right, loss, *, mask=None, weights=None):
        entries, v = cls._model(x, left, right, loss)
        given = entries.T, v.T, loss.beta, loss.lower_bound, weights, None if mask is None else mask.T
        return row_newton.beta_kernels.column_losses(*given)

    @classmethod
    def step_lengths(cls, x, left, direction, right, loss, linear, quadratic, slopes, mask=None, losses=None):
        bounds = loss.beta, loss.lower_bound
        return row_newton.beta_kernels.line_search(
            *cls._model(x, left, right, loss), direction @ right.T, mask, *bounds, linear, quadratic, slopes
        )[1]

    @classmethod
    def ratio_sums(cls, x, left, right, loss, *, mask=None, wanted=None):
        entries, v = cls._model(x, left, right, loss)
        own = torch.ones_like(v) if mask is None else mask
        return (own * entries / v) @ right, None if mask is None else own @ right, None


@pytest.fixture
def tiles(monkeypatch):
    """Say that data are on a GPU, in tiles."""
    for module in (row_newton, newton_pass):
        monkeypatch.setattr(module, "beta_sums", TileSums)
    for module in (newton_pass, beta_encoding):
        monkeypatch.setattr(module, "in_tiles", lambda block, Ht: True)


def problem(masked=False, weighted=False):
    rng = np.random.default_rng(0)
    X, W, before = rng.random((11, 6)) + 0.1, rng.random((11, 2)) + 0.1, rng.random((11, 2)) + 0.1
    Ht = rng.random((6, 2)) + 0.1
    options = {"mask": rng.random((11, 6)) < 0.7} if masked else {}
    options |= {"weights": np.arange(1.0, 12.0)} if weighted else {}
    data = as_data_matrix(torch.asarray(X), **options)
    return (data, *(data.to_device(part) for part in (W, before, Ht)))


@pytest.mark.parametrize("beta", [1.0, 1.5])
@pytest.mark.parametrize("momentum", [0.0, 0.4])
@pytest.mark.parametrize(("masked", "weighted"), [(False, False), (True, False), (False, True)])
def test_a_pass_in_tiles_is_the_same(tiles, monkeypatch, beta, momentum, masked, weighted):
    data, W, before, Ht = problem(masked, weighted)
    loss = BetaLoss.of(data, beta)
    model = shared_correlations(loss, Ht, Ht.sum(1), None)
    shared = RowPass(Ht, loss, PENALTIES, model, momentum, 3.0)
    given = (W, before) if momentum else (W,)
    (found,), sums = newton_pass.newton_pass(data, *given, shared=shared)
    monkeypatch.setattr(newton_pass, "in_tiles", lambda block, Ht: False)
    (expected,), wanted = newton_pass.newton_pass(data, *given, shared=shared)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10)
    for mine, theirs in zip(sums, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("pairs", [True, False])
def test_rows_in_tiles_are_encoded_to_the_same_minimum(tiles, monkeypatch, masked, started, pairs):
    if not pairs:
        monkeypatch.setattr(beta_encoding, "MAX_PAIRS", 0)
    data, W, _, Ht = problem(masked)
    options = {"beta": 1.0, "penalties": PENALTIES, "start": W if started else None}
    found = encode_beta(data, Ht, **options)
    monkeypatch.setattr(beta_encoding, "in_tiles", lambda block, Ht: False)
    np.testing.assert_allclose(found, encode_beta(data, Ht, **options), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("module", [mu, newton])
@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_a_recorded_run_is_the_same(monkeypatch, module, beta):
    data, W, _, Ht = problem()
    run = mu.multiplicative if module is mu else newton.scaled_newton
    options = {"penalties": PENALTIES, "beta": beta, "max_iter": 12, "tol": 0.0}
    expected = run(data, W, Ht, **options)
    calls = []
    call = Captured.__call__

    def counted(self, function, kind, arrays, numbers):
        calls.append(kind)
        return call(self, function, kind, arrays, numbers)

    monkeypatch.setattr(module, "is_cuda_tensor", lambda array: True)
    monkeypatch.setattr(Captured, "__call__", counted)
    found = run(data, W, Ht, **options)
    assert len(calls) > 3
    np.testing.assert_allclose(found.history.loss, expected.history.loss, rtol=1e-8)
    np.testing.assert_allclose(found.state.W, expected.state.W, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(found.state.Ht, expected.state.Ht, rtol=1e-5, atol=1e-8)
    # Larger factors are not worth a recording.
    calls.clear()
    monkeypatch.setattr(module, "RECORDED_ENTRIES", 21)
    run(data, W, Ht, **options)
    assert calls == []


@pytest.mark.parametrize("momentum", [0.0, 0.4])
def test_a_recorded_step_returns_what_a_plain_one_does(monkeypatch, momentum):
    data, W, before, Ht = problem()
    steps = newton.NewtonProblem(data, BetaLoss.of(data, 1.0), PENALTIES, None, True, 3.0)
    state, _ = steps.evaluate(newton.NewtonState(W, Ht), Ht, 0.0)
    state = replace(
        state, W_before=before, Ht_plain=0.9 * Ht, steps=torch.full((6,), 0.5, dtype=torch.float64)
    )
    expected, gained, shorter = steps.attempt(state, momentum)
    monkeypatch.setattr(newton, "is_cuda_tensor", lambda array: True)
    found, found_gained, found_shorter = steps.started(state, momentum)
    for name in (*newton.PLAIN, "Ht_plain", "loss"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)
    assert found.W_before is state.W
    assert float(found_gained) == pytest.approx(float(gained))
    if momentum:
        assert shorter is found_shorter is None
    else:
        np.testing.assert_allclose(found_shorter, shorter)


@pytest.mark.parametrize(("entries", "gpu", "wanted"), [(22, True, 3), (23, True, 9), (22, False, 9)])
def test_large_factors_take_few_passes_on_a_gpu(monkeypatch, entries, gpu, wanted):
    data, *_ = problem()
    monkeypatch.setattr(hals, "on_gpu", lambda array: gpu)
    monkeypatch.setattr(hals, "GPU_ENTRIES", entries)
    monkeypatch.setattr(hals, "GPU_PASSES", 3)
    monkeypatch.setattr(hals, "MAX_PASSES", 9)
    monkeypatch.setattr(hals, "SHARE", 100.0)
    assert hals.inner_passes(data, 2) == (wanted, 9)  # W has 22 entries and H 12


@pytest.mark.parametrize("container", ["dense", "csr", "tensor"])
def test_passes_cost_a_share_of_the_products(container):
    X = np.random.default_rng(1).random((12, 8))
    X[X < 0.3] = 0.0
    given = torch.asarray(X) if container == "tensor" else X
    if container == "csr":
        sparse = pytest.importorskip("scipy.sparse")
        given = sparse.csr_array(X)
    weights = np.arange(12) % 3 + 1.0
    repeated = np.repeat(X, weights.astype(int), axis=0)
    for data, plain in ((as_data_matrix(given), X), (as_data_matrix(given, weights=weights), repeated)):
        n, m, entries = len(plain), 8, np.count_nonzero(plain)
        expected = tuple(
            int(1 + 0.45 * (entries / side + other * 2 / side) / 2) for side, other in ((n, m), (m, n))
        )
        assert hals.inner_passes(data, 2) == expected
        assert hals.inner_passes(data, 2, 4.0 * entries)[1] > expected[1]


def test_numbers_are_copied_from_a_gpu_without_waiting(monkeypatch):
    events = []

    class Event:
        def record(self):
            events.append("record")

        def synchronize(self):
            events.append("wait")

    class OnGpu(torch.Tensor):
        is_cuda = True

    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *shape, pin_memory, **options: empty(*shape, **options))
    monkeypatch.setattr(torch.cuda, "Event", Event)
    number = lookahead.DeviceNumber(torch.tensor(3.5, dtype=torch.float64).as_subclass(OnGpu))
    assert events == ["record"]
    assert float(number) == 3.5
    assert events == ["record", "wait"]


def test_one_stream_records_all_graphs_of_a_device(monkeypatch):
    made = []

    class Stream:
        def __init__(self, device):
            made.append(device)
            self.device = "cpu"

        def __enter__(self):
            return self

        def __exit__(self, *given):
            return None

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)
    captured._side_stream.cache_clear()
    try:
        assert captured._side_stream(0) is captured._side_stream(0)
        assert made == [0]
    finally:
        captured._side_stream.cache_clear()
