"""Purification: features recovered from noisy samples by alternating decoding and updates."""

from __future__ import annotations

from nonneg.purification.initialization import InitQuality
from nonneg.purification.purify import PurificationResult, purify

__all__ = ["InitQuality", "PurificationResult", "purify"]
