"""Purification: features recovered from noisy samples by alternating decoding and updates."""

from __future__ import annotations

from nonneg.purification.initialization import InitQuality
from nonneg.purification.purify import purify
from nonneg.purification.result import PurificationResult
from nonneg.purification.studies import MixingRecorder, perturbed_features

__all__ = ["InitQuality", "MixingRecorder", "PurificationResult", "perturbed_features", "purify"]
