"""Restarts from independent seeds, in parallel; each is one thread's work and depends on its seed alone."""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from nonneg._arrays import is_cuda_tensor, is_dask, to_float64
from nonneg._devices import free_memory
from nonneg._interruption import ended_by_interrupt, interrupting_others, pending
from nonneg._threads import current_threads, serial, threads
from nonneg._typing import FloatArray, IntArray
from nonneg.consensus.resampling import resampled
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.data.dense import DenseMatrix
from nonneg.data.sparse import SparseArrayMatrix, SparseMatrix, on_host
from nonneg.exceptions import FileFormatError, InterruptedFitWarning
from nonneg.initializers.registry import INITS
from nonneg.iteration import Checkpoint, History, Progress, StopReason
from nonneg.iteration.progress import StepCounter
from nonneg.solvers.batched import restarts_per_batch, run_batched
from nonneg.solvers.restarts import run_restarts

# Maximum number of samples whose labels are compared: the consensus matrix is quadratic in it.
MAX_POINTS = 1000

# From this many nonzeros on, restarts run in single precision, which halves what products read and write.
# Losses agree to eight digits; medians, usages and errors are computed in the precision of X.
SINGLE_PRECISION = 500_000
# The same for entries of dense data and the Kullback-Leibler divergence: half the time on 500 x 96 counts.
SINGLE_PRECISION_KL = 20_000
# Sparse data on a GPU are made dense for the restarts, which then are one batch, up to this many entries, or
# from this share of nonzeros on, if they take no more than this part of the free memory.
DENSE_ENTRIES, DENSE_SHARE, DENSE_MEMORY = 1 << 27, 0.02, 0.125


@dataclass(frozen=True)
class RestartOptions:
    """Data and options that all restarts share."""

    beta: float
    max_iter: int = 1000
    tol: float = 1e-4
    resample: str | None = None


@dataclass(frozen=True, eq=False)
class RestartData:
    """X as it was given, and as it is factorized: with scaled columns."""

    counts: Any
    scaled: DataMatrix
    scale: FloatArray | None
    points: IntArray  # the samples whose labels are kept

    @classmethod
    def of(cls, counts: Any, scaled: Any, scale: FloatArray | None, root: int, beta: float) -> RestartData:
        """Choose the points, and the precision of the restarts."""
        order = np.random.default_rng([root, 1]).permutation(scaled.shape[0])
        sparse = isinstance(scaled, SparseMatrix | SparseArrayMatrix) and scaled.csr.nnz >= SINGLE_PRECISION
        if isinstance(scaled, SparseArrayMatrix):
            # Counts are drawn on the host, so that a GPU gets the same numbers.
            return cls(on_host(counts), _on_device(scaled, sparse), scale, np.sort(order[:MAX_POINTS]))
        host = scaled.numpy_out or scaled.xp.__name__.endswith("numpy")
        dense = isinstance(scaled, DenseMatrix) and host and beta == 1.0
        if sparse or (dense and scaled.shape[0] * scaled.shape[1] >= SINGLE_PRECISION_KL):
            counts, scaled = _single(counts), _single(scaled)
        return cls(counts, scaled, scale, np.sort(order[:MAX_POINTS]))


def _single(data: Any) -> Any:
    xp = data.xp
    weights = None if data.weights is None else xp.astype(data.weights, xp.float32)
    if isinstance(data, SparseMatrix):
        return SparseMatrix(data.csr.astype(np.float32), weights=weights)
    return DenseMatrix(xp.astype(data.dense_rows(0, data.shape[0]), xp.float32), xp, weights=weights)


def _on_device(scaled: SparseArrayMatrix, single: bool) -> LocalMatrix:
    """Return sparse data of a GPU as they are factorized there."""
    xp, n_entries = scaled.xp, scaled.shape[0] * scaled.shape[1]
    dtype = xp.float32 if single else scaled.dtype
    csr = scaled.csr.with_data(xp.astype(scaled.csr.data, dtype))
    weights = None if scaled.weights is None else xp.astype(scaled.weights, dtype)
    many = n_entries > DENSE_ENTRIES and csr.nnz < DENSE_SHARE * n_entries
    if many or (4 if single else 8) * n_entries > DENSE_MEMORY * free_memory(csr.data.device):
        return SparseArrayMatrix(csr, weights=weights)
    return DenseMatrix(csr.toarray(), xp, weights=weights)


