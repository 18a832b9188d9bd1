"""Mutated files for every reader: `make fuzz`, or `python -m tests.fuzz --files 100000 --seed 0`.

Each file is read in a child process with a limit on memory and time. An error of nonneg is a clean answer, as
is a table with the numbers that a plain reader finds; anything else (other numbers, another exception, a
crash, a hang) is a finding, whose file is kept.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import io
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

SECONDS = 10.0
MEMORY = 4 << 30


def seeds(folder: Path) -> dict[str, Path]:
    """Write one sound file of every format, and return them by the name of their reader."""
    rng = np.random.default_rng(0)
    X, S = rng.random((6, 4)).round(3), sp.random_array((8, 5), density=0.4, random_state=rng).tocsr()
    found: dict[str, Path] = {}

    def add(name: str, file: str) -> Path:
        found[name] = folder / file
        found[name].parent.mkdir(parents=True, exist_ok=True)
        return found[name]

    np.save(add("npy", "a.npy"), X)
    np.savez(add("npz", "a.npz"), X=X)
    np.savez_compressed(add("npz-packed", "b.npz"), X=X)
    for layout in ("csr", "csc", "coo"):
        sp.save_npz(add(f"npz-{layout}", f"{layout}.npz"), S.asformat(layout), compressed=False)
    text = "name,a,b\n" + "".join(f"r{i},{i / 7},{i}e-3\n" for i in range(9))
    add("csv", "a.csv").write_text(text)
    add("tsv", "a.tsv").write_text(text.replace(",", "\t"))
    add("csv-gz", "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    stream = io.BytesIO()
    scipy.io.mmwrite(stream, S)
    add("mtx", "a.mtx").write_bytes(stream.getvalue())
    add("mtx-gz", "a.mtx.gz").write_bytes(gzip.compress(stream.getvalue()))
    scipy.io.savemat(add("mat", "a.mat"), {"X": X})
    scipy.io.savemat(add("mat-sparse", "b.mat"), {"X": sp.csc_array(S)}, do_compression=True)
    np.save(add("cube-npy", "cube.npy"), rng.random((3, 4, 5)))
    scipy.io.savemat(add("cube-mat", "cube.mat"), {"cube": rng.random((3, 4, 5))})
    add("jsonl", "a.jsonl").write_text("".join(json.dumps({"text": f"word {i}"}) + "\n" for i in range(5)))
    add("txt-gz", "a.txt.gz").write_bytes(gzip.compress(b"one document\nand another\n" * 5))
    add("edges", "a.edges").write_text("a b 1\nb c 2\nc a 0.5\n")
    _write_hdf5(add, S)
    _write_graphs(add)
    _write_models(add, X)
    return found


def _write_hdf5(add, S) -> None:
    try:
        import h5py
    except ImportError:
        return
    with h5py.File(add("h5ad", "a.h5ad"), "w") as file:
        group = file.create_group("X")
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(S, name)
        group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", S.shape
        file["obs/_index"] = [f"c{i}".encode() for i in range(S.shape[0])]
    with h5py.File(add("10x", "a.h5"), "w") as file:
        group = file.create_group("matrix")
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(S, name)
        group["shape"] = S.shape[::-1]
        group["barcodes"] = [f"c{i}".encode() for i in range(S.shape[0])]
        for name in ("features/id", "features/name"):
            group[name] = [f"g{i}".encode() for i in range(S.shape[1])]


def _write_graphs(add) -> None:
    try:
        import networkx
    except ImportError:
        return
    networkx.write_gml(networkx.path_graph(5), add("gml", "a.gml"))
    networkx.write_graphml(networkx.path_graph(5), add("graphml", "a.graphml"))


def _write_models(add, X) -> None:
    from nonneg import NMF
    from nonneg.applications.audio import write_sound

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        NMF(2, max_iter=5).fit(X).save(add("model", "model.npz"))
        NMF(2, max_iter=5, checkpoint=add("checkpoint", "run.npz").parent).fit(X)
    if importlib.util.find_spec("soundfile"):
        write_sound(add("wav", "a.wav"), np.sin(np.arange(4000) / 7.0) / 2, 8000)


def read(name: str, path: Path) -> None:
    """Call the reader of a format."""
    import nonneg
    from nonneg.applications.audio import read_sound
    from nonneg.applications.communities.files import read_graph
    from nonneg.applications.topics.files import read_documents
    from nonneg.io import read_table
    from nonneg.io.cube import read_cube

    if name.startswith("cube"):
        values = np.asarray(read_cube(path).values)
        if name == "cube-npy":
            _compare(values, np.load(path))
    elif name in ("jsonl", "txt-gz"):
        read_documents([path], column="text" if name == "jsonl" else None, lines=name == "txt-gz")
    elif name in ("edges", "gml", "graphml"):
        read_graph(path)
    elif name == "wav":
        read_sound(path)
    elif name == "model":
        nonneg.load(path)
    elif name == "checkpoint":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nonneg.NMF(2, max_iter=6, checkpoint=path.parent).fit(
                np.random.default_rng(0).random((6, 4)).round(3)
            )
    else:
        X = read_table(path).X
        if name in ("npy", "npz", "npz-packed", "csv", "tsv", "csv-gz", "mtx", "mtx-gz"):
            _compare(X.toarray() if sp.issparse(X) else np.asarray(X), _plainly_read(name, path, X.shape))


def _compare(found: np.ndarray, expected: np.ndarray | None) -> None:
    """Fail where a reader returned other numbers; None: the file is beyond the plain reader."""
    if expected is not None:
        np.testing.assert_array_equal(found, np.asarray(expected, dtype=found.dtype), "other numbers")


def _plainly_read(name: str, path: Path, shape: tuple[int, ...]) -> np.ndarray | None:
    """Read a file that was accepted once more, in the simplest way there is."""
    if name == "npy":
        return np.load(path)
    if name.startswith("npz"):
        with np.load(path) as stored:
            return next((stored[key] for key in stored if stored[key].shape == shape), np.empty(0))
    content = path.read_bytes()
    text = (gzip.decompress(content) if name.endswith("gz") else content).decode(errors="replace")
    if name.startswith("mtx"):
        return _coordinates(text, shape)
    mark = "\t" if name == "tsv" else ","
    cells = [line.split(mark) for line in text.splitlines() if line.strip()]
    width = min(map(len, cells), default=0)
    # An empty cell after the last column is no column.
    lines = [
        (row[:-1] if len(row) == width + 1 and not row[-1].strip() else row)[-shape[1] :] for row in cells
    ]
    rows = lines[-shape[0] :]
    if '"' in text or "#" in text or len(lines) < shape[0] or any(len(row) != shape[1] for row in rows):
        return None
    try:
        return np.array([[float(cell) if cell.strip() else np.nan for cell in row] for row in rows])
    except ValueError:  # another delimiter, or words for missing entries
        return None


def _coordinates(text: str, shape: tuple[int, ...]) -> np.ndarray | None:
    lines = [
        line.split() for line in text.splitlines()[1:] if line.strip() and not line.lstrip().startswith("%")
    ]
    if not text.startswith("%%MatrixMarket matrix coordinate real general"):
        return None
    dense = np.zeros(shape)
    for row, column, value in lines[1:]:
        dense[int(row) - 1, int(column) - 1] += float(value)
    return dense


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Change, insert, remove or repeat some bytes, or cut the file off."""
    data = bytearray(content)
    if len(data) > 20 and content[:2] == b"\x1f\x8b" and rng.random() < 0.7:
        # Inside the compressed text; outside, the checksum alone would be tested.
        return gzip.compress(mutated(gzip.decompress(content), rng))
    if content[:2] == b"PK" and rng.random() < 0.7:
        return _with_mutated_member(content, rng)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(0, max(len(data), 1)))
        kind = int(rng.integers(0, 6))
        if kind == 0 and data:
            data[at] = int(rng.integers(0, 256))
        elif kind == 1:
            data[at:at] = rng.bytes(int(rng.integers(1, 9)))
        elif kind == 2:
            del data[at : at + int(rng.integers(1, 17))]
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            data[at:at] = data[at : at + int(rng.integers(1, 33))]
        elif data:
            # An extreme number where a length or an index may stand.
            number = rng.choice([0, -1, 2**31 - 1, -(2**31), 2**40, 255])
            data[at : at + 8] = int(number).to_bytes(8, "little", signed=True)
    return bytes(data)


