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


def test_components_as_bars_show_the_largest_features(model):
    names = [f"gene {at}" for at in range(12)]
    axes = plot_components(model, names=names, n_top=4)
    best = np.argsort(-model.components_[2])[:4]
    assert [label.get_text() for label in axes[2].get_yticklabels()] == [names[at] for at in best]
    np.testing.assert_allclose([bar.get_width() for bar in axes[2].patches], model.components_[2][best])


def test_names_of_the_fit_are_used(X):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=[f"c{at}" for at in range(12)])
    axes = plot_components(NMF(2, random_state=0, max_iter=5, tol=0).fit(table), n_top=2)
    assert axes[0].get_yticklabels()[0].get_text().startswith("c")


def test_components_as_curves(model):
    axes = plot_components(model.components_)
    assert [len(line.get_ydata()) for line in axes[0].lines] == [12, 12, 12]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda m: plot_components(m, image_shape=(5, 5)), ShapeError, "have 12 features.*for 25"),
        (lambda m: plot_components(m, names=["a"]), ShapeError, "have 12 features.*for 1"),
    ],
)
def test_errors_say_what_was_expected(model, call, error, said):
    with pytest.raises(error, match=said):
        call(model)


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


@pytest.mark.parametrize(
    ("n_components", "images", "shape"),
    [(9, True, (2, 8)), (7, False, (3, 3)), (2, True, (1, 2)), (2, False, (1, 2))],
)
def test_components_stand_in_rows(n_components, images, shape):
    components = np.arange(6.0 * n_components).reshape(n_components, 6)
    how = {"image_shape": (2, 3)} if images else {"names": list("abcdef")}
    axes = plot_components(components, **how)
    grid = axes[0].get_gridspec()
    assert (grid.nrows, grid.ncols) == shape
    assert len(axes[0].figure.axes) == len(axes) == n_components  # no empty ones
    assert [each.get_title() for each in axes] == [f"component {at}" for at in range(n_components)]
    # The largest is on top.
    assert all(each.yaxis_inverted() for each in axes)


def test_curves_have_a_legend():
    components = np.arange(39.0).reshape(13, 3)
    (axes,) = plot_components(components)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [str(at) for at in range(13)]
    np.testing.assert_array_equal([line.get_ydata() for line in axes.lines], components)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("feature", "component")
    assert len(plot_components(components[0])[0].lines) == 1


def test_ten_features_are_shown_unless_told_otherwise():
    names = [str(at) for at in range(15)]
    assert len(plot_components(np.ones((2, 15)), names=names)[0].patches) == 10
    assert len(plot_components(np.ones((2, 15)), names=names, n_top=20)[0].patches) == 15
    images = plot_components(np.ones((2, 15)), image_shape=(3, 5))[0]
    assert (list(images.get_xticks()), list(images.get_yticks())) == ([], [])
