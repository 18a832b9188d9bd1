"""What the tests of kernels share."""

from __future__ import annotations

import pytest


@pytest.fixture
def device(torch):
    """A GPU with Triton; the test is skipped elsewhere."""
    pytest.importorskip("triton", reason="Triton is not installed")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    return torch.device("cuda")
