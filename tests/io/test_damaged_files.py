"""Files built to crash a reader or to fill the memory end in an error that says what is wrong."""

from __future__ import annotations

import contextlib
import gzip
import io
import struct
import warnings
import zipfile
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from tests import fuzz

from nonneg.applications.topics.files import read_documents
from nonneg.exceptions import FileFormatError, NonnegError
from nonneg.io import limits, read_table
from nonneg.io.cube import read_cube

GOOD = b"%%MatrixMarket matrix coordinate real general\n% made by hand\n\n2 3 3\n1 1 1.5\n2 2 2e-1\n2 3 .5\n"


def test_a_sound_matrix_market_file_is_read(tmp_path):
    (tmp_path / "a.mtx").write_bytes(GOOD)
    (tmp_path / "a.mtx.gz").write_bytes(gzip.compress(GOOD.replace(b"\n", b"\r\n")))
    # A blank at the end and no newline crash SciPy's reader.
    (tmp_path / "b.mtx").write_bytes(GOOD.rstrip() + b" \t")
    (tmp_path / "b.mtx.gz").write_bytes(gzip.compress(GOOD.rstrip() + b" "))
    for name in ("a.mtx", "a.mtx.gz", "b.mtx", "b.mtx.gz"):
        found = read_table(tmp_path / name).X
        np.testing.assert_array_equal(found.toarray(), [[1.5, 0, 0], [0, 0.2, 0.5]])


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("dense", [False, True])
def test_what_scipy_writes_passes_the_check(field, dense, tmp_path, rng):
    X = (rng.random((7, 5)) < 0.4) * rng.integers(1, 9, (7, 5)) * (1e-7 if field == "real" else 1)
    if dense and field == "pattern":
        pytest.skip("dense files have entries")
    scipy.io.mmwrite(tmp_path / "a.mtx", X if dense else sp.coo_array(X), field=field)
    found = read_table(tmp_path / "a.mtx").X
    found = found.toarray() if sp.issparse(found) else found
    np.testing.assert_allclose(found, X > 0 if field == "pattern" else X)


STOPS = r"could not be read as a (compressed )?Matrix Market"
DAMAGES = {
    b"2e-1": {b"2e": f"{STOPS}.*'2e'", b"2e-": STOPS},
    b"2 2 2e-1": {b"2 200 2e-1": STOPS},
    b"1 1 1.5": {b"1 1": STOPS, b"1 1 1\x00.5": STOPS, b"1 1 1.5 2 3 4 5 6": STOPS},
    b"3 .5\n": {b"3 .5 6": f"{STOPS}.* 4 were found", b"3 .5\xff\n": STOPS, b"3 0.5e+": STOPS},
    b"2 3 3\n": {b"2 3 999999999999\n": "declares 999999999999 entries", b"2 3 x\n": "as whole numbers"},
    b"%%Matrix": {b"%%Matrox": "is not a Matrix Market file"},
}


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [(old, new, match) for old, changes in DAMAGES.items() for new, match in changes.items()],
)
@pytest.mark.parametrize("packed", [False, True])
def test_damaged_matrix_market_files(old, new, match, packed, tmp_path):
    text = GOOD.replace(old, new)
    path = tmp_path / ("a.mtx.gz" if packed else "a.mtx")
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(FileFormatError, match=match):
        read_table(path)


WILD = {
    "indptr": {"indptr": np.array([0, 2, 2**40])},
    "falling": {"indptr": np.array([0, 3, 2])},
    "falling to zero": {"indptr": np.array([0, 2**24, 0])},  # which SciPy does not check
    "negative": {"indptr": np.array([0, -5, 3])},
    "index": {"indices": np.array([0, 7, 1])},
    "long": {"indices": np.array([0, 2**33, 1])},
    "below": {"indices": np.array([0, -1, 1])},
    "float": {"indices": np.array([0.0, 1.0, 2.0])},
    "short": {"data": np.ones(2)},
    "shape": {"shape": np.array([2000, 3])},
}
SOUND = {
    "data": np.array([1.0, 2.0, 3.0]),
    "indices": np.array([0, 2, 1]),
    "indptr": np.array([0, 2, 3]),
    "shape": np.array([2, 3]),
}


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("fault", WILD)
def test_wild_indices_in_sparse_npz(fault, layout, tmp_path):
    parts = SOUND | WILD[fault]
    if layout == "csc" and fault != "shape":
        parts["shape"] = parts["shape"][::-1]
    np.savez(tmp_path / "a.npz", format=layout.encode(), **parts)
    with pytest.raises(FileFormatError, match="impossible indices"):
        read_table(tmp_path / "a.npz")


