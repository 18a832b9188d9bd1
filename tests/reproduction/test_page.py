"""The committed pages: a hand-written introduction above the marker, results of the records below it."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path

import pytest
from reproduction import page
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


@pytest.mark.parametrize("name", TITLES)
def test_a_page_follows_from_its_records(name, tmp_path, monkeypatch):
    # Without the drawings, which take most of the time.
    monkeypatch.setattr(page, "curve_panels", lambda *args, **options: "")
    monkeypatch.setattr(page, "picture_grid", lambda *args, **options: b"")
    folder = tmp_path / name
    folder.mkdir(parents=True)
    shutil.copy(COMMITTED / name / RECORDS, folder)
    experiment = find_experiment(name)
    write_page(experiment, folder, read_trials(experiment, folder, quick=False), quick=False)
    assert (folder / PAGE).read_bytes() == (COMMITTED / name / PAGE).read_bytes()


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
