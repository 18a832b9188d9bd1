"""Results where other libraries keep them: AnnData objects (`anndata`), in the style of scanpy (`scanpy`)."""

from __future__ import annotations

from nonneg._lazy import lazy_names

__getattr__, __all__ = lazy_names(__name__)
