"""`partial_fit` of IntegrativeNMF: mini-batches of data sets that are known or new."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context

from nonneg._arrays import to_numpy
from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg._typing import FloatArray
from nonneg.data import DataMatrix
from nonneg.estimators._base import FactorizingEstimator
from nonneg.estimators.data_sets import data_sets_of
from nonneg.estimators.stored_fields import Fields, Names, StoredArray, Value
from nonneg.integrative.factorize import initial_components, online_step
from nonneg.integrative.problem import Components, DataSet, Sums
from nonneg.solvers.factorize import checked_rank
from nonneg.solvers.online import decay_of

# Attributes of a fit, which no longer describe the model once a mini-batch has changed it.
OF_A_FIT = ("history_", "certificate_", "reconstruction_err_", "n_iter_")


class OnlineIntegration(FactorizingEstimator):
    """Shared and specific components with the sums from which they are updated."""

    missing = "error"
    n_components: int
    lam: float
    scale: bool
    init: str
    random_state: Seed
    batch_size: int
    forget_factor: float
    specific_components_: FloatArray
    batch_scale_: FloatArray
    batch_names_: list[str]
    _gram: FloatArray
    _cross: FloatArray
    _stored: ClassVar[Fields] = {
        **FactorizingEstimator._stored,
        "n_batches_": Value(int),
        "batch_names_": Names("n_batches_", container=list),
        "batch_scale_": StoredArray("n_batches_", "n_features_in_", nonnegative=True),
        "specific_components_": StoredArray(
            "n_batches_", "n_components_", "n_features_in_", nonnegative=True
        ),
        "_gram": StoredArray("n_batches_", "n_components_", "n_components_", finite=True),
        "_cross": StoredArray("n_batches_", "n_features_in_", "n_components_", finite=True),
    }

    @property
    def n_batches_(self) -> int:
        """Number of data sets."""
        return len(self.batch_names_)

    @n_batches_.setter
    def n_batches_(self, value: int) -> None:
        # A saved model holds it as the length of an axis; the names say it again.
        pass

    def _scaled(self, matrix: DataMatrix) -> DataSet:
        return DataSet.of(matrix, scale=None if self.scale else np.ones(matrix.shape[1]))

    def _keep(self, found: Components, sums: list[Sums]) -> None:
        H = found.Ht.T
        self.components_ = np.ascontiguousarray(H) if isinstance(H, np.ndarray) else H
        self.n_components_ = int(H.shape[0])
        self.specific_components_ = np.ascontiguousarray(to_numpy(found.Vt).transpose(0, 2, 1))
        self._gram = np.stack([to_numpy(one.gram) for one in sums])
        self._cross = np.stack([to_numpy(one.cross) for one in sums])

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, *, batch: Any = None, batch_key: str | None = None) -> Any:
        """Update all components with a mini-batch of one or several data sets, known or new.

        Parameters
        ----------
        X : array, sparse matrix, data frame, AnnData, or list or dict of them
            The mini-batch, as in `fit`. Not kept.
        y : Any
            Ignored.
        batch : str, int or array of shape (n_samples,), optional
            The data set of all rows, or of each. A new name is a new data set, whose scale is that of this
            mini-batch.
        batch_key : str, optional
            As in `fit`.

        Returns
        -------
        self : IntegrativeNMF
            The estimator, with updated components. After `fit`, training continues from its components.
        """
        first = not hasattr(self, "components_")
        given = data_sets_of(self, X, batch, batch_key, reset=first)
        if first:
            self.batch_names_, self.batch_scale_ = [], np.empty((0, given.shape[1]))
        with threads(self.n_jobs):
            for name, matrix in zip(given.names, given.matrices, strict=True):
                self._learn(name, self._scaled(matrix))
        for name in OF_A_FIT:
            self.__dict__.pop(name, None)
        self.n_steps_ = getattr(self, "n_steps_", 0) + 1
        return self

    def _learn(self, name: str, data: DataSet) -> None:
        matrix, p = data.matrix, data.matrix.shape[1]
        begin = not self.batch_names_
        if begin:
            k = checked_rank(self.n_components, matrix.shape, type(self).__name__)
            found = initial_components([data], k, init=self.init, rng=generator(self.random_state))
            past: list[Sums] = []
        else:
            k = self.n_components_
            found = self._found(matrix)
            past = [
                Sums(matrix.to_device(gram), matrix.to_device(cross))
                for gram, cross in zip(self._gram, self._cross, strict=True)
            ]
        if name in self.batch_names_:
            at = self.batch_names_.index(name)
            data = DataSet.of(matrix, scale=self.batch_scale_[at])
        else:
            at = len(self.batch_names_)
            self.batch_names_.append(name)
            self.batch_scale_ = np.concatenate([self.batch_scale_, to_numpy(data.scale).T])
            past.append(Sums(matrix.to_device(np.zeros((k, k))), matrix.to_device(np.zeros((p, k)))))
            if not begin:
                zero = matrix.to_device(np.zeros((1, p, k)))
                found = Components(found.Ht, matrix.xp.concat([found.Vt, zero]))
        decay = decay_of(self.forget_factor, self.batch_size, matrix.shape[0])
        self._keep(*online_step(data, at, found, past, lam=float(self.lam), decay=decay, first=begin))

    def _found(self, matrix: DataMatrix) -> Components:
        Vt = to_numpy(self.specific_components_).transpose(0, 2, 1)
        return Components(matrix.to_device(to_numpy(self.components_).T), matrix.to_device(Vt))
