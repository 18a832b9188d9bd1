"""Amounts of memory: what a user says, what the system allows, and how they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_the_least_of_all_limits_counts(monkeypatch):
    files = {}

    def read_text(path, encoding):
        if path.as_posix() not in files:
            raise FileNotFoundError(path)
        return files[path.as_posix()]

    monkeypatch.setattr(Path, "read_text", read_text)
    machine = memory_limit()
    # Of the control group of the process, the one around it, and the root.
    for texts, expected in (
        ([str(machine + 1), "max"], machine),
        (["123456", str(machine + 1)], 123456),
        (["123456", "max", "1234\n"], 1234),
    ):
        files["/proc/self/cgroup"] = "0::/user/job\n"
        for folder, text in zip(("/user/job", "/user", ""), texts, strict=False):
            files[f"/sys/fs/cgroup{folder}/memory.max"] = text
        assert memory_limit() == expected
    assert checked_memory(None) == 617
