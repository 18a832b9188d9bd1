"""The table of solvers as Markdown, read from the registry."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any


def cell(value: Any) -> str:
    """Say a declared capability in a word or two.

    Parameters
    ----------
    value : object
        What the registry holds: a truth value, a name, a collection of names, a range of betas.

    Returns
    -------
    str
        The text of a cell.
    """
    if isinstance(value, bool):
        return "yes" if value else "-"
    if value is None:
        return "-"
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(item, float) for item in value):
        return betas(*value)
    if isinstance(value, Collection) and not isinstance(value, str):
        return ", ".join(sorted(map(str, value))) or "-"
    return str(value)


def betas(low: float, high: float) -> str:
    """Say a range of losses.

    Parameters
    ----------
    low, high : float
        The lowest and the highest beta.

    Returns
    -------
    str
        Named where it is one loss with a name.
    """
    names = {2.0: "Frobenius", 1.0: "KL", 0.0: "IS"}
    if low == high:
        return names.get(low, f"beta {low:g}")
    if low == -math.inf and high == math.inf:
        return "any beta"
    return f"{low:g} <= beta <= {high:g}"


def table(solvers: Mapping[str, Any]) -> str:
    """Write what each solver accepts as a Markdown table.

    Parameters
    ----------
    solvers : mapping of str to dataclass instance
        The registry.

    Returns
    -------
    str
        One line per solver.
    """
    head = [
        "solver",
        "loss",
        "dense",
        "sparse",
        "PyTorch, CuPy",
        "Dask",
        "missing",
    ]
    lines = [head, ["---"] * len(head)]
    for key, entry in solvers.items():
        held = ["yes" if kind in entry.inputs else "-" for kind in ("dense", "array", "dask")]
        sparse = cell(entry.sparse_betas)
        lines.append(
            [f"`{key}`", betas(*entry.betas), held[0], sparse, held[1], held[2], cell(entry.missing)]
        )
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def descriptions(solvers: Mapping[str, Any]) -> str:
    """Write what each solver does, and what its tolerance measures.

    Parameters
    ----------
    solvers : mapping of str to dataclass instance
        The registry.

    Returns
    -------
    str
        A Markdown list.
    """
    lines = [f"- `{key}`: {entry.summary}. `tol` bounds the {entry.tol}.\n" for key, entry in solvers.items()]
    return "".join(lines)


def write(path: Path) -> None:
    """Write the table of the installed package.

    Parameters
    ----------
    path : Path
        The file; its folder is made where it is missing.
    """
    from nonneg.solvers.registry import SOLVERS

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{table(SOLVERS)}\n{descriptions(SOLVERS)}", encoding="utf-8")
