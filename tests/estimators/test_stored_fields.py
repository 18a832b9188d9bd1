"""Fields of saved models: what is written is read back, and what does not fit is refused by name."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.estimators.saving import (
    Content,
    Names,
    NotPlainError,
    Part,
    Parts,
    Record,
    Sparse,
    StoredArray,
    Value,
    check_indices,
    from_plain,
    pack_fields,
    to_plain,
    unpack_fields,
)
from nonneg.exceptions import FileFormatError

ONES = np.ones((2, 3))


def read(field, array, **sizes):
    return field.read("x", Content(arrays={"x": array}, sizes=sizes))


def refused(field, array, said, **sizes):
    with pytest.raises(FileFormatError, match=said):
        read(field, array, **sizes)


def test_axes_of_one_name_have_one_length():
    content = Content(arrays={"x": ONES, "y": np.ones(3), "z": np.ones(2)})
    StoredArray("rows", "columns").read("x", content)
    assert content.sizes == {"rows": 2, "columns": 3}
    StoredArray("columns").read("y", content)
    with pytest.raises(FileFormatError, match=r"expected z of shape \(3,\), got float64 of shape \(2,\)"):
        StoredArray("columns").read("z", content)
    with pytest.raises(FileFormatError, match=r"x is missing\. The file is damaged"):
        StoredArray("rows", "columns").read("x", content)  # an array is taken once


def test_lengths_may_be_numbers():
    assert read(StoredArray("rows", 3), ONES) is ONES
    refused(StoredArray("rows", 2), ONES, r"of shape \('rows', 2\), got float64 of shape \(2, 3\)")
    refused(StoredArray("rows"), ONES, r"of shape \(2, 3\)")
    refused(StoredArray("rows", "columns"), ONES, r"expected x of shape \(4, 'columns'\)", rows=4)


@pytest.mark.parametrize(
    ("options", "array", "good"),
    [
        ({}, ONES, True),
        ({}, ONES.astype(np.float32), True),
        ({}, ONES.astype(np.float16), False),
        ({}, ONES.astype(np.int64), False),
        ({"kind": "i"}, ONES.astype(np.int64), True),
        ({"kind": "i"}, ONES, False),
        ({"kind": "if"}, ONES, True),
        ({}, np.full((2, 3), np.nan), True),
        ({"finite": True}, np.full((2, 3), np.nan), False),
        ({"finite": True}, -ONES, True),
        ({"nonnegative": True}, 0 * ONES, True),
        ({"nonnegative": True}, np.array([[1.0, 1.0, -1e-9]] * 2), False),
        ({"nonnegative": True}, np.array([[1.0, 1.0, np.inf]] * 2), False),
    ],
)
def test_entries_are_of_their_kind(options, array, good):
    field = StoredArray("rows", "columns", **options)
    if good:
        assert read(field, array) is array
    else:
        words = "nonnegative x" if "nonnegative" in options else "finite x" if "finite" in options else "x"
        refused(field, array, f"expected {words} of shape")


def test_indices_exist():
    assert read(StoredArray("n", kind="i", below="rows"), np.array([0, 2]), rows=3).tolist() == [0, 2]
    for wrong in ([0, 3], [-1, 2]):
        refused(StoredArray("n", kind="i", below="rows"), np.array(wrong), "in x exceed the 3", rows=3)
    pairs = StoredArray("n", 2, kind="i", below=("rows", "columns"))
    read(pairs, np.array([[2, 4], [0, 0]]), rows=3, columns=5)
    refused(pairs, np.array([[2, 5]]), "exceed the 5", rows=3, columns=5)
    refused(pairs, np.array([[3, 4]]), "exceed the 3", rows=3, columns=5)
    check_indices("x", np.array([], dtype=int), 0)


def test_names_are_text():
    content = Content()
    Names("features").write("names", ["a", 3], content)
    assert content.arrays["names"].tolist() == ["a", "3"]
    assert Names("features").is_in("names", content)
    listed = Content(arrays=dict(content.arrays), sizes={"features": 2})
    found = Names("features").read("names", content)
    assert (found.dtype, found.tolist()) == (np.dtype(object), ["a", "3"])
    assert Names("features", container=tuple).read("names", listed) == ("a", "3")
    with pytest.raises(FileFormatError, match="names of shape"):
        Names("features").read("names", Content(arrays={"names": np.array(["a"])}, sizes={"features": 2}))


MATRIX = sp.csr_array(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]]))


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_sparse_matrices_come_back(layout):
    content, field = Content(prefix="part."), Sparse(layout, "nodes")
    assert not field.is_in("A", content)
    field.write("A", MATRIX, content)
    assert field.is_in("A", content)
    found = field.read("A", content)
    assert found.format == layout
    np.testing.assert_array_equal(found.toarray(), MATRIX.toarray())
    assert content.sizes["nodes"] == 3
    assert content.arrays == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"indptr": [1, 1, 1, 3]}, "do not match each other"),
        ({"indptr": [0, 1, 1, 2]}, "do not match each other"),
        ({"indptr": [0, 2, 1, 3]}, "do not match each other"),
        ({"indptr": [0]}, "do not match each other"),
        ({"indptr": [0, 1, 3]}, "do not match each other"),  # another number of nodes
        ({"indices": [1, 0, 3]}, "indices in A.indices exceed the 3"),
        ({"indices": [1, 0]}, r"A.indices of shape \(3,\)"),
        ({"data": [1.0, -1.0, 1.0]}, "nonnegative A.data"),
    ],
)
def test_sparse_matrices_are_checked(changes, said):
    content = Content(sizes={"nodes": 3})
    field = Sparse("csr", "nodes", nonnegative=True)
    field.write("A", MATRIX, content)
    content.arrays |= {f"A.{name}": np.array(values) for name, values in changes.items()}
    with pytest.raises(FileFormatError, match=said):
        field.read("A", content)


@pytest.mark.parametrize(
    ("kind", "value", "good"),
    [
        (int, 3, True), (int, 3.0, False), (int, True, False), (int, "3", False), (float, 3, True),
        (float, 2.5, True), (float, True, False), (float, "x", False), (bool, True, True), (bool, 1, False),
        (str, "x", True), (str, 1, False),
    ],
)  # fmt: skip
def test_values_are_of_their_kind(kind, value, good):
    content = Content({"x": value})
    if not good:
        with pytest.raises(FileFormatError, match=f"expected {Value.WORDS[kind]} for x, got {value!r}"):
            Value(kind).read("x", content)
        return
    found = Value(kind).read("x", content)
    assert type(found) is kind
    assert found == value
    assert content.sizes == ({"x": 3} if kind is int else {})


def test_named_values_come_back():
    content = Content()
    Value(dict).write("x", {"a": (1, 2), "b": None}, content)
    assert Value(dict).read("x", content) == {"a": (1, 2), "b": None}
    Value(float).write("y", np.float32(0.5), content)
    assert type(content.values["y"]) is float
    with pytest.raises(FileFormatError, match="expected named values for z"):
        Value(dict).read("z", Content({"z": [1]}))


@dataclass
class Point:
    """Something with fields."""

    size: int
    x: np.ndarray


@dataclass
class Circle:
    """Something else."""

    radius: float


CLASSES = {Point: {"size": Value(int), "x": StoredArray("size")}, Circle: {"radius": Value(float)}}


def test_parts_are_of_one_of_several_classes():
    content, field = Content(), Part(CLASSES)
    field.write("one", Point(2, np.ones(2)), content)
    assert content.values["one"] == {"class": "Point", "size": 2}
    assert list(content.arrays) == ["one.x"]
    assert field.read("one", content).size == 2
    content.values["one"] = {"class": "Popen"}
    with pytest.raises(FileFormatError, match=r"expected one.class to be one of \['Point', 'Circle'\]"):
        field.read("one", content)
    content.values["one"] = 3
    with pytest.raises(FileFormatError, match="expected named values in one, got 3"):
        field.read("one", content)


def test_lists_of_parts_have_axes_of_their_own():
    content, field = Content(), Parts(CLASSES)
    field.write("all", [Point(2, np.ones(2)), Circle(0.5), Point(3, np.ones(3))], content)
    assert content.values["all"]["length"] == 3
    found = field.read("all", content)
    assert [type(one) for one in found] == [Point, Circle, Point]
    assert len(found[2].x) == 3
    assert content.arrays == {}
    field.write("none", [], content)
    assert field.read("none", content) == []


def test_fields_are_packed_and_unpacked():
    fields = {
        "size": Value(int, source="n"), "x": StoredArray("size"), "note": Value(str, optional=True),
        "y": StoredArray("size", optional=True), "record": Record(SimpleNamespace, optional=True),
    }  # fmt: skip
    content = Content()
    pack_fields(SimpleNamespace(n=2, x=np.ones(2), note=None), fields, content)
    assert content.values == {"size": 2, "note": None}
    found = unpack_fields(fields, content)
    assert sorted(found) == ["note", "size", "x"]
    assert found["note"] is None
    with pytest.raises(FileFormatError, match="x is missing"):
        unpack_fields(fields, content)
    with pytest.raises(AttributeError):
        pack_fields(SimpleNamespace(n=2), fields, Content())


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.5,
        "x",
        [1, [2]],
        (1, (2, 3)),
        range(1, 9, 2),
        frozenset({1}),
        {"a": {"b": (1,)}},
        [],
    ],
    ids=str,
)
def test_plain_values_come_back(value):
    found = from_plain(to_plain(value))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, np.ones(2), [object()]], ids=["object", "key", "array", "list"]
)
def test_other_values_are_not_plain(value):
    with pytest.raises(NotPlainError):
        to_plain(value)


def test_numbers_of_numpy_are_plain():
    assert type(to_plain(np.int64(3))) is int
    assert to_plain([np.float64(0.5)]) == [0.5]
