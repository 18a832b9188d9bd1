"""Estimators with scikit-learn's interface, and the reader of saved models."""

from __future__ import annotations

from nonneg.estimators.cone_nmf import ConeNMF
from nonneg.estimators.nmf import NMF
from nonneg.estimators.saving import load
from nonneg.estimators.separable_nmf import SeparableNMF

__all__ = ["NMF", "ConeNMF", "SeparableNMF", "load"]
