"""Nonnegative matrix factorization: fast solvers, methods with guarantees, and a certificate on every fit.

Names are loaded when they are first used, so that ``import nonneg`` costs very little. ``__init__.pyi`` lists
them, for type checkers and for this module.
"""

from __future__ import annotations

from nonneg._lazy import lazy_names

__getattr__, __all__ = lazy_names(__name__)


def __dir__() -> list[str]:
    return __all__