def _with_mutated_member(content: bytes, rng: np.random.Generator) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w") as new:
        names = old.namelist()
        chosen = names[int(rng.integers(0, len(names)))]
        for name in names:
            new.writestr(name, mutated(old.read(name), rng) if name == chosen else old.read(name))
    return stream.getvalue()


def _read_on(connection) -> None:
    from nonneg.exceptions import NonnegError

    warnings.simplefilter("ignore")
    sys.stderr = io.StringIO()
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY + (8 << 30), resource.RLIM_INFINITY))
    while (task := connection.recv()) is not None:
        name, path = task
        try:
            read(name, Path(path))
            outcome = "read"
        except (NonnegError, ImportError):
            outcome = "clean error"
        except MemoryError:
            outcome = "out of memory"
        except BaseException as error:
            outcome = f"traceback: {type(error).__name__}: {error}"[:200]
        connection.send(outcome)


class Reader:
    """A child process that reads one file after another, and is replaced when it dies or hangs."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_read_on, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def _answered(self) -> bool:
        """Wait for an answer as long as the child has had less than its seconds of a busy machine."""
        before = self._seconds()
        return (
            any(self.connection.poll(SECONDS) or self._seconds() - before > 0.9 * SECONDS for _ in range(10))
            and self.connection.poll()
        )

    def _seconds(self) -> float:
        """Return the processor time of the child so far; 0 where the system does not tell."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def outcome(self, name: str, path: Path) -> str:
        """Return what reading the file led to."""
        self.connection.send((name, str(path)))
        try:
            if self._answered():
                return self.connection.recv()
            found = "hang"
        except (EOFError, ConnectionError):
            found = "crash"
        self.process.kill()
        self.process.join()
        self._start()
        self.connection.send(("csv", str(path.parent / "none.csv")))  # wait until the imports are done
        self.connection.poll(60)
        self.connection.recv()
        return found


