"""A stand-in for the estimator, so that the commands are tested without waiting for compiled code."""

from __future__ import annotations

import importlib.util
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import sparse

import nonneg
from nonneg.cli import terminal
from nonneg.exceptions import InvalidParameterError, NonFiniteDataError


class Reason(StrEnum):
    CONVERGED = "the tolerance `tol` was reached"


@dataclass
class Statement:
    name: str = "stationarity"
    sentence: str = "No small change of one factor lowers the loss."
    number: float = 1e-5
    threshold: float = 1e-3
    verdict: str = "holds"
    quantities: Any = None


@dataclass
class Result:
    loss: float
    loss_name: str
    solver: str = "hals"
    stop_reason: Reason = Reason.CONVERGED


class Measures:
    def __init__(self, losses: list[float]) -> None:
        self.loss = losses

    def as_dict(self) -> dict[str, list[float]]:
        numbers = list(range(1, len(self.loss) + 1))
        return {"n_iter": numbers, "seconds": [0.01 * number for number in numbers], "loss": self.loss}


class FakeNMF:
    """Multiplicative updates in a few lines, with the attributes of `nonneg.NMF`."""

    made: ClassVar[list[FakeNMF]] = []

    def __init__(self, n_components: Any = "auto", **parameters: Any) -> None:
        self.n_components = n_components
        self.parameters = parameters
        self.made.append(self)

    def get_params(self) -> dict[str, Any]:
        return {"n_components": self.n_components, "callback": None, **self.parameters}

    def fit_transform(self, X: Any) -> np.ndarray:
        if self.parameters.get("solver") == "nonsense":
            raise InvalidParameterError("solver='nonsense' is not known.\nExpected one of ['hals'].")
        self.seen = X
        k = 2 if self.n_components == "auto" else self.n_components
        entries = X.toarray() if sparse.issparse(X) else np.asarray(X)
        if np.isnan(entries).any() and self.parameters.get("missing") != "mask":
            raise NonFiniteDataError("X[0, 1] is NaN. Pass missing='mask' (--missing mask).")
        entries = np.nan_to_num(entries.astype(float))
        rng = np.random.default_rng(self.parameters["random_state"])
        W, H, losses = rng.random((X.shape[0], k)), rng.random((k, X.shape[1])), []
        for _ in range(min(self.parameters.get("max_iter", 30), 30)):
            H *= (W.T @ entries) / (W.T @ W @ H + 1e-9)
            W *= (entries @ H.T) / (W @ (H @ H.T) + 1e-9)
            losses.append(float(np.square(entries - W @ H).sum() / 2))
        dtype = X.dtype if X.dtype.kind == "f" else np.float64
        self.components_ = H.astype(dtype)
        self.n_iter_ = len(losses)
        self.reconstruction_err_ = np.sqrt(2 * losses[-1])
        self.history_ = Measures(losses)
        self.certificate_ = [Statement(quantities={})]
        self.result_ = Result(losses[-1], str(self.parameters.get("beta_loss", "frobenius")))
        return W.astype(dtype)

    def certify(self, X: Any) -> None:
        self.certificate_.append(Statement("eckart-young-bound", "Nothing is better.", quantities={}))

    def save(self, path: Any) -> None:
        np.savez(path, components=self.components_)


@pytest.fixture
def drawn():
    """Let the figures of a report be drawn."""


@pytest.fixture(autouse=True)
def _empty_drawings(request, monkeypatch):
    """Make figures but leave their drawings empty, which takes half of the time of a command otherwise.

    Tests of a report ask for `drawn`; tests/report draws every page.
    """
    if "drawn" not in request.fixturenames and importlib.util.find_spec("matplotlib") is not None:
        backend = importlib.import_module("matplotlib.backends.backend_svg")
        monkeypatch.setattr(
            backend.FigureCanvasSVG, "print_svg", lambda self, stream, **named: stream.write("<svg ></svg>")
        )


@pytest.fixture(autouse=True)
def _times_are_durations():
    """See that the time in the record of a command is not longer than the test that ran it."""
    began = time.perf_counter()
    terminal.begin(json=False, quiet=False)
    yield
    seconds = (terminal.outcome.record or {}).get("result", {}).get("seconds")
    assert seconds is None or 0 <= seconds <= time.perf_counter() - began


@pytest.fixture
def fake(monkeypatch):
    """Put the stand-in in the place of `nonneg.NMF`."""
    monkeypatch.setattr(FakeNMF, "made", [])
    monkeypatch.setattr(nonneg, "NMF", FakeNMF, raising=False)
    return FakeNMF


@pytest.fixture
def array_file(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).random((12, 6)))
    return path


@pytest.fixture
def csv_file(tmp_path):
    path = tmp_path / "fruit.csv"
    rows = np.random.default_rng(0).random((5, 3)).round(3)
    lines = [",apple,pear,plum", *(f"shop {at},{','.join(map(str, row))}" for at, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n")
    return path
