"""`--memory`: files that do not fit are read block by block, and interrupted runs go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.references.stored import write

from nonneg import NMF, open_matrix
from nonneg.cli import main

pytestmark = pytest.mark.usefixtures("sound_hdf5")

ROWS, COLUMNS = 120, 10


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.gamma(1.0, size=(ROWS, 3)) @ rng.gamma(1.0, size=(3, COLUMNS)) + 0.1 * rng.random(
        (ROWS, COLUMNS)
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return main([str(word) for word in words])


@pytest.mark.parametrize(
    ("form", "loss"), [("npy", "frobenius"), ("h5ad", "frobenius"), ("parquet", "kullback-leibler")]
)
def test_a_file_that_does_not_fit_gives_the_results_of_one_that_does(X, form, loss, folder, capsys):
    path, _ = write(X, form, folder)
    options = ("-k", 3, "--loss", loss, "--max-iter", 5, "--tol", 0, "--image-shape", "2x5")
    assert run("fit", path, *options, "--memory", "6kB", "-o", "blocks") == 0
    said = capsys.readouterr().err
    assert "does not fit in 6 kB: it is read block by block" in said
    assert run("fit", path, *options, "--memory", "60kB", "-o", "whole") == 0
    assert "block by block" not in capsys.readouterr().err
    for name in ("W.npy", "H.npy"):
        np.testing.assert_allclose(np.load(f"blocks/{name}"), np.load(f"whole/{name}"), atol=1e-6)
    records = [json.loads(Path(place, "result.json").read_text()) for place in ("blocks", "whole")]
    for key in ("relative_error", "loss"):
        assert records[0]["result"][key] == pytest.approx(records[1]["result"][key], rel=1e-6)
    assert records[0]["data"]["shape"] == [ROWS, COLUMNS]
    assert Path("blocks/report.html").stat().st_size > 1000


def test_new_samples_and_ranks_in_blocks(X, folder, capsys):
    path, _ = write(X, "parquet", folder)
    assert run("fit", path, "-k", 3, "--max-iter", 5, "--tol", 0, "-o", "model", "--quiet") == 0
    frame = pytest.importorskip("pandas").read_parquet(path)
    frame[frame.columns[::-1]].to_parquet("turned.parquet", row_group_size=8)
    assert run("transform", "model", "turned.parquet", "--memory", "5kB", "-o", "new") == 0
    assert "reordered to match the model" in capsys.readouterr().err
    np.testing.assert_allclose(np.load("new/W.npy"), np.load("model/W.npy"), atol=1e-6)
    assert (
        run("rank", path, "--memory", "5kB", "--method", "singular-value-ratio", "--quiet", "-o", "rank") == 0
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--transpose",), "--transpose needs the whole table"),
        (("--memory", "lots"), "is not an amount of memory"),
        (("--label-column", "f0"), "--label-column needs the whole table"),
        (("--scale", "max"), "scale divides the columns of data in memory"),
    ],
)
def test_what_needs_the_whole_table_says_so(X, options, words, folder, capsys):
    path, _ = write(X, "parquet", folder)
    memory = () if "--memory" in options else ("--memory", "6kB")
    assert run("fit", path, "-k", 3, *memory, *options) != 0
    assert words in capsys.readouterr().err


def test_a_wrong_entry_and_formats_without_blocks(X, folder, capsys):
    wrong = X.copy()
    wrong[77, 4] = -2.0
    path, _ = write(wrong, "h5ad", folder)
    assert run("fit", path, "-k", 3, "--memory", "6kB") != 0
    assert "[77, 4] (row '77', column '4') is -2.0" in capsys.readouterr().err
    np.savetxt("X.csv", X, delimiter=",")
    assert run("fit", "X.csv", "-k", 3, "--memory", "6kB") != 0
    assert "can only be read whole" in capsys.readouterr().err
    assert run("fit", "X.csv", "-k", 3, "--memory", "1GB", "--max-iter", 2, "--quiet") == 0


def test_columns_and_types_are_chosen_block_by_block(X, folder):
    path, _ = write(X, "parquet", folder, chunk=5)
    chosen = ["-k", "2", "--columns", "f1,f2,f5,f7,f8", "--drop", "f7", "--dtype", "float32", "--quiet"]
    chosen += ["--max-iter", "4"]
    assert run("fit", path, *chosen, "--memory", "6kB", "-o", "blocks") == 0
    assert run("fit", path, *chosen, "-o", "whole") == 0
    H = np.load("blocks/H.npy")
    assert H.shape == (2, 4)
    assert H.dtype == np.float32
    np.testing.assert_allclose(H, np.load("whole/H.npy"), atol=1e-4)


CHILD = """
import os, signal, sys
import numpy as np
from nonneg import factorize, open_matrix
from nonneg.iteration.checkpoint import Checkpoint
# A suite that runs in the background ignores Ctrl-C, and so would its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
Checkpoint.due = lambda self: True
X = open_matrix("X.npy", memory="6kB")
reads, plain = [0], X.read_rows
def read_rows(start, stop):
    reads[0] += 1
    if reads[0] == int(sys.argv[1]):
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))
    return plain(start, stop)
X.read_rows = read_rows
print(factorize(X, 3, rng=0, max_iter=12, tol=0, checkpoint="saved").stop_reason.name)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
@pytest.mark.parametrize("name", ["SIGKILL", pytest.param("SIGINT", marks=pytest.mark.slow)])
def test_a_killed_or_interrupted_run_goes_on_where_it_was(X, name, folder):
    np.save("X.npy", X)
    expected = NMF(3, max_iter=12, tol=0).fit(open_matrix("X.npy", memory="6kB"))
    n_blocks = len(open_matrix("X.npy", memory="6kB").cuts()) - 1
    # In the middle of a pass of the ninth iteration or so.
    command = [sys.executable, "-c", CHILD, str(12 * n_blocks - n_blocks // 2), name]
    child = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=False)
    if name == "SIGKILL":
        assert child.returncode == -signal.SIGKILL, child.stderr
    else:
        assert child.stdout.strip() == "INTERRUPTED", child.stderr
    steps = []
    X = open_matrix("X.npy", memory="6kB")
    model = NMF(3, max_iter=12, tol=0, checkpoint="saved", callback=lambda now: steps.append(now.n_iter))
    model.fit(X)
    assert steps[0] > 5  # the first ones were done before
    assert steps[-1] == model.n_iter_ == 12
    np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-12)
    assert model.history_.loss == pytest.approx(expected.history_.loss, rel=1e-12)
