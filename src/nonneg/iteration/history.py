"""History of a run: its measures, iteration by iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class History:
    """Columns of measures by name; `n_iter` and `seconds` are always there.

    Parameters
    ----------
    columns : mapping, optional
        Initial columns, as `as_dict` returns them.

    Notes
    -----
    A measure that was absent in an iteration is NaN there. A measure may be an array (a batch of
    runs that advance together).
    """

    def __init__(self, columns: Mapping[str, list[Any]] | None = None) -> None:
        self._columns: dict[str, list[Any]] = {"n_iter": [], "seconds": []}
        if columns is not None:
            self._columns.update({name: list(values) for name, values in columns.items()})

    def record(self, n_iter: int, seconds: float, measures: Mapping[str, Any]) -> None:
        """Append one row.

        Parameters
        ----------
        n_iter : int
            The iteration.
        seconds : float
            Time spent in steps so far.
        measures : mapping
            Values by name.
        """
        length = len(self)
        self._columns["n_iter"].append(n_iter)
        self._columns["seconds"].append(seconds)
        for name, value in measures.items():
            if name not in self._columns:
                self._columns[name] = [float("nan")] * length
            self._columns[name].append(
                value if isinstance(value, np.ndarray) and value.ndim else float(value)
            )
        for column in self._columns.values():
            if len(column) <= length:
                column.append(float("nan"))

    def extend(self, other: History) -> None:
        """Append the rows of a run that continued from here.

        Parameters
        ----------
        other : History
            Its iterations and seconds count from zero.
        """
        iterations, seconds = (self.n_iter[-1], self.seconds[-1]) if len(self) else (0, 0.0)
        for row in range(len(other)):
            measures = {name: other[name][row] for name in other.names if name not in ("n_iter", "seconds")}
            self.record(iterations + other.n_iter[row], seconds + other.seconds[row], measures)

    def __len__(self) -> int:
        return len(self._columns["n_iter"])

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]

    @property
    def names(self) -> list[str]:
        """The measures, in the order in which they appeared."""
        return list(self._columns)

    @property
    def n_iter(self) -> list[int]:
        """The iterations."""
        return self._columns["n_iter"]

    @property
    def seconds(self) -> list[float]:
        """Time spent in steps until the end of each iteration; evaluations are not counted."""
        return self._columns["seconds"]

    @property
    def loss(self) -> list[Any]:
        """The loss after each iteration; empty if none was measured."""
        return self._columns.get("loss", [])

    def as_dict(self) -> dict[str, list[Any]]:
        """Return the columns, ready for JSON.

        Returns
        -------
        dict
            Lists by name.
        """
        return {
            name: [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
            for name, values in self._columns.items()
        }

    def __repr__(self) -> str:
        last = {name: values[-1] for name, values in self._columns.items() if values}
        return f"History({len(self)} iterations, last {last})"
