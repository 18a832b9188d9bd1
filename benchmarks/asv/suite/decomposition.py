"""NMF of scikit-learn and of nonneg: time, peak memory and error of fits, in the form that asv reads.

    cd benchmarks/asv && asv machine --yes && asv run --environment existing --quick

As in the suite of scikit-learn, the estimator is fitted before it is measured; `time_fit`, `peakmem_fit`,
`time_transform`, `peakmem_transform` and `track_error` are measured. The environment variable
NMF_BENCH_PROFILE is "fast" (one run), "regular" (default) or "large_scale". Nothing but NumPy, SciPy and
scikit-learn is needed: data are digits, or drawn.
"""

from __future__ import annotations

import importlib
import os
import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

PROFILE = os.environ.get("NMF_BENCH_PROFILE", "regular")
LARGE = PROFILE == "large_scale"


def planted(n: int, m: int, k: int, density: float) -> sp.csr_array:
    """Draw sparse counts with k planted components."""
    rng = np.random.default_rng(0)
    W, H = rng.gamma(0.3, size=(n, k)), rng.gamma(0.3, size=(k, m))
    rates = W @ H
    return sp.csr_array(rng.poisson(rates * (density / rates.mean())).astype(np.float64))


def make_data(name: str) -> Any:
    """Return one of the data sets of the parameters."""
    if name == "digits":
        return load_digits().data
    if name == "low rank":
        n, m = (20_000, 1_000) if LARGE else (1_000, 300)
        rng = np.random.default_rng(0)
        return rng.random((n, 20)) @ rng.random((20, m)) + 0.1 * rng.random((n, m))
    return planted(50_000, 5_000, 20, 0.02) if LARGE else planted(2_000, 800, 10, 0.05)


class NMFBenchmark:
    """Fits and transforms of NMF by package, loss and data."""

    param_names: ClassVar = ["package", "loss", "data"]
    params: ClassVar = (
        ["sklearn.decomposition", "nonneg"],
        ["frobenius", "kullback-leibler"],
        ["digits", "low rank", "sparse counts"],
    )
    timeout = 500
    warmup_time = 0 if PROFILE == "fast" else 1
    repeat = 1 if PROFILE == "fast" else (3, 20, 20.0)
    number = 1

    n_components = 16
    max_iter = 100

    def setup(self, package: str, loss: str, data: str) -> None:
        """Draw the data, and fit the estimator that `time_transform` and `track_error` ask."""
        estimator = importlib.import_module(package).NMF
        solver = {"solver": "mu"} if package.startswith("sklearn") and loss != "frobenius" else {}
        self.X = make_data(data)
        # Every fit has the same number of iterations: what is timed is an iteration, and `track_error` tells
        # what it achieves.
        self.estimator = estimator(
            self.n_components,
            init="nndsvda",
            beta_loss=loss,
            tol=0,
            max_iter=self.max_iter,
            random_state=0,
            **solver,
        )
        self.fit()

    def fit(self) -> None:
        """Fit without the warning that all iterations were used."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.estimator.fit(self.X)

    def time_fit(self, *_: str) -> None:
        """Time of a fit."""
        self.fit()

    def peakmem_fit(self, *_: str) -> None:
        """Peak memory of a fit."""
        self.fit()

    def time_transform(self, *_: str) -> None:
        """Time of the weights of all samples."""
        self.estimator.transform(self.X)

    def peakmem_transform(self, *_: str) -> None:
        """Peak memory of the weights of all samples."""
        self.estimator.transform(self.X)

    def track_error(self, *_: str) -> float:
        """Error after the iterations of a fit."""
        return float(self.estimator.reconstruction_err_)


class MiniBatchNMFBenchmark:
    """Passes over mini-batches."""

    param_names: ClassVar = ["package", "data"]
    params: ClassVar = (["sklearn.decomposition", "nonneg"], ["digits", "low rank", "sparse counts"])
    timeout = 500
    warmup_time = NMFBenchmark.warmup_time
    repeat = NMFBenchmark.repeat
    number = 1

    n_components = 16
    batch_size = 256

    def setup(self, package: str, data: str) -> None:
        """Draw the data, and learn from them once for `track_error`."""
        module = importlib.import_module(package)
        self.estimator_type = getattr(module, "MiniBatchNMF", module.NMF)
        self.X = make_data(data)
        self.fit()

    def fit(self) -> None:
        """Learn from every mini-batch once."""
        self.estimator = self.estimator_type(
            self.n_components, init="nndsvda", batch_size=self.batch_size, random_state=0
        )
        for at in range(0, self.X.shape[0], self.batch_size):
            batch = self.X[at : at + self.batch_size]
            if batch.shape[0] >= self.n_components:
                self.estimator.partial_fit(batch)

    def time_partial_fit(self, *_: str) -> None:
        """Time of one pass."""
        self.fit()

    def peakmem_partial_fit(self, *_: str) -> None:
        """Peak memory of one pass."""
        self.fit()

    def track_error(self, *_: str) -> float:
        """Frobenius error of all samples after one pass."""
        X = self.X.toarray() if sp.issparse(self.X) else self.X
        return float(np.linalg.norm(X - self.estimator.transform(self.X) @ self.estimator.components_))
