"""Notebooks of the gallery run cell by cell, and show certificates and results as tables."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def notebook_of(path: Path) -> dict:
    """Convert an example as the gallery does for its downloads."""
    gallery = pytest.importorskip("sphinx_gallery", reason="sphinx-gallery is not installed")
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.notebook import jupyter_notebook
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    assert gallery
    blocks = split_code_and_text_blocks(str(path))[1]
    return json.loads(json.dumps(jupyter_notebook(blocks, dict(DEFAULT_GALLERY_CONF), str(path.parent))))


def run(notebook: dict) -> list[str]:
    """Run the cells in one namespace, as a kernel does; return what each shows, tables as HTML."""
    namespace: dict = {"__name__": "__main__"}
    shown = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        body = ast.parse("".join(cell["source"]).replace("%matplotlib inline", "")).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(ast.Module(body, []), "cell", "exec"), namespace)
            value = None
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)  # noqa: S307
        view = getattr(value, "_repr_html_", None)
        shown.append(out.getvalue() + (view() if view else "" if value is None else repr(value)))
    return shown


def test_a_notebook_of_the_gallery_runs_cell_by_cell(monkeypatch, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    monkeypatch.chdir(tmp_path)
    notebook = notebook_of(EXAMPLES / "plot_digits.py")
    notebook["cells"].append({"cell_type": "code", "source": ["model.certificate_"]})
    shown = run(notebook)
    assert len(shown) >= 5
    assert any("stationarity" in text for text in shown)
    assert pyplot.get_fignums()
    pyplot.close("all")
    assert "<table" in shown[-1]
    assert "holds" in shown[-1]
