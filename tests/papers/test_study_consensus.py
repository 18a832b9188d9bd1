"""Quick settings of the studies of consensus and ranks: few draws decide nothing."""

from __future__ import annotations

import pytest
from reproduction.artifacts import Table, Verdict
from tests.papers.quick_runs import artifacts, quick_records


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rule"), [("studies/consensus", "as stable as the best"), ("studies/ranks", "cross-validation")]
)
def test_planted_numbers_are_found(name, rule):
    records = quick_records(name)
    assert records[0][rule] == records[0]["k"]
    assert artifacts(name, records, Table)
    verdicts = artifacts(name, records, Verdict)
    assert any(verdict.met is None for verdict in verdicts)