# Both are read by the same function: all faults for one.
@pytest.mark.parametrize(
    ("kind", "fault"), [*(("h5ad", fault) for fault in WILD), ("10x", "indptr"), ("10x", "index")]
)
def test_wild_indices_in_hdf5(kind, fault, sound_hdf5, tmp_path):
    h5py = pytest.importorskip("h5py")
    parts = SOUND | WILD[fault]
    path = tmp_path / ("a.h5ad" if kind == "h5ad" else "a.h5")
    with h5py.File(path, "w") as file:
        group = file.create_group("X" if kind == "h5ad" else "matrix")
        for name in ("data", "indices", "indptr"):
            group[name] = parts[name]
        if kind == "h5ad":
            group.attrs["encoding-type"] = "csr_matrix"
            group.attrs["shape"] = parts["shape"]
        else:
            group["shape"] = parts["shape"][::-1]
            group["barcodes"] = np.array([b"a", b"b"])
            group["features/id"] = np.array([b"x", b"y", b"z"])
            group["features/name"] = np.array([b"x", b"y", b"z"])
    with pytest.raises(FileFormatError, match="impossible indices"):
        read_table(path)


@pytest.fixture
def tight(monkeypatch):
    monkeypatch.setattr(limits, "_ALWAYS", 1 << 16)


def test_archives_that_expand_too_far_are_refused(tight, tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "bomb.npz", X=np.zeros((1000, 1000)))
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"1,2,3\n" * 50_000))
    (tmp_path / "bomb.txt.gz").write_bytes(gzip.compress(b"a" * 2_000_000))
    for name in ("bomb.npz", "bomb.csv.gz"):
        with pytest.raises(FileFormatError, match="NONNEG_MAX_EXPANSION"):
            read_table(tmp_path / name)
    with pytest.raises(FileFormatError, match="NONNEG_MAX_EXPANSION"):
        read_cube(tmp_path / "bomb.npz")
    with pytest.raises(FileFormatError, match="expands to more"):
        read_documents([tmp_path / "bomb.txt.gz"], lines=True)
    monkeypatch.setenv(limits.MAX_EXPANSION, "2000")
    assert read_table(tmp_path / "bomb.csv.gz").X.shape == (50_000, 3)
    monkeypatch.setenv(limits.MAX_EXPANSION, "many")
    with pytest.raises(FileFormatError, match="could not convert string to float: 'many'"):
        read_table(tmp_path / "bomb.npz")


def test_headers_that_declare_more_than_the_file_holds(tmp_path):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**7)}
    )
    (tmp_path / "a.npy").write_bytes(stream.getvalue() + b"\x00" * 64)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", stream.getvalue() + b"\x00" * 64)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(FileFormatError, match="corrupt"):
            read_table(tmp_path / name)


@pytest.mark.parametrize("shape", ["(-2, 3)", "(2, -3)", "(-2, -3)"])
def test_headers_that_declare_less_than_nothing(shape, tmp_path):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    magic = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    (tmp_path / "a.npy").write_bytes(magic + header.encode() + bytes(48))
    with pytest.raises(FileFormatError, match="corrupt"):
        read_table(tmp_path / "a.npy")


