"""A documented default is the default, in every signature of the library."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import nonneg

SOURCE = Path(nonneg.__file__).parent
DOCUMENTED = re.compile(r"^\s*(?P<names>[\w, ]+?) : .*?(?:\bdefault (?P<values>.+?)\.?)?$", re.MULTILINE)


@cache
def documented_and_actual(path: Path) -> list[tuple[str, object, object]]:
    """Return names with their documented and their actual defaults, where both are literals."""
    return list(_pairs(path))


def _fields(node: ast.AST) -> dict[str, ast.expr]:
    """Return the parameters of an estimator, which is a data class with scikit-learn's representation."""
    decorators = node.decorator_list if isinstance(node, ast.ClassDef) else []
    if not any(word.arg == "repr" for one in decorators for word in getattr(one, "keywords", [])):
        return {}
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign) and part.value is not None]
    return {part.target.id: part.value for part in fields}


def _defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    places = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(zip(places[::-1], arguments.defaults[::-1], strict=False))
    defaults |= dict(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    return {place.arg: default for place, default in defaults.items() if default is not None}


def _pairs(path: Path) -> Iterator[tuple[str, object, object]]:
    """Yield names with their documented and their actual defaults, where both are literals."""
    # A default that is not documented is None, as a parameter that is optional.
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in (*tree.body, *(part for each in classes for part in each.body)):
        if isinstance(node, ast.ClassDef):
            found = [part for part in node.body if getattr(part, "name", "") == "__init__"]
        else:
            found = [node] if isinstance(node, ast.FunctionDef) else []
        fields = _fields(node)
        text = ast.get_docstring(node) if found or fields else None
        if text is None or not (fields or isinstance(found[0], ast.FunctionDef)):
            continue
        actual = fields or _defaults(found[0].args)
        for match in DOCUMENTED.finditer(text):
            names, text_of_all = match["names"].split(", "), match["values"] or "None"
            several = re.split(", | and ", text_of_all)
            if len(several) != len(names):
                several = [text_of_all] * len(names)
            for name, value in zip(names, several, strict=True):
                if match["values"] is None and name not in actual:
                    continue  # there is no default
                try:
                    pair = ast.literal_eval(value.strip("`")), ast.literal_eval(actual[name])
                except (ValueError, SyntaxError):  # words, or the name of a constant
                    continue
                yield f"{node.name}({name})", *pair


@pytest.mark.parametrize("layer", sorted(path.name for path in SOURCE.glob("[a-z]*/")))
def test_documented_defaults_are_the_defaults(layer):
    found = [pair for path in sorted((SOURCE / layer).rglob("*.py")) for pair in documented_and_actual(path)]
    wrong = [
        name
        for name, documented, actual in found
        if documented != actual or isinstance(documented, bool) != isinstance(actual, bool)
    ]
    assert wrong == []


@pytest.mark.parametrize("name", [name for name in nonneg.__all__ if name.endswith("NMF")])
def test_defaults_that_a_function_describes_are_those_of_the_estimator(name):
    estimator = getattr(nonneg, name)
    actual, seen = inspect.signature(estimator).parameters, 0
    for match in DOCUMENTED.finditer(estimator.__doc__.partition("    Attributes\n")[0]):
        if match["names"] in actual and match["values"] is not None:
            try:
                documented = ast.literal_eval(match["values"].strip("`"))
            except (ValueError, SyntaxError):  # words
                continue
            assert actual[match["names"]].default == documented
            seen += 1
    assert seen >= 3


def test_they_are_found():
    found = [pair for path in sorted(SOURCE.rglob("*.py")) for pair in documented_and_actual(path)]
    assert sum(documented is not None for _, documented, _ in found) > 200
    assert ("separable_dirichlet(n_samples)", 200, 200) in found


def test_a_difference_is_found(tmp_path):
    path = tmp_path / "file.py"
    path.write_text(
        'def f(a=1, *, b="x", c=True, d=3, e=4, g=None):\n'
        '    """Do.\n\n    a : int, default 2\n    b : str, default "x"\n    c : bool\n'
        '    d, e : int, default 3 and 5\n    g : int, optional\n    """\n'
    )
    assert documented_and_actual(path) == [
        *[("f(a)", 2, 1), ("f(b)", "x", "x"), ("f(c)", None, True), ("f(d)", 3, 3), ("f(e)", 5, 4)],
        ("f(g)", None, None),
    ]
