"""Saved R workspaces, written here item by item as R writes them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct

import numpy as np
import pytest

from nonneg.datasets.conversion.rdata import _Reader, read_rdata
from nonneg.datasets.conversion.recipes import recipe_of
from nonneg.exceptions import FileFormatError

NIL = struct.pack(">i", 254)


def item(kind: int, body: bytes, *, attributes: bytes = b"", tag: bytes = b"", before: bool = False) -> bytes:
    flags = kind | (0x200 if attributes else 0) | (0x400 if tag else 0)
    return struct.pack(">i", flags) + body + attributes


def text(value: str | None) -> bytes:
    if value is None:
        return struct.pack(">ii", 9, -1)
    return struct.pack(">ii", 9 | 64 << 12, len(value)) + value.encode()


def symbol(name: str) -> bytes:
    return struct.pack(">i", 1) + text(name)


def pairs(**values: bytes) -> bytes:
    return b"".join(struct.pack(">i", 2 | 0x400) + symbol(key) + body for key, body in values.items()) + NIL


def numbers(values, kind: int = 14, **more) -> bytes:
    code = ">f8" if kind == 14 else ">i4"
    return item(kind, struct.pack(">i", len(values)) + np.asarray(values, code).tobytes(), **more)


def strings(*values, **more) -> bytes:
    return item(16, struct.pack(">i", len(values)) + b"".join(map(text, values)), **more)


def named_list(**values: bytes) -> bytes:
    body = struct.pack(">i", len(values)) + b"".join(values.values())
    return item(19, body, attributes=pairs(names=strings(*values)))


def workspace(version: int = 2, **values: bytes) -> bytes:
    head = f"RDX{version}\nX\n".encode() + struct.pack(">iii", version, 0x40000, 0x20300)
    if version == 3:
        head += struct.pack(">i", 5) + b"UTF-8"
    return head + pairs(**values)


@pytest.fixture
def read(tmp_path):
    def of(raw: bytes):
        (tmp_path / "x.RData").write_bytes(raw)
        return read_rdata(tmp_path / "x.RData")

    return of


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("version", [2, 3])
def test_numbers_and_text(read, pack, version):
    found = read(pack(workspace(version, a=numbers([1.5, -2]), b=numbers([3, 4], 13), c=strings("x", None))))
    np.testing.assert_array_equal(found["a"], [1.5, -2])
    np.testing.assert_array_equal(found["b"], [3, 4])
    assert found["c"] == ["x", None]


def test_factors_name_their_levels(read):
    levels = pairs(levels=strings("B", "NK"), **{"class": strings("factor")})
    assert read(workspace(f=numbers([2, -(2**31), 1], 13, attributes=levels)))["f"] == ["NK", None, "B"]


def test_objects_are_their_slots(read):
    assert read(workspace(s=item(25, b"", attributes=pairs(i=numbers([7], 13)))))["s"]["i"].tolist() == [7]


def test_symbols_are_remembered(read):
    again = struct.pack(">i", 255 | 1 << 8)
    raw = b"RDX2\nX\n" + struct.pack(">iii", 2, 0, 0)
    raw += struct.pack(">i", 2 | 0x400) + symbol("a") + pairs(b=numbers([1]))
    raw += struct.pack(">i", 2 | 0x400) + again + numbers([2]) + NIL
    assert read(raw)["a"].tolist() == [2.0]


def compact(name: str, state: bytes) -> bytes:
    info = struct.pack(">i", 2) + symbol(name) + struct.pack(">i", 2) + symbol("base") + NIL
    return item(238, info + state + NIL)


def test_vectors_that_were_not_written_out(read):
    found = read(
        workspace(
            3,
            a=compact("compact_intseq", numbers([4, 10, 1])),
            b=compact("wrap_real", item(19, struct.pack(">i", 2) + numbers([2.5]) + numbers([0, 0], 13))),
        )
    )
    assert found["a"].tolist() == [10, 11, 12, 13]
    assert found["b"].tolist() == [2.5]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"PK\x03\x04", "is not a saved R workspace"),
        (workspace(a=numbers([1.0]))[:-10], "ends before its contents do"),
        (gzip.compress(workspace(a=numbers([1.0])))[:-12], "could not be read"),
        (workspace(a=struct.pack(">i", 21)), "of kind 21"),
        (workspace(a=struct.pack(">ii", 14, 2_000_000_000)), "ends before"),
    ],
    # Packed bytes carry the second in which they were packed.
    ids=["another format", "cut off", "packed and cut off", "another kind", "too long"],
)
def test_what_is_no_data_is_refused(read, raw, message):
    with pytest.raises(FileFormatError, match=message):
        read(raw)


def test_blood_cells(tmp_path):
    """Three genes in four cells; entries as runs, as the source packs them."""
    runs = named_list(lengths=numbers([2, 2], 13), values=numbers([1, 300]))
    kinds = numbers(
        [1, -(2**31), 2, 1], 13, attributes=pairs(levels=strings("NK", "B"), **{"class": strings("factor")})
    )
    saved = named_list(
        i=numbers([0, 2, 1, 0], 13),
        p=numbers([0, 2, 3, 3, 4], 13),
        Dim=numbers([3, 4], 13),
        x=runs,
        cell_type=kinds,
    )
    path = tmp_path / "pbmc3k.RData"
    path.write_bytes(bz2.compress(workspace(pbmc3k=saved)))
    made = recipe_of("pbmc3k/X.npz").convert({"pbmc3k.RData": path}, {})
    stored = made["X.npz"]
    assert stored["shape"].tolist() == [4, 3]
    assert stored["indptr"].tolist() == [0, 2, 3, 3, 4]
    assert stored["indices"].tolist() == [0, 2, 1, 0]
    assert stored["data"].tolist() == [1, 1, 300, 300]
    assert stored["data"].dtype == np.uint16
    assert made["labels.npz"]["y"].tolist() == [1, -1, 0, 1]
    assert made["labels.npz"]["classes"].tolist() == ["B", "NK"]


def test_numbers_are_read_to_the_last_byte_and_not_beyond():
    raw = struct.pack(">iid", 3, -1, 0.5)
    reader = _Reader(raw, 0)
    assert reader.numbers(0, ">i4").tolist() == []
    assert reader.numbers(2, ">i4").tolist() == [3, -1]
    assert reader.numbers(1, ">f8").tolist() == [0.5]
    for count in (1, -1):
        with pytest.raises(ValueError, match="ends before"):
            reader.numbers(count, ">i4")


def read_item(*parts: bytes, known=()):
    """Read one item, and return it if nothing is left."""
    raw = b"".join(parts)
    reader = _Reader(b"??" + raw, 2)
    reader.known += known
    found = reader.item()
    assert reader.at == 2 + len(raw)
    return found, reader.known


def whole(*values: int) -> bytes:
    return struct.pack(f">{len(values)}i", *values)


@pytest.mark.parametrize("kind", [241, 242, 247, 251, 252, 253, 254])
def test_places_without_contents_are_none(kind):
    assert read_item(whole(kind)) == (None, [])


@pytest.mark.parametrize("number", [1, 3])
def test_references_count_from_one_in_the_flags_or_after_them(number):
    known = ["a", "b", "c"]
    for parts in (whole(255 | number << 8), whole(255, number)):
        assert read_item(parts, known=known)[0] == known[number - 1]


def test_environments_and_names_are_remembered():
    assert read_item(whole(4, 0), *[NIL] * 4) == ({}, [{}])
    for kind in (248, 249, 250):
        names, known = read_item(whole(kind, 0, 2), text("ns"), text("1.0"))
        assert names == ["ns", "1.0"]
        assert known == [names]
    assert read_item(symbol("x")) == ("x", ["x"])


@pytest.mark.parametrize(
    ("levels", "raw", "expected"),
    [
        (64, "\u00e9".encode(), "\u00e9"),
        (4, b"\xe9", "\u00e9"),
        (8, "\u00e9".encode(), "\u00e9"),
        (64, b"\xe9", "\ufffd"),
    ],
)
def test_text_in_its_encodings(levels, raw, expected):
    assert read_item(whole(9 | levels << 12, len(raw)), raw)[0] == expected
    assert read_item(whole(9, -1))[0] is None


def test_long_vectors_have_two_numbers_as_their_length():
    reader = _Reader(whole(-1, 1, 2, 7, -1, 0, 5), 0)
    assert [reader.length() for _ in range(3)] == [(1 << 32) + 2, 7, 5]


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (10, whole(2, 1, 0), [1, 0]),
        (13, whole(2, 5, -6), [5, -6]),
        (14, whole(1) + struct.pack(">d", 2.5), [2.5]),
        (24, whole(3) + b"\x01\x02\xff", [1, 2, 255]),
        (16, whole(1) + text("a"), ["a"]),
        (19, whole(2) + NIL + text("b"), [None, "b"]),
        (20, whole(1) + NIL, [None]),
    ],
)
def test_vectors_of_every_kind(kind, body, expected):
    assert list(read_item(whole(kind), body)[0]) == expected
    # Attributes come after a vector.
    named = read_item(whole(kind | 0x200), body, pairs(unit=strings("m")))[0]
    assert list(named) == expected


def test_lists_of_pairs_have_tags_attributes_and_an_end():
    attributes = pairs(unit=strings("m"))
    for kind in (2, 3, 5, 6, 17):
        parts = (whole(kind | 0x600), attributes, symbol("a"), numbers([1.0]), whole(kind), text("b"), NIL)
        (first, value), (second, other) = read_item(*parts)[0]
        assert (first, value.tolist(), second, other) == ("a", [1.0], None, "b")
    with pytest.raises(ValueError, match="a list ends in an item of kind 14"):
        read_item(whole(2), text("b"), numbers([1.0]))


def test_compact_vectors_of_every_class():
    ints = read_item(compact("compact_intseq", numbers([3, 5, -2])))[0]
    assert (ints.tolist(), ints.dtype) == ([5, 3, 1], np.int32)
    reals = read_item(compact("compact_realseq", numbers([2, 0.5, 1])))[0]
    assert (reals.tolist(), reals.dtype) == ([0.5, 1.5], np.float64)
    deferred = struct.pack(">i", 2) + numbers([7, 8], 13) + struct.pack(">i", 2) + numbers([0], 13) + NIL
    assert read_item(compact("deferred_string", deferred))[0] == ["7", "8"]
    with pytest.raises(ValueError, match="unknown class mmap_real"):
        read_item(compact("mmap_real", NIL))


def test_names_make_a_mapping_of_a_list_but_not_of_text(read):
    found = read(workspace(
        a=named_list(x=numbers([1.0]), y=strings("b")),
        b=strings("u", "v", attributes=pairs(names=strings("p", "q"))),
        c=item(19, whole(1) + NIL),
    ))  # fmt: skip
    assert list(found["a"]) == ["x", "y"]
    assert found["b"] == ["u", "v"]
    assert found["c"] == [None]
