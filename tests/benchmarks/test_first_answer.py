"""The way from a clone to the first answer is timed step by step, and a step that fails is named."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from benchmarks import first_answer
from benchmarks.race import Settings
from benchmarks.run import claims_from, parser


@pytest.fixture
def done(monkeypatch):
    """Record the commands instead of running them."""
    commands = []
    done = SimpleNamespace(returncode=0)
    monkeypatch.setattr(first_answer.subprocess, "run", lambda words, **_: commands.append(words) or done)
    return commands


def test_every_way_clones_installs_and_answers(done):
    records = list(first_answer.run(Settings(threads=1)))
    assert [record["case"] for record in records] == list(first_answer.WAYS)
    assert all(record["met"] for record in records)
    assert [words[0] for words in done].count("git") == len(records)
    assert sum("install" in words for words in done) == len(records)
    text = first_answer.table(records)
    assert "pip install '.[report,formats,singlecell]'" in text
    assert text.count("\n") == len(records) + 1


def test_a_failed_step_is_the_answer(monkeypatch):
    way = first_answer.WAYS["a table, on the command line"]
    monkeypatch.setattr(first_answer, "ROOT", first_answer.ROOT / "no such clone")
    with pytest.raises(RuntimeError, match=r"^git: "):
        first_answer.timed(way)
    record = {"case": "a table", "install": ".", "failure": "no network"}
    assert "failed: no network" in first_answer.table([record])


def test_packages_are_installed_only_if_the_claim_is_named():
    assert first_answer.NAME not in claims_from(parser().parse_args([]))
    assert first_answer.NAME not in claims_from(parser().parse_args(["--full"]))
    assert claims_from(parser().parse_args(["--only", first_answer.NAME])) == [first_answer.NAME]
