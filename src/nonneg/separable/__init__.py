"""Separable factorization: the components are data points, found by greedy or convex selection."""

from __future__ import annotations

from nonneg.separable.result import SelectionResult

__all__ = ["SelectionResult"]
