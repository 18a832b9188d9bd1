"""The page of an unmixed scene in a real browser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.report.browser import CHROMIUM, Shown, shown

from nonneg.cli import main
from nonneg.report.hyperspectral_page import ScenePictures


@pytest.mark.skipif(not CHROMIUM.exists(), reason="chromium is not installed")
def test_the_page_of_a_scene_shows_all_its_pictures(tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("nonneg.cli.unmix_inputs._SIZE", (30, 40, 50))
    assert main(["unmix", "--example", "-k", "3", "--quiet", "-o", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert shown(page, tmp_path) == Shown("", pictures=(4, 4), drawings=2, too_wide_by=0, sounds=(0, 0))


def test_spectra_have_gaps_where_bands_were_left_out():
    spectra = np.array([[1.0, 2.0], [3.0, 4.0]])
    empty = np.zeros((1, 1))
    drawn = (empty, empty[:, :, None], empty, empty.astype(bool))
    whole = ScenePictures(*drawn, spectra, ["a", "b"], np.zeros((2, 2), int))
    np.testing.assert_array_equal(whole.in_all_bands(spectra), spectra)
    kept = np.array([False, True, False, True])
    some = ScenePictures(*drawn, spectra, ["a", "b"], np.zeros((2, 2), int), bands=kept)
    nan = np.nan
    drawn = some.in_all_bands(spectra)
    np.testing.assert_array_equal(drawn, [[nan, 1, nan, 2], [nan, 3, nan, 4]])
    np.testing.assert_array_equal(some.in_range(drawn), drawn)
    # A bad band whose wavelength is unknown to its provider does not stretch the axis.
    placed = replace(some, wavelengths=np.array([0.0, 500.0, 600.0, 700.0]))
    np.testing.assert_array_equal(placed.in_range(placed.wavelengths), [500, 600, 700])
    np.testing.assert_array_equal(placed.in_range(drawn), [[1, nan, 2], [3, nan, 4]])


def test_a_page_without_a_library_speaks_of_none(tmp_path, rng):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    cube = rng.dirichlet(np.ones(3), 100) @ rng.random((3, 12))
    np.save(tmp_path / "cube.npy", cube.reshape(10, 10, 12))
    words = ["unmix", str(tmp_path / "cube.npy"), "-k", "3", "--quiet", "-o", str(tmp_path / "out")]
    assert main(words) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "The spectra of the endmembers" in page
    assert "dashed" not in page
