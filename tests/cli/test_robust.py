"""Names, streams and disks that once ended a command in a traceback, or made a sentence false."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nonneg.cli import main

pytest.importorskip("matplotlib")


def write_table(path: Path, names: list[str], *, text: bool = False) -> Path:
    X = np.random.default_rng(0).random((12, 2)) @ np.random.default_rng(1).random((2, len(names)))
    rows = [",".join([f"{value:.4f}" for value in row] + ["word"] * text) for row in X]
    path.write_text("\n".join([",".join([*names, "kind"] if text else names), *rows]) + "\n")
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux alone")
def test_a_file_name_that_is_not_utf_8(tmp_path, capsys):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv"))
    write_table(path, ["a", "b", "c"])
    assert main(["fit", str(path), "-k", "2", "-q", "-o", str(tmp_path / "out")]) == 0
    assert "caf\ufffd.csv" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


# A program that is started once: children of it, which end like programs, have one of the outputs closed.
# Figures stay empty, as in other tests of commands.
CLOSED = """
import os, runpy, sys
import matplotlib.backends.backend_svg as backend
from nonneg.cli import main
backend.FigureCanvasSVG.print_svg = lambda self, stream, **named: stream.write("<svg ></svg>")
main(["fit", "t.csv", "-k", "2", "-q", "-o", "first"])
ends = []
for name in ("reader", "stdout", "stderr"):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        number = 2 if name == "stderr" else 1
        if name == "reader":
            reading, writing = os.pipe()
            os.dup2(writing, number)
            os.close(reading)
        else:  # Python has no such stream then
            os.close(number)
            setattr(sys, name, None)
        sys.argv = ["nonneg", "fit", "t.csv", "-k", "2", "-o", name]
        runpy.run_module("nonneg", run_name="__main__")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ends.append((name, code, os.path.isfile(f"{name}/report.html")))
print(ends)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="this system does not fork")
def test_an_output_that_is_closed(tmp_path):
    write_table(tmp_path / "t.csv", ["a", "b", "c"])
    command = [sys.executable, "-W", "ignore", "-c", CLOSED]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    ends = [("reader", 0, True), ("stdout", 0, True), ("stderr", 0, True)]
    assert run.stdout.splitlines()[-1] == str(ends), run.stderr
    assert "Traceback" not in run.stderr
    assert "Exception ignored" not in run.stderr


def test_names_are_neither_formulas_nor_orders_to_the_terminal(tmp_path, capsys):
    names = ["=1+1", "@SUM", "-x", "\x1b[31mred"]
    path = write_table(tmp_path / "t.csv", names)
    assert main(["fit", str(path), "-k", "2", "-q", "-o", str(tmp_path / "out")]) == 0
    heading = (tmp_path / "out" / "H.csv").read_text(encoding="utf-8").splitlines()[0]
    assert heading.startswith("component,'=1+1,'@SUM,'-x,")
    assert main(["fit", str(path), "-k", "2", "-o", str(tmp_path / "no"), "--drop", "\x1b[2J"]) == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\\x1b" in said


def test_a_disk_that_fills_up_while_the_report_is_written_changes_nothing(tmp_path, monkeypatch, capsys):
    path, out = write_table(tmp_path / "t.csv", ["a", "b", "c"]), tmp_path / "out"
    words = ["fit", str(path), "-q", "-o", str(out)]
    assert main([*words, "-k", "2"]) == 0
    before = {entry.name: entry.read_bytes() for entry in out.iterdir()}
    write_text = Path.write_text

    def full(self, *given, **named):
        if self.name == "report.html":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_text(self, *given, **named)

    monkeypatch.setattr(Path, "write_text", full)
    assert main([*words, "-k", "3"]) == 2
    assert "What was there before is unchanged" in capsys.readouterr().err
    assert {entry.name: entry.read_bytes() for entry in out.iterdir()} == before
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_new_data_may_have_further_columns_of_text(tmp_path):
    path = write_table(tmp_path / "t.csv", ["a", "b", "c"], text=True)
    fitted, new = tmp_path / "fitted", tmp_path / "new"
    assert main(["fit", str(path), "-k", "2", "-q", "--drop", "kind", "-o", str(fitted)]) == 0
    assert main(["transform", str(fitted), str(path), "-q", "-o", str(new)]) == 0
    W = np.load(new / "W.npy")
    assert W.shape == (12, 2)
    np.testing.assert_allclose(
        W @ np.load(fitted / "H.npy"), np.load(fitted / "W.npy") @ np.load(fitted / "H.npy"), atol=1e-2
    )
