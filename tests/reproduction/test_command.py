"""`python -m reproduction`: the list, the records that are kept, the page that is made from them."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from reproduction import registry
from reproduction.artifacts import Curves, Figure, Measured, Paragraph, Pictures, Series, Table, Verdict
from reproduction.command import main
from reproduction.experiment import Experiment
from reproduction.page import MARKER

from nonneg.exceptions import InterruptedFitWarning

NAME = "made/table-1"
CLONE = Path(__file__).resolve().parents[2]


def summarize(records):
    best = max(record["square"] for record in records)
    curve = Series("squares", [1, 2, 3], [1.0, None, 9.0], spread=[0.1, 0.1, 0.1])
    return [
        Paragraph(f"{len(records)} records."),
        Table(
            "Squares.",
            {"seed": "seed", "square": "square"},
            [
                {"seed": record["seed"], "square": Measured(record["square"], 0.25, published=4.0)}
                for record in records
            ],
        ),
        Figure("squares", "Squares against seeds.", [Curves("a", "seed", "square", [curve], x_log=True)]),
        Pictures("spots", "Spots.", [[np.eye(3), np.ones((3, 3))]], ["one"], ["left", "right"]),
        Verdict("the largest square is 4", best == 4.0, f"{best:g}"),
    ]


@pytest.fixture
def drawn():
    """Let figures be drawn, which takes most of the time."""


@pytest.fixture
def world(monkeypatch, tmp_path, request):
    """An experiment of four trials (two quick ones) that notes what it was asked, and can be interrupted."""
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr("reproduction.page.curve_panels", lambda *given, **options: "")
        monkeypatch.setattr("reproduction.page.picture_grid", lambda *given, **options: b"")
    asked: list[int] = []
    faults: dict[int, BaseException] = {}

    def run(setting):
        asked.append(setting["seed"])
        if setting["seed"] in faults:
            raise faults[setting["seed"]]
        return [{"square": float(setting["seed"]) ** 2}]

    experiment = Experiment(
        NAME,
        "Squares of seeds",
        trials=lambda quick: [{"seed": seed, "quick": quick} for seed in range(2 if quick else 4)],
        run=run,
        summarize=summarize,
    )
    monkeypatch.setitem(registry.TITLES, NAME, experiment.title)
    monkeypatch.setattr("reproduction.command.find_experiment", lambda name: {NAME: experiment}[name])
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "out" / NAME
    return SimpleNamespace(asked=asked, faults=faults, folder=folder, records=folder / "records.jsonl")


def reproduce(*words: str) -> int:
    return main([NAME, "--out", "out", *words])


def test_the_list_names_every_experiment_with_its_title(world, capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(registry.TITLES)
    assert any(line.split(maxsplit=1) == [NAME, "Squares of seeds"] for line in lines)


def test_near_names_are_told(capsys, monkeypatch):
    monkeypatch.setitem(registry.TITLES, NAME, "Squares of seeds")
    assert main(["made/table-2"]) == 2
    assert f"Did you mean '{NAME}'" in capsys.readouterr().err


def test_a_run_writes_records_page_and_figures(drawn, world, capsys):
    assert reproduce() == 0
    assert capsys.readouterr().out.strip().endswith("index.md")
    lines = [json.loads(line) for line in world.records.read_text().splitlines()]
    assert [line["records"] for line in lines] == [[{"square": float(seed) ** 2}] for seed in range(4)]
    assert all(line["threads"] >= 1 and line["machine"]["cores"] >= 1 and line["date"] for line in lines)
    page = (world.folder / "index.md").read_text()
    for part in (
        f"# {NAME}: Squares of seeds",
        MARKER,
        "4 records.",
        "| seed |   square | square (published) |",
        "|    3 | 9 ± 0.25 |                  4 |",
        "![squares](squares.svg)",
        "![spots](spots.png)",
        "- **fails**: the largest square is 4 (9)",
        f"python -m reproduction {NAME}\n",
        "- Trials: 4 of 4",
    ):
        assert part in page
    assert (world.folder / "squares.svg").read_text().startswith("<?xml")
    assert (world.folder / "spots.png").read_bytes().startswith(b"\x89PNG")


def test_finished_trials_are_not_run_again(world, capsys):
    assert reproduce("--trials", "3") == 0
    assert world.asked == [0, 1, 2]
    assert "- Trials: 3 of 4" in (world.folder / "index.md").read_text()
    assert "**holds**" in (world.folder / "index.md").read_text()
    assert reproduce() == 0
    assert world.asked == [0, 1, 2, 3]
    assert "3 of 4 trials are already finished" in capsys.readouterr().err


def test_quick_and_full_trials_are_told_apart(world):
    assert reproduce("--quick") == 0
    assert "(quick setting)" in (world.folder / "index.md").read_text()
    assert reproduce() == 0
    assert world.asked == [0, 1, 0, 1, 2, 3]
    assert "4 records." in (world.folder / "index.md").read_text()
    assert reproduce("--quick", "--only-summarize") == 0
    assert "2 records." in (world.folder / "index.md").read_text()


@pytest.mark.parametrize(
    "fault", [KeyboardInterrupt(), InterruptedFitWarning("best factors so far")], ids=repr
)
def test_an_interruption_keeps_what_is_done(world, capsys, fault):
    world.faults[2] = fault
    assert reproduce() == 130
    assert "interrupted; finished trials are kept" in capsys.readouterr().err
    assert len(world.records.read_text().splitlines()) == 2
    assert "2 records." in (world.folder / "index.md").read_text()
    del world.faults[2]
    assert reproduce() == 0
    assert world.asked == [0, 1, 2, 2, 3]


def test_an_interrupted_fit_is_no_result(world, monkeypatch):
    def interrupted(setting):
        warnings.warn("the best factors so far are returned", InterruptedFitWarning, stacklevel=1)
        return [{"square": -1.0}]

    monkeypatch.setattr("reproduction.command.find_experiment", lambda name: replaced)
    replaced = Experiment(NAME, "", lambda quick: [{"seed": 0}], interrupted, summarize)
    assert reproduce() == 130
    assert not world.records.exists()


def test_a_line_torn_by_a_crash_is_dropped(world):
    assert reproduce("--trials", "2") == 0
    with world.records.open("a") as stream:
        stream.write('{"setting": {"seed": 2, "qui')
    assert reproduce() == 0
    assert world.asked == [0, 1, 2, 3]
    assert len(world.records.read_text().splitlines()) == 4


def test_pages_are_made_anew_from_the_records(world):
    assert reproduce() == 0
    page = (world.folder / "index.md").read_text()
    (world.folder / "index.md").unlink()
    (world.folder / "old.svg").write_text("from an earlier version")
    assert reproduce("--only-summarize") == 0
    assert world.asked == [0, 1, 2, 3]
    assert (world.folder / "index.md").read_text() == page
    assert not (world.folder / "old.svg").exists()


def test_the_introduction_of_a_page_is_kept(world):
    assert reproduce("--trials", "2") == 0
    page = world.folder / "index.md"
    page.write_text(page.read_text().replace(MARKER, f"The paper squares seeds.\n\nSo do we.\n\n{MARKER}"))
    assert reproduce() == 0
    text = page.read_text()
    above, _, below = text.partition(MARKER)
    assert above == f"# {NAME}: Squares of seeds\n\nThe paper squares seeds.\n\nSo do we.\n\n"
    assert "4 records." in below
    assert text.count(MARKER) == 1


def test_a_new_page_begins_with_the_committed_introduction(world, tmp_path, monkeypatch):
    committed = tmp_path / "docs" / NAME
    committed.mkdir(parents=True)
    (committed / "index.md").write_text(
        f"# An older title\n\nThe paper squares seeds.\n\n{MARKER}\n\nOld results.\n"
    )
    monkeypatch.setattr("reproduction.page.COMMITTED", tmp_path / "docs")
    assert reproduce() == 0
    above, _, below = (world.folder / "index.md").read_text().partition(MARKER)
    assert above == f"# {NAME}: Squares of seeds\n\nThe paper squares seeds.\n\n"
    assert "Old results." not in below


def test_without_records_there_is_no_page(world, capsys):
    assert reproduce("--only-summarize") == 0
    assert "no records of finished trials" in capsys.readouterr().err
    assert not world.folder.exists()


def test_a_missing_data_set_is_said_before_any_work(world, monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("NONNEG_DATA", raising=False)
    needy = Experiment(
        NAME, "", lambda quick: [{"seed": 0}], pytest.fail, summarize, ("tdt2",), quick_data_sets=()
    )
    monkeypatch.setattr("reproduction.command.find_experiment", lambda name: needy)
    assert reproduce() == 2
    said = capsys.readouterr().err
    assert "tdt2" in said
    assert "NONNEG_DATA" in said
    assert not (tmp_path / "out").exists()
    assert needy.missing_data_sets(quick=True) == []


def test_all_leaves_out_what_lacks_its_data(world, monkeypatch, capsys):
    monkeypatch.delenv("NONNEG_DATA", raising=False)
    plain = Experiment(
        "made/plain", "", lambda quick: [{"seed": 1}], lambda setting: [{"square": 4.0}], summarize
    )
    needy = Experiment(NAME, "", lambda quick: [{"seed": 0}], pytest.fail, summarize, ("tdt2",))
    monkeypatch.setattr("reproduction.command.TITLES", {"made/plain": "", NAME: ""})
    monkeypatch.setattr("reproduction.command.find_experiment", lambda name: needy if name == NAME else plain)
    assert main(["all", "--quick", "--quiet"]) == 0
    shown = capsys.readouterr()
    assert f"{NAME} is skipped: its datasets tdt2" in shown.err
    assert shown.out.strip() == "reproduced/quick/made/plain/index.md"


def test_a_bad_count_is_explained(capsys):
    assert main([NAME, "--trials", "0"]) == 2
    assert "expected an integer of at least 1, got '0'" in capsys.readouterr().err