def test_a_zip_archive_under_the_name_of_an_array(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npy", "w") as archive:
        archive.writestr("x", b"1")
    with pytest.raises(FileFormatError, match="magic string"):
        read_cube(tmp_path / "a.npy")


def test_deeply_nested_json(tmp_path):
    (tmp_path / "a.jsonl").write_text("[" * 200_000)
    with pytest.raises(FileFormatError, match="line 1: not JSON"):
        read_documents([tmp_path / "a.jsonl"], column="text")


def test_rows_that_take_far_more_memory_than_the_file(tmp_path):
    few = sp.coo_array(([1.0], ([0], [0])), shape=(2**40, 5))
    sp.save_npz(tmp_path / "a.npz", few)
    (tmp_path / "a.mtx").write_bytes(GOOD.replace(b"2 3 3", b"%d 3 3" % 2**40))
    for name in ("a.npz", "a.mtx"):
        with pytest.raises(FileFormatError, match="NONNEG_MAX_EXPANSION"):
            read_table(tmp_path / name)


def test_matlab_files_of_version_4_are_refused(tmp_path):
    # One header of 20 bytes would make SciPy ask for 32 GB.
    (tmp_path / "a.mat").write_bytes(struct.pack("<5i", 0, 2**16, 2**16, 0, 2) + b"Y\0")
    with pytest.raises(FileFormatError, match=r"version 4, or damaged.*-v7"):
        read_table(tmp_path / "a.mat")


@pytest.mark.parametrize("words", [b"DATA", b"MATLAB 5.0 MAT-file, written by another program"])
def test_the_description_in_a_matlab_file_may_be_short(words, tmp_path, rng):
    X, path = rng.random((3, 4)), tmp_path / "a.mat"
    scipy.io.savemat(path, {"X": X})
    path.write_bytes(words.ljust(116, b"\0") + path.read_bytes()[116:])
    np.testing.assert_array_equal(read_table(path).X, X)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", [0, 8, 52745])
def test_elements_of_unknown_types_in_a_matlab_file(kind, packed, tmp_path, rng):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"X": rng.random((6, 4)), "note": "text", "S": sp.csc_array(np.eye(3))})
    assert read_table(path, variable="X").X.shape == (6, 4)
    assert read_table(path, variable="S").X.shape == (3, 3)
    stored = bytearray(path.read_bytes())
    # Behind the header come the tags of the matrix, flags, size and name of X, then that of its numbers.
    stored[0xB0:0xB4] = kind.to_bytes(4, "little")
    if packed:
        size = 8 + int.from_bytes(stored[132:136], "little")
        element = zlib.compress(bytes(stored[128 : 128 + size]))
        stored = stored[:128] + (15).to_bytes(4, "little") + len(element).to_bytes(4, "little") + element
    path.write_bytes(stored)
    with pytest.raises(FileFormatError, match=f"an element of type {kind}"):
        read_table(path, variable="X")


@pytest.mark.slow
def test_mutated_files_of_every_format_are_read_or_refused(tmp_path):
    # A small share of `make fuzz`, in this process; crashes and hangs are found there.
    for at, (name, sound) in enumerate(fuzz.seeds(tmp_path / "seeds").items()):
        fuzz.read(name, sound)
        for draw in range(3):
            path = tmp_path / sound.name
            path.write_bytes(fuzz.mutated(sound.read_bytes(), np.random.default_rng((at, draw))))
            with contextlib.suppress(NonnegError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fuzz.read(name, path)


def test_broken_links_beside_the_matrix_do_no_harm(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file["X"] = np.eye(3)
        file["uns/gone"] = h5py.SoftLink("/nowhere")
        file["uns/elsewhere"] = h5py.ExternalLink("missing.h5", "/X")
    np.testing.assert_array_equal(read_table(tmp_path / "a.h5ad").X, np.eye(3))


def test_the_elements_of_no_matlab_file_are_not_looked_at(tmp_path):
    path = tmp_path / "x.mat"
    for header in (b"MATLAB 5.0".ljust(126, b" ") + b"XX", b"MATLAB 5.0".ljust(100, b" ")):
        path.write_bytes(header + struct.pack(">4I", 14, 16, 99, 4) + bytes(8))
        with pytest.raises(FileFormatError):
            read_table(path)


def test_an_empty_cell_after_the_last_column_is_no_column_and_a_full_one_is_an_error(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("name\ta\tb\nr0\t1\t2\nr1\t3\t4\t")
    np.testing.assert_array_equal(read_table(path).X, [[1.0, 2.0], [3.0, 4.0]])
    path.write_text("name\ta\tb\nr0\t1\t2\nr1\t3\t4\t5")
    with pytest.raises(FileFormatError):
        read_table(path)
