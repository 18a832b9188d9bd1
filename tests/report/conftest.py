"""A fit to make pages of, without fitting anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nonneg.report.page import Fit


def make_record(n_rows: int, n_columns: int, k: int, **changes: Any) -> dict[str, Any]:
    statement = {"number": 1e-4, "threshold": 1e-3, "quantities": {"residual_W": 1e-4}}
    return {
        "title": "Factorization of table.csv",
        "data": {
            "source": "table.csv",
            "shape": [n_rows, n_columns],
            "dtype": "float64",
            "n_stored": None,
            "n_missing": 0,
        },
        "parameters": {"n_components": k, "tol": 1e-4, "init": None},
        "result": {
            "n_components": k,
            "solver": "hals",
            "loss_name": "frobenius",
            "loss": 1.5,
            "reconstruction_err": 1.7,
            "relative_error": 0.2167,
            "explained": 0.953,
            "n_iter": 3,
            "stop_reason": {"name": "converged", "sentence": "the loss decreased by less than `tol`"},
            "seconds": 0.25,
        },
        "history": {"n_iter": [1, 2, 3], "seconds": [0.1, 0.2, 0.25], "loss": [3.0, 2.0, 1.5]},
        "certificate": [
            {"name": "stationarity", "sentence": "No small change helps.", "verdict": "holds", **statement},
            {"name": "bound", "sentence": "Could not be computed.", "verdict": "not verifiable", **statement},
            {"name": "floor", "sentence": "Too far away.", "verdict": "fails", **statement},
        ],
        "image_shape": None,
        "examples": None,
        "comparison": None,
        "versions": {"nonneg": "0.1.0", "numpy": "2.0"},
        **changes,
    }


def build(n_rows: int = 12, n_columns: int = 6, k: int = 3, *, names: bool = False, **changes: Any) -> Fit:
    rng = np.random.default_rng(0)
    W, H = rng.random((n_rows, k)), rng.random((k, n_columns))
    examples = rng.random((2, n_columns)) if changes.get("examples") else None
    return Fit(
        make_record(n_rows, n_columns, k, **changes),
        W,
        H,
        [f"row {at}" for at in range(n_rows)] if names else None,
        [f"column {at}" for at in range(n_columns)] if names else None,
        examples,
    )


@pytest.fixture
def make_fit():
    """Build a `Fit` of any shape, with changes to its record."""
    return build


@pytest.fixture
def draw(monkeypatch):
    """Return a function that draws and returns the axes, without writing the drawing."""
    from nonneg.report import (
        consensus_figures,
        curves,
        figures,
        hyperspectral_figures,
        sound_figures,
        topic_figures,
    )

    drawn = []
    for module in (figures, sound_figures, topic_figures, hyperspectral_figures, consensus_figures):
        monkeypatch.setattr(module, "svg_text", lambda figure, title: figure)
    monkeypatch.setattr(curves, "svg_element", lambda figure, title: drawn.append(figure) or "")

    def drawing(function: Any, *args: Any, **options: Any) -> Any:
        figure = function(*args, **options)
        return (drawn.pop() if drawn else figure).axes

    return drawing


@pytest.fixture
def page_contexts(monkeypatch):
    """Let drawings be the arguments they were called with, and pages their contexts."""
    from nonneg.report import anchor_page, community_page, consensus_page, separation_page, topic_page

    for page in (anchor_page, community_page, consensus_page, separation_page, topic_page):
        monkeypatch.setattr(page, "render", lambda template, context: (template, context))
        monkeypatch.setattr(page, "drawing", lambda drawn: drawn)
    drawings = {
        anchor_page.figures: "strengths heat_map candidate_curve ranked_bars convergence",
        topic_page.topic_figures: "tree course documents_per_period",
        consensus_page.figures: "rank_plot clustergram density_plot usage_bars signature_bars",
    }
    for module, names in drawings.items():
        for name in names.split():
            monkeypatch.setattr(module, name, lambda *given, called=name, **more: (called, given, more))
