"""Measurements in a process of their own: a failure is recorded with its reason, and can be watched."""

from __future__ import annotations

from benchmarks.processes import measured_apart


def test_a_failure_is_recorded_and_passed_on(capfd, tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text("raise ImportError('numpy is broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = measured_apart("communities", "--one", tmp_path, "spa", show=True)
    assert list(found) == ["failure"]
    assert "numpy is broken" in found["failure"]
    assert "Traceback" in capfd.readouterr().err
