"""Results are replaced as a whole: a full disk or an error leaves the old ones."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nonneg.exceptions import OutputError
from nonneg.report.record import replaced_folder

KNOWN = frozenset({"a.txt", "b.txt", "c.txt"})


def contents(folder: Path) -> dict[str, str]:
    return {entry.name: entry.read_text() for entry in folder.iterdir()}


@pytest.fixture
def old(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    for name in ("a.txt", "b.txt", "notes.md"):
        (folder / name).write_text(f"old {name}")
    return folder


def test_a_new_folder_appears_when_it_is_complete(tmp_path):
    folder = tmp_path / "deep" / "results"
    with replaced_folder(folder) as fresh:
        (fresh / "a.txt").write_text("new")
        assert not folder.exists()
    assert contents(folder) == {"a.txt": "new"}
    assert [entry.name for entry in folder.parent.iterdir()] == ["results"]


def test_old_results_go_and_other_files_stay(old):
    with replaced_folder(old, KNOWN) as fresh:
        (fresh / "a.txt").write_text("new a")
        (fresh / "c.txt").write_text("new c")
    assert contents(old) == {"a.txt": "new a", "c.txt": "new c", "notes.md": "old notes.md"}
    assert [entry.name for entry in old.parent.iterdir()] == ["results"]


def test_a_full_disk_leaves_the_old_results(old, monkeypatch):
    before = contents(old)

    def full(self, *rest, **more):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write():
        with replaced_folder(old, KNOWN) as fresh:
            (fresh / "a.txt").write_text("new a")
            monkeypatch.setattr(Path, "write_text", full)
            (fresh / "b.txt").write_text("new b")

    with pytest.raises(OutputError, match=r"No space left on device.*before is unchanged. Free some space"):
        write()
    monkeypatch.undo()
    assert contents(old) == before
    assert [entry.name for entry in old.parent.iterdir()] == ["results"]


def test_the_message_names_the_folder_of_the_user_and_not_the_hidden_one(old):
    def write():
        with replaced_folder(old, KNOWN) as fresh:
            try:
                raise OSError(errno.ENOSPC, "No space")
            except OSError as error:
                raise OutputError(f"The model could not be written to {fresh}.") from error

    with pytest.raises(OutputError, match="No space") as caught:
        write()
    assert f"written to {old}:" in str(caught.value)


def test_other_errors_pass_and_leave_the_old_results(old):
    before = contents(old)

    def write():
        with replaced_folder(old, KNOWN) as fresh:
            (fresh / "a.txt").write_text("new a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert contents(old) == before
    assert [entry.name for entry in old.parent.iterdir()] == ["results"]
