"""The table of solvers as Markdown, read from the registry."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any


def cell(value: Any) -> str:
    """Say a declared capability in a word or two.

    Parameters
    ----------
    value : object
        What the registry holds: a truth value, a name, a collection of names.

    Returns
    -------
    str
        The text of a cell.
    """
    if isinstance(value, bool):
        return "yes" if value else "-"
    if value is None:
        return "-"
    if isinstance(value, Collection) and not isinstance(value, str):
        return ", ".join(sorted(map(str, value))) or "-"
    return str(value)


def columns(entry: Any) -> list[str]:
    """Names of the declared capabilities; functions are not shown.

    Parameters
    ----------
    entry : dataclass instance
        An entry of the registry.

    Returns
    -------
    list of str
        The fields, in the order in which the registry declares them.
    """
    return [field.name for field in dataclasses.fields(entry) if not callable(getattr(entry, field.name))]


def table(solvers: Mapping[str, Any]) -> str:
    """Write a registry as a Markdown table.

    Parameters
    ----------
    solvers : mapping of str to dataclass instance
        The registry.

    Returns
    -------
    str
        One line a solver, one column a declared capability.
    """
    names = [name for name in columns(next(iter(solvers.values()))) if name != "name"]
    lines = [["solver", *(name.replace("_", " ") for name in names)], ["---"] * (len(names) + 1)]
    lines += [[f"`{key}`", *(cell(getattr(entry, name)) for name in names)] for key, entry in solvers.items()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write(path: Path) -> None:
    """Write the table of the installed package.

    Parameters
    ----------
    path : Path
        The file; its folder is made where it is missing.
    """
    from nonneg.solvers.registry import SOLVERS

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(table(SOLVERS), encoding="utf-8")
