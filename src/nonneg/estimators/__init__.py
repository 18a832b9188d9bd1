"""Estimators with scikit-learn's interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nonneg._lazy import lazy_names

if TYPE_CHECKING:
    from nonneg.estimators.cone_nmf import ConeNMF
    from nonneg.estimators.consensus_nmf import ConsensusNMF
    from nonneg.estimators.functional import non_negative_factorization
    from nonneg.estimators.integrative_nmf import IntegrativeNMF
    from nonneg.estimators.min_vol_nmf import MinVolNMF
    from nonneg.estimators.nmf import NMF
    from nonneg.estimators.purification_nmf import PurificationNMF
    from nonneg.estimators.separable_nmf import SeparableNMF
    from nonneg.estimators.transform_nmf import TransformNMF

__all__ = [
    "NMF",
    "ConeNMF",
    "ConsensusNMF",
    "IntegrativeNMF",
    "MinVolNMF",
    "PurificationNMF",
    "SeparableNMF",
    "TransformNMF",
    "non_negative_factorization",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ConeNMF": "nonneg.estimators.cone_nmf",
        "ConsensusNMF": "nonneg.estimators.consensus_nmf",
        "IntegrativeNMF": "nonneg.estimators.integrative_nmf",
        "MinVolNMF": "nonneg.estimators.min_vol_nmf",
        "NMF": "nonneg.estimators.nmf",
        "PurificationNMF": "nonneg.estimators.purification_nmf",
        "SeparableNMF": "nonneg.estimators.separable_nmf",
        "TransformNMF": "nonneg.estimators.transform_nmf",
        "non_negative_factorization": "nonneg.estimators.functional",
    },
)
