"""A text collection that every Python has: the docstrings of its standard library.

The sources are parsed, never imported.
"""

from __future__ import annotations

import ast
import re
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from nonneg._arguments import checked_count
from nonneg.datasets.dataset import Dataset
from nonneg.exceptions import NonnegError

# Programs, tests, tables and jokes, whose docstrings do not describe the module.
LEFT_OUT = frozenset(
    {"antigravity", "distutils", "encodings", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "this"}
    | {"tkinter", "turtle", "turtledemo", "venv", "__future__"}
)
_WORDS = re.compile(r"[^\W\d_][\w'-]*\w")
_FEWEST_WORDS = 8  # of a docstring


def load_standard_library(*, min_documents: int = 10) -> Dataset:
    """Return the docstrings of the running Python's standard library as a collection of documents.

    Parameters
    ----------
    min_documents : int, default 10
        Modules with fewer docstrings are left out.

    Returns
    -------
    Dataset
        `X` is a CSR array of counts, one docstring per row; `y` the module, `names` the modules,
        `feature_names` the words in lower case. `extras` has the keys ``"texts"`` (the docstrings) and
        ``"objects"`` (such as ``"json.JSONDecoder.decode"``).

    Raises
    ------
    NonnegError
        If the source files of the standard library are not installed.

    Notes
    -----
    Documents are the public modules, classes, functions and methods whose docstrings have at least eight
    words. Their number depends on the version of Python (3.11: about 2600). The sources are parsed once per
    process, which takes a few seconds.
    """
    min_documents = checked_count("min_documents", min_documents)
    documents = [entry for entry in _docstrings() if len(_WORDS.findall(entry[2])) >= _FEWEST_WORDS]
    sizes = Counter(module for module, _, _ in documents)
    modules = sorted(module for module, size in sizes.items() if size >= min_documents)
    documents = [entry for entry in documents if entry[0] in modules]
    if not documents:
        raise NonnegError(
            "No docstrings were found: the source files of the standard library are not installed "
            f"({sysconfig.get_paths()['stdlib']}), or min_documents leaves nothing."
        )
    from scipy import sparse
    from sklearn.feature_extraction.text import CountVectorizer

    texts = tuple(text for _, _, text in documents)
    counter = CountVectorizer(token_pattern=_WORDS.pattern, dtype=np.float64)
    counts = sparse.csr_array(counter.fit_transform(texts))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Dataset(
        X=counts,
        y=np.array([modules.index(module) for module, _, _ in documents], dtype=np.intp),
        names=tuple(modules),
        description=(
            f"Docstrings of the standard library of Python {version}: {len(texts)} public objects of "
            f"{len(modules)} modules, one per row, counts of {counts.shape[1]} words."
        ),
        feature_names=tuple(map(str, counter.get_feature_names_out())),
        extras={"texts": texts, "objects": tuple(name for _, name, _ in documents)},
    )


@cache
def _docstrings() -> tuple[tuple[str, str, str], ...]:
    """Return module, object and text of every public docstring, in the order of the names."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    documents: dict[tuple[str, str], str] = {}
    for module in sorted(sys.stdlib_module_names - LEFT_OUT):
        for name, path in _sources(folder, module):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # newer Pythons warn of escapes in old sources
                    tree = ast.parse(path.read_bytes())
            except (OSError, SyntaxError, ValueError):
                continue  # what this Python cannot parse
            for what, text in _documented(name, tree):
                documents.setdefault((module, text), what)  # repeated docstrings are one document
    return tuple((module, what, text) for (module, text), what in documents.items())


def _sources(folder: Path, module: str) -> Iterator[tuple[str, Path]]:
    single, package = folder / f"{module}.py", folder / module
    if module.startswith("_"):
        return
    if single.is_file():
        yield module, single
    elif (package / "__init__.py").is_file():
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            if not any(part in ("test", "tests") or part.startswith("_") for part in parts):
                yield ".".join((module, *parts)), path


def _documented(name: str, node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if text := ast.get_docstring(node):
            yield name, text
        for inner in node.body if isinstance(node, ast.Module | ast.ClassDef) else ():
            if (
                isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                and inner.name[0] != "_"
            ):
                yield from _documented(f"{name}.{inner.name}", inner)
