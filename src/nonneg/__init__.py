"""Nonnegative matrix factorization: fast solvers, methods with guarantees, and a certificate on every fit.

Names are loaded when they are first used, so that ``import nonneg`` costs very little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nonneg._lazy import lazy_names
from nonneg._version import __version__ as __version__

if TYPE_CHECKING:
    from nonneg import applications as applications
    from nonneg import datasets as datasets
    from nonneg import exceptions as exceptions
    from nonneg import integrations as integrations
    from nonneg import metrics as metrics
    from nonneg import plotting as plotting
    from nonneg import results as results
    from nonneg._devices import float32_products as float32_products
    from nonneg._versions import show_versions as show_versions
    from nonneg.applications.saved_models import load as load
    from nonneg.cones.rank_one import cone_rank_one as cone_rank_one
    from nonneg.estimators.cone_nmf import ConeNMF as ConeNMF
    from nonneg.estimators.consensus_nmf import ConsensusNMF as ConsensusNMF
    from nonneg.estimators.errors import estimate_errors as estimate_errors
    from nonneg.estimators.integrative_nmf import IntegrativeNMF as IntegrativeNMF
    from nonneg.estimators.laplacian import laplacian as laplacian
    from nonneg.estimators.min_vol_nmf import MinVolNMF as MinVolNMF
    from nonneg.estimators.nmf import NMF as NMF
    from nonneg.estimators.nmf import non_negative_factorization as non_negative_factorization
    from nonneg.estimators.purification_nmf import PurificationNMF as PurificationNMF
    from nonneg.estimators.separable_nmf import SeparableNMF as SeparableNMF
    from nonneg.estimators.transform_nmf import TransformNMF as TransformNMF
    from nonneg.io.read import open_matrix as open_matrix
    from nonneg.purification.purify import purify as purify
    from nonneg.rank_selection.comparison import compare_ranks as compare_ranks
    from nonneg.rank_selection.estimate import estimate_rank as estimate_rank
    from nonneg.report.models import write_report as write_report
    from nonneg.separable import select_anchors as select_anchors
    from nonneg.solvers.factorize import factorize as factorize
    from nonneg.transforms import joint_diagonalize as joint_diagonalize
    from nonneg.transforms import learn_transform as learn_transform

# Public name -> module that defines it. A new name needs a line here and one in the block above, and a test
# compares the two.
_HOME = {
    "ConeNMF": "nonneg.estimators.cone_nmf",
    "ConsensusNMF": "nonneg.estimators.consensus_nmf",
    "IntegrativeNMF": "nonneg.estimators.integrative_nmf",
    "MinVolNMF": "nonneg.estimators.min_vol_nmf",
    "NMF": "nonneg.estimators.nmf",
    "PurificationNMF": "nonneg.estimators.purification_nmf",
    "SeparableNMF": "nonneg.estimators.separable_nmf",
    "TransformNMF": "nonneg.estimators.transform_nmf",
    "compare_ranks": "nonneg.rank_selection.comparison",
    "cone_rank_one": "nonneg.cones.rank_one",
    "estimate_errors": "nonneg.estimators.errors",
    "estimate_rank": "nonneg.rank_selection.estimate",
    "factorize": "nonneg.solvers.factorize",
    "float32_products": "nonneg._devices",
    "joint_diagonalize": "nonneg.transforms",
    "laplacian": "nonneg.estimators.laplacian",
    "learn_transform": "nonneg.transforms",
    "load": "nonneg.applications.saved_models",
    "non_negative_factorization": "nonneg.estimators.nmf",
    "open_matrix": "nonneg.io.read",
    "purify": "nonneg.purification.purify",
    "select_anchors": "nonneg.separable",
    "show_versions": "nonneg._versions",
    "write_report": "nonneg.report.models",
}
_MODULES = ("applications", "datasets", "exceptions", "integrations", "metrics", "plotting", "results")
_HOME |= {name: f"nonneg.{name}" for name in _MODULES}

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__ = [*_HOME, "__version__"]  # noqa: PLE0604

__getattr__ = lazy_names(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
