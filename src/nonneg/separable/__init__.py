"""Separable NMF: the components are samples, selected by greedy or convex methods."""

from __future__ import annotations

from nonneg.separable.registry import METHODS, Method
from nonneg.separable.result import SelectionResult
from nonneg.separable.select import select_anchors

__all__ = ["METHODS", "Method", "SelectionResult", "select_anchors"]
