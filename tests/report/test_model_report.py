"""`write_report(model, path, X)`: the report of a model that was fitted in Python."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from tests.report.browser import CHROMIUM, all_shown, axe

import nonneg
from nonneg import NMF, ConsensusNMF, SeparableNMF, datasets
from nonneg.applications import MixedMembership, MutationalSignatures, SourceSeparation, TopicModel, Unmixing
from nonneg.exceptions import InvalidParameterError, OutputError

pytest.importorskip("matplotlib")
MAX_HEIGHT = 12_000
"""Pixels at a width of 400: some fifteen screens; a table of all nodes would be twice as high."""
TEXTS = ["cat dog pet", "dog cat sleep", "pet cat sleep"]
TEXTS += ["bond stock market", "stock bond rose", "market rose bond"]


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.gamma(1.0, size=(30, 3)) @ rng.gamma(1.0, size=(3, 12))


def text_of(path):
    return path.read_text(encoding="utf-8")


def test_a_fit_has_a_report_with_names_and_images(X, tmp_path):
    frame = pd.DataFrame(X, columns=[f"gene {at}" for at in range(12)])
    model = NMF(3, random_state=0).fit(frame)
    path = nonneg.write_report(model, tmp_path / "fit.html", frame, title="planted parts", image_shape=(3, 4))
    assert path == tmp_path / "fit.html"
    page = text_of(path)
    for words in ("Factorization of planted parts", "gene 3", "3 components explain", "Certificate", "<img"):
        assert words in page
    check_in_a_browser(page, tmp_path)


def test_a_fit_that_has_not_converged_says_so_first(X, tmp_path):
    model = NMF(3, random_state=0, max_iter=2, tol=0).fit(X)
    page = text_of(nonneg.write_report(model, tmp_path / "fit.html", X))
    heading = page.partition("<h1>")[2].partition("</h1>")[0]
    assert heading.endswith("The fit has not converged.")
    assert page.index('class="alert"') < page.index("Certificate")
    assert "Raise max_iter" in page
    check_in_a_browser(page, tmp_path)


def test_a_dense_graph_with_many_nodes_has_a_readable_report(tmp_path):
    rng = np.random.default_rng(0)
    graph = np.triu(rng.random((150, 150)) < 0.5, 1).astype(float)
    model = MixedMembership(3, method="spa", random_state=0).fit(graph + graph.T)
    page = text_of(nonneg.write_report(model, tmp_path / "graph.html"))
    assert page.count("<line ") < 900
    check_in_a_browser(page, tmp_path)


def anchors(X):
    return SeparableNMF(3, method="spa").fit(X), X, "Anchors of"


def topics(X):
    return TopicModel(2, method="spa").fit(TEXTS), TEXTS, "Topics of"


def communities(X):
    graph = np.kron(np.eye(2), np.ones((6, 6))) - np.eye(12)
    graph[0, 6] = graph[6, 0] = 1
    return MixedMembership(2, random_state=0).fit(graph), None, "Communities of"


def unmixing(X):
    cube = datasets.scene_like(8, 9, n_bands=20, n_materials=3, rng=0).X.reshape(8, 9, 20)
    return Unmixing(3, method="spa").fit(cube), cube, "Unmixing of"


def separation(X):
    t = np.arange(600) / 1000
    signal = np.sin(2 * np.pi * 83 * t) + np.sin(2 * np.pi * 209 * t) * (t > 0.3)
    model = SourceSeparation(2, frame_length=32, max_iter=5, method="dct", random_state=0)
    return model.fit(signal, 1000), signal, "Sources of"


def programs(X):
    counts = np.random.default_rng(0).poisson(20 * X) + np.eye(30, 12)
    frame = pd.DataFrame(counts, columns=[f"gene {at}" for at in range(12)])
    return ConsensusNMF(range(2, 5), n_init=4, random_state=0).fit(frame), frame, "Consensus programs of"


def signatures(X):
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(1.0, 500.0, size=(20, 2)) @ rng.dirichlet(np.full(96, 0.2), size=2)).T
    model = MutationalSignatures([2, 3], n_init=4, random_state=0).fit(counts)
    return model, counts, "Mutational signatures of"


@pytest.mark.parametrize(
    "makers",
    [
        pytest.param((anchors, topics, communities), id="small"),
        pytest.param((programs, signatures, unmixing, separation), id="others", marks=pytest.mark.slow),
    ],
)
def test_other_models_have_the_report_of_their_command(makers, X, tmp_path):
    pages = {}
    for make in makers:
        model, data, words = make(X)
        details = {"reference": model.signatures_} if make is signatures else {}
        page = text_of(nonneg.write_report(model, tmp_path / "page.html", data, title="something", **details))
        assert f"{words} something" in page
        pages[make.__name__] = page
    if programs in makers:
        assert "gene 3" in pages["programs"]
        assert "cosine" in pages["signatures"]
        assert pages["separation"].count("<audio") == 3
    check_in_a_browser(pages, tmp_path)


def check_in_a_browser(pages, folder):
    """No complaint, nothing wider than the screen, no label on another, readable for everybody."""
    if not CHROMIUM.exists():
        return
    pages = pages if isinstance(pages, dict) else {"page": pages}
    for name, seen in all_shown(pages, folder, accessible=axe() is not None).items():
        assert seen.complaints == ""
        assert seen.pictures[0] == seen.pictures[1], name
        assert seen.too_wide_by == 0, name
        assert seen.faults == (), name
        assert seen.tall < MAX_HEIGHT, name


def test_what_is_missing_is_said(X, tmp_path):
    model = NMF(3, random_state=0).fit(X)
    with pytest.raises(InvalidParameterError, match=r"pass X, write_report\(model, path, X\)"):
        nonneg.write_report(model, tmp_path / "x.html")
    with pytest.raises(OutputError, match="could not be written"):
        nonneg.write_report(model, tmp_path / "no folder" / "x.html", X)
    model.save(tmp_path / "model.npz")
    with pytest.raises(InvalidParameterError, match="Pass the model that was fitted"):
        nonneg.write_report(nonneg.load(tmp_path / "model.npz"), tmp_path / "x.html", X)
    counts = np.ceil(10 * X)
    programs = ConsensusNMF(2, n_init=3, random_state=0).fit(counts)
    # A consensus keeps what its report shows.
    programs.save(tmp_path / "programs.npz")
    again = nonneg.write_report(nonneg.load(tmp_path / "programs.npz"), tmp_path / "x.html", counts)
    assert text_of(again) == text_of(nonneg.write_report(programs, tmp_path / "y.html", counts))


def test_counts_without_names_show_no_numbers_of_rows(tmp_path):
    # "row 604" said nothing about a document.
    counts = np.kron(np.eye(2), np.ones((12, 5))) + np.eye(24, 10)
    model = TopicModel(2, random_state=0).fit(counts)
    page = text_of(nonneg.write_report(model, tmp_path / "counts.html", counts))
    assert "documents 12" in page
    assert re.search(r"row \d", page) is None
    names = [f"doc{at}" for at in range(24)]
    named = nonneg.write_report(model, tmp_path / "named.html", counts, names=names)
    assert re.search(r"<td>doc\d+</td>", text_of(named))
