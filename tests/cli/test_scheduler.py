"""`nonneg fit --scheduler`: a running cluster fits the file, and one that cannot is refused at once."""

from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from nonneg.cli import main

pytest.importorskip("matplotlib")
pytest.importorskip("distributed")
from nonneg.data.cluster import Cluster


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.random((60, 3)) @ rng.random((3, 8)))
    return tmp_path / "x.npy"


@pytest.fixture
def quick_page(monkeypatch):
    """Spare the drawing where the page is not looked at."""
    monkeypatch.setattr("nonneg.report.page.build_page", lambda record: "a page")


def fit(path, folder, *words):
    return main(["fit", str(path), "-o", str(folder), "-k", "2", "--quiet", *words])


def assert_same_factors(one, other):
    for name in ("W.npy", "H.npy"):
        np.testing.assert_allclose(np.load(one / name), np.load(other / name), rtol=1e-6, atol=1e-9)


def test_a_running_cluster_fits_the_file(dask_cluster, quick_page, file, tmp_path, monkeypatch):
    words = ("--max-iter", "30", "--tol", "1e-2")
    assert fit(file, tmp_path / "local", *words) == 0
    passes = []
    monkeypatch.setattr(
        "nonneg.data.cluster.Cluster.run",
        lambda self, *given, once=Cluster.run: passes.append(1) or once(self, *given),
    )
    address = dask_cluster.scheduler.address
    assert fit(file, tmp_path / "spread", *words, "--scheduler", address) == 0
    assert passes
    assert_same_factors(tmp_path / "spread", tmp_path / "local")


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--memory", "8kB")])
def test_worker_processes_fit_the_file(process_cluster, quick_page, tmp_path, words):
    """With too little memory here, the workers read the file."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.random((600, 3)) @ rng.random((3, 8)) + 0.01)
    words = ("--max-iter", "8", "--tol", "0", *words)
    assert fit(tmp_path / "x.npy", tmp_path / "local", *words) == 0
    address = process_cluster.scheduler.address
    assert fit(tmp_path / "x.npy", tmp_path / "spread", *words, "--scheduler", address) == 0
    assert_same_factors(tmp_path / "spread", tmp_path / "local")


@pytest.mark.slow
def test_an_interrupted_fit_writes_what_it_has_and_leaves_the_cluster(process_cluster, file, tmp_path):
    words = ["fit", str(file), "-k", "2", "--tol", "0", "--max-iter", "1000000", "-o", str(tmp_path / "out")]
    process = subprocess.Popen(
        [sys.executable, "-m", "nonneg", *words, "--scheduler", process_cluster.scheduler.address],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A suite that runs in the background ignores Ctrl-C, and so would the command.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert any("iteration" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in told
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    assert record["result"]["stop_reason"]["name"] == "interrupted"
    assert np.load(tmp_path / "out" / "W.npy").shape == (60, 2)
    assert process_cluster.submit(sum, [1, 2]).result(timeout=60) == 3


class Elsewhere(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture
def web_address():
    """The address of a server of something else."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"tcp://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def impatient(monkeypatch):
    """Wait a second for an answer that does not come."""
    monkeypatch.setattr("nonneg.data.cluster.CONNECT_SECONDS", 1.0)


@pytest.mark.parametrize(
    ("address", "reason"),
    [("nonsense://host:1", "nonsense"), ("tcp://127.0.0.1:1", "No Dask scheduler answers")],
)
def test_an_address_without_a_scheduler_is_refused(address, reason, file, tmp_path, capsys, impatient):
    assert fit(file, tmp_path / "out", "--scheduler", address) == 2
    told = capsys.readouterr().err
    assert f"No Dask scheduler answers at {address}" in told
    assert reason in told
    assert "Expected an address such as tcp://host:8786" in told
    assert not (tmp_path / "out").exists()


def test_a_server_of_something_else_is_refused(web_address, file, tmp_path, capsys, impatient):
    assert fit(file, tmp_path / "out", "--scheduler", web_address) == 2
    assert f"No Dask scheduler answers at {web_address}" in capsys.readouterr().err


def test_the_address_of_a_worker_is_named(dask_cluster, file, tmp_path, capsys):
    worker = next(iter(dask_cluster.nthreads()))
    assert fit(file, tmp_path / "out", "--scheduler", worker) == 2
    assert f"answers at {worker} (Worker)" in capsys.readouterr().err


def test_another_version_on_the_workers_is_refused(dask_cluster, file, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("nonneg.data.cluster.__version__", "9.9.9")
    assert fit(file, tmp_path / "out", "--scheduler", dask_cluster.scheduler.address) == 2
    told = capsys.readouterr().err
    assert "Some processes of the Dask cluster have another version of nonneg, or none: " in told
    assert all(name in told for name in (*dask_cluster.nthreads(), "the scheduler", "nonneg==9.9.9"))


@pytest.mark.slow
def test_a_worker_with_another_nonneg_is_refused(process_cluster, file, tmp_path, capsys):
    (tmp_path / "nonneg-0.0.1.dist-info").mkdir()
    (tmp_path / "nonneg-0.0.1.dist-info" / "METADATA").write_text("Name: nonneg\nVersion: 0.0.1\n")
    before, address = set(process_cluster.nthreads()), process_cluster.scheduler.address
    words = ["--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address, *words],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    try:
        process_cluster.wait_for_workers(len(before) + 1, timeout=120)
        (alone,) = set(process_cluster.nthreads()) - before
        assert fit(file, tmp_path / "out", "--scheduler", address) == 2
        assert (
            f"Some processes of the Dask cluster have another version of nonneg, or none: {alone}."
            in capsys.readouterr().err
        )
    finally:
        process.terminate()
        process.wait(60)
    process_cluster.wait_for_workers(2, timeout=60)
