"""Updates of many small factorizations on an NVIDIA GPU: one program a factorization, all updates in it.

Written with array operations, an update of a batch is some twenty kernels that each read and write the whole
batch. Here a factorization stays in the registers of its program from the first update to the last.
"""

from __future__ import annotations

from typing import Any

from nonneg._typing import Array

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

# Entries of the largest product of a program, n_frames x k x m, each rounded up to a power of two: what the
# registers of eight warps hold.
MOST_ENTRIES = 16384
WARPS = 8


if triton is not None:

    @triton.jit
    def _equalize(
        variances,
        activations,
        components,
        new_activations,
        new_components,
        inverses,
        numbers,
        lane_stride,
        n_frames,
        k,
        m,
        n_updates,
        N_FRAMES: tl.constexpr,
        N_COMPONENTS: tl.constexpr,
        N_ATOMS: tl.constexpr,
    ):
        lane = tl.program_id(0).to(tl.int64)
        n = tl.arange(0, N_FRAMES)
        c = tl.arange(0, N_COMPONENTS)
        a = tl.arange(0, N_ATOMS)
        # Numbers given as arguments would be rounded to float32.
        eps0 = tl.load(numbers)
        floor = tl.load(numbers + 1)
        V_at = n[:, None] * m + a[None, :]
        V_is = (n[:, None] < n_frames) & (a[None, :] < m)
        A_at = n[:, None] * k + c[None, :]
        A_is = (n[:, None] < n_frames) & (c[None, :] < k)
        C_at = c[:, None] * m + a[None, :]
        C_is = (c[:, None] < k) & (a[None, :] < m)
        V = tl.load(variances + lane * lane_stride + V_at, mask=V_is, other=0.0) + eps0
        A = tl.load(activations + lane * n_frames * k + A_at, mask=A_is, other=0.0)
        C = tl.load(components + lane * k * m + C_at, mask=C_is, other=0.0)
        for _ in range(n_updates):
            model = tl.sum(A[:, :, None] * C[None, :, :], axis=1) + eps0
            inverse = 1.0 / tl.where(V_is, model, 1.0)
            ratio = V * inverse * inverse
            above = tl.sum(ratio[:, None, :] * C[None, :, :], axis=2)
            below = tl.sum(inverse[:, None, :] * C[None, :, :], axis=2)
            A = A * (above / (below + floor))
            model = tl.sum(A[:, :, None] * C[None, :, :], axis=1) + eps0
            inverse = 1.0 / tl.where(V_is, model, 1.0)
            ratio = V * inverse * inverse
            above = tl.sum(A[:, :, None] * ratio[:, None, :], axis=0)
            below = tl.sum(A[:, :, None] * inverse[:, None, :], axis=0)
            C = C * (above / (below + floor))
            sizes = tl.sum(C, axis=1)
            sizes = tl.where(sizes > 0, sizes, 1.0)
            C = C / sizes[:, None]
            A = A * sizes[None, :]
        model = tl.sum(A[:, :, None] * C[None, :, :], axis=1) + eps0
        inverse = 1.0 / tl.where(V_is, model, 1.0)
        tl.store(new_activations + lane * n_frames * k + A_at, A, mask=A_is)
        tl.store(new_components + lane * k * m + C_at, C, mask=C_is)
        tl.store(inverses + lane * n_frames * m + V_at, inverse, mask=V_is)


def serves(V: Array, n_components: int) -> bool:
    """Say whether the kernel is for these data.

    Parameters
    ----------
    V : array of shape (batch, n_frames, m)
        The variances.
    n_components : int
        Of the factorization.

    Returns
    -------
    bool
        True for float64 tensors on an NVIDIA GPU with Triton, and small factorizations.
    """
    if triton is None or not getattr(V, "is_cuda", False) or V.element_size() != 8:
        return False
    entries = 1
    for size in (V.shape[1], n_components, V.shape[2]):
        entries *= _padded(int(size))
    return entries <= MOST_ENTRIES


def _padded(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()


def equalized_factors(
    V: Any, eps0: float, activations: Any, components: Any, n_updates: int
) -> tuple[Any, Any, Any]:
    """Update the factors, and return the inverse of their model.

    Parameters
    ----------
    V : tensor of shape (batch, n_frames, m)
        The variances; may be one for all, broadcast.
    eps0 : float
        Added to variances and model.
    activations : tensor of shape (batch, n_frames, k)
        The paper's H, transposed.
    components : tensor of shape (batch, k, m)
        The paper's W, transposed.
    n_updates : int
        How many updates of both.

    Returns
    -------
    activations, components : tensor
        New ones, as `transforms.factor_updates.update_factors` makes them.
    inverse : tensor of shape (batch, n_frames, m)
        1 / (activations components + eps0).
    """
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
    _equalize[(batch,)](
        V,
        activations,
        components,
        *new,
        inverse,
        numbers,
        V.stride(0),
        n_frames,
        k,
        m,
        n_updates,
        N_FRAMES=_padded(n_frames),
        N_COMPONENTS=_padded(k),
        N_ATOMS=_padded(m),
        num_warps=WARPS,
    )
    return *new, inverse
