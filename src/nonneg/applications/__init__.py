"""Applications: topics, communities, recordings, hyperspectral images, mutational signatures."""

from __future__ import annotations

from nonneg._lazy import lazy_names

__getattr__, __all__ = lazy_names(__name__)
