"""Fused line search along rotations of many small transforms on an NVIDIA GPU: one kernel for a batch.

Written with array operations, every trial of a search is a hundred small kernels over the whole batch, and
all restarts make as many trials as the slowest needs. Here a program makes the search of one transform: its
rotation stays in registers, and it ends when its own search does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from nonneg.kernels.frame_rows import triton as frame_rows
from nonneg.kernels.majorization_equalization.triton import MOST_ENTRIES, padded

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# Atoms: products of matrices are made in registers.
MOST_ATOMS = 16
# On an H200, an iteration of 1000 transforms of 10 atoms and 50 frames: two 1.00 ms, four 1.06, eight 1.23.
WARPS = 2
# Arguments and numbers in the code would be rounded to float32: 0, infinity, c1, c2, the units of rounding of
# a value below which nothing is to be gained, the margins of a cubic and a quadratic, the norm up to which a
# series is summed, what does not matter beside 1, and the error that one more step to a polar factor squares
# away.
NUMBERS = (0.0, float("inf"), 1e-4, 0.9, 8.0 * 2.0**-52, 0.2, 0.1, 1.0, 1e-17, 1e-8)


@dataclass(frozen=True)
class SearchResult:
    """Where searches ended."""

    transform: Any  # the best points
    frames: Any  # transformed virtual realizations there
    variances: Any  # their sums of squares
    step: Any  # the steps taken and the values there
    value: Any
    # 1 where the conditions of the search hold, or nothing beyond rounding was to be gained, else 0.
    succeeded: Any


if triton is not None:

    @triton.jit
    def _product(A, B):
        return tl.sum(A[:, :, None] * B[None, :, :], axis=1)

    @triton.jit
    def _largest_row_sum(A):
        return tl.max(tl.sum(tl.abs(A), axis=1), axis=0)

    @triton.jit
    def _exponential(E, norm, step, eye, numbers):
        # Scaling and squaring of the Taylor series.
        least = tl.load(numbers + 8)
        size = tl.abs(step) * norm
        scale = step
        squarings = 0
        while (size > tl.load(numbers + 7)) & (squarings < 60):
            size *= 0.5
            scale *= 0.5
            squarings += 1
        A = scale * E
        term = A
        R = eye + A
        bound = size
        j = 1
        while (bound > least) & (j < 30):
            j += 1
            term = _product(A, term) / j
            R += term
            bound *= size / j
        for _ in range(squarings):
            R = _product(R, R)
        return R

    @triton.jit
    def _polar(E, step, eye, numbers):
        # Newton and Schulz's steps from I + step E, divided by a bound of its norm.
        A = step * E
        largest = _largest_row_sum(_product(A, A))
        A = (eye + A) / tl.sqrt(1.0 + largest)
        error = tl.load(numbers + 1)
        n = 0
        while (error > tl.load(numbers + 9)) & (n < 200):
            gram = _product(tl.trans(A), A)
            error = tl.max(tl.max(tl.abs(gram - eye), axis=1), axis=0)
            A = _product(A, 1.5 * eye - 0.5 * gram)
            n += 1
        return A

    @triton.jit
    def _moments(rows, P_at, velocity_at, n, j, inside, n_frames, m, p, rank, WITH_SLOPE: tl.constexpr):
        # Sums over virtual realizations of the squares of X = rows P', and of X times its change.
        V = tl.zeros(inside.shape, tl.float64)
        change = tl.zeros(inside.shape, tl.float64)
        for r in range(rank):
            X = tl.zeros(inside.shape, tl.float64)
            dX = tl.zeros(inside.shape, tl.float64)
            for k in range(p):
                x = tl.load(rows + (r * n_frames + n) * p + k, mask=n < n_frames, other=0.0)[:, None]
                X += x * tl.load(P_at + j * p + k, mask=j < m, other=0.0)[None, :]
                if WITH_SLOPE:
                    dX += x * tl.load(velocity_at + j * p + k, mask=j < m, other=0.0)[None, :]
            V += X * X
            change += X * dX
        return V, change

    @triton.jit
    def _next_step(low, low_value, low_slope, high, high_value, last, last_value, first, numbers):
        # By a cubic, a quadratic, or in half; comparisons with what is not a number are false.
        width = high - low
        left = tl.where(width < 0, high, low)
        right = tl.where(width < 0, low, high)
        c = last - low
        yb = high_value - low_value - low_slope * width
        yc = last_value - low_value - low_slope * c
        denominator = (width * c) * (width * c) * (width - c)
        cubed = (c * c * yb - width * width * yc) / denominator
        squared = (width * width * width * yc - c * c * c * yb) / denominator
        root = squared * squared - 3.0 * cubed * low_slope
        cubic = low + (tl.sqrt(tl.where(root >= 0, root, 0.0)) - squared) / (3.0 * cubed)
        margin = tl.load(numbers + 5) * width
        usable = (first == 0) & (root >= 0) & (cubic <= right - margin) & (cubic >= left + margin)
        quadratic = low - low_slope * width * width / (2.0 * yb)
        margin = tl.load(numbers + 6) * width
        fits = (quadratic <= right - margin) & (quadratic >= left + margin)
        return tl.where(usable, cubic, tl.where(fits, quadratic, low + 0.5 * width))

    @triton.jit
    def _search(
        rows,
        transforms,
        directions,
        inverses,
        values,
        slopes,
        numbers,
        eps0_at,
        trial_points,
        trial_velocities,
        new_transforms,
        new_frames,
        new_variances,
        facts,
        batch,
        n_frames,
        m,
        p,
        rank,
        max_trials,
        LEARNING: tl.constexpr,
        N_FRAMES: tl.constexpr,
        N_ATOMS: tl.constexpr,
    ):
        restart = tl.program_id(0).to(tl.int64)
        n = tl.arange(0, N_FRAMES)
        j = tl.arange(0, N_ATOMS)
        i = tl.arange(0, N_ATOMS)
        inside = (n < n_frames)[:, None] & (j < m)[None, :]
        at = n[:, None] * m + j[None, :]
        square = (i < m)[:, None] & (j < m)[None, :]
        point = (i < m)[:, None] & (j < p)[None, :]
        point_at = i[:, None] * p + j[None, :]
        eye = tl.where(i[:, None] == j[None, :], 1.0, 0.0).to(tl.float64)
        E = tl.load(directions + restart * m * m + i[:, None] * m + j[None, :], mask=square, other=0.0)
        P = tl.load(transforms + restart * m * p + point_at, mask=point, other=0.0)
        zero = tl.load(numbers)
        eps0 = tl.load(eps0_at)
        weights = tl.zeros(inside.shape, tl.float64)
        if LEARNING:
            weights = tl.load(inverses + restart * n_frames * m + at, mask=inside, other=0.0)
        value = tl.load(values + restart)
        slope = tl.load(slopes + restart)
        noise = tl.load(numbers + 4) * tl.abs(value)
        norm = tl.minimum(_largest_row_sum(E), tl.sqrt(0.5 * tl.sum(tl.sum(E * E, axis=1), axis=0)))
        P_at = trial_points + restart * m * p
        velocity_at = trial_velocities + restart * m * p
        best = P
        low, low_value, low_slope = zero, value, slope
        high = tl.load(numbers + 1)
        high_value = high
        last, last_value = zero, value
        step = zero + 1.0
        bracketed = 0
        active = (slope < 0).to(tl.int32)
        succeeded = 1 - active
        n_trials = 0
        while (active == 1) & (n_trials < max_trials):
            n_trials += 1
            if LEARNING:
                R = _exponential(E, norm, step, eye, numbers)
            else:
                R = _polar(E, step, eye, numbers)
            trial = _product(R, P)
            # What was written before has been read by all.
            tl.debug_barrier()
            tl.store(P_at + point_at, trial, mask=point)
            if LEARNING:
                tl.store(velocity_at + point_at, _product(E, trial), mask=point)
            tl.debug_barrier()
            V, change = _moments(rows, P_at, velocity_at, n, j, inside, n_frames, m, p, rank, LEARNING)
            if LEARNING:
                found = tl.sum(tl.sum(V * weights, axis=1), axis=0)
                found_slope = 2.0 * tl.sum(tl.sum(change * weights, axis=1), axis=0)
                # Written so that what is not a number counts as too high.
                lower = (found <= value + tl.load(numbers + 2) * step * slope) & (found < low_value)
                accepted = lower & (tl.abs(found_slope) <= -tl.load(numbers + 3) * slope)
                turned = lower & (found_slope * tl.where(bracketed == 1, high - low, 1.0) >= 0)
            else:
                logs = tl.log(tl.where(inside, V + eps0, 1.0))
                found = tl.sum(tl.sum(logs, axis=1), axis=0)
                found_slope = zero
                lower = found < value
                accepted = lower
                turned = lower
            best = tl.where(lower, trial, best)
            negligible = (lower == 0) & (-slope * step <= noise)
            ended = accepted | negligible
            raised = lower == 0
            ahead = lower & (turned == 0)
            first = (bracketed == 0) & (raised | turned)
            from_high = (bracketed == 1) & (raised | turned)
            from_low = (bracketed == 1) & ahead
            last = tl.where(from_high, high, tl.where(from_low, low, zero))
            last_value = tl.where(from_high, high_value, tl.where(from_low, low_value, value))
            high = tl.where(raised, step, tl.where(turned, low, high))
            high_value = tl.where(raised, found, tl.where(turned, low_value, high_value))
            low = tl.where(lower, step, low)
            low_value = tl.where(lower, found, low_value)
            low_slope = tl.where(lower, found_slope, low_slope)
            bracketed = tl.where(first, 1, bracketed)
            if LEARNING:
                inner = _next_step(
                    low, low_value, low_slope, high, high_value, last, last_value, first, numbers
                )
                step = tl.where(bracketed == 1, inner, 2.0 * step)
            else:
                step = 0.5 * step
            active = tl.where(ended, 0, active)
            succeeded = tl.where(ended, 1, succeeded)
        tl.debug_barrier()
        tl.store(P_at + point_at, best, mask=point)
        tl.store(new_transforms + restart * m * p + point_at, best, mask=point)
        tl.debug_barrier()
        V = tl.zeros(inside.shape, tl.float64)
        for r in range(rank):
            X = tl.zeros(inside.shape, tl.float64)
            for k in range(p):
                x = tl.load(rows + (r * n_frames + n) * p + k, mask=n < n_frames, other=0.0)[:, None]
                X += x * tl.load(P_at + j * p + k, mask=j < m, other=0.0)[None, :]
            tl.store(new_frames + (restart * rank + r) * n_frames * m + at, X, mask=inside)
            V += X * X
        tl.store(new_variances + restart * n_frames * m + at, V, mask=inside)
        tl.store(facts + restart, low)
        tl.store(facts + batch + restart, low_value)
        tl.store(facts + 2 * batch + restart, succeeded.to(tl.float64))


def is_supported(virtual: Any) -> bool:
    """Tell whether the data are few short frames in float64 on an NVIDIA GPU, and Triton is installed."""
    if not frame_rows.is_supported(virtual):
        return False
    m = int(virtual.shape[2])
    return m <= MOST_ATOMS and padded(int(virtual.shape[1])) * padded(m) <= MOST_ENTRIES


def line_search(
    virtual: Any,
    transform: Any,
    direction: Any,
    value: Any,
    slope: Any,
    max_trials: int,
    *,
    inverse: Any = None,
    eps0: float = 0.0,
) -> SearchResult:
    """Search along the retraction of every transform of a batch."""
    import torch

    rank, n_frames, p = virtual.shape
    batch, m = transform.shape[:2]
    kind = {"dtype": transform.dtype, "device": transform.device}
    transform, direction = transform.contiguous(), direction.contiguous()
    inverse = direction if inverse is None else inverse.contiguous()
    trial_points, trial_velocities, new = (torch.empty_like(transform) for _ in range(3))
    frames = torch.empty((batch, rank * n_frames, m), **kind)
    variances = torch.empty((batch, n_frames, m), **kind)
    facts = torch.empty((3, batch), **kind)
    _search[(batch,)](
        virtual.contiguous(),
        transform,
        direction,
        inverse,
        value.contiguous(),
        slope.contiguous(),
        _numbers(str(transform.device)),
        torch.full((1,), eps0, **kind),
        trial_points,
        trial_velocities,
        new,
        frames,
        variances,
        facts,
        batch,
        n_frames,
        m,
        p,
        rank,
        max_trials,
        LEARNING=inverse is not direction,
        N_FRAMES=padded(n_frames),
        N_ATOMS=padded(m),
        num_warps=WARPS,
    )
    return SearchResult(new, frames, variances, facts[0], facts[1], facts[2])


@cache
def _numbers(device: str) -> Any:
    """Return what the kernel needs in float64; cached, as no copy from the host can be captured."""
    import torch

    return torch.tensor(NUMBERS, dtype=torch.float64, device=device)
