"""`nonneg unmix`: what it writes, and what it says when something is wrong."""

from __future__ import annotations

import base64
import csv
import json
import re

import numpy as np
import pytest
from tests.references.mixtures import mixtures

from nonneg import load
from nonneg.applications.hyperspectral import read_cube, read_library
from nonneg.cli import main
from nonneg.datasets import scene_like, separable_dirichlet

ROWS, COLUMNS, BANDS, K = 9, 12, 15, 3


@pytest.fixture
def planted():
    return separable_dirichlet(ROWS * COLUMNS, BANDS, K, rng=1)


@pytest.fixture
def cube_file(tmp_path, planted):
    path = tmp_path / "field.npy"
    np.save(path, planted.X.reshape(ROWS, COLUMNS, BANDS))
    return path


@pytest.fixture
def library_file(tmp_path, planted):
    path = tmp_path / "library.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["wavelength", "<tree>", "rock", "water"])
        spectra = 2.0 * planted.X[planted.anchors]
        writer.writerows(
            [place, *row] for place, row in zip(np.linspace(450, 700, BANDS), spectra.T, strict=True)
        )
    return path


def test_writes_maps_spectra_numbers_and_a_report(cube_file, planted, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["unmix", str(cube_file), "-k", "3", "-o", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("3 endmembers explain 100.0% of the squared norm of the image.")
    assert "field.npy: 9 x 12 pixels, 15 bands" in said.err
    assert "pixels mapped" in said.err
    assert {path.name for path in out.iterdir()} == {
        "abundances.npy", "residuals.npy", "endmembers.csv", "result.json", "model.npz", "report.html",
    }  # fmt: skip
    maps = np.load(out / "abundances.npy")
    assert maps.shape == (ROWS, COLUMNS, K)
    np.testing.assert_allclose(load(out / "model.npz").transform(np.load(cube_file)), maps, atol=1e-12)
    np.testing.assert_allclose(maps.sum(axis=2), 1)
    record = json.loads((out / "result.json").read_text())
    places = {entry["row"] * COLUMNS + entry["column"] for entry in record["endmembers"]}
    assert places == set(planted.anchors.tolist())
    assert record["result"]["mean_angle"] is None
    assert record["certificate"]
    for at, entry in enumerate(record["endmembers"]):
        np.testing.assert_allclose(maps[entry["row"], entry["column"], at], 1, atol=1e-6)
    # What was found is a library of spectra itself.
    np.testing.assert_allclose(
        read_library(out / "endmembers.csv").spectra[0],
        planted.X[record["endmembers"][0]["row"] * COLUMNS + record["endmembers"][0]["column"]],
    )


@pytest.mark.usefixtures("drawn")
def test_names_mask_wavelengths_and_envi(cube_file, library_file, planted, tmp_path, capsys):
    values = np.load(cube_file)
    free = next(at for at in range(ROWS * COLUMNS) if at not in planted.anchors)
    values[divmod(free, COLUMNS)] = -5
    np.save(cube_file, values)
    np.save(tmp_path / "mask.npy", np.ones((ROWS, COLUMNS), bool))
    np.savetxt(tmp_path / "places.txt", np.linspace(450, 700, BANDS))
    out = tmp_path / "out"
    words = ["unmix", str(cube_file), "-k", "3", "-o", str(out), "--quiet", "--maps", "envi"]
    words += ["--no-data", "-5"]
    words += ["--library", str(library_file), "--mask", str(tmp_path / "mask.npy")]
    assert main([*words, "--wavelengths", str(tmp_path / "places.txt"), "--constraint", "sum-to-one"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert re.search(r"\| <tree> +\|", said.out)
    record = json.loads((out / "result.json").read_text())
    assert {entry["name"] for entry in record["endmembers"]} == {"<tree>", "rock", "water"}
    assert max(entry["angle"] for entry in record["endmembers"]) < 1e-4
    assert record["data"]["n_left_out"] == 1
    maps = read_cube(out / "abundances.hdr")
    assert np.isnan(maps.values[divmod(free, COLUMNS)]).all()
    assert not np.load(out / "mask.npy")[divmod(free, COLUMNS)]
    page = (out / "report.html").read_text()
    assert "&lt;tree&gt;" in page
    assert "<tree>" not in page
    assert "640 nm" not in page  # the nearest band is shown, not what was wished for
    assert "wavelength, nm" in page


@pytest.mark.covering(0)
@pytest.mark.parametrize("words", [[], ["-k", "auto"]])
def test_the_number_is_estimated_and_corrupt_pixels_are_named(tmp_path, capsys, words):
    scene = scene_like(30, 30, 50, 4, snr=35, rng=5).X
    corrupt = [217, 640]
    scene[corrupt] = 1.5 * scene.max() * np.random.default_rng(0).random((2, 50))
    np.save(tmp_path / "lake.npy", scene.reshape(30, 30, 50))
    assert main(["unmix", str(tmp_path / "lake.npy"), *words, "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert "The number of endmembers was estimated: HySime 4, NWHFC" in said.out
    headline = said.out.splitlines()[0]
    assert headline.startswith("4 endmembers explain ")
    assert "they do not explain 2 pixels" in headline
    assert "set aside: 2 pixels unlike all others" in headline
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    assert record["data"]["isolated_pixels"] == [list(divmod(at, 30)) for at in corrupt]
    assert record["result"]["estimates"]["HySime"] == 4
    page = (tmp_path / "out" / "report.html").read_text()
    assert "that the endmembers do not explain are hatched" in page
    assert "The number of endmembers was estimated: HySime 4" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-k", "3"], "Give either a file with a cube or --example"),
        (["x.npy", "--example"], "Give either a file"),
        (["none.npy", "-k", "3"], r"none\.npy does not exist"),
        (["CUBE", "-k", "3", "--constraint", "sum"], "constraint='sum' is not known"),
        (["CUBE", "-k", "3", "--mask", "none.npy"], r"none\.npy could not be read"),
        (["CUBE", "-k", "3", "--library", "none.csv"], r"none\.csv does not exist"),
    ],
)
def test_mistakes_are_explained_in_one_line(cube_file, tmp_path, capsys, words, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [str(cube_file) if word == "CUBE" else word for word in words]
    assert main(["unmix", *words, "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert re.search(message, said)
    assert not (tmp_path / "out").exists()


def test_a_library_that_does_not_fit_is_told_before_the_work(cube_file, tmp_path, capsys):
    library, places = tmp_path / "infrared.csv", tmp_path / "wavelengths.npy"
    library.write_text("wavelength,soil\n8000,1\n12000,3\n")
    np.save(places, np.linspace(400, 2400, BANDS))
    words = ["unmix", str(cube_file), "-k", "3", "--library", str(library), "--wavelengths", str(places)]
    assert main([*words, "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "check that both are in the same unit" in said
    assert "pixels mapped" not in said


def test_entries_below_zero_are_clipped_as_far_as_is_said(planted, tmp_path, capsys):
    values = planted.X.reshape(ROWS, COLUMNS, BANDS).copy()
    values[0, 0, 0] = -0.2 * values.max()
    np.save(tmp_path / "dark.npy", values)
    words = ["unmix", str(tmp_path / "dark.npy"), "-k", "3", "-o", str(tmp_path / "out")]
    assert main(words) == 2
    assert "--negative-tol" in capsys.readouterr().err
    assert main([*words, "--negative-tol", "0.3"]) == 0
    assert "note: 1 entry below zero (down to" in capsys.readouterr().err


def test_pixels_without_data_do_not_look_like_pixels_without_a_material(planted, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    values = planted.X.reshape(ROWS, COLUMNS, BANDS).copy()
    for name, hatched in [("whole", False), ("gap", True)]:
        np.save(tmp_path / f"{name}.npy", values)
        words = ["unmix", str(tmp_path / f"{name}.npy"), "-k", "3", "--no-data", "nan", "--quiet"]
        assert main([*words, "-o", str(tmp_path / name)]) == 0
        sections = json.loads((tmp_path / name / "result.json").read_text())["sections"]
        for shades, _, _ in sections[-1][-1][
            "pictures"
        ]:  # 255 is transparent, and the page is hatched behind
            assert base64.b64decode(shades["bytes"]).count(255) == hatched
        values[next((r, c) for r in range(3) for c in range(3) if r * COLUMNS + c not in planted.anchors)] = (
            np.nan
        )
    capsys.readouterr()


@pytest.fixture
def flagged(planted, tmp_path):
    """An ENVI file whose header flags three bands of noise as bad."""
    spectral = pytest.importorskip("spectral")
    cube = planted.X.reshape(ROWS, COLUMNS, BANDS).astype(np.float32)
    bad = [0, 1, 7]
    cube[:, :, bad] = np.random.default_rng(0).uniform(0, 5, (ROWS, COLUMNS, 3))
    kept = np.isin(np.arange(BANDS), bad, invert=True)

    def write(name="scene.hdr", **details):
        metadata = {"bbl": kept.astype(int).tolist()} | details
        spectral.envi.save_image(
            str(tmp_path / name), cube, interleave="bil", ext="img", metadata=metadata, force=True
        )
        return tmp_path / name

    write.kept = kept
    return write


def test_bands_that_a_header_flags_as_bad_are_left_out(flagged, planted, library_file, tmp_path, capsys):
    places = np.linspace(450, 700, BANDS)
    path = flagged(**{"wavelength": (places / 1000).tolist(), "wavelength units": "Micrometers"})
    out = tmp_path / "out"
    words = ["unmix", str(path), "-k", "3", "--quiet", "--library", str(library_file), "-o", str(out)]
    assert main(words) == 0
    said = capsys.readouterr().err
    assert said.splitlines() == [
        "note: 3 of 15 bands of scene.hdr are left out: its header flags them as bad (bbl). bands='all' "
        "(--all-bands) keeps them."
    ]
    record = json.loads((out / "result.json").read_text())
    assert record["data"]["shape"] == [ROWS, COLUMNS, BANDS]
    assert record["data"]["n_bands"] == 12
    assert record["data"]["bands_left_out"] == [0, 1, 7]
    assert max(entry["angle"] for entry in record["endmembers"]) < 1e-2
    found = read_library(out / "endmembers.csv")
    np.testing.assert_allclose(found.wavelengths, places[flagged.kept], rtol=1e-5)
    assert (out / "report.html").is_file()
    assert load(out / "model.npz").bands_.tolist() == flagged.kept.tolist()
    assert main([*words, "--all-bands"]) == 0
    assert capsys.readouterr().err == ""
    record = json.loads((out / "result.json").read_text())
    assert record["data"]["n_bands"] == BANDS
    assert record["data"]["bands_left_out"] == []
    assert "bands were left out" not in (out / "report.html").read_text()


def test_bands_keep_their_numbers_where_others_are_left_out(flagged, planted, tmp_path, capsys):
    library = tmp_path / "whole.csv"
    spectra = planted.X[planted.anchors].T
    lines = [f"{band},{','.join(map(str, row))}" for band, row in enumerate(spectra.tolist())]
    library.write_text("\n".join(["band,a,b,c", *lines]))
    out = tmp_path / "out"
    words = ["unmix", str(flagged()), "-k", "3", "--quiet", "-o", str(out)]
    assert main([*words, "--library", str(library)]) == 0
    record = json.loads((out / "result.json").read_text())
    assert max(entry["angle"] for entry in record["endmembers"]) < 1e-2
    with (out / "endmembers.csv").open(newline="") as stream:
        numbers = [int(row[0]) for row in list(csv.reader(stream))[1:]]
    assert numbers == np.flatnonzero(flagged.kept).tolist()
    # What was found names what is found again, in the bands that count.
    (tmp_path / "found.csv").write_bytes((out / "endmembers.csv").read_bytes())
    assert main([*words, "--library", str(tmp_path / "found.csv")]) == 0
    capsys.readouterr()
    record = json.loads((out / "result.json").read_text())
    assert max(entry["angle"] for entry in record["endmembers"]) < 1e-2


def test_minimum_volume_and_its_report(tmp_path, capsys):
    scene = mixtures(240, BANDS, K, purity=0.8, snr=35.0, rng=0)
    np.save(tmp_path / "mixed.npy", scene.X.reshape(15, 16, BANDS))
    out = tmp_path / "out"
    command = ["unmix", str(tmp_path / "mixed.npy"), "-k", "3", "--method", "min-volume", "-o", str(out)]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("3 endmembers explain")
    record = json.loads((out / "result.json").read_text())
    assert record["result"]["method"] == "min-volume"
    assert "sufficiently-scattered" in {entry["name"] for entry in record["certificate"]}
    report = (out / "report.html").read_text()
    assert "by min-volume" in report
    assert "the purest pixels" in report
