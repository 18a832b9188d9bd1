"""The choice of one array from a file that contains several."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nonneg.exceptions import FileFormatError, InvalidParameterError


def check_variable(wanted: str | None, path: Path, words: str, *, several: bool) -> None:
    """Reject a choice among several arrays if a file contains only one, rather than ignore it."""
    if wanted is not None and not several:
        raise InvalidParameterError(
            f"variable={wanted!r} (--variable) chooses among the arrays of a .npz, .mat or HDF5 file. {path} "
            f"is {words} and contains only one: leave it out."
        )


def choose_variable(
    shapes: Mapping[str, tuple[int, ...]],
    wanted: str | None,
    source: str,
) -> str:
    """Pick the array that is meant: the wanted one, or the only one that can hold data."""
    if not shapes:
        raise FileFormatError(f"{source} contains no numeric array.")
    listing = ", ".join(
        f"{name} ({' x '.join(map(str, shape)) or 'scalar'})" for name, shape in shapes.items()
    )
    if wanted is not None:
        if wanted not in shapes:
            raise FileFormatError(f"{source} contains no variable {wanted!r}. It contains: {listing}.")
        return wanted
    if len(shapes) == 1:
        return next(iter(shapes))
    # Labels, scalars and vectors often lie beside the data; MATLAB gives all of them two dimensions. An image
    # cube is no table, but it may be what is meant, so that a matrix beside it is not taken.
    candidates = [name for name, shape in shapes.items() if sum(length > 1 for length in shape) > 1]
    if len(candidates) == 1:
        return candidates[0]
    raise FileFormatError(
        f"{source} contains several variables: {listing}. Choose one with variable='NAME' (--variable NAME)."
    )
