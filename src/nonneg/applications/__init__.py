"""What people do with a factorization: topics, communities, recordings, scenes, pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nonneg._lazy import lazy_names

if TYPE_CHECKING:
    pass

__all__: list[str] = []

__getattr__ = lazy_names(__name__, {})
