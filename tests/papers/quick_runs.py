"""Quick settings run without files, and their exhibits by kind."""

from __future__ import annotations

from reproduction.exhibits import Verdict
from reproduction.experiment import flat_records
from reproduction.registry import find_experiment


def quick_records(name: str) -> list[dict]:
    experiment = find_experiment(name)
    lines = [
        {"setting": setting, "records": experiment.run(setting)} for setting in experiment.trials(quick=True)
    ]
    return flat_records(lines)


def exhibits(name: str, records: list[dict], kind: type) -> list:
    return [exhibit for exhibit in find_experiment(name).summarize(records) if isinstance(exhibit, kind)]


def verdicts(name: str, records: list[dict]) -> dict[str, Verdict]:
    return {verdict.claim: verdict for verdict in exhibits(name, records, Verdict)}
