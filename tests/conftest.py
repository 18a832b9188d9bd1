"""Fixtures: array namespaces, a Dask cluster, small data."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import os
import signal
import sys
from abc import ABC
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from tests.covering import leave_the_rest
from tests.interpreter import spare_the_interpreter

# For worker processes of pytest-xdist started without the Makefile: they share the cores, and a library of
# threads that is loaded from here on reads these.
if "PYTEST_XDIST_WORKER" in os.environ:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

# Without an NVIDIA driver Triton kernels run in Triton's interpreter, chosen before they are made.
if not any(Path(place).exists() for place in ("/proc/driver/nvidia/version", "/dev/nvidiactl")):
    os.environ.setdefault("TRITON_INTERPRET", "1")

# Clusters of tests are idle most of the time, and watch themselves: that takes one twentieth of a core. Their
# worker processes are forked from one that has imported what they need.
for variable, value in {
    "WORKER__MULTIPROCESSING_METHOD": "spawn" if sys.platform == "win32" else "forkserver",
    "WORKER__PROFILE__ENABLED": "False",
    "ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
    "ADMIN__TICK__INTERVAL": "1s",
    "ADMIN__TICK__CYCLE": "10s",
}.items():
    os.environ.setdefault("DASK_DISTRIBUTED__" + variable, value)

# No test reaches for the network; tests of downloads talk to a server of their own.
os.environ["NONNEG_DOWNLOAD"] = "never"

NAMESPACES = {
    "numpy": "array_api_compat.numpy",
    "array_api_strict": "array_api_strict",
    "torch": "array_api_compat.torch",
}

COMPILING = ("contracts", "kernels")
WITHOUT_KERNELS = ("io", "datasets", "metrics", "report", "repository", "examples", "data/test_faults.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that lets LAPACK choose differently."""
    parser.addoption(
        "--perturb-lapack",
        type=int,
        metavar="SEED",
        help="flip signs of singular vectors and eigenvectors, and move results by a unit in the last place",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set up what test modules meet when they are imported; worker processes get the option too."""
    # After every 700 new objects, as is the default, the garbage collector takes one twentieth of the time of
    # all tests.
    gc.set_threshold(50_000, 20, 20)
    seed = config.getoption("--perturb-lapack")
    if seed is not None:
        from tests.perturbed_lapack import perturb

        perturb(setattr, seed)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let the second worker begin with the last folder: what pytest compiles is there for the other."""
    config = session.config
    whole = config.args == config.getini("testpaths") and not config.getoption("ignore")
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw1" and whole:
        tests = Path(__file__).parent
        config.args = [str(path) for path in sorted((*tests.glob("[a-z]*/"), *tests.glob("test_*.py")))][::-1]
    if "PYTEST_XDIST_WORKER" in os.environ and not config.getoption("durations"):
        _send_less(config)


def _send_less(config: pytest.Config) -> None:
    """Send the outcome of a test, not that it begins or that its fixtures passed: half of all messages."""
    for worker in config.pluginmanager.get_plugins():
        if type(worker).__name__ != "WorkerInteractor":
            continue
        send = worker.sendevent

        def send_some(name: str, *, send: Any = send, **content: Any) -> None:
            data = content.get("data", {})
            fine = name == "testreport" and data["when"] != "call" and data["outcome"] == "passed"
            if name != "logstart" and not fine:
                send(name, **content)

        worker.sendevent = send_some


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests by their files, whatever the order of collection, for two processes that share them.

    Each gets a half. The first half begins with the tests that compile the most kernels, the second with
    those that compile few or none, so that little is compiled twice.
    """
    leave_the_rest(items)
    _draw_no_constants()
    _look_types_up()
    tests = Path(__file__).parent

    @functools.cache
    def place(path: Path) -> tuple[int | None, bool, Path]:
        within = path.relative_to(tests)
        first = [at for at, name in enumerate(WITHOUT_KERNELS) if within.is_relative_to(name)]
        return (first[0] if first else None), within.parts[0] not in COMPILING, path

    early = [item for item in items if place(item.path)[0] is not None]
    others = [item for item in items if place(item.path)[0] is None]
    early.sort(key=lambda item: place(item.path))
    others.sort(key=lambda item: place(item.path)[1:])
    half = len(items) // 2
    items[:] = others[:half] + early + others[half:]


def _draw_no_constants() -> None:
    """Let Hypothesis draw numbers without a look into every module of the library and its tests for some.

    It would parse them all, for 5 s in each process, and draw others whenever another module is imported.
    """
    providers = sys.modules.get("hypothesis.internal.conjecture.providers")
    if hasattr(providers, "_local_constants"):
        providers._get_local_constants = lambda: providers._local_constants


class _Types(tuple):
    """A tuple that looks its entries up; older versions of array-api-strict add it to another one."""

    def __init__(self, entries: Iterable[object]) -> None:
        """Keep the entries as a set as well."""
        self.entries = frozenset(entries)

    def __contains__(self, entry: object) -> bool:
        """Look an entry up."""
        return entry in self.entries


class _HasIndex(ABC):  # noqa: B024
    """`typing.SupportsIndex`, which before Python 3.12 looks at every attribute of it again and again."""

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        """Tell whether a type has the method; the answer is kept."""
        return hasattr(other, "__index__")


def _look_types_up() -> None:
    """Let array-api-strict look types up instead of comparing them one by one: half of its time."""
    with contextlib.suppress(ImportError):
        importlib.import_module("array_api_strict")
    for name, module in list(sys.modules.items()):
        if name.startswith("array_api_strict."):
            for key, value in list(vars(module).items()):
                if key.endswith("_dtypes") and isinstance(value, tuple):
                    setattr(module, key, _Types(value))
                elif key == "SupportsIndex":
                    setattr(module, key, _HasIndex)
                elif key == "_dtype_categories":
                    value.update({word: _Types(types) for word, types in value.items()})


def pytest_collection_finish() -> None:
    """Spare the garbage collector modules and tests, which stay until the process ends.

    Then all is freed: nanobind, below Triton, tells of what is not.
    """
    gc.freeze()
    atexit.register(gc.unfreeze)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let Ctrl-C reach Python, once and for sure."""
    # Jobs in the background of a shell begin with a SIGINT that is ignored; an exception inside a callback of
    # the garbage collector, such as Hypothesis', is lost.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGINT, before)


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.slow)])
def perturbed_lapack(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function that lets LAPACK choose differently for the rest of the test."""
    from tests.perturbed_lapack import perturb

    return lambda: perturb(monkeypatch.setattr, request.param)


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.torch if name == "torch" else ()) for name in NAMESPACES]
)
def xp(request: pytest.FixtureRequest) -> Any:
    """A namespace of the array API; what is not installed is skipped."""
    pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    return importlib.import_module(NAMESPACES[request.param])


@pytest.fixture
def torch() -> Any:
    """PyTorch itself; the test is skipped where it is not installed."""
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture
def device(torch: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Where Triton kernels run: a GPU, or else the processor, by Triton's interpreter.

    There every tensor counts as one on a GPU for the length of the test, so that the library takes the paths
    that it takes on one.
    """
    pytest.importorskip("triton", reason="Triton is not installed")
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if torch.cuda.is_available():
        assert not interpreted, "TRITON_INTERPRET=1 keeps the kernels from the GPU"
        yield torch.device("cuda")
        return
    if not interpreted:
        pytest.skip("there is no GPU, and TRITON_INTERPRET is not 1")
    from nonneg import _arrays

    monkeypatch.setattr(_arrays, "GPU_DEVICES", {"cuda", "cpu"})
    spare_the_interpreter()
    with np.errstate(all="ignore"):  # branches that are not taken are computed all the same
        yield torch.device("cpu")


@pytest.fixture(scope="session")
def dask_cluster() -> Iterator[Any]:
    """A client of a real cluster, workers being threads of this process; not the default client."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50
    )
    client = distributed.Client(cluster, set_as_default=False)
    yield client
    client.close()
    cluster.close()


@pytest.fixture
def dask_client(dask_cluster: Any) -> Iterator[Any]:
    """The cluster's client, current for this test alone: elsewhere dask computes with its own threads."""
    with dask_cluster.as_current():
        yield dask_cluster


@pytest.fixture(scope="module")
def process_cluster() -> Iterator[Any]:
    """A client of a cluster of two worker processes, which take time even if idle; not the default client."""
    pytest.importorskip("distributed", reason="distributed is not installed")
    from benchmarks.cluster import cluster

    # Scheduler and nannies have processes of their own, which warnings as errors do not reach.
    with cluster(2, "900MB", set_as_default=False) as client:
        yield client


@pytest.fixture
def dask_processes(process_cluster: Any) -> Iterator[Any]:
    """The client of the worker processes, current for this test alone, with both of them alive."""
    with process_cluster.as_current():
        process_cluster.wait_for_workers(2, timeout=120)
        yield process_cluster


@pytest.fixture
def sound_hdf5(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare HDF5 files that tests have just written the walk in another process; tests/io damages some."""
    monkeypatch.setattr("nonneg.io.hdf5._check_structure", lambda path, size, changed: None)


@pytest.fixture
def largest_file() -> Callable[[int], AbstractContextManager[None]]:
    """Within its block no file can grow beyond some bytes, as on a full disk."""
    resource = pytest.importorskip("resource", reason="limits of file sizes are of Unix")

    @contextmanager
    def limited(size: int) -> Iterator[None]:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    return limited


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed."""
    return np.random.default_rng(20240607)


@pytest.fixture
def low_rank(rng: np.random.Generator) -> np.ndarray:
    """A positive 60 x 40 matrix of rank 4 with one part in a hundred of noise."""
    exact = rng.gamma(1.0, size=(60, 4)) @ rng.gamma(1.0, size=(4, 40))
    return exact * (1 + 0.01 * rng.random(exact.shape))


@pytest.fixture
def counts(rng: np.random.Generator) -> scipy.sparse.csr_array:
    """Counts of words, 80 x 50 in CSR, nine entries in ten absent; no row and no column is empty."""
    dense = np.where(rng.random((80, 50)) < 0.1, rng.poisson(2.0, size=(80, 50)) + 1, 0).astype(float)
    dense[np.arange(80), np.arange(80) % 50] += 1
    return scipy.sparse.csr_array(dense)


@pytest.fixture(scope="session")
def digits() -> np.ndarray:
    """The 1797 x 64 digits of scikit-learn; read-only, because the tests share them."""
    from sklearn.datasets import load_digits

    X = np.ascontiguousarray(load_digits().data, dtype=float)
    X.flags.writeable = False
    return X
