"""Experiments of the papers: each produces plain records, and from them tables, curves and claims."""

from __future__ import annotations

from reproduction.registry import TITLES, find_experiment

__all__ = ["TITLES", "find_experiment"]
