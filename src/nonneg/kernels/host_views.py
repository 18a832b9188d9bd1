"""PyTorch tensors in the memory of the host, seen as NumPy arrays: the compiled kernels serve them too."""

from __future__ import annotations

from typing import Any

from nonneg.kernels.grams import DenseGrams, Gram, SharedGram


def is_host_tensor(array: Any) -> bool:
    """Tell whether an array is a PyTorch tensor in host memory, without importing PyTorch.

    Parameters
    ----------
    array : array
        Any array.

    Returns
    -------
    bool
        True for a tensor whose entries NumPy can share.
    """
    return type(array).__module__ == "torch" and array.device.type == "cpu"


def is_device_tensor(array: Any) -> bool:
    """Tell whether an array is a PyTorch tensor on an NVIDIA GPU, without importing PyTorch."""
    return type(array).__module__ == "torch" and array.device.type == "cuda"


def shared(tensor: Any) -> Any:
    """Return a NumPy array that shares a host tensor's memory.

    Parameters
    ----------
    tensor : torch.Tensor
        In host memory.

    Returns
    -------
    numpy.ndarray
        A view.
    """
    return tensor.detach().numpy()


def shared_gram(gram: Gram) -> Gram:
    """Return Gram matrices whose arrays share the memory of host tensors."""
    if isinstance(gram, SharedGram):
        return SharedGram(shared(gram.matrix))
    return DenseGrams(shared(gram.dense().matrices))


def tensor(array: Any) -> Any:
    """Return a host tensor that shares a NumPy array's memory."""
    import torch

    return torch.from_numpy(array)
