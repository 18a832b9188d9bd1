"""Estimators with scikit-learn's interface, and the reader of saved models."""

from __future__ import annotations

from nonneg.estimators.cone_nmf import ConeNMF
from nonneg.estimators.nmf import NMF
from nonneg.estimators.saving import load

__all__ = ["NMF", "ConeNMF", "load"]
