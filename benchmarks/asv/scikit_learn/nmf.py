"""NMF and MiniBatchNMF in scikit-learn's own asv suite, made of its base classes and data sets.

Copied into `asv_benchmarks/benchmarks` of scikit-learn's repository, it runs there like the other files:

    cd asv_benchmarks && asv run -E existing --bench NMF

Nothing is downloaded: the data are digits, and random sparse ones.
"""

# ruff: noqa: RUF012, TID252 (written as the files beside it there)

import scipy.sparse as sp
from sklearn.decomposition import NMF, MiniBatchNMF

from .common import Benchmark, Estimator, Transformer
from .datasets import _digits_dataset, _random_dataset
from .utils import neg_mean_data_error


def nmf_data(name):
    """Return one of the data sets: training and validation."""
    if name == "digits":
        return _digits_dataset()
    n = 20_000 if Benchmark.data_size == "large" else 2_000
    return _random_dataset(n_samples=n, representation="sparse")


def make_nmf_scorers(caller):
    """Score by the error of what the components reconstruct."""

    def score(X):
        dense = X.toarray() if sp.issparse(X) else X
        return neg_mean_data_error(dense, caller.estimator.transform(X), caller.estimator.components_)

    caller.train_scorer = lambda _, __: score(caller.X)
    caller.test_scorer = lambda _, __: score(caller.X_val)


class NMFBenchmark(Transformer, Estimator, Benchmark):
    """Benchmarks for NMF."""

    param_names = ["data", "solver", "beta_loss"]
    params = (["digits", "sparse"], ["cd", "mu"], ["frobenius", "kullback-leibler"])

    def skip(self, params):
        """Coordinate descent has one loss."""
        return params[1:] == ("cd", "kullback-leibler")

    def setup_cache(self):
        super().setup_cache()

    def make_data(self, params):
        return nmf_data(params[0])

    def make_estimator(self, params):
        _, solver, beta_loss = params
        # The same number of iterations always, so that time means the time of an iteration.
        return NMF(
            n_components=16,
            init="nndsvda",
            solver=solver,
            beta_loss=beta_loss,
            tol=0,
            max_iter=100,
            random_state=0,
        )

    def make_scorers(self):
        make_nmf_scorers(self)


class MiniBatchNMFBenchmark(Transformer, Estimator, Benchmark):
    """Benchmarks for MiniBatchNMF."""

    param_names = ["data", "beta_loss"]
    params = (["digits", "sparse"], ["frobenius", "kullback-leibler"])

    def setup_cache(self):
        super().setup_cache()

    def make_data(self, params):
        return nmf_data(params[0])

    def make_estimator(self, params):
        return MiniBatchNMF(
            n_components=16,
            init="nndsvda",
            beta_loss=params[1],
            batch_size=256,
            tol=0,
            max_no_improvement=None,
            max_iter=5,
            random_state=0,
        )

    def make_scorers(self):
        make_nmf_scorers(self)
