"""One batch at a time: the past lives in two small arrays, so that no row is kept.

For the Frobenius loss they are the decayed sums of X'W and W'W, and Ht is improved by a few passes of
coordinate descent on them. For other losses they are the numerator and the denominator of the
multiplicative update, as in scikit-learn's MiniBatchNMF.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context

from nonneg._random import Seed, generator
from nonneg._threads import threads
from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.estimators._base import FactorizingEstimator, input_data
from nonneg.estimators.preparation import beta_loss_of, given_factors, penalties_of, rank_of
from nonneg.estimators.stored_fields import Fields, Part, StoredArray, Value
from nonneg.exceptions import FileFormatError
from nonneg.kernels.grams import SharedGram
from nonneg.kernels.hals import hals_passes
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode
from nonneg.solvers.factorize import checked_rank, initial_factors

# Passes over Ht a batch. The sums hold coefficients that earlier components gave, so that solving for Ht
# to the end would fit them rather than the data.
PASSES = 5
# How often coefficients and components of a batch answer each other: more often on the first batch, which
# alone decides where the others begin.
ROUNDS, FIRST_ROUNDS = 3, 30

# What speaks of a fit and no longer of the model once a batch has changed it.
OF_A_FIT = ("result_", "history_", "certificate_", "reconstruction_err_", "n_iter_")


@dataclass(frozen=True)
class OnlineState:
    """What is remembered of the samples so far."""

    # Decayed sum of X'W, or of the numerators of the updates. None where only the number of samples is known,
    # as after `fit`: they are then taken to be like those of the next batch.
    numerator: Any = None
    denominator: Any = None  # decayed sum of W'W, or of the denominators of the updates
    n_samples: float = 0.0  # decayed number of samples
    # By what the past is multiplied before a batch is added; None before the first batch, which decides.
    decay: float | None = None


def decay_of(forget_factor: float, batch_size: int, n_samples: int) -> float:
    """Return by what one batch multiplies the past: scikit-learn's rule."""
    return float(forget_factor ** (min(batch_size, n_samples) / n_samples))


def online_step(
    data: DataMatrix,
    Ht: Array,
    state: OnlineState,
    *,
    beta: float,
    penalties: Penalties,
    max_iter: int | None = None,
) -> tuple[Array, OnlineState]:
    """Improve the components by one batch."""
    # Costs two or three products with the batch. Memory beside it: two arrays of the size of H.
    past = state
    for _ in range(FIRST_ROUNDS if past.n_samples == 0 else ROUNDS):
        W, _ = encode(data, Ht, beta=beta, penalties=penalties, max_iter=max_iter)
        if beta == 2.0:
            Ht, state = _least_squares_step(data, W, Ht, past, penalties)
        else:
            Ht, state = _multiplicative_step(data, W, Ht, past, beta, penalties)
    return Ht, state


def _least_squares_step(
    data: DataMatrix, W: SampleArray, Ht: Array, state: OnlineState, penalties: Penalties
) -> tuple[Array, OnlineState]:
    gram = data.weighted_gram(W)
    if data.has_missing:
        # A missing entry counts as what the model says of it, so that all columns share one Gram matrix.
        _, (cross,) = data.map_reduce_rows(_filled_cross, W, n_out=0, Ht=Ht)
    else:
        cross = data.transposed_times(W)
    state = _joined(state, data.shape[0], cross, gram, lambda past: (Ht @ past, past))
    share = state.n_samples / data.shape[0]
    target = state.numerator - share * penalties.l1_H
    system = SharedGram(state.denominator).plus_ridge(share * penalties.l2_H)
    new, _ = hals_passes(Ht, system, target, max_passes=PASSES)
    return new, state


def _filled_cross(block: Any, W: Array, *, Ht: Array) -> tuple[tuple[()], tuple[Array]]:
    xp = block.xp
    total = xp.zeros_like(Ht)
    for start, stop in block.row_blocks(1 << 20):
        left = W[start:stop, :]
        seen = xp.asarray(block.observed.dense_rows(start, stop)) != 0
        total = total + xp.where(seen, block.dense_rows(start, stop), left @ Ht.T).T @ left
    return (), (total,)


def _multiplicative_step(
    data: DataMatrix, W: SampleArray, Ht: Array, state: OnlineState, beta: float, penalties: Penalties
) -> tuple[Array, OnlineState]:
    xp, loss = data.xp, BetaLoss.of(data, beta)
    _, (ratio, power) = data.map_reduce_rows(_right_terms, W, n_out=0, Ht=Ht, loss=loss)
    denominator = power + penalties.l1_H + penalties.l2_H * Ht
    denominator = xp.where(denominator > 0, denominator, xp.ones_like(denominator))
    raised = Ht ** (1.0 / loss.exponent)
    state = _joined(state, data.shape[0], ratio * raised, denominator, lambda past: (raised * past, past))
    return (state.numerator / state.denominator) ** loss.exponent, state


