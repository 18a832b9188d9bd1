"""The page says the answer first, shows every part, escapes what users wrote, and needs nothing else."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from tests.report.conftest import make_record

from nonneg.exceptions import MissingDependencyError
from nonneg.report import wording
from nonneg.report.page import N_LISTED, N_PICTURES, _sorted_by_component, build_page

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Outline(HTMLParser):
    """Checks that elements are closed in order, and collects text, images and addresses."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def test_the_answer_comes_first_and_every_part_is_there(make_fit):
    page = Outline(build_page(make_fit(names=True)))
    words = page.words
    answer = "3 components explain 95.3% of the squared norm of the data."
    parts = [
        answer,
        "What the components are made of",
        "column 0",
        "row 0",
        "Convergence",
        "Share of each component",
        "The factors",
        "Certificate",
        "holds",
        "not verifiable",
        "caution",
        "No small change helps.",
        "The run",
        "the loss decreased by less than tol",
        "n_components",
        "numpy 2.0",
    ]
    places = [words.index(part) for part in parts]
    assert places[0] < min(places[1:])
    assert page.tags.count("svg") == 5  # two curves, strengths, W, H


def test_components_become_images(make_fit):
    fit = make_fit(image_shape=[2, 3], examples=[0, 11])
    page = Outline(build_page(fit))
    assert page.tags.count("img") == 3 + 2 * 2
    assert page.tags.count("svg") == 4  # no heat map of H beside its pictures
    many = Outline(build_page(make_fit(k=N_PICTURES + 5, image_shape=[2, 3])))
    assert many.tags.count("img") == N_PICTURES


def test_nothing_is_loaded_from_elsewhere(make_fit):
    text = build_page(make_fit(names=True, image_shape=[2, 3], examples=[0, 1]))
    page = Outline(text)
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in page.addresses)
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert "default-src 'none'" in text
    assert not re.search(r"url\((?!#)", text)


def test_text_of_users_is_escaped(make_fit):
    evil = '<script>alert("x")</script>'
    fit = make_fit(
        names=True,
        title=evil,
        parameters={evil: evil},
        certificate=[{"name": evil, "sentence": evil, "verdict": evil, "quantities": {evil: evil}}],
        versions={evil: evil},
    )
    fit.row_names[:] = [evil] * 12
    fit.column_names[:] = [evil] * 6
    fit.record["data"]["source"] = evil
    fit.record["result"]["solver"] = evil
    page = Outline(build_page(fit))
    assert "script" not in page.tags
    assert page.words.count(evil) > 20


@pytest.mark.parametrize(
    ("shape", "k", "names"),
    [((1, 1), 1, True), ((3, 2000), 2, False), ((700, 3), 70, True), ((40, 40), 1, True)],
    ids=str,
)
def test_all_shapes_give_a_page(shape, k, names, make_fit):
    page = Outline(build_page(make_fit(*shape, k, names=names)))
    assert page.tags.count("tr") == (min(k, N_LISTED) + 1 if names else 0)


def test_zero_factors_and_bare_records_give_a_page(make_fit):
    fit = make_fit(names=True, image_shape=[2, 3], history={}, certificate=[])
    fit.W[:] = 0
    fit.H[:] = 0
    assert "Convergence" not in Outline(build_page(fit)).words


def test_the_page_stays_small_for_big_data(make_fit):
    assert len(build_page(make_fit(20000, 5000, 20, names=True))) < 600_000


def test_a_comparison_is_shown(make_fit):
    rows = [
        {"name": "nonneg", "seconds": 0.1, "relative_error": 0.25, "n_iter": 40},
        {"name": "other", "seconds": 0.5, "relative_error": 0.26, "n_iter": 90},
    ]
    words = Outline(build_page(make_fit(comparison={"rows": rows, "note": "One run each."}))).words
    assert "nonneg 0.100 0.25000 40 other 0.500 0.26000 90 One run each." in words


@pytest.mark.parametrize("library", ["jinja2", "matplotlib"])
def test_a_missing_library_is_named(library, make_fit, monkeypatch):
    for module in [known for known in sys.modules if known.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match=rf"{library}.*pip install .*\[report\]"):
        build_page(make_fit())


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.953, "95.3%"), (0.99996, "99.996%"), (1.0, "100.0%"), (0.0, "0.0%"), (1 - 1e-9, "more")],
)
def test_percentages_are_never_rounded_up_to_all(share, words):
    assert wording.percent(share).startswith(words)


def test_sentences_for_other_fits(make_fit):
    record = make_fit(k=1).record
    record["result"]["explained"] = 0.5
    record["data"]["n_missing"] = 7
    assert wording.answer(record) == "1 component explains 50.0% of the squared norm of the observed entries."
    record["result"].update(explained=-0.2, loss_name="itakura-saito", loss=12.5)
    assert wording.answer(record) == "1 component with an Itakura-Saito divergence of 12.5."
    record["result"]["loss_name"] = "1.5"
    assert wording.loss_words(record) == "beta divergence (1.5)"
    assert wording.number(1234567) == "1\u202f234\u202f567"
    assert [wording.seconds(value) for value in (0.02, 5.0, 300.0)] == ["20 ms", "5.0 s", "5.0 min"]


def test_factors_in_single_precision_give_a_page(make_fit):
    fit = make_fit()
    single = type(fit)(fit.record, fit.W.astype(np.float32), fit.H.astype(np.float32))
    assert "svg" in Outline(build_page(single)).tags


def test_one_is_not_a_plural():
    assert [wording.counted(count, "sample") for count in (1, 2)] == ["1 sample", "2 samples"]
    record = make_record(1, 1, 1)
    record["result"]["n_iter"] = 1
    assert wording.outcome(record).startswith("1 sample with 1 feature from table.csv")
    assert "took 1 iteration and" in wording.outcome(record)


def test_facts_are_named_in_words():
    assert wording.fact("n_iter", 12) == ("iterations", "12")
    assert wording.fact("n_topics", 8) == ("topics", "8")
    assert wording.fact("duality_gap", 0.25) == ("duality gap", "0.25")
    assert wording.fact("seconds", 0.876) == ("time", "876 ms")


def test_a_statement_without_a_number_shows_none(make_fit):
    fit = make_fit()
    fit.record["certificate"][1]["number"] = None
    words = Outline(build_page(fit)).words
    assert words.count("Value") == 2
    assert "Value \N{EN DASH}" not in words


def test_features_are_sorted_by_component_where_their_names_have_no_room():
    few, many = np.eye(3)[:, [2, 0, 1]], np.eye(3)[:, np.arange(60) % 3]
    assert _sorted_by_component(few, ["a", "b", "c"])[1:] == (["a", "b", "c"], "")
    factor, names, words = _sorted_by_component(many, [str(at) for at in range(60)])
    assert names is None
    assert words.startswith(", sorted")
    assert factor.argmax(axis=0).tolist() == sorted(many.argmax(axis=0))
