"""Values of command-line options, with messages that say what was expected."""

from __future__ import annotations

import argparse
import math
import re
from typing import Any


def components(text: str) -> int | str:
    """Read the number of components."""
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected an integer of at least 1 or 'auto', got {text!r}")
    return int(text)


def positive_number(text: str) -> float:
    """Read a number above zero."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return number


def count(text: str) -> int:
    """Read a positive integer."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected an integer of at least 1, got {text!r}")
    return int(text)


def counts(text: str) -> list[int]:
    """Read positive integers."""
    return [count(part.strip()) for part in text.split(",")]


def candidates(text: str) -> list[int]:
    """Read a number, a range that includes its end, or a list."""
    found = re.fullmatch(r"(\d+)(?::(\d+)(?::(\d+))?)?", text.strip())
    if found is None:
        return counts(text)
    first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
    if not 1 <= first <= last or step < 1:
        raise argparse.ArgumentTypeError(f"expected a number, a range such as 5:15 or a list, got {text!r}")
    return list(range(first, last + 1, step))


def named_counts(text: str) -> tuple[str, list[int]]:
    """Read a name and positive integers."""
    name, sign, numbers = text.partition("=")
    if not sign or not name.strip():
        raise argparse.ArgumentTypeError(f"expected a name and numbers such as drums=1,3,5, got {text!r}")
    return name.strip(), counts(numbers)


def count_or_candidates(text: str) -> int | str | list[int]:
    """Read a positive integer, several to choose from, or "auto"."""
    if text == "auto":
        return text
    try:
        found = counts(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"expected an integer of at least 1, several separated by commas, or 'auto', got {text!r}"
        ) from None
    return found[0] if len(found) == 1 else found


def image_shape(text: str) -> tuple[int, int]:
    """Read the shape of an image."""
    found = re.fullmatch(r"([1-9]\d*)[xX,]([1-9]\d*)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected rows and columns such as 8x8, got {text!r}")
    return int(found[1]), int(found[2])


def add_device(group: Any, default: str = "the CPU") -> None:
    """Declare --device."""
    group.add_argument(
        "--device", metavar="NAME",
        help=f"cuda (or cuda:1, ...): compute there; auto: use a GPU if it is faster (default: {default})",
    )  # fmt: skip


def number_or_name(text: str) -> float | str:
    """Read a number, or a name."""
    try:
        return float(text)
    except ValueError:
        return text
