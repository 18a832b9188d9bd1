"""Warnings that name the line of the user's program."""

from __future__ import annotations

import sys
import warnings

# scikit-learn puts checks of parameters and the form of outputs around `fit` and `transform`;
# contextlib enters context managers.
INNER = ("nonneg", "sklearn", "contextlib")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the first line outside the library, through however many functions it was reached."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INNER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
