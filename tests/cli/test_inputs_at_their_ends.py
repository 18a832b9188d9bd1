"""Scenes, topics and saved models that commands open: what is asked for, and what is refused."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.cli import edit_topics, topics
from nonneg.exceptions import FileFormatError, InvalidParameterError

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


class Model:
    verbose = n_jobs = device = None

    def __init__(self, **names):
        self.__dict__.update(names)

    def get_params(self, deep=True):
        return {"verbose": self.verbose, "n_jobs": self.n_jobs}