def _right_terms(
    block: LocalMatrix, W: Array, *, Ht: Array, loss: BetaLoss
) -> tuple[tuple[()], tuple[Array, Array]]:
    terms = loss.right_terms(block, W, Ht)
    return (), (terms.ratio, terms.power + block.xp.zeros_like(Ht))


def _joined(
    state: OnlineState,
    n_samples: int,
    numerator: Array,
    denominator: Array,
    remembered: Callable[[Array], tuple[Array, Array]],
) -> OnlineState:
    past, past_denominator, decay = state.numerator, state.denominator, float(state.decay or 0.0)
    if past is None and state.n_samples:
        past, past_denominator = remembered(denominator * (state.n_samples / n_samples))
    if past is not None:
        numerator = decay * past + numerator
        denominator = decay * past_denominator + denominator
    return OnlineState(numerator, denominator, decay * state.n_samples + n_samples, decay)


class OnlineEstimator(FactorizingEstimator):
    """An estimator that also learns from one batch after the other."""

    init: str | None
    random_state: Seed
    n_jobs: int | None
    batch_size: int
    forget_factor: float
    fresh_restarts: bool
    fresh_restarts_max_iter: int
    _online: OnlineState
    _stored: ClassVar[Fields] = {
        **FactorizingEstimator._stored,
        "_online": Part(
            {
                OnlineState: {
                    "numerator": StoredArray("n_features_in_", "n_components_", optional=True),
                    # (n_components, n_components) for least squares, the shape of the numerator otherwise.
                    "denominator": StoredArray("rows of the denominator", "n_components_", optional=True),
                    "n_samples": Value(float),
                    "decay": Value(float, optional=True),
                }
            },
            optional=True,
        ),
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, W: Any = None, H: Any = None) -> Any:
        """Improve the components by one batch of samples.

        Parameters
        ----------
        X : array, sparse matrix, data frame, tensor or dask array of shape (n_samples, n_features)
            The batch; never changed. It is not kept.
        y : Any
            Ignored.
        W : array of shape (n_samples, n_components), optional
            Serves to start H where H is not given. Used in the first call only.
        H : array of shape (n_components, n_features), optional
            The start of H. Used in the first call only.

        Returns
        -------
        NMF
            Itself, with `components_`, `n_components_` and `n_steps_`.

        Notes
        -----
        After `fit` it goes on from the components learned there, the samples of the fit being the past.
        """
        beta = beta_loss_of(self)
        first = not hasattr(self, "components_")
        data = input_data(self, X, reset=first, positive=beta <= 0)
        with threads(self.n_jobs):
            if first:
                W, H = given_factors(self, W, H)
                k = rank_of(self, data, W, H)
                rng = generator(self.random_state)
                k = checked_rank(k, data.shape, type(self).__name__)
                _, Ht = initial_factors(data, k, init=self.init, W=W, H=H, rng=rng)
            else:
                Ht = data.to_device(self.components_.T)
            Ht, self._online = online_step(
                data,
                Ht,
                self._past(data, first=first),
                beta=beta,
                penalties=penalties_of(self, data),
                max_iter=self.fresh_restarts_max_iter if self.fresh_restarts else None,
            )
        for name in OF_A_FIT:
            self.__dict__.pop(name, None)
        self.components_ = np.ascontiguousarray(Ht.T) if isinstance(Ht, np.ndarray) else Ht.T
        self.n_components_ = int(Ht.shape[1])
        self.n_steps_ = getattr(self, "n_steps_", 0) + 1
        return self

    def _past(self, data: DataMatrix, *, first: bool) -> OnlineState:
        state = OnlineState() if first else getattr(self, "_online", OnlineState())
        if state.decay is None:
            decay = decay_of(self.forget_factor, self.batch_size, data.shape[0])
            state = replace(state, decay=decay)
        if state.numerator is None:
            return state
        # A later batch may be held by something else than the one before.
        numerator, denominator = data.to_device(state.numerator), data.to_device(state.denominator)
        return replace(state, numerator=numerator, denominator=denominator)

    def _complete_loaded(self) -> None:
        past = getattr(self, "_online", None)
        if past is None or past.numerator is None:
            return
        k, n_features = self.components_.shape
        if past.denominator is None or past.denominator.shape not in ((k, k), (n_features, k)):
            raise FileFormatError("the sums of past batches do not fit the components.")
