"""The list of experiments. Each module is imported on demand, so that listing them is fast."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from nonneg.exceptions import UnknownNameError

if TYPE_CHECKING:
    from reproduction.experiment import Experiment

TITLES: dict[str, str] = {
    "cr1/figure-2": "Rank-one factorization of cones: its error, its bounds and other algorithms",
    "cr1/table-1": "Time until other algorithms reach the error of the rank-one factorization of cones",
    "cr1/figure-3": "The number of cones, estimated from the singular values of noisy data",
    "cr1/table-3": "Initialization time on real data sets",
    "cr1/table-4": "Initialization time, in iterations of the algorithms that follow",
    "cr1/table-5": "Time for alternating least squares to reach an error, from four initializations",
    "cr1/figure-4": "Error against iterations from four initializations on real data sets",
    "cr1/figure-6": "Images and basis images of digits and faces from four initializations",
    "cr1/table-6": "Clustering of images by factorizations from four initializations",
    "cr1/table-7": "Clustering of documents by factorizations from four initializations",
    "merit/figure-2": "Success rate of anchor selection against noise, middle points",
    "merit/figure-3": "Spectral angle and approximation of anchor selection against noise, middle points",
    "merit/figure-4a": "Success rate of anchor selection against noise, Dirichlet weights",
    "merit/figure-4b": "Peak memory of anchor selection against the number of points",
    "merit/figure-5": "Effect of the weight and the smoothing of the row-sparsity penalty",
    "merit/table-1": "Anchor selection for growing numbers of anchors",
    "merit/table-2": "Topics of news articles by anchor words: coherence, overlap and accuracy",
    "merit/figure-6": "Peak memory of anchor-word selection",
    "merit/table-3": "Co-authorship networks: the nodes that hold 99% of the energy",
    "merit/table-4": "Overlapping communities of co-authors: rank correlation with known memberships",
    "merit/figure-7": "Peak memory of anchor selection on co-authorship networks",
    "merit/theorems": "Theorems 1 and 2 of MERIT: which points its steps enter, iterate by iterate",
    "merit/identifiability": "Theorems 3 and 4 and Proposition 1 of MERIT: row maxima, steps and warm starts",
    "tlnmf/figure-2": "Divergence at the solutions of TL-NMF and JD+NMF against the number of realizations",
    "tlnmf/figure-3": "Atoms, components and activations of two music notes",
    "tlnmf/figure-4": "Objective of TL-NMF and JD+NMF against the number of iterations",
    "tlnmf/separation": "Separation by TL-NMF, JD+NMF and the cosine transform",
    "purification/rate": "Purification without noise: the geometric rate of Theorem 1",
    "purification/floor": "Purification: error floor of the covariance update, none with regression",
    "purification/adversarial-noise": "Purification: error against adversarial noise (Theorem 1)",
    "purification/unbiased-noise": "Purification: error against unbiased noise (Theorem 2)",
    "purification/default": "Purification: the default beside the published algorithm",
    "purification/weights": "Purification: general weights (Theorems 6 and 7), both updates",
    "purification/sparsity": "Purification: number of active weights growing with the number of features",
    "purification/relu": "Purification with and without the ReLU",
    "purification/balancing": "Purification: weights with uneven second moments, with and without balancing",
    "purification/fresh-samples": "Purification: fresh samples in every iteration, or the same ones",
    "purification/basin": "Purification: success against the error of the initialization",
    "purification/swimmer": "Purification and NMF: limbs of swimmers in heavy noise",
    "purification/digits": "Purification and NMF: parts of digits in heavy noise",
    "purification/signatures": "Purification and NMF: mutational signatures of breast cancers",
    "studies/anchors": "Which anchors: proposals of several methods and the residual that judges them",
    "studies/separation": "Separation of recordings: groupings of components by family of mixtures",
    "studies/unmixing": "Unmixing: candidates and judge on real scenes, each scene left out in turn",
    "studies/min-volume": "Minimum volume or pure pixels, by purity, noise and number of endmembers",
    "studies/communities": "Which method finds overlapping communities, on planted graphs and known networks",
    "studies/topics": "Topics of documents: which words and weights, and how many topics, by family",
    "studies/tables": "The default of NMF on tables, other libraries, and whether the unit of X matters",
    "studies/ranks": "Number of components: singular values propose, held-out errors judge, by family",
    "studies/consensus": "Number of components of a consensus: published rules, on planted and real data",
    "studies/integration": "Data sets that share components: integrative NMF and NMF on planted batches",
    "studies/count-losses": "Overdispersed counts: negative binomial, generalized Poisson and KL",
}
"""Name -> title. ``paper/table-1`` is the constant EXPERIMENT of ``reproduction/paper/table_1.py``."""


def find_experiment(name: str) -> Experiment:
    """Return an experiment by its name."""
    if name not in TITLES:
        raise UnknownNameError.of("experiment", name, TITLES)
    module = importlib.import_module(f"reproduction.{name.replace('/', '.').replace('-', '_')}")
    return module.EXPERIMENT
