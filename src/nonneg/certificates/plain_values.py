"""Results that plain values describe: written as JSON, and built again from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np


class PlainValues:
    """A dataclass with methods to and from plain values."""

    def as_dict(self) -> dict[str, Any]:
        """Return the object as plain values, ready for JSON.

        Returns
        -------
        dict
            Numbers, texts, None, and lists and dicts of them. In a statement, numbers that JSON cannot hold
            (NaN, infinities) are words.
        """
        return self._as_plain()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build an object from what `as_dict` gave.

        Parameters
        ----------
        values : mapping
            Plain values.

        Returns
        -------
        object
            Equal to the one they came from.
        """
        return cls._of_plain(values)

    def _as_plain(self) -> dict[str, Any]:
        return {
            name: np.asarray(value).tolist() if isinstance(value, tuple | np.ndarray) else value
            for name, value in vars(self).items()
        }

    @classmethod
    def _of_plain(cls, values: Mapping[str, Any]) -> Self:
        fields = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        return cls(**fields)
