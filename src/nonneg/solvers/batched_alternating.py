"""Extrapolated HALS on a batch of restarts: the turns of `kernels.safeguard`, one axis more.

The products with the data are those with the factors of all restarts side by side: factors are arrays
(batch, k, rows), so that nothing is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nonneg._typing import Array
from nonneg.kernels.batched_hals import batched_hals
from nonneg.solvers.alternating import SCHEDULE
from nonneg.solvers.batch import CONVERGED, FINISHED, MAX_ITER, WINDOW, Batch, first_batch
from nonneg.solvers.hals import SHRINK, inner_passes


@dataclass(frozen=True)
class BatchedAlternating:
    """The problem of all restarts."""

    X: Array
    squared_norm: float
    passes: tuple[int, int]
    max_iter: int
    tol: float

    @classmethod
    def of(cls, data: Any, k: int, max_iter: int, tol: float) -> BatchedAlternating:
        """Take what an iteration needs of the data."""
        return cls(data.array, data.squared_norm(), inner_passes(data, k), max_iter, tol)

    @property
    def slack(self) -> float:
        """By how much rounding may increase the loss."""
        return (2e-13 if "64" in str(self.X.dtype) else 2e-6) * 0.5 * self.squared_norm

    def begin(self, W: Array, Ht: Array) -> Batch:
        """Return the first state; the first turn has nothing to extrapolate from."""
        import torch

        # Numbers: those that all batches have, rejected turns in a row, the momentum of the next
        # turn, the first loss, and the loss at the last look of the stopping rule.
        numbers = torch.zeros((10, W.shape[0]), dtype=torch.float64, device=W.device)
        numbers[:3] = torch.tensor([[float("inf")], [SCHEDULE.initial], [1.0]], dtype=torch.float64)
        W, Ht = (factor.mT.contiguous() for factor in (W, Ht))
        arrays = {"W": W, "W_plain": W.clone(), "Ht": Ht, "Ht_next": Ht.clone()}
        return first_batch(arrays, numbers, 2)

    def _rounding(self, cross: Array) -> Any:
        import torch

        return 8 * torch.finfo(cross.dtype).eps * torch.linalg.vector_norm(cross, ord=1, dim=(1, 2))

    def turn(self, batch: Batch) -> None:
        """Try one iteration of every restart; see `kernels.safeguard`."""
        import torch

        X, now = self.X, batch.arrays
        before, momentum, ceiling, n_iter, _, first, restarts, used, first_loss, mark = batch.numbers.unbind()
        amount = used.to(X.dtype)[:, None, None]
        cross = (now["Ht_next"].flatten(0, 1) @ X.T).reshape(now["W"].shape)
        gram = now["Ht_next"] @ now["Ht_next"].mT
        W, of_W = batched_hals(now["W"].mT, gram, cross.mT, max_passes=self.passes[0], shrink=SHRINK)
        violation = (of_W - self._rounding(cross)).clip(0.0)
        W = W.mT
        chosen = (W + amount * (W - now["W_plain"])).clip(0.0)
        cross = (chosen.flatten(0, 1) @ X).reshape(now["Ht"].shape)
        gram = chosen @ chosen.mT
        Ht, of_H = batched_hals(now["Ht_next"].mT, gram, cross.mT, max_passes=self.passes[1], shrink=SHRINK)
        Ht = Ht.mT
        violation = (violation + (of_H - self._rounding(cross)).clip(0.0)).to(torch.float64)
        own = (Ht @ Ht.mT).double() * gram.double()
        products = torch.sum(cross.double() * Ht.double(), dim=(1, 2))
        loss = (0.5 * self.squared_norm - products + 0.5 * torch.sum(own, dim=(1, 2))).clip(0.0)
        following = (Ht + amount * (Ht - now["Ht"])).clip(0.0)

        rejected = (used > 0) & (loss > before)
        accepted = (used > 0) & ~rejected
        worse = ~rejected & (loss > before + self.slack)  # by rounding: the better pair is kept
        raised = (SCHEDULE.ceiling_growth * ceiling).clip(max=1.0)
        grown = torch.minimum(SCHEDULE.growth * used, raised)
        most = SCHEDULE.max_restarts or self.max_iter
        slowed = torch.where(restarts + 1 >= most, 0.0, used / SCHEDULE.decay)
        momentum = torch.where(accepted, grown, torch.where(worse, 0.0, momentum))
        momentum = torch.where(rejected, slowed, momentum)
        ceiling = torch.where(rejected, used, torch.where(accepted, raised, ceiling))
        restarts = torch.where(rejected, restarts + 1, torch.where(accepted, 0.0, restarts))
        first = torch.where(n_iter == 0, violation, first)
        n_iter = torch.where(rejected, n_iter, n_iter + 1)
        ended = torch.where(n_iter >= self.max_iter, MAX_ITER, torch.zeros_like(loss))
        if self.tol > 0:
            ended = torch.where((first == 0) | (violation <= self.tol * first), CONVERGED, ended)
        loss = torch.where(rejected | worse, before, loss)
        first_loss = torch.where(n_iter <= 1, loss, first_loss)
        looks = ~rejected & ((n_iter - 1) % WINDOW == 0)
        if self.tol > 0:
            error, earlier, start = (torch.sqrt(2.0 * each) for each in (loss, mark, first_loss))
            slow = looks & (n_iter > WINDOW) & (earlier - error <= WINDOW * self.tol * start)
            ended = torch.where(slow, CONVERGED, ended)
        mark = torch.where(looks, loss, mark)
        ended = torch.where(rejected, 0.0, ended)
        used = torch.where(rejected, 0.0, momentum)
        numbers = torch.stack(
            [loss, momentum, ceiling, n_iter, ended, first, restarts, used, first_loss, mark]
        )

        active = (batch.numbers[FINISHED] == 0)[:, None, None]
        taken, kept = (each[:, None, None] & active for each in (~rejected & ~worse, worse))
        begins = torch.where((used > 0)[:, None, None], following, Ht)
        arrays = {
            "W": torch.where(taken, chosen, now["W"]),
            "W_plain": torch.where(taken, W, torch.where(kept, now["W"], now["W_plain"])),
            "Ht": torch.where(taken, Ht, now["Ht"]),
            "Ht_next": torch.where(taken, begins, now["Ht"]),
        }
        batch.commit(arrays, numbers, (loss, violation))
