"""Limits on the expansion of compressed files: not a byte further, however they are read."""

from __future__ import annotations

import gzip
import zipfile

import numpy as np
import pytest

from nonneg import NMF, load
from nonneg.exceptions import FileFormatError
from nonneg.io import limits

TEXT = b"first line\nsecond\n\nlast without an end"


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "text.gz"
    place.write_bytes(gzip.compress(TEXT))
    return place


def limited(monkeypatch, n_bytes):
    monkeypatch.setenv(limits.MAX_EXPANSION, "0")
    monkeypatch.setattr(limits, "_ALWAYS", n_bytes)
    monkeypatch.setattr(limits, "_BUFFER", 7)


READERS = {
    "read": lambda stream: stream.read(),
    "read(1000)": lambda stream: stream.read(1000),
    "read1": lambda stream: b"".join(iter(stream.read1, b"")),
    "lines": lambda stream: b"".join(stream),
}


@pytest.mark.parametrize("reader", READERS)
def test_files_are_read_up_to_the_limit_and_not_beyond(reader, path, monkeypatch):
    limited(monkeypatch, len(TEXT))
    with limits.open_bytes(path) as stream:
        assert READERS[reader](stream) == TEXT
    limited(monkeypatch, len(TEXT) - 1)
    with limits.open_bytes(path) as stream, pytest.raises(FileFormatError, match="expands to more than"):
        READERS[reader](stream)


def test_the_limit_is_a_multiple_of_the_size_of_the_file_but_never_small(path, monkeypatch):
    assert limits.expansion_limit(path) == 2.0**30
    size = path.stat().st_size
    monkeypatch.setenv(limits.MAX_EXPANSION, " 3e9 ")
    assert limits.expansion_limit(path) == 3e9 * size


def test_what_is_too_large_is_told_in_gigabytes(path, monkeypatch):
    with pytest.raises(FileFormatError, match=r"more than 1\.07 GB, over 200 times its own size"):
        limits.check_expansion((1 << 30) + 1, path)
    limits.check_expansion(1 << 30, path)


def test_archives_are_measured_by_all_their_members(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"x" * 60)
        archive.writestr("b", b"y" * 40)
    with zipfile.ZipFile(path) as archive:
        limited(monkeypatch, 100)
        limits.check_archive(archive, path)
        limited(monkeypatch, 99)
        with pytest.raises(FileFormatError, match="expands to more than"):
            limits.check_archive(archive, path)


def test_saved_models_are_refused_before_they_expand(tmp_path, monkeypatch):
    """They once were read whole, whatever they expanded to."""
    path = tmp_path / "model"
    NMF(2, max_iter=2, tol=0).fit(np.random.default_rng(0).random((6, 5))).save(path)
    load(path)
    limited(monkeypatch, 100)
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("the arrays were read"))
    with pytest.raises(FileFormatError, match="expands to more than"):
        load(path)
