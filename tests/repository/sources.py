"""Constants and imports of source files, each of which is parsed once for all tests of the repository."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def nodes(path: Path) -> tuple[list[ast.Constant], list[ast.Import | ast.ImportFrom]]:
    """Return the constants and the imports of a file."""
    return nodes_of(path.read_text(encoding="utf-8"))


def nodes_of(source: str) -> tuple[list[ast.Constant], list[ast.Import | ast.ImportFrom]]:
    """Return the constants and the imports of a source."""
    constants: list[ast.Constant] = []
    imports: list[ast.Import | ast.ImportFrom] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant):
            constants.append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
    return constants, imports
