"""Claim: a file larger than memory is read once per iteration, near the speed of the disk, in little memory.

Each case writes a file, fits it in a fresh process with ``memory="2GB"`` and deletes it. The process may not
have more than 2 GB of private memory (``RLIMIT_DATA``), so that a fit that read the file whole would fail.
What the disk itself gives is measured in the same process right before and after the fit, on the same file,
by direct reads of 16 MB. Bytes that came from the disk are those that Linux counts (``/proc/self/io``). Pages
are dropped before the fit; a file that fits in the system's cache is in it after the first read.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.contender import quiet
from benchmarks.memory import FLOOR, peak_beyond
from benchmarks.processes import measured_apart
from benchmarks.race import Settings
from benchmarks.records import latest
from benchmarks.tables import markdown, number

NAME = "out_of_core"
TITLE = "Files larger than memory: reads per iteration, fraction of the disk's bandwidth, memory"
MEMORY = 2 * 10**9
BAR_BANDWIDTH = 0.6
"""Part of the disk's bandwidth that the iterations must use, for dense files."""
PROBE_BYTES, SEGMENT = 4 * 2**30, 16 * 2**20


@dataclass(frozen=True)
class Case:
    """A file and a fit."""

    name: str
    kind: str  # "npy" or "h5ad"
    shape: tuple[int, int]
    density: float
    n_components: int
    max_iter: int
    init: str | None
    memory: int = MEMORY


CASES = {
    case.name: case
    for case in (
        Case("npy 1.6 GB", "npy", (400_000, 1_000), 1.0, 10, 4, "random", 10**9),
        Case("h5ad 8e7 nonzeros", "h5ad", (80_000, 20_000), 0.05, 10, 2, "random", 10**9),
        Case("npy 20 GB", "npy", (2_500_000, 2_000), 1.0, 10, 6, None),
        Case("h5ad 1e9 nonzeros", "h5ad", (1_000_000, 20_000), 0.05, 10, 2, "random"),
    )
}
QUICK = ("npy 1.6 GB", "h5ad 8e7 nonzeros")


