"""Quick settings run without files, and their artifacts by kind."""

from __future__ import annotations

from reproduction.artifacts import Verdict
from reproduction.experiment import flat_records
from reproduction.registry import find_experiment


def quick_records(name: str) -> list[dict]:
    experiment = find_experiment(name)
    lines = [
        {"setting": setting, "records": experiment.run(setting)} for setting in experiment.trials(quick=True)
    ]
    return flat_records(lines)


def artifacts(name: str, records: list[dict], kind: type) -> list:
    return [artifact for artifact in find_experiment(name).summarize(records) if isinstance(artifact, kind)]


def verdicts(name: str, records: list[dict]) -> dict[str, Verdict]:
    return {verdict.claim: verdict for verdict in artifacts(name, records, Verdict)}
