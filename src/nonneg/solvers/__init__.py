"""Solvers, and `factorize` in front of them."""

from __future__ import annotations

from nonneg.solvers.factorize import factorize
from nonneg.solvers.registry import SOLVERS, Solver
from nonneg.solvers.result import FactorizationResult

__all__ = ["SOLVERS", "FactorizationResult", "Solver", "factorize"]
