"""Which Triton kernels the tests launch: `pytest -p tests.kernels.launches tests/kernels tests/contracts`.

The end of the run lists the kernels that no test launched, on the GPU or, without one, in the interpreter.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import nonneg

LAUNCHED: set[str] = set()


def kernels() -> dict[str, set[str]]:
    """Return all functions compiled by Triton as MODULE:NAME, each with the names that it calls."""
    found: dict[str, set[str]] = {}
    package = Path(nonneg.__file__).parent
    for path in package.rglob("*.py"):
        module = ".".join(("nonneg", *path.relative_to(package).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(
                "triton.jit" in ast.unparse(decorator) for decorator in node.decorator_list
            ):
                found[f"{module}:{node.name}"] = {
                    call.func.id
                    for call in ast.walk(node)
                    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
                }
    return found


def executed() -> set[str]:
    """Return the functions that were launched, or called by those."""
    known, reached, waiting = kernels(), set(), list(LAUNCHED)
    while waiting:
        name = waiting.pop()
        if name in known and name not in reached:
            reached.add(name)
            for called in known[name]:
                here = f"{name.partition(':')[0]}:{called}"  # or imported from another file
                waiting += [here] if here in known else [at for at in known if at.endswith(f":{called}")]
    return reached


def pytest_configure() -> None:
    """Note every launch."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    for kind in (JITFunction, InterpretedFunction):
        kind.run = _noted(kind.run)


def _noted(run: Any) -> Any:
    def noted(self: Any, *arguments: Any, **named: Any) -> Any:
        LAUNCHED.add(f"{self.fn.__module__}:{self.fn.__name__}")
        return run(self, *arguments, **named)

    return noted


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which kernels were never launched."""
    missing = sorted(kernels().keys() - executed())
    terminalreporter.write_line(
        f"{len(kernels()) - len(missing)} of {len(kernels())} Triton functions executed"
        + (f"; never: {', '.join(missing)}" if missing else "")
    )
