"""Experiments of the papers: each returns plain records and, from them, plain tables and curves."""

from __future__ import annotations

from reproduction.registry import TITLES, find_experiment

__all__ = ["TITLES", "find_experiment"]
