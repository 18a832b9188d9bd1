"""A text collection that every Python has: the docstrings of its standard library.

The sources are parsed, never imported.
"""

from __future__ import annotations

import ast
import gc
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from nonneg.datasets.dataset import Dataset
from nonneg.exceptions import InvalidParameterError, NonnegError

# Programs, tests, tables and jokes, whose docstrings do not describe the module.
LEFT_OUT = frozenset(
    {"antigravity", "distutils", "encodings", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "this"}
    | {"tkinter", "turtle", "turtledemo", "venv", "__future__"}
)
_WORDS = re.compile(r"[^\W\d_][\w'-]*\w")
_LARGEST = 400_000


def load_standard_library(*, min_words: int = 8, min_documents: int = 10) -> Dataset:
    """Return the docstrings of the running Python's standard library as a collection of documents.

    Parameters
    ----------
    min_words : int, default 8
        Docstrings with fewer words are left out.
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
    Documents are the public modules, classes, functions and methods. Their number depends on the version of
    Python (3.11: about 2600). The sources are parsed once per process, which takes a few seconds.
    """
    for name, value in (("min_words", min_words), ("min_documents", min_documents)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidParameterError(f"{name} must be an integer of at least 1, got {value!r}.")
    found = [entry for entry in _docstrings() if len(_WORDS.findall(entry[2])) >= min_words]
    sizes: dict[str, int] = {}
    for module, _, _ in found:
        sizes[module] = sizes.get(module, 0) + 1
    found = [entry for entry in found if sizes[entry[0]] >= min_documents]
    if not found:
        raise NonnegError(
            "No docstrings were found: the source files of the standard library are not installed "
            f"({sysconfig.get_paths()['stdlib']}), or min_words and min_documents leave nothing."
        )
    from scipy import sparse
    from sklearn.feature_extraction.text import CountVectorizer

    texts = tuple(text for _, _, text in found)
    counter = CountVectorizer(token_pattern=_WORDS.pattern, dtype=np.float64)
    counts = sparse.csr_array(counter.fit_transform(texts))
    modules = sorted(sizes_of for sizes_of in sizes if sizes[sizes_of] >= min_documents)
    places = {module: at for at, module in enumerate(modules)}
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Dataset(
        X=counts,
        y=np.array([places[module] for module, _, _ in found], dtype=np.intp),
        names=tuple(modules),
        description=(
            f"Docstrings of the standard library of Python {version}: {len(texts)} public objects of "
            f"{len(modules)} modules, one per row, counts of {counts.shape[1]} words."
        ),
        feature_names=tuple(map(str, counter.get_feature_names_out())),
        extras={"texts": texts, "objects": tuple(name for _, name, _ in found)},
    )


@cache
def _docstrings() -> tuple[tuple[str, str, str], ...]:
    """Return module, object and text of every public docstring, in the order of the names."""
    # Syntax trees are many small objects: without garbage collection this takes half the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _read_docstrings(Path(sysconfig.get_paths()["stdlib"]))
    finally:
        if collects:
            gc.enable()


def _read_docstrings(folder: Path) -> tuple[tuple[str, str, str], ...]:
    found: list[tuple[str, str, str]] = []
    for module in sorted(sys.stdlib_module_names - LEFT_OUT):
        if module.startswith("_"):
            continue
        seen: set[str] = set()
        for name, path in _sources(folder, module):
            # Repeated docstrings are one document.
            for what, text in _documented(name, path):
                if text not in seen:
                    seen.add(text)
                    found.append((module, what, text))
    return tuple(found)


def _sources(folder: Path, module: str) -> Iterator[tuple[str, Path]]:
    single, package = folder / f"{module}.py", folder / module
    if single.is_file():
        yield module, single
    elif (package / "__init__.py").is_file():
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package).with_suffix("").parts
            if any(part in ("test", "tests", "__main__") or part.startswith("_") for part in parts[:-1]):
                continue
            if parts[-1] == "__init__":
                parts = parts[:-1]
            elif parts[-1].startswith("_"):
                continue
            yield ".".join((module, *parts)), path


def _documented(name: str, path: Path) -> Iterator[tuple[str, str]]:
    try:
        if path.stat().st_size > _LARGEST:
            return
        with warnings.catch_warnings():
            # Newer Pythons warn of escapes in old sources.
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        # Files that this Python cannot parse are left out.
        return
    yield from _walk(name, tree)


def _walk(
    name: str, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[tuple[str, str]]:
    text = ast.get_docstring(node)
    if text:
        yield name, text
    if isinstance(node, ast.Module | ast.ClassDef):
        for inner in node.body:
            if isinstance(
                inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ) and not inner.name.startswith("_"):
                yield from _walk(f"{name}.{inner.name}", inner)