@dataclass(frozen=True, eq=False)
class Restart:
    """One run from random factors."""

    n_components: int
    number: int
    seed: int
    spectra: FloatArray  # the components
    labels: IntArray  # the strongest component of each point
    loss: float
    n_iter: int
    converged: bool


def restart_seed(root: int, k: int, number: int) -> int:
    """Return the seed of a restart, which does not depend on how many others there are."""
    return int(np.random.SeedSequence([root, k, number]).generate_state(1, np.uint32)[0])


# Threads that run restarts now.
_running: set[int] = set()
_changed = threading.Condition()


@ended_by_interrupt()
def run_batch(
    data: RestartData,
    k: int,
    batch: Sequence[tuple[int, int]],
    options: RestartOptions,
    *,
    alone: bool = True,
) -> list[Restart]:
    """Run restarts, given by number and seed; `alone` keeps them on the calling thread."""
    if alone:
        with serial(), _counted():
            return run_batch(data, k, batch, options, alone=False)
    scaled: Any = data.scaled
    # The initialization takes the first numbers of the seed, as `NMF` does with it.
    rngs = [np.random.default_rng(seed) for _, seed in batch]
    if options.resample is not None:
        kind, inputs = options.resample, (data.counts, scaled, data.scale)
        drawn = [resampled(*inputs, kind, np.random.default_rng([seed, 1])) for _, seed in batch]
        scaled = drawn[0]
    if options.resample is not None and len(batch) > 1:  # on a GPU, each on data of its own
        factors = [INITS["random"](draw, k, rng=rng) for draw, rng in zip(drawn, rngs, strict=True)]
        runs = run_batched(drawn, "newton", factors, options.max_iter, options.tol)
    else:
        runs = run_restarts(scaled, k, rngs, beta=options.beta, max_iter=options.max_iter, tol=options.tol)
    return [_finished(data, run, k, *one, options) for run, one in zip(runs, batch, strict=True)]


@contextmanager
def _counted() -> Iterator[None]:
    with _changed:
        _running.add(threading.get_ident())
    try:
        yield
    finally:
        with _changed:
            _running.discard(threading.get_ident())
            _changed.notify_all()


def _finished(
    data: RestartData, run: Any, k: int, number: int, seed: int, options: RestartOptions
) -> Restart:
    H = np.ascontiguousarray(to_float64(run.state.Ht).T)
    W = run.state.W
    # Of Dask arrays and tensors on a GPU, only these rows are fetched.
    W = to_float64(W[data.points] if is_dask(W) or is_cuda_tensor(W) else to_float64(W)[data.points])
    return Restart(
        k,
        number,
        seed,
        H,
        # The scale of a component is arbitrary: compare what the components add to a sample.
        np.argmax(W * H.sum(axis=1), axis=1).astype(np.int32),
        float(run.history.loss[-1]) if len(run.history) else math.nan,
        run.n_iter,
        run.stop_reason is not StopReason.MAX_ITER or options.tol <= 0,
    )