def write_npy(path: Path, case: Case) -> None:
    """Write low-rank data with noise, a block of rows at a time."""
    n_rows, n_columns = case.shape
    rng = np.random.default_rng(0)
    H = rng.gamma(0.5, size=(case.n_components, n_columns)).astype(np.float32)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=case.shape)
    step = max(1, 10**8 // n_columns)
    noise = rng.random((min(step, n_rows), n_columns), dtype=np.float32)
    for start in range(0, n_rows, step):
        stop = min(n_rows, start + step)
        W = rng.gamma(0.5, size=(stop - start, case.n_components)).astype(np.float32)
        X[start:stop] = W @ H + noise[: stop - start]
    X.flush()


def write_h5ad(path: Path, case: Case) -> None:
    """Write counts in AnnData's layout, by rows."""
    import h5py

    (n_rows, n_columns), density = case.shape, case.density
    rng = np.random.default_rng(0)
    levels = rng.gamma(1.0, 4.0, size=(8, n_columns)).astype(np.float32)
    step = max(1, 10**7 // int(n_columns * density))
    with h5py.File(path, "w") as file:
        file.attrs["encoding-type"], file.attrs["encoding-version"] = "anndata", "0.1.0"
        group = file.create_group("X")
        group.attrs["encoding-type"], group.attrs["encoding-version"] = "csr_matrix", "0.1.0"
        group.attrs["shape"] = np.array(case.shape)
        kind = {"shape": (0,), "maxshape": (None,), "chunks": (1 << 20,)}
        data = group.create_dataset("data", dtype=np.float32, **kind)
        indices = group.create_dataset("indices", dtype=np.int32, **kind)
        counts = []
        for start in range(0, n_rows, step):
            rows = min(step, n_rows - start)
            # Gaps between the nonzeros of the rows in a row, so that they come sorted.
            gaps = rng.geometric(density, int(rows * n_columns * density * 1.01) + 1000)
            places = np.cumsum(gaps) - 1
            places = places[places < rows * n_columns]
            row, column = np.divmod(places, n_columns)
            values = 1.0 + np.floor(levels[(start + row) % 8, column] * rng.random(len(places)))
            counts.append(np.bincount(row, minlength=rows))
            before = data.shape[0]
            for stored, part in ((data, values), (indices, column)):
                stored.resize((before + len(part),))
                stored[before:] = part
        group["indptr"] = np.concatenate([[0], np.cumsum(np.concatenate(counts))])


def disk_bandwidth(path: Path) -> float:
    """Return the bytes per second of direct sequential reads of a file, from its middle."""
    size = path.stat().st_size
    wanted = min(PROBE_BYTES, size // SEGMENT * SEGMENT)
    room = np.empty(SEGMENT + 4096, dtype=np.uint8)
    first = -room.ctypes.data % 4096
    view = memoryview(room[first : first + SEGMENT])
    begin = (size - wanted) // 2 // SEGMENT * SEGMENT
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        started = time.perf_counter()
        for place in range(begin, begin + wanted, SEGMENT):
            os.preadv(descriptor, [view], place)
        return wanted / (time.perf_counter() - started)
    finally:
        os.close(descriptor)


def _bytes_from_disk() -> int:
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("read_bytes:"):
            return int(line.split()[1])
    raise OSError("/proc/self/io has no line read_bytes")


def drop_cache(path: Path) -> None:
    """Ask the system to forget what it has cached of a file."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fdatasync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def measure(case: Case, path: Path, threads: int) -> dict[str, Any]:
    """Return the record of one fit; to be called in a fresh process."""
    from nonneg import NMF, open_matrix
    from nonneg.data.door import wrap

    _warm_up(case, threads)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    disk = [disk_bandwidth(path)]
    found: dict[str, Any] = {}

    def fit() -> None:
        drop_cache(path)
        with open_matrix(path, memory=case.memory) as stored:
            started = time.perf_counter()
            data = wrap(stored)
            marks = [(time.perf_counter(), data.n_passes, _bytes_from_disk())]
            found["seconds_check"] = marks[0][0] - started

            def note(progress: Any) -> None:
                marks.append((time.perf_counter(), data.n_passes, _bytes_from_disk()))

            model = NMF(
                case.n_components, init=case.init, max_iter=case.max_iter, tol=0, random_state=0,
                n_jobs=threads, callback=note, **_every_iteration_reads(),
            )  # fmt: skip
            with quiet():
                W = model.fit_transform(data)
            found["seconds"] = time.perf_counter() - started
            found["file_bytes"] = stored.n_bytes
            found["block_bytes"] = max(np.diff(stored.cuts())) * stored.row_bytes()
            found["n_passes"], found["n_iter"] = data.n_passes, model.n_iter_
            found["factor_bytes"] = W.nbytes + model.components_.nbytes
            found["stationarity"] = model.certificate_["stationarity"].number
            found["relative_error"] = model.reconstruction_err_ / data.squared_norm() ** 0.5
            # The first iteration follows the initialization.
            steps = [tuple(np.subtract(b, a).tolist()) for a, b in itertools.pairwise(marks[1:])]
            found["reads_per_iteration"] = statistics.mean(passes for _, passes, _ in steps)
            found["from_disk"] = sum(size for *_, size in steps) / max(1, sum(n for _, n, _ in steps))
            found["bandwidth"] = statistics.median(stored.n_bytes * n / s for s, n, _ in steps)

    peak, how = peak_beyond(fit)
    disk.append(disk_bandwidth(path))
    allowed = 2 * found["block_bytes"] + 6 * found["factor_bytes"] + FLOOR
    # Where the system keeps the file in its cache, only the first read says something about the disk.
    cached = found["from_disk"] < 0.1 * found["file_bytes"]
    found["first_bandwidth"] = found["file_bytes"] / found["seconds_check"]
    part = found["first_bandwidth"] / disk[0] if cached else found["bandwidth"] / statistics.mean(disk)
    met = (
        found["reads_per_iteration"] < 1.5
        and peak <= allowed
        and (case.kind != "npy" or part >= BAR_BANDWIDTH)
    )
    return found | {
        "disk": disk, "part": part, "cached": cached, "peak": peak, "allowed": allowed, "how": how,
        "met": met, "source": f"generated, {case.shape[0]} x {case.shape[1]} float32", "limit": MEMORY,
    }  # fmt: skip


def _every_iteration_reads() -> dict[str, Any]:
    """Switch iterations on compressed data off, which do not read the file."""
    from nonneg import NMF

    return {"accelerate": False} if "accelerate" in NMF().get_params() else {}


def _warm_up(case: Case, threads: int) -> None:
    """Compile and load the kernels on a small matrix of the same type."""
    import scipy.sparse as sp

    from nonneg import NMF
    from nonneg.data import as_data_matrix
    from nonneg.io.stored import ArrayRows, CompressedRows

    X = np.random.default_rng(0).random((2000, 600), dtype=np.float32)
    csr = sp.csr_array(X)
    small: Any = ArrayRows(X, "warm-up", X.nbytes)
    if case.kind == "h5ad":
        small = CompressedRows(csr.data, csr.indices, csr.indptr, csr.shape, "warm-up", X.nbytes)
    model = NMF(case.n_components, init=case.init, max_iter=2, tol=0, n_jobs=threads)
    with quiet():
        model.fit(as_data_matrix(small))


def run(settings: Settings) -> Iterator[dict[str, Any]]:
    """Write, measure and delete every file; TMPDIR says where."""
    for name in settings.named(QUICK if settings.quick else [name for name in CASES if name not in QUICK]):
        case = CASES[name]
        folder = Path(tempfile.mkdtemp(prefix="nonneg-benchmark-"))
        head = {"claim": NAME, "case": name, "dtype": "float32", "threads": settings.threads}
        try:
            path = folder / f"X.{case.kind}"
            (write_npy if case.kind == "npy" else write_h5ad)(path, case)
            drop_cache(path)
            yield head | measured_apart("out_of_core", name, str(path), str(settings.threads))
        finally:
            shutil.rmtree(folder)


def table(records: list[dict[str, Any]]) -> str:
    """Return the table of the records."""
    rows = []
    for record in latest(records, "case", "threads"):
        cells = [record["case"], str(record["threads"])]
        if "failure" in record:
            rows.append([*cells, *["-"] * 8, f"failed: {record['failure']}"])
            continue
        rows.append(
            [
                *cells,
                number(record["file_bytes"] / 1e9),
                number(record["reads_per_iteration"]),
                number(record["from_disk"] / 1e9),
                number(record["first_bandwidth"] / 1e9),
                number(record["bandwidth"] / 1e9),
                " to ".join(number(rate / 1e9) for rate in sorted(record["disk"])),
                f"{100 * record['part']:.0f}% ({'first read' if record['cached'] else 'iterations'})",
                f"{number(record['peak'] / 1e6)} of {number(record['allowed'] / 1e6)}",
                "met" if record["met"] else "missed",
            ]
        )
    heading = (
        "file", "threads", "GB", "reads per iteration", "GB from disk per read", "GB/s, first read",
        "GB/s, iterations", "disk's GB/s", "fraction of the disk", "peak memory (MB)", "target",
    )  # fmt: skip
    return markdown(heading, rows) + (
        '\n\nEach file is fitted with `memory="2GB"`. The bound of the peak memory is two blocks, six times '
        f"the factors and {FLOOR / 1e6:.0f} MB. A file that fits in the system's cache is read from the disk "
        f"once. Dense files must use {BAR_BANDWIDTH:.0%} of the disk's bandwidth. Sparse ones have no such "
        "target: unpacking rows and multiplying take longer than the disk."
    )


def main() -> None:
    """Measure one case and write its record as JSON."""
    parser = argparse.ArgumentParser()
    for name in ("case", "path", "threads"):
        parser.add_argument(name)
    given = parser.parse_args()
    with machine.limited(int(given.threads)):
        record = measure(CASES[given.case], Path(given.path), int(given.threads))
    sys.stdout.write(json.dumps(record))


if __name__ == "__main__":
    main()
