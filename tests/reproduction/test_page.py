"""The committed pages: a hand-written introduction above the marker, results of the records below it."""

from __future__ import annotations

import dataclasses
import re
import shutil
from functools import cache
from pathlib import Path

import pytest
from reproduction import page
from reproduction.artifacts import Measured, Table
from reproduction.experiment import flat_records
from reproduction.page import COMMITTED, MARKER, PAGE, introduction, write_page
from reproduction.registry import TITLES, find_experiment
from reproduction.trials import RECORDS, read_trials

import nonneg


@pytest.mark.parametrize("name", TITLES)
def test_every_page_has_its_title_and_an_introduction(name):
    text = (COMMITTED / name / PAGE).read_text(encoding="utf-8")
    assert text.startswith(f"# {name}: {TITLES[name]}\n")
    assert text.count(MARKER) == 1
    assert introduction(find_experiment(name), COMMITTED / name)


def test_there_is_no_page_without_an_experiment():
    assert {path.parent.relative_to(COMMITTED).as_posix() for path in COMMITTED.glob("*/*/index.md")} == set(
        TITLES
    )


# Their records take half a second a page and more.
LONG = {
    "merit/figure-2", "merit/figure-4a", "merit/figure-5", "merit/table-2", "purification/basin",
    "purification/sparsity", "studies/communities", "studies/min-volume",

}  # fmt: skip
PAGES = [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in TITLES]


@cache
def known(name):
    """Return an experiment, the lines of its records and what it makes of them, read once."""
    experiment = find_experiment(name)
    lines = read_trials(experiment, COMMITTED / name, quick=False)
    return experiment, lines, experiment.summarize(flat_records(lines))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_follows_from_its_records(name, tmp_path, monkeypatch):
    # Without the drawings, which take most of the time.
    monkeypatch.setattr(page, "curve_panels", lambda *args, **options: "")
    monkeypatch.setattr(page, "picture_grid", lambda *args, **options: b"")
    folder = tmp_path / name
    folder.mkdir(parents=True)
    shutil.copy(COMMITTED / name / RECORDS, folder)
    experiment, lines, found = known(name)
    again = dataclasses.replace(experiment, summarize=lambda records: found)
    write_page(again, folder, lines, quick=False)
    assert (folder / PAGE).read_bytes() == (COMMITTED / name / PAGE).read_bytes()


@pytest.mark.parametrize("name", PAGES)
def test_every_published_value_is_judged_or_the_page_says_why_not(name):
    text = (COMMITTED / name / PAGE).read_text(encoding="utf-8")
    for table in known(name)[2]:
        if not isinstance(table, Table):
            continue
        columns = [
            key
            for key in table.columns
            if any(isinstance(cell := row.get(key), Measured) and cell.published for row in table.rows)
        ]
        said = page.judgment(table)
        assert said in text
        for key in columns:
            assert table.columns[key] in said
        if table.caption.startswith("Published"):
            assert "Not comparable: these values, because" in said


def test_a_published_value_is_met_within_5_percent_or_two_standard_errors():
    assert Measured(1.049, published=1.0).is_met()
    assert not Measured(1.06, published=1.0).is_met()
    assert Measured(1.19, 0.1, published=1.0).is_met()
    assert not Measured(1.21, 0.1, published=1.0).is_met()
    # 147 +- 100 over ten draws once counted as 9.4, by the standard deviation of the draws.
    assert not Measured(147.0, 100.0, published=9.4, n_draws=10).is_met()
    assert Measured(1.06, 0.1, published=1.0, n_draws=10).is_met()
    assert not Measured(1.0, published=1.0, agrees=False).is_met()
    assert Measured(1.0).is_met() is Measured(None, published=1.0).is_met() is None


def test_the_judgment_counts_every_cell_and_gives_reasons():
    rows = [{"a": Measured(x, published=1.0), "b": Measured(2.0, published=x), "c": 3.0} for x in (1.0, 1.1)]
    table = Table("", {"a": "A", "b": "B", "c": "C"}, rows, not_comparable={"b": "the unit differs"})
    assert page.judgment(table) == (
        "Published values met (within 5%, two standard errors of the mean, or the sampling error of a "
        "share): A 1 of 2. Not comparable: B, because the unit differs."
    )
    assert page.judgment(Table("", {"c": "C"}, rows)) == ""


DECIMAL = re.compile(r"(?<![\w.:])\d*\.\d+(?![\w.]*\d)")


@pytest.mark.parametrize("name", TITLES)
def test_a_decimal_in_an_introduction_is_a_result_below_or_a_setting(name):
    text = (COMMITTED / name / PAGE).read_text(encoding="utf-8")
    above, _, below = text.partition(MARKER)
    results = [float(number) for number in DECIMAL.findall(below)]

    def backed(number: str) -> bool:
        digits = len(number.partition(".")[2])
        return float(number) in settings() or any(
            round(result, digits) == float(number) for result in results
        )

    typed = DECIMAL.findall(re.sub(r"Section [\d.]+", "", above))
    assert [number for number in typed if not backed(number)] == []


@cache
def settings() -> frozenset[float]:
    """Every number in the code of the library and of the experiments."""
    folders = (Path(page.__file__).parent, Path(nonneg.__file__).parent)
    code = "\n".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py"))
    return frozenset(float(number) for number in DECIMAL.findall(re.sub(r"#.*", "", code)))
