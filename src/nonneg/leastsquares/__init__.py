"""Nonnegative least squares in Gram form: rows are independent problems that never see the data."""

from __future__ import annotations

from nonneg.leastsquares.nonnegative import ExactRows, FreeRows, nonnegative_least_squares

__all__ = ["ExactRows", "FreeRows", "nonnegative_least_squares"]
