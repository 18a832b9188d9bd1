"""Bounds in sentences, rounded to the safe side: what is printed is as true as the number behind it."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context


def upper(value: float, digits: int = 4, rounding: str = ROUND_CEILING) -> str:
    """Write an upper bound: never below the value."""
    # The shortest decimal of the value: 0.1 stays 0.1.
    decimal = Context(prec=digits, rounding=rounding).create_decimal(repr(float(value)))
    return f"{float(decimal):.{digits}g}"


def lower(value: float, digits: int = 4) -> str:
    """Write a lower bound: never above the value."""
    return upper(value, digits, ROUND_FLOOR)
