"""Which columns of a file are features, and which one holds labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nonneg.exceptions import InvalidParameterError, UnknownNameError


@dataclass(frozen=True)
class Selection:
    """Columns by name, or by position from 0."""

    columns: tuple[str, ...] | None = None  # the features; None for all
    drop: tuple[str, ...] = ()  # columns to leave out
    label: str | None = None  # the column of labels, which is not a feature

    def __bool__(self) -> bool:
        return self != Selection()

    def names(self, cell: str) -> bool:
        """Say whether a column of this name was mentioned."""
        return cell in (*(self.columns or ()), *self.drop, self.label)

    def places(
        self, names: Sequence[str] | None, n_columns: int, source: str
    ) -> tuple[list[int], int | None]:
        """Return the positions of the features in the order of the file, and of the labels."""
        label = None if self.label is None else _place(self.label, names, n_columns, "--label-column", source)
        chosen = list(range(n_columns))
        if self.columns is not None:
            chosen = sorted({_place(one, names, n_columns, "--columns", source) for one in self.columns})
        left_out = {_place(one, names, n_columns, "--drop", source) for one in self.drop} | {label}
        kept = [at for at in chosen if at not in left_out]
        if not kept:
            raise InvalidParameterError(
                f"--columns, --drop and --label-column leave none of the {n_columns} columns of {source}. "
                "Leave at least one as a feature."
            )
        return kept, label


def _place(given: str, names: Sequence[str] | None, n_columns: int, option: str, source: str) -> int:
    if names is not None and given in names:
        if list(names).count(given) > 1:
            raise InvalidParameterError(
                f"{option} {given}: {source} has several columns with this name. Give the position, from 0."
            )
        return list(names).index(given)
    if given.isdecimal() and int(given) < n_columns:
        return int(given)
    if names is None:
        raise InvalidParameterError(
            f"{option} {given}: {source} has no column names. Give a position from 0 to {n_columns - 1}."
        )
    raise UnknownNameError.of(option, given, list(names), other=f"a position from 0 to {n_columns - 1}")
