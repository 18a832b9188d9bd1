"""Initializations of a factorization: functions from the data to a first W and H, and their registry."""

from __future__ import annotations

from nonneg.initializers.registry import INITS, Initializer, default_init

__all__ = ["INITS", "Initializer", "default_init"]
