"""Purification: features recovered from noisy samples by decoding and updating in turn, with a warm start."""

from __future__ import annotations

from nonneg.purification.purify import purify
from nonneg.purification.result import PurificationResult
from nonneg.purification.warm_start import StartQuality, perturbed_features

__all__ = ["PurificationResult", "StartQuality", "perturbed_features", "purify"]
