"""`python -m reproduction` with several processes, within minutes, on a device, and in stages."""

from __future__ import annotations

import json

import pytest
from reproduction import registry
from reproduction import trials as experiment_trials
from reproduction.artifacts import Paragraph
from reproduction.command import main
from reproduction.experiment import Experiment

NAME = "made/table-1"


def lines_of(folder):
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def made(run, n=4, **more):
    return Experiment(
        NAME,
        "",
        lambda quick: [{"seed": seed} for seed in range(n)],
        run,
        lambda records: [Paragraph(str(len(records)))],
        **more,
    )


@pytest.fixture
def use(monkeypatch, tmp_path):
    """Return a function that makes an experiment the one that is reproduced."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(registry.TITLES, NAME, "")
    return lambda experiment: monkeypatch.setattr(
        "reproduction.command.find_experiment", lambda name: experiment
    )


@pytest.mark.parametrize("trials", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_processes_give_the_records_of_one_process(trials, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("reproduction.page.curve_panels", lambda *given, **options: "")
    words = ["merit/figure-2", "--quick", "--trials", trials, "--quiet", "--out"]
    assert main([*words, "one"]) == 0
    assert main([*words, "two", "--processes", "2"]) == 0

    def results(folder):
        found = {
            json.dumps(line["setting"]): line["records"]
            for line in lines_of(tmp_path / folder / "merit/figure-2")
        }
        return {key: [{**record, "s": 0} for record in records] for key, records in found.items()}

    assert results("two") == results("one")
    assert {line["threads"] for line in lines_of(tmp_path / "two/merit/figure-2")} == {1}
    # Nothing is left to do, so that no process is started.
    assert main(["merit/figure-2", "--quick", "--only-summarize", "--out", "two"]) == 0


def test_no_trial_begins_after_the_time(use, tmp_path, capsys, monkeypatch):
    clock = iter(range(0, 10_000, 20))
    monkeypatch.setattr(experiment_trials.time, "monotonic", lambda: float(next(clock)))
    use(made(lambda setting: [{}], n=50))
    assert main([NAME, "--out", "out", "--minutes", "3"]) == 0
    n_done = len(lines_of(tmp_path / "out" / NAME))
    assert 0 < n_done < 20
    assert "the time limit is reached; the same command resumes" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    use(made(lambda setting: [{}], n=50))
    monkeypatch.setitem(registry.TITLES, NAME, "")
    assert main([NAME, "--out", "out", "--minutes", "3", "--quiet"]) == 0
    assert len(lines_of(tmp_path / "out" / NAME)) == 50


def test_a_later_trial_sees_the_records_of_earlier_ones(use, tmp_path):
    def run(setting, workspace):
        assert workspace.folder.name == "table-1"
        return [{"total": 1 + sum(record["total"] for record in workspace.records)}]

    use(made(run, in_stages=True))
    assert main([NAME, "--out", "out", "--trials", "2", "--quiet"]) == 0
    assert main([NAME, "--out", "out", "--quiet"]) == 0
    assert [line["records"][0]["total"] for line in lines_of(tmp_path / "out" / NAME)] == [1, 2, 4, 8]


def test_what_an_experiment_cannot_do_is_refused(use, capsys):
    use(made(pytest.fail, parallel=False))
    assert main([NAME, "--processes", "2"]) == 2
    assert "its trials run one after another. Leave out --processes" in capsys.readouterr().err
    assert main([NAME, "--device", "cpu"]) == 2
    assert "Leave out --device" in capsys.readouterr().err
    use(made(pytest.fail, lacks=lambda quick: "a telescope is needed."))
    assert main([NAME]) == 2
    assert f"{NAME}: a telescope is needed." in capsys.readouterr().err


def test_all_leaves_out_what_the_machine_cannot_do(use, capsys, monkeypatch):
    use(made(pytest.fail, lacks=lambda quick: "a telescope is needed."))
    monkeypatch.setattr("reproduction.command.TITLES", {NAME: ""})
    assert main(["all"]) == 0
    assert f"{NAME} is skipped: a telescope is needed." in capsys.readouterr().err


@pytest.mark.torch
def test_the_device_is_told_on_the_page(use, tmp_path):
    pytest.importorskip("torch")
    use(made(lambda setting: [{}], supports_device=True))
    assert main([NAME, "--out", "out", "--device", "cpu", "--quiet"]) == 0
    assert "- Device: cpu, torch" in (tmp_path / "out" / NAME / "index.md").read_text()


@pytest.mark.parametrize("minutes", ["0", "-1", "soon", "inf"])
def test_a_bad_time_is_explained(minutes, capsys):
    assert main([NAME, "--minutes", minutes]) == 2
    assert "expected a number above 0" in capsys.readouterr().err
