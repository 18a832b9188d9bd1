"""The list of experiments. Each module is imported on demand, so that listing them is fast."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from nonneg.exceptions import UnknownNameError

if TYPE_CHECKING:
    from reproduction.experiment import Experiment

TITLES: dict[str, str] = {
    "cr1/figure-2": "Rank-one factorization of cones: its error beside its bounds and other algorithms",
    "cr1/table-1": "Time until other algorithms reach the error of the rank-one factorization of cones",
    "cr1/figure-3": "The number of cones, estimated from the singular values of noisy data",
    "cr1/table-3": "Time that starts take on real sets",
    "cr1/table-4": "Time that starts take, in iterations of the algorithms that follow",
    "cr1/table-5": "Time until alternating least squares reaches an error, from four starts on real sets",
    "cr1/figure-4": "Error against iterations from four starts on real sets",
    "cr1/figure-6": "Basis pictures of faces from four starts",
    "cr1/table-6": "Clusters of pictures by factorizations from four starts",
    "cr1/table-7": "Clusters of documents by factorizations from four starts",
    "merit/figure-2": "Success rate of anchor searches against noise, middle points",
    "merit/figure-3": "Spectral angles and approximation of anchor searches against noise, middle points",
    "merit/figure-4a": "Success rate of anchor searches against noise, Dirichlet weights",
    "merit/figure-4b": "Peak memory of anchor searches against the number of points",
    "merit/figure-5": "What the weight and the smoothing of the row sparsity do",
    "merit/table-1": "Anchor searches for growing numbers of anchors",
    "merit/table-2": "Topics of news articles by anchor words: coherence, overlap and accuracy",
    "merit/figure-6": "Peak memory of searches for anchor words",
    "merit/topics-recommendation": "Which way to find topics sorts documents best, over many collections",
    "merit/table-3": "Networks of co-authors: the nodes that hold 99 % of the energy",
    "merit/table-4": "Overlapping communities of co-authors: rank correlation with known memberships",
    "merit/figure-7": "Peak memory of anchor searches on networks of co-authors",
    "merit/million": "A million points: MERIT where successive projections fail, on a GPU",
    "tlnmf/figure-2": "Divergence at the solutions of TL-NMF and JD+NMF against the number of realizations",
    "tlnmf/figure-3": "Atoms, components and activations of two music notes",
    "tlnmf/figure-4": "Objective of TL-NMF and JD+NMF against the number of iterations",
    "tlnmf/separation": "Separation by TL-NMF, JD+NMF and the cosine transform",
    "purification/rate": "Purification without noise: the geometric rate of Theorem 1",
    "purification/floor": "Purification: the floor of the covariance update, and none with the regression",
    "purification/adversarial-noise": "Purification: error against adversarial noise (Theorem 1)",
    "purification/unbiased-noise": "Purification: unbiased noise averages out (Theorem 2)",
    "purification/weights": "Purification: general weights (Theorems 6 and 7), both updates",
    "purification/sparsity": "Purification: weights whose number grows with that of the features",
    "purification/relu": "Purification with and without the ReLU",
    "purification/balancing": "Purification: weights of uneven second moments, with and without balancing",
    "purification/basin": "Purification: success against the error of the warm start",
    "purification/swimmer": "Purification and NMF: limbs of swimmers in heavy noise",
    "purification/digits": "Purification and NMF: parts of digits in heavy noise",
    "purification/signatures": "Purification and NMF: mutational signatures of breast cancers",
}
"""Name -> title. ``paper/table-1`` is the constant EXPERIMENT of ``reproduction/paper/table_1.py``."""


def find_experiment(name: str) -> Experiment:
    """Return an experiment by its name."""
    if name not in TITLES:
        raise UnknownNameError.of("experiment", name, TITLES)
    module = importlib.import_module(f"reproduction.{name.replace('/', '.').replace('-', '_')}")
    return module.EXPERIMENT
