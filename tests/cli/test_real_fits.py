"""The commands with the real estimator behind them."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

import nonneg
from nonneg.cli import main

pytest.importorskip("matplotlib")


def fit(path, folder, *words):
    return main(["fit", str(path), "-o", str(folder), "--quiet", *words])


def record_of(folder: Path) -> dict:
    return json.loads((folder / "result.json").read_text())


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.random((40, 3)) @ rng.random((3, 12)) + 0.01 * rng.random((40, 12))


def test_a_fit_that_has_not_converged_says_so_on_the_terminal_and_in_the_headline(X, tmp_path, capsys):
    np.save(tmp_path / "x.npy", X)
    assert fit(tmp_path / "x.npy", tmp_path / "out", "-k", "3", "--max-iter", "1") == 0
    said = capsys.readouterr()
    assert "Maximum number of iterations 1 reached" in said.err
    assert "The fit has not converged. The fit stopped before a stationary point" in said.out
    assert "Raise max_iter" in said.out
    heading = (tmp_path / "out" / "report.html").read_text("utf-8").partition("<h1>")[2].partition("</h1>")[0]
    assert heading.endswith("The fit has not converged.")
    assert (
        fit(tmp_path / "x.npy", tmp_path / "out", "-k", "3", "--max-iter", "2000") == 0
    )  # as it was told to
    assert "not converged" not in capsys.readouterr().out


def test_a_planted_factorization_is_found_and_the_model_can_be_used(X, tmp_path, capsys):
    names = [f"feature {at}" for at in range(12)]
    path, folder = tmp_path / "t.csv", tmp_path / "out"
    rows = [
        ",".join(["", *names]),
        *(f"row {at}," + ",".join(map(repr, row)) for at, row in enumerate(X.tolist())),
    ]
    path.write_text("\n".join(rows))
    assert fit(path, folder, "-k", "3", "--max-iter", "2000", "--tol", "1e-6") == 0
    record = record_of(folder)
    assert record["result"]["relative_error"] < 0.02
    assert record["history"]["loss"][-1] == pytest.approx(record["result"]["loss"], rel=1e-4)
    verdicts = {statement["verdict"] for statement in record["certificate"]}
    assert verdicts <= {"holds", "fails", "not verifiable"}
    model = nonneg.load(folder / "model.npz")
    W = model.transform(pd.DataFrame(X, columns=names))
    np.testing.assert_allclose(W, np.load(folder / "W.npy"), atol=1e-6)
    assert capsys.readouterr().err == ""
    assert main(["report", str(folder)]) == 0


ENDLESS = ["fit", "x.npy", "-k", "3", "-o", "out", "--max-iter", "10000000", "--tol", "0"]


class Interrupting(io.StringIO):
    """Standard error that sends Ctrl-C once the first progress line says that the loop is running."""

    sent = False

    def write(self, text):
        if "iteration" in text and not self.sent:
            self.sent = True
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        return super().write(text)


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupted_fit_keeps_the_best_so_far(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.random.default_rng(0).random((60, 40)))
    monkeypatch.setattr(sys, "stderr", Interrupting())
    assert main(ENDLESS) == 130
    assert "Interrupted after" in sys.stderr.getvalue()
    assert record_of(tmp_path / "out")["result"]["stop_reason"]["name"] == "interrupted"
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupted_program_keeps_the_best_so_far(name, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((60, 40)))
    process = subprocess.Popen(
        [sys.executable, "-m", "nonneg", *ENDLESS],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A suite that runs in the background ignores Ctrl-C, and so would the command.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with process:
        for line in process.stderr:  # the first progress line says that the loop is running
            if "iteration" in line:
                break
        time.sleep(0.3)
        process.send_signal(getattr(signal, name))
        _, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert "Interrupted after" in error
    assert record_of(tmp_path / "out")["result"]["stop_reason"]["name"] == "interrupted"
    assert (tmp_path / "out" / "report.html").is_file()


def test_progress_is_shown_on_standard_error(X, tmp_path, capsys):
    np.save(tmp_path / "x.npy", X)
    assert main(["fit", str(tmp_path / "x.npy"), "-k", "3", "-o", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    assert "iteration" in shown.err
    assert "iteration" not in shown.out


@pytest.mark.usefixtures("drawn")
def test_the_demo_ends_with_the_path_of_the_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    started = time.process_time()
    assert main(["demo", "--quiet"]) == 0
    assert time.process_time() - started < 60
    lines = capsys.readouterr().out.splitlines()
    report = Path(lines[-1].removeprefix("Results: "))
    assert report == Path("nonneg-demo/report.html")
    assert "data:image/png" in report.read_text()
    record = record_of(report.parent)
    assert record["result"]["n_components"] == 16
    default = nonneg.NMF(16, random_state=0).fit(load_digits().data)
    assert record["result"]["n_iter"] == default.n_iter_
