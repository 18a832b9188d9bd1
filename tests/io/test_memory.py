"""Amounts of memory: what a user says, what the system allows, and how they are written."""

from __future__ import annotations

import pytest

from nonneg.io import memory
from nonneg.io.memory import checked_memory, memory_limit, written_bytes


@pytest.mark.parametrize(
    ("n_bytes", "written"),
    [
        (0, "0 bytes"), (1, "1 bytes"), (99.6, "100 bytes"), (999, "999 bytes"), (1000, "1 kB"),
        (99_900, "99.9 kB"), (100_000, "100 kB"), (999_000, "999 kB"), (10**6, "1 MB"), (10**9, "1 GB"),
        (123.4e9, "123 GB"), (10**12, "1 TB"), (5 * 10**15, "5000 TB"),
    ],
)  # fmt: skip
def test_bytes_are_written_with_three_digits(n_bytes, written):
    assert written_bytes(n_bytes) == written


def test_the_least_of_all_limits_counts(tmp_path, monkeypatch):
    plain = memory_limit()
    said = {"large": str(plain + 1), "none": "max", "small": "123456", "smaller": "1234\n"}
    for name, text in said.items():
        (tmp_path / name).write_text(text)
    for names, expected in (
        (["large", "none", "missing"], plain),
        (["small", "large"], 123456),
        (["small", "none", "smaller"], 1234),
    ):
        monkeypatch.setattr(memory, "_limit_files", lambda names=names: (tmp_path / name for name in names))
        assert memory_limit() == expected
    assert checked_memory(None) == 617
