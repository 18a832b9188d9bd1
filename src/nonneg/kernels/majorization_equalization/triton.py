"""Majorization-equalization of many small factorizations on an NVIDIA GPU, each in one program.

Written with array operations, an update of a batch is about twenty kernels that each read and write the whole
batch. Here the variances stay in the registers of a program from the first update to the last.
"""

from __future__ import annotations

from typing import Any

from nonneg.kernels.frame_rows import triton as frame_rows

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# Entries of a factorization's variances, both sizes rounded up to powers of two, and components: what the
# registers of a program hold, and what its loops are unrolled for without taking long to compile.
MOST_ENTRIES, MOST_COMPONENTS = 2048, 8
# One: 0.42 ms for ten updates of 1000 factorizations with 50 x 10 variances on an H200; two or four are no
# quicker.
WARPS = 1


if triton is not None:

    @triton.jit
    def _inverse_model(V, eps0, A_at, C_at, rows, columns, m, K: tl.constexpr):
        model = tl.zeros_like(V) + eps0
        for c in tl.static_range(K):
            a = tl.load(A_at + c, mask=rows, other=0.0)
            b = tl.load(C_at + c * m, mask=columns, other=0.0)
            model += a[:, None] * b[None, :]
        return 1.0 / tl.where(rows[:, None] & columns[None, :], model, 1.0)

    @triton.jit
    def _update(
        variances,
        activations,
        components,
        new_activations,
        new_components,
        inverses,
        numbers,
        restart_stride,
        n_frames,
        m,
        n_updates,
        K: tl.constexpr,
        N_FRAMES: tl.constexpr,
        N_ATOMS: tl.constexpr,
    ):
        restart = tl.program_id(0).to(tl.int64)
        n = tl.arange(0, N_FRAMES)
        j = tl.arange(0, N_ATOMS)
        rows, columns = n < n_frames, j < m
        inside = rows[:, None] & columns[None, :]
        # Numbers given as arguments would be rounded to float32.
        eps0 = tl.load(numbers)
        floor = tl.load(numbers + 1)
        at = n[:, None] * m + j[None, :]
        V = tl.load(variances + restart * restart_stride + at, mask=inside, other=0.0) + eps0
        # Vectors of the factors are kept in memory, which is near: registers cannot be indexed.
        A_at = new_activations + restart * n_frames * K + n * K
        C_at = new_components + restart * K * m + j
        for c in tl.static_range(K):
            a = tl.load(activations + restart * n_frames * K + n * K + c, mask=rows, other=0.0)
            b = tl.load(components + (restart * K + c) * m + j, mask=columns, other=0.0)
            tl.store(A_at + c, a, mask=rows)
            tl.store(C_at + c * m, b, mask=columns)
        tl.debug_barrier()
        inverse = _inverse_model(V, eps0, A_at, C_at, rows, columns, m, K)
        for _ in range(n_updates):
            ratio = V * inverse * inverse
            for c in tl.static_range(K):
                a = tl.load(A_at + c, mask=rows, other=0.0)
                b = tl.load(C_at + c * m, mask=columns, other=0.0)[None, :]
                gain = tl.sum(ratio * b, axis=1) / (tl.sum(inverse * b, axis=1) + floor)
                tl.store(A_at + c, a * gain, mask=rows)
            tl.debug_barrier()
            inverse = _inverse_model(V, eps0, A_at, C_at, rows, columns, m, K)
            ratio = V * inverse * inverse
            for c in tl.static_range(K):
                a = tl.load(A_at + c, mask=rows, other=0.0)
                above = tl.sum(ratio * a[:, None], axis=0)
                gain = above / (tl.sum(inverse * a[:, None], axis=0) + floor)
                b = tl.load(C_at + c * m, mask=columns, other=0.0) * gain
                size = tl.sum(b, axis=0)
                size = tl.where(size > 0, size, 1.0)
                tl.store(C_at + c * m, b / size, mask=columns)
                tl.store(A_at + c, a * size, mask=rows)
            tl.debug_barrier()
            inverse = _inverse_model(V, eps0, A_at, C_at, rows, columns, m, K)
        tl.store(inverses + restart * n_frames * m + at, inverse, mask=inside)


def is_supported(V: Any, n_components: int) -> bool:
    """Tell whether V is a batch of small float64 tensors on an NVIDIA GPU, and Triton is installed."""
    if not frame_rows.is_supported(V):
        return False
    entries = padded(int(V.shape[1])) * padded(int(V.shape[2]))
    return entries <= MOST_ENTRIES and n_components <= MOST_COMPONENTS


def padded(size: int) -> int:
    """Return a size rounded up to a power of two."""
    return 1 << max(0, size - 1).bit_length()


def update_factors(
    V: Any, eps0: float, activations: Any, components: Any, n_updates: int
) -> tuple[Any, Any, Any]:
    """Update the factors, and return the inverse of their model."""
    import torch

    batch, n_frames, m = V.shape
    k = int(components.shape[1])
    if V.stride(2) != 1 or V.stride(1) != m:
        V = V.contiguous()
    activations, components = activations.contiguous(), components.contiguous()
    new = torch.empty_like(activations), torch.empty_like(components)
    inverse = torch.empty((batch, n_frames, m), dtype=V.dtype, device=V.device)
    numbers = torch.full((2,), torch.finfo(V.dtype).smallest_normal, dtype=V.dtype, device=V.device)
    numbers[:1].fill_(eps0)
    _update[(batch,)](
        V,
        activations,
        components,
        *new,
        inverse,
        numbers,
        V.stride(0),
        n_frames,
        m,
        n_updates,
        K=k,
        N_FRAMES=padded(n_frames),
        N_ATOMS=padded(m),
        num_warps=WARPS,
    )
    return *new, inverse
