"""Online purification: moments of mini-batches with a decaying memory, one update per mini-batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nonneg._typing import FloatArray
from nonneg.data import DataMatrix
from nonneg.iteration.loop import Stalled
from nonneg.purification.decode import Decoder
from nonneg.purification.iteration import (
    PurificationState,
    effective_threshold,
    initial_state,
    updated_state,
)
from nonneg.purification.moments import Moments, moments_of
from nonneg.purification.options import Options
from nonneg.purification.pseudo_inverse import pseudo_inverse
from nonneg.purification.samples import spread_rows

# Samples per update where no mini-batch size is given; MiniBatchNMF of scikit-learn has the same default.
BATCH_SIZE = 1024


@dataclass(frozen=True)
class OnlineState:
    """What is kept of the samples so far."""

    state: PurificationState  # features, threshold and noise
    past: Moments | None = None  # decayed moments of the mini-batches that made the features
    pending: Moments | None = None  # moments of samples that have not yet led to an update


def begin_online(data: DataMatrix, init: FloatArray, options: Options) -> OnlineState:
    """Return the state before the first batch."""
    return OnlineState(initial_state(spread_rows(data), init, options))


def take_in(
    online: OnlineState, data: DataMatrix, options: Options, *, batch_size: int, forget_factor: float
) -> OnlineState:
    """Decode a batch and add its moments; update the features when `batch_size` samples are pending."""
    state = online.state
    found = pseudo_inverse(state.H, options.pseudo_inverse, state.bases)
    decoder = Decoder(found.inverse, effective_threshold(state, options.decode), options.decode)
    batch = moments_of(data, decoder, state.reference)
    pending = batch if online.pending is None else online.pending + batch
    online = OnlineState(replace(state, bases=found.bases), online.past, pending)
    if pending.total < batch_size:
        return online
    past = pending if online.past is None else online.past.scaled(forget_factor) + pending
    try:
        # The noise is that of the last samples: it shrinks while features improve.
        return OnlineState(replace(updated_state(state, past, found, options), noise=pending.noise), past)
    except Stalled:
        # A batch that says nothing leaves the features as they are.
        return replace(online, pending=None)
