"""Extrapolation with restarts on an NVIDIA GPU: a turn is accepted or rejected without asking the host.

A turn is one call of `AlternatingProblem.advance`. The host starts turns one after the other and reads now
and then how far they got. What `AlternatingProblem.turns` decides is decided here by one program; another
kernel then copies what was accepted. A rejected turn leaves the factors as they are, and the next one runs
without momentum. Turns after the end of a run change nothing.
"""

from __future__ import annotations

from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# Rows of the history on the device: the host reads them before they are written again.
ROWS = 64
BLOCK = 1024


if triton is not None:
    # The numbers of a run: `solvers/device.py` names their places. Place 9 of the pending ones says what
    # becomes of the turn: 0 rejected, 1 taken, 2 worse by more than rounding, -1 after the end. Place 10 has
    # its violation.

    @triton.jit
    def _decide(numbers, pending, rules, loss_at, violation_at):
        # Arguments would be rounded to float32.
        growth = tl.load(rules)
        ceiling_growth = tl.load(rules + 1)
        decay = tl.load(rules + 2)
        max_restarts = tl.load(rules + 3)
        slack = tl.load(rules + 4)
        tol = tl.load(rules + 5)
        given = tl.load(rules + 6)
        max_iter = tl.load(rules + 7)
        zero = tl.load(rules + 8)
        loss = tl.load(loss_at)
        violation = tl.load(violation_at)
        before = tl.load(numbers + 0)
        momentum = tl.load(numbers + 1)
        ceiling = tl.load(numbers + 2)
        restarts = tl.load(numbers + 3)
        used = tl.load(numbers + 5)
        n_iter = tl.load(numbers + 6)
        finished = tl.load(numbers + 7)
        first = tl.load(numbers + 8)
        one = zero + 1.0
        rejected = (used > 0) & (loss > before)
        accepted = (used > 0) & (rejected == 0)
        worse = (rejected == 0) & (loss > before + slack)
        raised = tl.where(ceiling_growth * ceiling < one, ceiling_growth * ceiling, one)
        grown = tl.where(growth * used < raised, growth * used, raised)
        slowed = tl.where(restarts + 1.0 >= max_restarts, zero, used / decay)
        momentum = tl.where(rejected, slowed, tl.where(worse, zero, tl.where(accepted, grown, momentum)))
        ceiling = tl.where(rejected, used, tl.where(accepted, raised, ceiling))
        restarts = tl.where(rejected, restarts + 1.0, tl.where(accepted, zero, restarts))
        n_iter = tl.where(rejected, n_iter, n_iter + 1.0)
        first = tl.where((rejected == 0) & (first < 0), violation, first)
        largest = tl.where(first > given, first, given)
        converged = (tol > 0) & ((largest == 0) | (violation <= tol * largest))
        ended = (rejected == 0) & (converged | (n_iter >= max_iter))
        action = tl.where(rejected, zero, tl.where(worse, one + 1.0, one))
        goes_on = finished == 0
        tl.store(pending + 0, tl.where((rejected == 0) & (worse == 0), loss, before))
        tl.store(pending + 1, momentum)
        tl.store(pending + 2, ceiling)
        tl.store(pending + 3, restarts)
        tl.store(pending + 4, tl.where(rejected, one, zero))
        tl.store(pending + 5, tl.where(rejected, zero, momentum))
        tl.store(pending + 6, n_iter)
        tl.store(pending + 7, tl.where(ended, one, zero))
        tl.store(pending + 8, first)
        # After the end: below zero, so that nothing is copied.
        tl.store(pending + 9, tl.where(goes_on, action, zero - 1.0))
        tl.store(pending + 10, violation)

    @triton.jit
    def _commit(
        numbers, pending, history, W, W_plain, chosen, new, Ht, Ht_begin, new_Ht, next_Ht, n_W, n_Ht,
        ROWS: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        program = tl.program_id(0).to(tl.int64)
        action = tl.load(pending + 9)
        if action >= 0:
            at = program * BLOCK + tl.arange(0, BLOCK)
            of_W = at < n_W
            of_Ht = at < n_Ht
            if action == 1:
                tl.store(W + at, tl.load(chosen + at, mask=of_W), mask=of_W)
                tl.store(W_plain + at, tl.load(new + at, mask=of_W), mask=of_W)
                plain = tl.load(new_Ht + at, mask=of_Ht)
                moved = tl.load(next_Ht + at, mask=of_Ht)
                tl.store(Ht + at, plain, mask=of_Ht)
                tl.store(Ht_begin + at, tl.where(tl.load(pending + 5) > 0, moved, plain), mask=of_Ht)
            else:
                # Rejected or worse: the next turn has no momentum and begins with the accepted factors.
                tl.store(Ht_begin + at, tl.load(Ht + at, mask=of_Ht), mask=of_Ht)
                if action == 2:
                    tl.store(W_plain + at, tl.load(W + at, mask=of_W), mask=of_W)
            if program == 0:
                if action > 0:
                    row = (tl.load(pending + 6).to(tl.int64) - 1) % ROWS
                    tl.store(history + 2 * row, tl.load(pending + 0))
                    tl.store(history + 2 * row + 1, tl.load(pending + 10))
                which = tl.arange(0, 16)
                tl.store(numbers + which, tl.load(pending + which))

    @triton.jit
    def _extrapolate(new, old, momentum, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(new + at, mask=at < n)
        y = tl.load(old + at, mask=at < n)
        moved = x + tl.load(momentum).to(x.dtype) * (x - y)
        tl.store(out + at, tl.where(moved < 0, 0.0, moved), mask=at < n)


def is_available() -> bool:
    """Tell whether Triton is installed."""
    return triton is not None


def settle(
    numbers: Any, pending: Any, rules: Any, history: Any, loss: Any, violation: Any,
    W: tuple[Any, Any, Any, Any], Ht: tuple[Any, Any, Any, Any],
) -> None:  # fmt: skip
    """Accept or reject a turn; W and Ht come with their second buffers and the new values of both."""
    _decide[(1,)](numbers, pending, rules, loss, violation, num_warps=1)
    n_W, n_Ht = W[0].numel(), Ht[0].numel()
    # One launch for all copies: whenever a run is interrupted, its state is that after some turn.
    grid = (-(-max(n_W, n_Ht) // BLOCK),)
    _commit[grid](numbers, pending, history, *W, *Ht, n_W, n_Ht, ROWS=ROWS, BLOCK=BLOCK)


def extrapolate(new: Any, old: Any, momentum: Any) -> Any:
    """Return max(new + momentum (new - old), 0) for tensors whose memory has the same order."""
    import torch

    out = torch.empty_like(new)
    n = new.numel()
    _extrapolate[(-(-n // BLOCK),)](new, old, momentum, out, n, BLOCK=BLOCK)
    return out
