"""Fixtures of the contract tests."""

from __future__ import annotations

import pytest
from tests.contracts.cases import VARIANTS

from nonneg.solvers.registry import SOLVERS


@pytest.fixture(autouse=True)
def variants(monkeypatch):
    """Solvers that users cannot choose keep the same contract."""
    for name, solver in VARIANTS.items():
        monkeypatch.setitem(SOLVERS, name, solver)
