"""Drawings change only on purpose: sizes, places, colors and words are those in data/looks.json.

`python -m tests.report.test_looks` writes that file.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from tests.report.looks import NUMBER, looks_of

pytest.importorskip("matplotlib")
from nonneg.report import consensus_figures as consensus
from nonneg.report import curves, figures, graph_drawing, sound_figures
from nonneg.report import hyperspectral_figures as scenes
from nonneg.report import topic_figures as topics

KEPT = Path(__file__).with_name("data") / "looks.json"


def random_shares(seed, *shape):
    values = np.random.default_rng(seed).random(shape)
    return values / values.sum(axis=-1, keepdims=True)


def spectrogram(size):
    signal = np.sin(2 * np.pi * 1000 * np.arange(8000) / 8000) * np.linspace(0, 1, 8000)
    power, seconds = sound_figures.power_spectrogram(signal, 8000)
    return sound_figures.spectrogram(size * power, seconds, 8000, float(size * power.max()), "title")


ROWS = [
    {"n_components": k, "stability": 1.0 - 0.1 * k, "least_stable": 0.3 - 0.2 * k, "error": 5.0 - k}
    for k in (1, 2, 4)
]
KINDS = ("C>A", "C>G", "C>T", "T>A", "T>C", "T>G")
CHANNELS = [f"A[{kind}]{letter}" for kind in KINDS for letter in "ACGTACGTACGTACGT"]
SIGNATURE = np.arange(1.0, 97.0) / 4656
SERIES = [
    {"label": "one", "x": [1, 2, 3], "y": [3, None, 1], "spread": [0.5, None, 0.25]},
    {"label": "two", "x": [1, 2], "y": [5, 6], "style": "line"},
    {"label": "three", "x": [1, 2], "y": [4, 6], "style": "dashed"},
    *({"label": f"{at}", "x": [1, 2], "y": [at, at + 1]} for at in range(7)),
]
PANEL = {"title": "a title", "x_label": "x", "y_label": "y", "series": SERIES}
WAVELENGTHS = np.array([900.0, 400.0, 410.0, 420.0, 430.0, 910.0, 920.0])
SPECTRA = np.stack([WAVELENGTHS / 100, 10 - WAVELENGTHS / 100])
LIBRARY = np.stack([np.where(WAVELENGTHS == 410, np.nan, WAVELENGTHS), 0 * WAVELENGTHS])
MERGES = [[0, 1, 0.5, 2], [2, 3, 1.0, 2], [4, 5, 2.0, 4]]
LABELS = ["a", "b" * 44, "c" * 45, "d"]
YEARS = [str(year) for year in range(2000, 2013)]
GROUPS = [{"name": name, "usage": random_shares(at, 13)} for at, name in enumerate("ab")]
DISTANCES = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0))) / 4
RING = sp.csr_array(np.roll(np.eye(7), 1, axis=1) * np.arange(1.0, 8.0)[:, None])
RING = sp.csr_array(RING + RING.T)
SHARES = np.vstack([random_shares(0, 4, 3), [[0.99, 0.01, 0.0], [0.0, 1.0, 0.0], [np.nan] * 3]])
NAMES = ["a<b", "b", "c" * 22, "d" * 23, "e", "f", "g"]
FLOWS = np.array([[4.0, 1.0, 0.5], [1.0, 2.0, 0.0], [0.5, 0.0, 3.0]])
DRAWINGS = {
    "convergence": lambda: figures.convergence([30.0, None, 2.0, 1.9], [1, 2, 3, 4], "iteration"),
    "convergence in seconds": lambda: figures.convergence([3.0, 2.0], [0.1, 0.6], "seconds"),
    "convergence of a constant": lambda: figures.convergence([5.0, 5.0], [0.1, 0.2], "seconds"),
    "strengths": lambda: figures.strengths(np.array([0.2, 0.5, 0.3])),
    "strengths of many": lambda: figures.strengths(np.arange(1.0, 82.0) / 3321),
    "bars": lambda: figures.ranked_bars(np.arange(40.0, 0.0, -1.0), 3, "length"),
    "few bars": lambda: figures.ranked_bars([3.0, 2.0], 1, "length"),
    "candidates": lambda: figures.candidate_curve([2, 4, 6], [300.0, 1.0, 2.0], [0.5, 0.25, 0.0], 4, "error"),
    "other candidates": lambda: figures.candidate_curve(
        [2, 4], [100.0, 1.0], [0.0, 0.0], 3, "error", what="topics"
    ),
    "map": lambda: figures.heat_map(np.array([[1.0, 2.0, 4.0], [0.0, 1.0, 0.0]]), "sample"),
    "map with names": lambda: figures.heat_map(np.ones((41, 3)), "feature", ["a" * 16, "b" * 17, "c" * 5]),
    "map with short names": lambda: figures.heat_map(np.ones((9, 30)), "feature", ["ab"] * 30),
    "map in order": lambda: figures.heat_map(np.eye(2, 700), "feature", ordered=True, largest=2.0),
    "spectrogram": lambda: spectrogram(1.0),
    "silence": lambda: spectrogram(0.0),
    "templates": lambda: sound_figures.templates(
        random_shares(1, 23, 9), np.arange(9) * 500.0, 2000, [f"{at}" for at in range(23)]
    ),
    "atoms": lambda: sound_figures.atoms(
        random_shares(2, 3, 20) - 0.05, ["a", "b", "c"], 8000, np.array([100.0, 900.0, 2000.0])
    ),
    "activations": lambda: sound_figures.activations(random_shares(3, 40, 2) ** 20, 2.0, ["a", "b"]),
    "activations of nothing": lambda: sound_figures.activations(np.zeros((1, 1)), 0.0, ["a"]),
    "documents": lambda: topics.documents_per_period(YEARS, list(range(13)), "year"),
    "few documents": lambda: topics.documents_per_period(YEARS[:2], [3, 4], "year"),
    "course": lambda: topics.course(
        YEARS[:7], [9, 0, 1, 2, 3, 4, 5], [0.5, None, *[0.25] * 5], [0.4] * 7, "topic"
    ),
    "course of nothing": lambda: topics.course(["a"], [0], [None], [0.1], "topic"),
    "tree": lambda: topics.tree(MERGES, LABELS),
    "spectra": lambda: scenes.spectrum_lines(SPECTRA, WAVELENGTHS, ["a", "b"], ["#111111", "#222"], LIBRARY),
    "spectra of bands": lambda: scenes.spectrum_lines(np.tri(7, 2), None, list("abcdefg"), ["#333333"] * 7),
    "scene": lambda: scenes.marked_scene(
        "a.png", (90, 60), [[0, 0], [45, 30], [45, 34], [45, 59], [89, 1], [3, 57], [47, 31]], ["#010203"] * 7
    ),
    "crowded scene": lambda: scenes.marked_scene(
        "a.png", (45, 90),
        [[5, 5], [5, 8], [7, 6], [1, 88], [44, 88], [3, 4], [40, 3], [9, 7], [6, 7], [8, 5], [8, 4]],
        ["#010203"] * 11,
    ),
    "ranks": lambda: consensus.rank_plot(ROWS, 2),
    "ranks on a small screen": lambda: consensus.rank_plot(ROWS[:1], 1, "signatures", narrow=True),
    "density": lambda: consensus.density_plot(50 * random_shares(4, 60), 1.2, 7),
    "density without a threshold": lambda: consensus.density_plot([0.5], 2.0, 0),
    "clusters": lambda: consensus.clustergram(DISTANCES, [0, 0, 1, 1, 1]),
    "usage": lambda: consensus.usage_bars(GROUPS, "program"),
    "signature": lambda: consensus.signature_bars(SIGNATURE, CHANNELS, "title"),
    "narrow signature": lambda: consensus.signature_bars(SIGNATURE, CHANNELS, "title", narrow=True),
    "curves": lambda: curves.curve_panels(
        [PANEL, PANEL | {"x_log": True, "series": SERIES[1:]}, PANEL | {"series": [], "y_log": True}], "title"
    ),
    "one panel": lambda: curves.curve_panels([PANEL], "title"),
    "graph": lambda: graph_drawing.graph_picture(RING, SHARES, NAMES, np.array([0, 5])),
    "graph with rings": lambda: graph_drawing.graph_picture(
        RING, SHARES, NAMES, np.array([1]), title="t", rings=["", "#010203", *[""] * 4, "#040506"]
    ),
    "communities": lambda: graph_drawing.community_picture(FLOWS, np.array([4.0, 1.0, 0.001]), list("abc")),
    "one community": lambda: graph_drawing.community_picture(np.ones((1, 1)), np.ones(1), ["a"]),
    "nine communities": lambda: graph_drawing.community_picture(
        np.ones((9, 9)), np.arange(9.0), list("abcdefghi")
    ),
    "colors": lambda: "".join(
        f"{graph_drawing.color(at)} {graph_drawing.color_rgb(at)} " for at in range(-1, 14)
    ),
}  # fmt: skip


class Titled(tuple):
    """A title and a figure, before which the first line of a file can be written."""

    def __radd__(self, text):
        return Titled((text + self[0], self[1]))


def looks(name, replace):
    """Draw one of them, figures of matplotlib instead of SVG; `replace` sets attributes of modules."""
    for module in (figures, sound_figures, topics, scenes, consensus):
        replace(module, "svg_text", lambda figure, title: Titled((title, figure)))
    places = np.array([[0.0, 1.0], [0.2, 0.9], [0.5, 0.5], [0.52, 0.5], [1.0, 0.0], [0.9, 0.3], [0.1, 0.2]])
    replace(graph_drawing, "placed_nodes", lambda adjacency, memberships: places)
    replace(curves, "svg_element", lambda figure, title: Titled((title, figure)))
    return json.loads(json.dumps(looks_of(DRAWINGS[name]())))


def differences(found, known, at=""):
    """Yield where two records differ, numbers by more than rounding."""
    if isinstance(known, dict | list):
        if type(found) is not type(known) or len(found) != len(known):
            yield at, found, known
            return
        for place in known if isinstance(known, dict) else range(len(known)):
            yield from differences(found[place], known[place], f"{at}/{place}")
    elif isinstance(known, int | float) and isinstance(found, int | float):
        if found != pytest.approx(known, rel=1e-6, abs=1e-9):
            yield at, found, known
    elif isinstance(known, str) and NUMBER.fullmatch(known):
        # In SVG, the last digit may be rounded otherwise.
        decimals = len(known.partition(".")[2])
        if float(found) != pytest.approx(float(known), abs=1.1 * 10.0**-decimals if decimals else 0.0):
            yield at, found, known
    elif found != known:
        yield at, found, known


KNOWN = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_looks_as_it_did(name, monkeypatch):
    assert list(differences(looks(name, monkeypatch.setattr), KNOWN[name])) == []


if __name__ == "__main__":
    lines = [
        f"{json.dumps(name)}:{json.dumps(looks(name, setattr), separators=(',', ':'))}" for name in DRAWINGS
    ]
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