def main() -> int:
    """Read mutated files, print counts by format, and return the number of findings."""
    parser = argparse.ArgumentParser(description="Mutate files of every format and read them.")
    parser.add_argument("--files", type=int, default=20_000, help="number of files")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formats", nargs="*", help="these alone")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "nonneg-fuzz")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    findings: Counter[str] = Counter()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        sound = seeds(Path(place) / "seeds")
        chosen = [name for name in sound if not options.formats or name in options.formats]
        reader = Reader()
        reader.outcome("csv", Path(place) / "none.csv")
        for at in range(options.files):
            if time.perf_counter() - started > 60.0 * options.minutes:
                break
            name = chosen[at % len(chosen)]
            rng = np.random.default_rng((options.seed, at))
            path = Path(place) / sound[name].name
            path.write_bytes(mutated(sound[name].read_bytes(), rng))
            outcome = reader.outcome(name, path)
            kind = outcome.partition(":")[0]
            counts.setdefault(name, Counter())[kind] += 1
            if kind not in ("read", "clean error"):
                findings[f"{name}: {outcome}"] += 1
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{kind.replace(' ', '-')}-{at}-{path.name}").write_bytes(path.read_bytes())
            path.unlink(missing_ok=True)
    for name, found in counts.items():
        print(f"{name:12s}", ", ".join(f"{kind} {number}" for kind, number in sorted(found.items())))
    for finding, number in findings.most_common(40):
        print(f"{number:6d}  {finding}")
    n_files = sum(found.total() for found in counts.values())
    print(
        f"{n_files} files in {time.perf_counter() - started:.0f} s, {sum(findings.values())} findings"
        + (f", kept in {options.keep}" if findings else "")
    )
    return min(sum(findings.values()), 1)


if __name__ == "__main__":
    sys.exit(main())
