"""Scenes, topics and saved models that commands open: what is asked for, and what is refused."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.applications.hyperspectral import Cube
from nonneg.cli import edit_topics, topics, transform, transform_kinds, unmix_inputs
from nonneg.cli.transform_inputs import SavedModel, _some
from nonneg.exceptions import FileFormatError, InvalidParameterError, UnknownNameError
from nonneg.metrics import spectral_angles

KNOWN = ("samson",)


def scene_options(**changes):
    given = {
        "cube": None, "example": False, "endmembers": 3, "variable": None, "no_data": None,
        "all_bands": False, "wavelengths": None, "mask": None, "library": None, "seed": 0,
    }  # fmt: skip
    return argparse.Namespace(**(given | changes))


@pytest.fixture
def cube_file(tmp_path):
    np.save(tmp_path / "cube.npy", np.arange(24.0).reshape(2, 3, 4))
    return tmp_path / "cube.npy"


@pytest.mark.parametrize(("count", "expected"), [(3, 3), ("auto", None)])
def test_the_number_of_endmembers_is_given_or_estimated(count, expected, cube_file, monkeypatch):
    monkeypatch.setattr(unmix_inputs, "_SIZE", (4, 5, 6))
    monkeypatch.setattr(unmix_inputs, "_real", lambda name, given: unmix_inputs.Scene(None, name, given or 7))
    for changes in ({"cube": str(cube_file)}, {"example": True}, {"cube": "samson"}):
        scene = unmix_inputs.opened_scene(scene_options(endmembers=count, **changes), KNOWN)
        assert scene.n_endmembers == expected


def test_one_scene_is_asked_for(cube_file):
    for wrong in ({}, {"cube": str(cube_file), "example": True}):
        with pytest.raises(InvalidParameterError, match=r"the name of a real image \(samson\), or --example"):
            unmix_inputs.opened_scene(scene_options(**wrong), KNOWN)
    with pytest.raises(UnknownNameError, match="Did you mean 'samson'"):
        unmix_inputs.opened_scene(scene_options(cube="samsun"), KNOWN)


def test_a_generated_scene_has_its_truth(monkeypatch):
    monkeypatch.setattr(unmix_inputs, "_SIZE", (4, 5, 6))
    scene = unmix_inputs._generated(3, 1)
    assert scene.cube.shape == (4, 5, 6)
    assert (scene.n_endmembers, scene.known_as) == (3, "the true ones")
    assert scene.library.names == ("material 0", "material 1", "material 2")
    np.testing.assert_allclose(scene.truth_maps.sum(axis=2), 1.0)
    np.testing.assert_allclose(scene.cube.wavelengths, np.linspace(400, 2400, 6))
    # The pixels are mixtures of the true spectra, with noise of one percent.
    mixed = scene.truth_maps.reshape(-1, 3) @ scene.library.spectra
    pixels = scene.cube.values.reshape(-1, 6)
    assert np.diag(spectral_angles(mixed, pixels)).max() < 8.0


def test_files_beside_a_scene(cube_file, tmp_path):
    np.savetxt(tmp_path / "places.txt", [0.4, 0.5, 0.6, 0.7])
    np.save(tmp_path / "mask.npy", np.ones((2, 3), dtype=bool))
    (tmp_path / "library.csv").write_text("wavelength,a\n400,1\n700,2\n")
    options = scene_options(
        cube=str(cube_file), wavelengths=tmp_path / "places.txt", mask=tmp_path / "mask.npy",
        library=tmp_path / "library.csv",
    )  # fmt: skip
    scene = unmix_inputs.opened_scene(options, KNOWN)
    np.testing.assert_allclose(scene.cube.wavelengths, [400, 500, 600, 700])
    assert scene.mask.all()
    assert (scene.library.names, scene.title, scene.known_as) == (("a",), "cube.npy", "those of the library")
    (tmp_path / "bad.txt").write_text("many")
    with pytest.raises(FileFormatError, match=r"bad.txt could not be read: .*one number per line"):
        unmix_inputs._numbers(tmp_path / "bad.txt")
    (tmp_path / "one.txt").write_text("5")
    assert unmix_inputs._numbers(tmp_path / "one.txt").tolist() == [5.0]


@pytest.mark.parametrize("published", [True, False])
def test_real_scenes_with_and_without_published_endmembers(published, monkeypatch):
    extras = {"endmembers": np.ones((2, 4)), "abundances": np.ones((6, 2))} if published else {}
    found = SimpleNamespace(X=np.ones((6, 4)), y=np.zeros(6), sample_shape=None, extras=extras, names=None)
    monkeypatch.setattr("nonneg.datasets.load_samson", lambda: found)
    scene = unmix_inputs._real("samson", None)
    assert scene.cube.shape == (1, 6, 4)
    assert scene.n_endmembers == (2 if published else None)
    assert unmix_inputs._real("samson", 5).n_endmembers == 5
    if published:
        assert scene.library.names == ("endmember 0", "endmember 1")
        assert scene.truth_maps.shape == (1, 6, 2)


def edits(**changes):
    given = {"merge": [], "split": [], "rename": [], "cut": None} | changes
    return argparse.Namespace(**given)


def test_changes_of_topics():
    model = SimpleNamespace(hierarchy=lambda: SimpleNamespace(cut=lambda number: [["cut", number]]))
    found = edit_topics._changes(
        edits(merge=["3, sea"], split=["2", "sky:3"], rename=["0=trade", "1= "]), model
    )
    assert found == {"merge": [[3, "sea"]], "split": {2: 2, "sky": 3}, "rename": {0: "trade", 1: None}}
    assert edit_topics._changes(edits(cut=4), model)["merge"] == [["cut", 4]]
    assert edit_topics._changes(edits(cut=4, rename=["0=a"]), model)["rename"] == {0: "a"}
    for wrong, said in (
        (edits(merge=["3"]), "--merge 3: expected several topics"),
        (edits(merge=["3,3"]), "--merge 3,3: expected several topics"),
        (edits(split=["2:x"]), "--split 2:x: expected a number after the colon"),
        (edits(rename=["sea"]), "--rename sea: expected a topic and a name"),
        (edits(cut=2, merge=["1,2"]), "--cut merges topics by itself"),
        (edits(cut=2, split=["1"]), "--cut merges topics by itself"),
        (edits(), "Nothing to change"),
    ):
        with pytest.raises(InvalidParameterError, match=said):
            edit_topics._changes(wrong, model)


def test_documents_are_where_they_were_or_where_the_user_says(tmp_path):
    there = tmp_path / "a.txt"
    there.write_text("")
    known = {"files": [str(there)], "lines": True, "stdlib": True}
    options = argparse.Namespace(files=[], model=Path("out"))
    assert edit_topics._inputs(options, {"inputs": known}) == known
    options.files = [Path("b.txt")]
    found = edit_topics._inputs(options, {"inputs": known})
    assert found == {"files": [str(Path("b.txt").absolute())], "lines": True, "stdlib": False}
    assert edit_topics._inputs(options, None)["stdlib"] is False
    options.files = []
    for record in (None, {"inputs": None}):
        with pytest.raises(InvalidParameterError, match="out does not say where its documents are"):
            edit_topics._inputs(options, record)
    there.unlink()
    with pytest.raises(InvalidParameterError, match=r"a\.txt, in which the topics were found, no longer"):
        edit_topics._inputs(options, {"inputs": known})


@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_examples_of_documents_end_at_a_word(beyond):
    n = topics.N_LETTERS
    text = "ab " * (n // 3) + "c" * (n % 3 + beyond + 3)
    text = text[: n + beyond].rstrip()
    documents = SimpleNamespace(are_texts=True, contents=[text], names=["d"])
    shown = topics._example(documents, 0, 0.5)
    assert (shown["name"], shown["row"], shown["proportion"]) == ("d", 0, 0.5)
    assert len(shown["text"]) <= n + 2
    assert (shown["text"] == text) is (len(text) <= n)
    longer = SimpleNamespace(are_texts=True, contents=["word " * n], names=["d"])
    assert topics._example(longer, 0, 0.5)["text"].endswith("word \N{HORIZONTAL ELLIPSIS}")
    counts = SimpleNamespace(are_texts=False, contents=[[1]], names=["d"])
    assert topics._example(counts, 0, 0.5)["text"] is None


def test_words_that_guide_topics(tmp_path):
    path = tmp_path / "seeds.txt"
    path.write_text("# a comment\n\nsports: game, team,\n sea : ship\n")
    assert topics._seed_words(path) == {"sports": ["game", "team"], "sea": ["ship"]}
    for text in ("sports game", ": game", "sports:", "a: b\na: c"):
        path.write_text(text)
        line = text.count("\n") + 1
        with pytest.raises(FileFormatError, match=f"line {line}: expected another topic"):
            topics._seed_words(path)
    with pytest.raises(FileFormatError, match="cannot be read"):
        topics._seed_words(tmp_path / "none.txt")


def test_stop_words(tmp_path):
    assert topics._stop_words("none") is None
    assert topics._stop_words("english") == "english"
    (tmp_path / "words.txt").write_text("The\n\n of \n")
    assert topics._stop_words(str(tmp_path / "words.txt")) == ["the", "of"]
    with pytest.raises(FileFormatError, match="neither 'english' nor 'none'"):
        topics._stop_words(str(tmp_path / "none.txt"))


@pytest.mark.parametrize(
    ("cls", "result", "said"),
    [
        ("NMF", (1, 2, 0.25), "1 sample, 2 components, relative error 0.25; written to out: a, b"),
        ("NMF", (3, 1, None), "3 samples, 1 component; written to out: a, b"),
    ],
)
def test_what_is_said_of_weights(cls, result, said):
    n_samples, n_components, error = result
    record = {
        "model": {"class": cls},
        "result": {"n_samples": n_samples, "n_components": n_components, "relative_error": error},
    }
    assert transform._summary(record, Path("out"), ["a", "b"]) == said


def test_pixels_without_data_are_not_counted():
    maps = np.ones((2, 3, 4))
    maps[0, 0] = np.nan
    found = transform_kinds.Transformed(maps, None, "x.npy", 1.0, 0.5)
    saved = SimpleNamespace(kind="cube", path=Path("m.npz"), class_name="Unmixing")
    record = transform._record(saved, found)
    assert (record["result"]["n_samples"], record["result"]["n_components"]) == (5, 4)
    table = transform._record(SimpleNamespace(kind="table", path=Path("m.npz"), class_name="NMF"), found)
    assert table["result"]["n_samples"] == 6


class Model:
    verbose = n_jobs = device = None

    def __init__(self, **names):
        self.__dict__.update(names)

    def get_params(self, deep=True):
        return {"verbose": self.verbose, "n_jobs": self.n_jobs}


def transform_options(**changes):
    names = {name for listed in transform_kinds.OPTIONS.values() for name in listed}
    given = dict.fromkeys(names) | {"files": ["x"], "device": None, "n_jobs": None, "quiet": False}
    return argparse.Namespace(**(given | changes))


@pytest.mark.parametrize("quiet", [True, False])
def test_a_model_takes_what_it_knows(quiet):
    saved = SavedModel(Model(), Path("m.npz"), "table")
    transform_kinds.prepare(saved, transform_options(n_jobs=2, device="cpu", quiet=quiet, csv=False))
    assert (saved.model.n_jobs, saved.model.verbose, saved.model.device) == (2, 0 if quiet else 1, None)


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        ("table", {"lines": True}, "--lines does not apply here: m.npz contains .* which takes a table"),
        ("texts", {"no_data": 0.0}, "--no-data does not apply here"),
        ("table", {"missing": "mask"}, "--missing mask is for models of class NMF"),
        ("cube", {"files": ["a", "b"]}, "a hyperspectral cube: expected one file, got 2"),
        ("table", {"files": ["a", "b"]}, "a table: expected one file, got 2"),
    ],
)
def test_options_that_say_nothing_about_the_data(kind, changes, said):
    with pytest.raises(InvalidParameterError, match=said):
        transform_kinds._check_options(SavedModel(Model(), Path("m.npz"), kind), transform_options(**changes))
    for several in ("texts", "sound"):
        saved = SavedModel(Model(), Path("m.npz"), several)
        transform_kinds._check_options(saved, transform_options(files=["a", "b"]))


@pytest.mark.parametrize(("apart", "noted"), [(0.9, False), (1.1, True)])
def test_bands_a_thousandth_apart_are_noted(apart, noted, capsys):
    transform_kinds._compare_bands(np.array([500.0, 1000.0 + apart]), np.array([500.0, 1000.0]))
    said = capsys.readouterr().err
    assert said == (f"note: bands of the scene lie up to {apart:.4g} nm from those of the model\n" * noted)


@pytest.mark.parametrize("constraint", ["normalized", "sum-to-one"])
def test_the_error_of_a_scene(constraint, rng):
    endmembers = rng.random((2, 4)) + 0.1
    bands = np.array([True, False, True, True, True])
    shares = rng.dirichlet(np.ones(2), 6)
    light = rng.uniform(0.5, 2.0, (6, 1))
    values = np.zeros((2, 3, 5))
    values[:, :, bands] = (light * (shares @ endmembers)).reshape(2, 3, 4)
    model = SimpleNamespace(endmembers_=endmembers, bands_=bands, constraint=constraint, negative_tol=0.05)
    found = transform_kinds._scene_error(model, Cube(values, bands=bands), None, shares.reshape(2, 3, 2))
    mixed = shares @ endmembers
    expected = np.linalg.norm((light - 1) * mixed) / np.linalg.norm(light * mixed)
    assert found == pytest.approx(0.0 if constraint == "normalized" else expected, abs=1e-12)


def test_five_names_are_told_and_the_others_counted():
    assert _some("abcde") == "'a', 'b', 'c', 'd', 'e'"
    assert _some("abcdefg") == "'a', 'b', 'c', 'd', 'e' and 2 more"
