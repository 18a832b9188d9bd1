"""Results where other libraries keep them: AnnData objects (`anndata`), in the style of scanpy (`scanpy`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nonneg._lazy import lazy_names

if TYPE_CHECKING:
    from nonneg.integrations import anndata, scanpy

__all__ = ["anndata", "scanpy"]

__getattr__ = lazy_names(__name__, {name: f"{__name__}.{name}" for name in __all__})
