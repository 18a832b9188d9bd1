"""One batch at a time: the past lives in two small arrays, and no sample is kept.

For the Frobenius loss they are the decayed sums of X'W and W'W, and H is updated by a few passes of
coordinate descent on them; where entries have weights or are missing, every feature has a sum of W'W of its
own. For other losses they are the numerator and the denominator of the multiplicative update, as in
scikit-learn's MiniBatchNMF.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from nonneg._typing import Array, SampleArray
from nonneg.data import DataMatrix, LocalMatrix
from nonneg.kernels.grams import DenseGrams, SharedGram
from nonneg.kernels.hals import hals_passes
from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode
from nonneg.solvers.mu import descent_exponent

# Passes over H' per batch. The sums hold coefficients for earlier components, so that solving for H exactly
# would fit these rather than the data.
PASSES = 5
# Alternations between W and H per batch: more on the first batch, which alone determines where the others
# start.
ROUNDS, FIRST_ROUNDS = 3, 30


@dataclass(frozen=True)
class OnlineState:
    """Summary of the samples so far."""

    # Decayed sum of X'W, or of the numerators of the updates. None where only the number of samples is known,
    # as after `fit`: these are then taken to be like those of the next batch.
    numerator: Any = None
    denominator: Any = None  # decayed sum of W'W, or of the denominators of the updates
    n_samples: float = 0.0  # decayed number of samples
    # Factor by which the past is multiplied before a batch is added; set by the first batch.
    decay: float | None = None


def decay_of(forget_factor: float, batch_size: int, n_samples: int) -> float:
    """Return the factor by which one batch multiplies the past: scikit-learn's rule."""
    return float(forget_factor ** (min(batch_size, n_samples) / n_samples))


def online_step(
    data: DataMatrix, Ht: Array, state: OnlineState, *, beta: float, penalties: Penalties
) -> tuple[Array, OnlineState]:
    """Update the components with one batch."""
    # Costs two or three products with the batch. Memory: two arrays of the size of H.
    past = state
    for _ in range(FIRST_ROUNDS if past.n_samples == 0 else ROUNDS):
        W, _ = encode(data, Ht, beta=beta, penalties=penalties)
        if beta == 2.0:
            Ht, state = _least_squares_step(data, W, Ht, past, penalties)
        else:
            Ht, state = _multiplicative_step(data, W, Ht, past, beta, penalties)
    return Ht, state


def _least_squares_step(
    data: DataMatrix, W: SampleArray, Ht: Array, state: OnlineState, penalties: Penalties
) -> tuple[Array, OnlineState]:
    (n_columns, k), past = Ht.shape, state.denominator
    own = data.has_missing or (past is not None and past.shape[0] > k)
    if own:
        grams, cross = data.reduce_rows(_own_sums, W)
        gram = grams.dense().matrices
        if past is not None:
            past = data.xp.reshape(past, (-1, k, k)) + data.xp.zeros_like(gram)
            state = replace(state, denominator=past)
    else:
        gram, cross = data.weighted_gram(W), data.transposed_times(W)
    state = _joined(state, data.shape[0], cross, gram, lambda past: (_times(Ht, past), past))
    share = state.n_samples / data.shape[0]
    target = state.numerator - share * penalties.l1_H
    grams = DenseGrams(state.denominator) if own else SharedGram(state.denominator)
    system = grams.plus_ridge(share * penalties.l2_H)
    if own:
        state = replace(state, denominator=data.xp.reshape(state.denominator, (n_columns * k, k)))
    new, _ = hals_passes(Ht, system, target, max_passes=PASSES)
    return new, state


def _times(Ht: Array, gram: Array) -> Array:
    """Return the products of the rows of Ht with one matrix, or with one for each."""
    return Ht @ gram if gram.ndim == 2 else (Ht[:, None, :] @ gram)[:, 0, :]


def _own_sums(block: LocalMatrix, W: Array) -> tuple[Any, Array]:
    grams = block.column_grams(W)
    if isinstance(grams, SharedGram):
        every = grams.matrix[None, :, :] + block.xp.zeros(
            (block.shape[1], 1, 1), dtype=W.dtype, device=W.device
        )
        grams = DenseGrams(every)
    return grams, block.transposed_times(W)


def _multiplicative_step(
    data: DataMatrix, W: SampleArray, Ht: Array, state: OnlineState, beta: float, penalties: Penalties
) -> tuple[Array, OnlineState]:
    xp, loss, exponent = data.xp, BetaLoss.of(data, beta), descent_exponent(beta)
    ratio, power = data.reduce_rows(_right_terms, W, Ht=Ht, loss=loss)
    denominator = power + penalties.l1_H + penalties.l2_H * Ht
    denominator = xp.where(denominator > 0, denominator, xp.ones_like(denominator))
    raised = Ht ** (1.0 / exponent)
    state = _joined(state, data.shape[0], ratio * raised, denominator, lambda past: (raised * past, past))
    return (state.numerator / state.denominator) ** exponent, state


def _right_terms(block: LocalMatrix, W: Array, *, Ht: Array, loss: BetaLoss) -> tuple[Array, Array]:
    terms = loss.terms_of_H(block, W, Ht)
    return terms.ratio, terms.power + block.xp.zeros_like(Ht)


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
