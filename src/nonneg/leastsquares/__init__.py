"""Nonnegative least squares in Gram form: rows are independent problems that never see the data."""

from __future__ import annotations

from nonneg.leastsquares.nonnegative import exact_rows, free_rows, nonnegative_least_squares

__all__ = ["exact_rows", "free_rows", "nonnegative_least_squares"]
