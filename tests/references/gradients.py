"""Gradients of the objective, from the two parts that a loss returns."""

from __future__ import annotations

from nonneg.losses.beta import BetaLoss
from nonneg.losses.penalties import Penalties


def _pass(block, W, *, Ht, loss, penalties):
    of_W, of_H = loss.terms_of_W(block, W, Ht), loss.terms_of_H(block, W, Ht)
    rows = of_W.power - of_W.ratio + penalties.l1_W + penalties.l2_W * W
    return (block.weighted(rows),), (of_H.power - of_H.ratio,)


def gradients(data, W, Ht, *, beta, penalties=None):
    """Return the gradients with respect to W and Ht."""
    penalties = Penalties() if penalties is None else penalties
    loss = BetaLoss.of(data, beta)
    (of_W,), (of_H,) = data.map_reduce_rows(_pass, W, Ht=Ht, loss=loss, penalties=penalties)
    return of_W, of_H + penalties.l1_H + penalties.l2_H * Ht
