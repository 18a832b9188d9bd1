"""The line that `verbose=1` shows."""

from __future__ import annotations

import io
import re
import sys
import time

import numpy as np

from nonneg import NMF, SeparableNMF, TransformNMF, factorize
from nonneg.iteration import History, Progress
from nonneg.iteration import progress as module
from nonneg.iteration.progress import Reporter


def progress(n_iter=3, loss=1.5):
    history = History()
    history.record(n_iter, 0.1, {"loss": loss})
    return Progress(n_iter, None, history)


def test_the_line_has_loss_rate_and_time_left(capsys):
    shown = Reporter("NMF", interval=0.0)
    shown.update(progress(), 10)
    shown.close("it was enough")
    out, err = capsys.readouterr()
    assert out == ""
    first, last = err.splitlines()
    for word in ("NMF: iteration 3/10", "loss 1.5", "iterations/s", "s left"):
        assert word in first
    assert last.endswith("stopped because it was enough.")


def test_short_work_has_one_line_outside_a_terminal(capsys):
    shown = Reporter("NMF", interval=100.0)
    for n_iter in range(1, 50):
        shown.update(progress(n_iter), 100)
    shown.close("it was enough")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "iteration 49/" in lines[-1]


def test_a_terminal_gets_one_line_that_is_rewritten(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    shown = Reporter("NMF", interval=0.0)
    shown.update(progress(1), 10)
    shown.update(progress(2), 10)
    shown.close("it was enough")
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert text.count("\r\x1b[K") == 3


def test_a_log_gets_a_line_after_a_second_and_every_ten_seconds(capsys):
    shown = Reporter("NMF")
    shown.update(progress(1), 10)  # a run that ends within a second has its last line only
    for n_iter, seconds in ((2, 2.0), (3, 9.0), (4, 2.0)):
        shown._shown -= seconds
        shown.update(progress(n_iter), 10)
    assert [line.split()[2].strip(",") for line in capsys.readouterr().err.splitlines()] == ["2/10", "4/10"]


def test_a_notebook_gets_one_line_that_is_rewritten_without_escape_sequences(monkeypatch):
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    monkeypatch.setattr(sys, "stderr", stream)
    shown = Reporter("NMF")
    assert shown.interval < 1
    shown.interval = 0.0
    shown.update(progress(1), 10)
    shown.update(progress(2), 10)
    shown.close("it was enough")
    text = stream.getvalue()
    assert "\x1b" not in text
    assert text.count("\n") == 1
    assert text.rpartition("\r")[2].startswith("NMF: iteration 2/10")


def test_a_run_without_an_iteration_names_itself(capsys):
    Reporter("NMF").close("nothing was asked")
    assert capsys.readouterr().err == "NMF: stopped because nothing was asked.\n"


def test_a_fit_is_shown_on_standard_error_and_silent_otherwise(capsys, low_rank):
    factorize(low_rank, 2, max_iter=3, verbose=0)
    assert capsys.readouterr() == ("", "")
    factorize(low_rank, 2, max_iter=3, tol=0, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "factorize: iteration 3/3" in err
    assert "stopped because `max_iter`" in err


def test_a_phase_is_shown_once_it_takes_long(capsys, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    with module.phase("NMF: encoding the samples", 1):
        time.sleep(0.2)
    assert capsys.readouterr() == ("", "NMF: encoding the samples ...\n")
    with module.phase("NMF: encoding the samples", 0):
        time.sleep(0.05)
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    with module.phase("NMF: encoding the samples", 1):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_terminal_forgets_a_phase_that_has_ended(capsys, monkeypatch):
    monkeypatch.setattr(module, "is_live", lambda: True)
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    with module.phase("drawing the report", 1):
        time.sleep(0.2)
    assert capsys.readouterr().err == "\r\x1b[Kdrawing the report ...\r\x1b[K"


def test_a_resumed_run_says_where_it_continues(capsys, low_rank, tmp_path):
    for max_iter in (5, 8):
        NMF(3, max_iter=max_iter, tol=0, verbose=1, checkpoint=tmp_path).fit(low_rank)
    lines = capsys.readouterr().err.splitlines()
    assert lines.count("NMF: resumed at iteration 5") == 1
    assert lines[-1].startswith("NMF: iteration 8/8")


def test_the_last_part_is_shown_at_once_and_silence_is_kept(capsys):
    for verbose in (0, 1):
        counter = module.StepCounter("fits", 2, verbose, interval=1e9)
        counter.done("first")
        counter.done("second")
        assert counter.n_done == 2
        assert capsys.readouterr().err.count("\n") == (1 if verbose else 0)


def test_each_line_says_what_it_counts_and_auto_says_what_it_took(capsys, low_rank):
    X = low_rank - low_rank.min()
    NMF(3, n_init=2, verbose=1, random_state=0, max_iter=20).fit(X)
    assert "NMF: 2 of 2 restarts (" in capsys.readouterr().err
    NMF(3, robust="huber", verbose=1, random_state=0, max_iter=100).fit(X)
    # A slow machine shows more than the last line.
    assert re.fullmatch(r"(NMF, rounds of reweighting: iteration \d+/\d+, .*\n)+", capsys.readouterr().err)
    chosen = SeparableNMF(3, verbose=1).fit(X).certificate_["candidates"]
    assert capsys.readouterr().err.endswith(f"{chosen.sentence}\n")
    frames = np.random.default_rng(0).standard_normal((60, 8))
    model = TransformNMF(2, verbose=1, max_iter=5, random_state=0).fit(frames)
    assert f"transform: {model.certificate_['transform-choice'].sentence}\n" in capsys.readouterr().err
