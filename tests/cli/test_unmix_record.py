"""The record of an unmixed image has the numbers of the model."""

from __future__ import annotations

import json

import numpy as np
import pytest

from nonneg import load
from nonneg.cli import main

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


def test_the_record_has_the_numbers_of_the_model(tmp_path, rng):
    values = (rng.dirichlet(np.ones(3), 108) @ rng.random((3, 15))).reshape(9, 12, 15)
    values[0, 0] = np.nan
    np.save(tmp_path / "cube.npy", values)
    out = tmp_path / "out"
    words = ["unmix", str(tmp_path / "cube.npy"), "-k", "2", "--quiet", "--no-data", "nan", "-o", str(out)]
    assert main(words) == 0
    record, model = json.loads((out / "result.json").read_text()), load(out / "model.npz")
    data, result = record["data"], record["result"]
    assert result["relative_error"] == pytest.approx(model.relative_error_)
    assert result["explained"] == pytest.approx(1 - model.relative_error_**2)
    assert 0.01 < model.relative_error_ < 0.9
    assert data["shape"] == [9, 12, 15]
    assert (data["n_pixels"], data["n_left_out"]) == (107, 1)
    assert (data["n_bands"], data["bands_left_out"], data["scale"]) == (15, [], 1.0)
    assert (data["preview_bands"], data["preview_wavelengths"]) == ([12, 7, 2], None)
    means = np.nanmean(np.load(out / "abundances.npy"), axis=(0, 1))
    np.testing.assert_allclose([entry["mean_abundance"] for entry in record["endmembers"]], means)
    for at, entry in enumerate(record["endmembers"]):
        assert (entry["endmember"], entry["row"], entry["column"]) == (at, *model.pure_pixels_[at])
        assert [entry[name] for name in ("name", "angle", "nearest", "map_error")] == [None] * 4
