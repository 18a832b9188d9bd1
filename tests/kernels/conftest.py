"""What the tests of kernels share."""

from __future__ import annotations

import os

import numpy as np
import pytest


@pytest.fixture
def device(torch, monkeypatch):
    """Where Triton kernels run: a GPU, or else the processor through Triton's interpreter."""
    pytest.importorskip("triton", reason="Triton is not installed")
    if torch.cuda.is_available():
        yield torch.device("cuda")
        return
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("there is no GPU")
    from nonneg.kernels import self_dictionary
    from nonneg.kernels.frame_rows import triton as frame_rows
    from nonneg.kernels.self_dictionary import torch as tensor_scan
    from nonneg.kernels.self_dictionary import triton as triton_scan

    is_tensor = torch.is_tensor
    monkeypatch.setattr(frame_rows, "is_supported", lambda X: is_tensor(X) and X.element_size() == 8)
    monkeypatch.setattr(triton_scan, "is_supported", is_tensor)
    monkeypatch.setattr(self_dictionary, "numpy_view", lambda array: array)
    for module in (self_dictionary, tensor_scan):
        monkeypatch.setattr(module, "is_cuda_tensor", is_tensor)
    with np.errstate(all="ignore"):  # branches that are not taken are computed all the same
        yield torch.device("cpu")
