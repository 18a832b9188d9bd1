"""`nonneg transform` with models of texts, counts of words and scenes, and those without weights."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from tests.cli.transform_runs import run, the_error

import nonneg
from nonneg.applications import MixedMembership, TopicModel, Unmixing
from nonneg.applications.hyperspectral import Cube
from nonneg.cli import main
from nonneg.datasets import separable_dirichlet

WORDS = ["apple", "pear", "plum", "fig", "lime", "kiwi"]
ANIMALS = ["the cat chased the dog", "a dog and a cat sleep", "cat dog pet", "pet cat sleep"]
MONEY = ["stocks and bonds fell", "the market for bonds", "market stocks rose", "bonds market rose fell"]


@pytest.fixture
def topics(tmp_path):
    model = TopicModel(2, stop_words="english", random_state=0).fit(ANIMALS + MONEY)
    model.save(tmp_path / "topics.npz")
    return tmp_path / "topics.npz"


def test_texts_get_their_topics(topics, tmp_path, capsys):
    texts = ["my cat met a dog", "the market of stocks"]
    place = tmp_path / "articles"
    place.mkdir()
    for at, text in enumerate(texts):
        (place / f"{at}.txt").write_text(text)
    assert run(topics, place, "-o", tmp_path / "out") == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("2 documents, 2 topics\n")
    assert "2 documents from articles" in shown.err
    expected = nonneg.load(topics).transform(texts)
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "W.npy"), expected)
    with (tmp_path / "out" / "documents.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["document"] for row in rows] == ["0.txt", "1.txt"]
    assert [int(row["topic"]) for row in rows] == expected.argmax(axis=1).tolist()
    # One document is enough, whatever it comes in.
    assert run(topics, place / "0.txt", "--quiet", "-o", tmp_path / "one") == 0
    np.testing.assert_array_equal(np.load(tmp_path / "one" / "W.npy"), expected[:1])
    (tmp_path / "posts.jsonl").write_text(json.dumps({"id": "a", "body": texts[1]}) + "\n")
    assert (
        run(topics, tmp_path / "posts.jsonl", "--text-column", "body", "--quiet", "-o", tmp_path / "j") == 0
    )
    np.testing.assert_array_equal(np.load(tmp_path / "j" / "W.npy"), expected[1:])
    assert run(topics, place / "0.txt", place / "1.txt", "--quiet", "-o", tmp_path / "two") == 0
    np.testing.assert_array_equal(np.load(tmp_path / "two" / "W.npy"), expected)


def test_documents_are_read_as_those_of_the_fit(tmp_path):
    path = tmp_path / "titles.txt"
    path.write_text(
        "".join(f"{word} cat dog tree\n{word} market bank money\n" for word in ("one", "two", "red"))
    )
    assert main(["topics", str(path), "--lines", "-k", "2", "-q", "-o", str(tmp_path / "out")]) == 0
    assert run(tmp_path / "out", path, "-q", "-o", tmp_path / "weights") == 0
    assert np.load(tmp_path / "weights" / "W.npy").shape == (6, 2)


def test_wrong_documents_are_explained(topics, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.eye(4))
    assert run(topics, tmp_path / "x.npy") == 2
    assert "contains a model of texts, but x.npy contains numbers" in the_error(capsys)
    assert run(topics, tmp_path / "none.txt") == 2
    assert "none.txt does not exist" in the_error(capsys)
    (tmp_path / "empty.txt").write_text("\n")
    assert run(topics, tmp_path / "empty.txt", "--lines") == 2
    assert "There is no document" in the_error(capsys)


def write_counts(path, counts, words):
    rows = [
        ",".join(["", *words]),
        *(f"text {at}," + ",".join(map(str, row)) for at, row in enumerate(counts)),
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_counts_of_words_are_ordered_by_the_vocabulary(tmp_path, capsys):
    counts = np.random.default_rng(0).poisson(1.0, (12, 6))
    path = write_counts(tmp_path / "counts.csv", counts, WORDS)
    words = ["topics", str(path), "-k", "2", "--min-df", "1", "--quiet"]
    assert main([*words, "-o", str(tmp_path / "topics")]) == 0
    new = write_counts(tmp_path / "new.csv", counts[:, ::-1], WORDS[::-1])
    assert run(tmp_path / "topics", new, "--quiet", "-o", tmp_path / "out") == 0
    shown = capsys.readouterr()
    assert "reordered to match the model" in shown.err
    assert "12 documents, 2 topics\n" in shown.out
    written = (tmp_path / "out" / "documents.csv").read_text()
    assert written == (tmp_path / "topics" / "documents.csv").read_text()


@pytest.mark.parametrize("constraint", ["normalized", "sum-to-one"])
def test_a_cube_is_mapped(constraint, tmp_path, capsys):
    found = separable_dirichlet(108, 15, 3, rng=1)
    cube = found.X.reshape(9, 12, 15) + 0.01 * np.random.default_rng(0).random((9, 12, 15))
    np.save(tmp_path / "field.npy", cube)
    model = Unmixing(3, constraint=constraint).fit(cube)
    model.save(tmp_path / "m.npz")
    assert run(tmp_path / "m.npz", tmp_path / "field.npy", "-o", tmp_path / "out") == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("108 pixels, 3 endmembers")
    assert "field.npy: 9 x 12 pixels, 15 bands" in shown.err
    np.testing.assert_allclose(np.load(tmp_path / "out" / "abundances.npy"), model.abundances_, atol=1e-12)
    mask = np.ones((9, 12), dtype=bool)
    mask[:2] = False
    np.save(tmp_path / "mask.npy", mask)
    words = ["--mask", tmp_path / "mask.npy", "--maps", "envi", "--quiet"]
    assert run(tmp_path / "m.npz", tmp_path / "field.npy", *words, "-o", tmp_path / "out") == 0
    assert "84 pixels" in capsys.readouterr().out
    names = sorted(entry.name for entry in (tmp_path / "out").iterdir())
    assert names == ["abundances.hdr", "abundances.img", "result.json"]
    np.save(tmp_path / "short.npy", cube[:, :, :9])
    assert run(tmp_path / "m.npz", tmp_path / "short.npy", "--quiet") == 2
    assert "Expected a cube with 15 bands, as in fit, got 9" in the_error(capsys)


def test_bands_that_lie_elsewhere_are_noted(tmp_path, capsys):
    cube, places = separable_dirichlet(30, 8, 3, rng=1).X.reshape(5, 6, 8), np.linspace(400, 800, 8)
    Unmixing(3).fit(cube, wavelengths=places).save(tmp_path / "m.npz")
    for name, at, said in (("same", places, False), ("other", places + 50, True)):
        np.savez(tmp_path / f"{name}.npz", cube=cube, wavelengths=at)
        assert run(tmp_path / "m.npz", tmp_path / f"{name}.npz", "--quiet", "-o", tmp_path / "out") == 0
        assert ("bands of the scene lie up to 50 nm from" in capsys.readouterr().err) == said


def test_bad_bands_of_the_new_scene_are_left_out(tmp_path, capsys):
    spectral = pytest.importorskip("spectral")
    cube = separable_dirichlet(30, 8, 3, rng=1).X.reshape(5, 6, 8)
    model = Unmixing(3).fit(cube)
    model.save(tmp_path / "m.npz")
    flags = [1, 1, 0, 1, 1, 1, 1, 1]
    metadata = {"bbl": flags}
    spectral.envi.save_image(str(tmp_path / "new.hdr"), cube, ext="img", metadata=metadata)
    assert run(tmp_path / "m.npz", tmp_path / "new.hdr", "--quiet", "-o", tmp_path / "out") == 0
    expected = model.transform(Cube(cube, bands=np.array(flags, dtype=bool)))
    np.testing.assert_allclose(np.load(tmp_path / "out" / "abundances.npy"), expected, atol=1e-6)
    capsys.readouterr()
    words = ["--all-bands", "--quiet", "-o", tmp_path / "out"]
    assert run(tmp_path / "m.npz", tmp_path / "new.hdr", *words) == 0
    assert capsys.readouterr().err == ""


def test_models_without_weights_say_what_to_do(tmp_path, capsys):
    ties = np.triu(np.random.default_rng(0).random((30, 30)) < 0.3, 1).astype(float)
    model = MixedMembership(2, method="spa").fit(ties + ties.T)
    model.save(tmp_path / "m.npz")
    assert run(tmp_path / "m.npz", tmp_path / "x.npy") == 2
    assert "Run `nonneg communities` on the new graph" in the_error(capsys)
