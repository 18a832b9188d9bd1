"""Run the code of a page when the site is built, and show what each block printed, returned and drew.

Blocks of Python run in one namespace per page, as in a notebook, and the value of every bare expression is
shown. In blocks of ``console`` the lines that begin with ``$ nonneg`` are run as commands. All of it happens
in an empty folder; blocks that are written as ``{code-block} python`` or ``bash`` are shown as they are.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXECUTED = re.compile(r"index|tutorial|migration|guide/.*")
MAX_LINES = 40
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]+")


class PageError(Exception):
    """A block of a page failed."""


def executed(text: str, page: str, pictures: Path) -> str:
    """Return the Markdown of a page with the output of every block below it; figures go to a folder."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    drawn: list[str] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):

        def with_output(match: re.Match[str]) -> str:
            kind, code = match.groups()
            try:
                said = run_python(code, namespace) if kind == "python" else run_console(code)
            except Exception:
                raise PageError(f"{page}: this block failed.\n{code}\n{traceback.format_exc()}") from None
            if kind == "console":
                return f"```console\n{said}\n```"
            figures = save_figures(pictures, f"{page.replace('/', '-')}-{len(drawn)}")
            drawn.extend(figures)
            return "\n\n".join([match.group(), *shown(said), *(f"![]({name})" for name in figures)])

        return FENCE.sub(with_output, text)


def run_python(code: str, namespace: dict[str, Any]) -> str:
    """Run a block statement by statement; return what it prints and the values of bare expressions."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for node in ast.parse(code).body:
            if not isinstance(node, ast.Expr):
                exec(compile(ast.Module([node], []), "<page>", "exec"), namespace)
                continue
            # It is the code of our own pages.
            value = eval(compile(ast.Expression(node.value), "<page>", "eval"), namespace)  # noqa: S307
            text = repr(value)
            # Objects without words of their own, such as axes, say nothing to a reader.
            if value is not None and not _ADDRESS.search(text) and "<Axes" not in text:
                print(text)  # noqa: T201 -- into the output of the block
    return out.getvalue()


def run_console(code: str) -> str:
    """Run the commands of a block; return them with what they print."""
    said = []
    for line in code.strip().splitlines():
        said.append(line)
        if line.startswith("$ nonneg "):
            words = [sys.executable, "-m", "nonneg", *shlex.split(line, comments=True)[2:]]
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
            said += done.stdout.replace(f"{Path.cwd()}/", "").rstrip().splitlines()[:MAX_LINES]
    return "\n".join(said)


def shown(said: str) -> list[str]:
    """Return the output of a block as Markdown."""
    lines = said.rstrip().splitlines()
    if not lines:
        return []
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], "..."]
    return ["\n".join(["```{code-block} text", ":class: output", "", *lines, "```"])]


def save_figures(folder: Path, stem: str) -> list[str]:
    """Save and close the open figures; return their addresses from the root of the site."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    names = []
    for at, number in enumerate(pyplot.get_fignums()):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{stem}-{at}.png"
        pyplot.figure(number).savefig(path, dpi=110, bbox_inches="tight")
        names.append(f"/_generated/{folder.name}/{path.name}")
    pyplot.close("all")
    return names


def show_output(app: Any, page: str, source: list[str]) -> None:
    """Run the blocks of tutorial and guides when Sphinx reads them."""
    if app.builder.format == "html" and EXECUTED.fullmatch(page):
        import numpy as np

        # Numbers as numbers: 0.5, not np.float64(0.5).
        with np.printoptions(precision=4, threshold=60, edgeitems=3, linewidth=100, legacy="1.25"):
            source[0] = executed(source[0], page, Path(app.srcdir) / "_generated" / "outputs")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx; figures must not open windows."""
    import matplotlib as mpl

    mpl.use("Agg")
    app.connect("source-read", show_output)
    return {"parallel_read_safe": False}
