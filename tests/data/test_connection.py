"""Messages that Dask sends between processes."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed")


@pytest.mark.torch
def test_tensors_that_are_not_in_memory_are_pickled(torch, monkeypatch):
    from distributed.protocol.serialize import dask_serialize, serialize
    from distributed.protocol.torch import serialize_torch_Tensor

    from nonneg.data.cluster import SendFromGPU

    monkeypatch.setattr(
        dask_serialize, "_lookup", dask_serialize._lookup | {torch.Tensor: serialize_torch_Tensor}
    )
    # As on a GPU: Dask asks for a NumPy array, and there is none.
    elsewhere = torch.empty(3, device="meta")
    assert serialize(elsewhere)[0]["serializer"] == "error"
    plugin = SendFromGPU("torch")
    for _ in range(2):  # a worker may be told twice
        plugin.setup(None)
        assert serialize(elsewhere)[0]["serializer"] == "pickle"
