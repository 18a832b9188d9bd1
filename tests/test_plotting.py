"""Plots and notebook views: they show what was found, and say what they expect."""

from __future__ import annotations

import re

import numpy as np
import pytest

import nonneg
from nonneg import NMF, compare_ranks, estimate_rank, factorize
from nonneg.exceptions import InvalidParameterError, ShapeError
from nonneg.plotting import plot_components
from nonneg.results import Certificate, Statement

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.random((30, 3)) @ rng.random((3, 12))


@pytest.fixture(scope="module")
def model(X):
    return NMF(3, random_state=0).fit(X)


@pytest.fixture(autouse=True)
def _closed():
    yield
    matplotlib.pyplot.close("all")


def test_components_as_images(model):
    axes = plot_components(model, image_shape=(3, 4))
    assert len(axes) == 3
    np.testing.assert_array_equal(axes[1].images[0].get_array(), model.components_[1].reshape(3, 4))
    with pytest.raises(ShapeError, match=r"have 12 features, got image_shape=\(5, 5\)"):
        plot_components(model, image_shape=(5, 5))


@pytest.mark.parametrize("scale", [None, "max"])
def test_components_as_bars_of_the_strongest_features(X, scale):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X * 10.0 ** np.arange(12), columns=[f"c{at}" for at in range(12)])
    model = NMF(4, scale=scale, random_state=0, max_iter=5, tol=0).fit(table)
    heights = model.components_ / (1.0 if scale is None else model.column_scale_)  # the report's units
    for axes, own in zip(plot_components(model, n_top=3), heights, strict=True):
        best = np.argsort(-own)[:3]
        assert [label.get_text() for label in axes.get_yticklabels()] == [f"c{at}" for at in best]
        np.testing.assert_allclose([bar.get_width() for bar in axes.patches], own[best])
        assert axes.yaxis_inverted()  # the strongest on top


def test_names_of_bars(model):
    names = [f"gene {at}" for at in range(12)]
    best = np.argsort(-model.components_[2])
    for own, texts in ((names, [names[at] for at in best]), (None, [str(at) for at in best])):
        axes = plot_components(model.components_, names=own, n_top=20)[2]
        assert [label.get_text() for label in axes.get_yticklabels()] == texts
    with pytest.raises(ShapeError, match="Expected 12 names of features, got 1"):
        plot_components(model, names=["a"])


@pytest.mark.parametrize(("n_components", "shape"), [(9, (2, 8)), (2, (1, 2))])
def test_components_stand_in_rows_of_eight(n_components, shape):
    components = np.arange(6.0 * n_components).reshape(n_components, 6)
    axes = plot_components(components, (2, 3))
    grid = axes[0].get_gridspec()
    assert (grid.nrows, grid.ncols) == shape
    assert [each.get_title() for each in axes] == [f"component {at}" for at in range(n_components)]


def test_notebook_views(X, model):
    result = factorize(X, 3, rng=0)
    views = {
        "certificate": result.certificate._repr_html_(),
        "rank": estimate_rank(X)._repr_html_(),
        "ranks": compare_ranks(X, k_max=4, rng=0)._repr_html_(),
    }
    for name, text in views.items():
        opened, closed = re.findall(r"<(\w+)[ >]", text), re.findall(r"</(\w+)>", text)
        assert sorted(set(opened)) == sorted(set(closed)), name
        assert len(opened) == len(closed), name
    assert all(statement.name in views["certificate"] for statement in result.certificate)


def test_text_of_others_is_escaped():
    statement = Statement("name", "a <script> & more", 1.0, None, "holds")
    shown = Certificate((statement,))._repr_html_()
    assert "<script>" not in shown
    assert "a &lt;script&gt; &amp; more" in shown


def test_plotting_is_public():
    assert "plotting" in nonneg.__all__


def test_consensus_and_signatures():
    from tests.consensus.planted import planted

    from nonneg import ConsensusNMF
    from nonneg.plotting import plot_consensus, plot_signatures

    model = ConsensusNMF([2, 3], n_init=4, max_iter=50, random_state=0).fit(planted(2, n=40, m=20)[0])
    curve, histogram, picture = plot_consensus(model)
    rows = [each.row() for each in model.ranks_]
    for line, name in zip(curve.lines, ("stability", "least_stable"), strict=False):
        np.testing.assert_array_equal(line.get_xdata(), [2, 3])
        np.testing.assert_allclose(line.get_ydata(), [row[name] for row in rows])
    assert set(curve.lines[2].get_xdata()) == {model.n_components_}
    (errors,) = next(axes for axes in curve.figure.axes if axes.get_ylabel() == "error").lines
    np.testing.assert_allclose(errors.get_ydata(), [row["error"] for row in rows])
    found = next(each for each in model.ranks_ if each.n_components == model.n_components_)
    assert histogram.get_title() == f"{found.n_outliers} of {len(found.density)} are outliers"
    heights, _ = np.histogram(np.minimum(found.density, 1.42), bins=np.linspace(0, 1.42, 60))
    np.testing.assert_array_equal([bar.get_height() for bar in histogram.patches], heights)
    edges = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in histogram.patches]
    assert (min(edges)[0], max(edges)[1]) == pytest.approx((0.0, 1.42))
    assert set(histogram.lines[0].get_xdata()) == {model.density_threshold}
    np.testing.assert_array_equal(picture.images[0].get_array(), found.distances)
    assert picture.images[0].get_clim() == pytest.approx((0.0, np.sqrt(2)))
    assert not picture.get_xticks().size
    assert not picture.get_yticks().size
    with pytest.raises(InvalidParameterError, match="Expected a fitted ConsensusNMF, got ConsensusNMF"):
        plot_consensus(ConsensusNMF(2))
    figure = plot_signatures(np.full((2, 96), 1 / 96))
    assert len(figure.axes) == 2
    labels = [[text.get_text() for text in axes.get_xticklabels()] for axes in figure.axes]
    assert labels == [[""] * 6, ["C>A", "C>G", "C>T", "T>A", "T>C", "T>G"]]  # below the last panel only
    figure = plot_signatures(np.arange(96.0)[None] / 4560, names=["one"])
    (axes,) = figure.axes
    np.testing.assert_allclose([bar.get_height() for bar in axes.patches], np.arange(96) / 45.6)
    np.testing.assert_allclose([bar.get_x() for bar in axes.patches], np.arange(96) - 0.375)
    assert (axes.get_xlim(), axes.get_title(loc="left"), axes.get_ylabel()) == ((-1, 96), "one", "%")
    np.testing.assert_array_equal(axes.get_xticks(), [7.5, 23.5, 39.5, 55.5, 71.5, 87.5])
    assert len({bar.get_facecolor() for bar in axes.patches[16:32]}) == 1
    assert len({bar.get_facecolor() for bar in axes.patches}) == 6
    with pytest.raises(ShapeError):
        plot_signatures(np.ones((2, 90)))