def run_all(
    data: RestartData,
    ranks: Sequence[int],
    n_init: int,
    options: RestartOptions,
    *,
    root: int,
    folder: Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callable[[Progress], bool | None] | None = None,
    caller: str = "ConsensusNMF",
) -> dict[int, list[Restart]]:
    """Run what is not stored yet, and return the restarts of each rank in their order.

    Restart by restart through all ranks: the time left can be told from those that are done, and a run that
    is stopped has about as many restarts of each rank.
    """
    done: dict[int, list[Restart]] = {k: [] for k in ranks}
    missing: dict[int, list[int]] = {k: [] for k in ranks}
    for k in ranks:
        for number in range(n_init):
            saved = None if folder is None else _loaded(folder, k, number)
            if saved is None:
                missing[k].append(number)
            else:
                done[k].append(saved)
    counter = StepCounter(caller, sum(map(len, missing.values())), verbose)
    history, started = History(), time.perf_counter()
    try:
        with threads(n_jobs), closing(_computed(data, missing, options, root)) as restarts:
            for restart in restarts:
                if folder is not None:
                    _place(folder, restart.n_components, restart.number).save(restart, 0, 0.0, History())
                done[restart.n_components].append(restart)
                counter.done(f"restarts (k={restart.n_components})")
                if callback is None:
                    continue
                measures = {"loss": restart.loss, "n_components": restart.n_components}
                history.record(counter.n_done, time.perf_counter() - started, measures)
                if callback(Progress(counter.n_done, restart, history)):
                    break
    except KeyboardInterrupt:
        # The end of the process would cut the restarts of other threads off in compiled code.
        with interrupting_others(), _changed:
            _changed.wait_for(lambda: not _running)
        pending.clear()
        if max(len(runs) for runs in done.values()) < 2:
            raise
        n_done = sum(len(runs) for runs in done.values())
        warnings.warn(
            f"Interrupted after {n_done} of {n_init * len(ranks)} restarts; their consensus is returned.",
            InterruptedFitWarning,
            stacklevel=4,
        )
    return {k: sorted(runs, key=lambda run: run.number) for k, runs in done.items() if len(runs) >= 2}


def _computed(
    data: RestartData, missing: dict[int, list[int]], options: RestartOptions, root: int
) -> Generator[Restart]:
    """Yield restarts as they finish."""
    on_host = data.scaled.container in ("dense", "sparse")
    tasks = []
    for k, numbers in missing.items():
        size = 1
        if options.resample != "bootstrap":
            own = options.resample == "poisson"
            size = restarts_per_batch(data.scaled, k, options.beta, own_data=own)
        seeded = [(number, restart_seed(root, k, number)) for number in numbers]
        if on_host:
            # Tasks of about the same length, and one for each thread.
            n_tasks = max(-(-len(seeded) // size), min(current_threads(), len(seeded)))
            size = max(1, -(-len(seeded) // max(n_tasks, 1)))
        tasks += [(k, seeded[at : at + size]) for at in range(0, len(seeded), size)]
    # Restart by restart through all ranks.
    tasks.sort(key=lambda task: (task[1][0][0], task[0]))
    if not on_host:
        # Tensors on a device and Dask arrays are factorized in parallel themselves.
        for k, batch in tasks:
            yield from run_batch(data, k, batch, options, alone=False)
        return
    if data.scaled.container == "sparse" and options.resample is None:
        _ = data.scaled.transposed  # type: ignore[attr-defined]  # once, before threads ask for it
    # joblib, so that `joblib.parallel_config(backend="loky" | "dask")` sends restarts to processes or to a
    # cluster. Arrays that processes share are mapped as private copies: compiled kernels take read-only ones
    # for another type.
    parallel = Parallel(
        n_jobs=min(current_threads(), max(1, len(tasks))),
        prefer="threads",
        return_as="generator_unordered",
        mmap_mode="c",
        batch_size=1,
    )
    finished = parallel(delayed(run_batch)(data, k, batch, options) for k, batch in tasks)
    try:
        for batch in finished:
            yield from batch
    finally:
        with warnings.catch_warnings():
            # joblib warns of tasks that it cancels, and a callback asked for that.
            warnings.filterwarnings("ignore", message=".*have been cancelled", category=UserWarning)
            finished.close()


def _place(folder: Path, k: int, number: int) -> Checkpoint:
    # Data, parameters and seeds are in the name of the folder.
    return Checkpoint(folder / f"rank-{k:03d}" / f"{number:05d}", key="")


def _loaded(folder: Path, k: int, number: int) -> Restart | None:
    """Return a stored restart; a damaged file counts as none, since it can be computed again."""
    nothing = Restart(k, number, 0, np.zeros((0, 0)), np.zeros(0, dtype=np.int32), math.nan, 0, False)
    try:
        loaded = _place(folder, k, number).load(nothing)
    except FileFormatError:
        return None
    return None if loaded is None else loaded[0]
