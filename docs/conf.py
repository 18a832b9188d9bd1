"""How the site is built: ``make docs``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))

import solver_table  # noqa: E402 -- it lies beside this file, which the line above makes importable

import nonneg  # noqa: E402 -- the same

project = "nonneg"
author = "The nonneg developers"
copyright = "2026, the nonneg developers"  # noqa: A001 -- the name that Sphinx reads
version = release = nonneg.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_generated"]

autodoc_typehints = "none"  # the docstrings say it, with shapes
numpydoc_show_class_members = False  # methods come from autodoc, once

html_theme = "furo"
html_title = f"nonneg {release}"


def draw_the_tree_of_errors(app, what, name, obj, options, lines):
    """Keep the shape of the tree at the top of the module: it is drawn, not marked up."""
    if name == "nonneg.exceptions":
        lines[1:] = ["", "::", "", *(f"    {line}" for line in lines[1:])]


# scikit-learn's own, the same for every estimator, with references into its pages.
INHERITED = re.compile(r"set_\w+_request|set_output|[gs]et_params|get_metadata_routing|get_feature_names_out")


def leave_out_what_scikit_learn_documents(app, what, name, obj, skip, options):
    """Leave out the methods that every estimator inherits."""
    return True if INHERITED.fullmatch(name) else None


def setup(app):
    """Register the above with Sphinx."""
    app.connect("autodoc-skip-member", leave_out_what_scikit_learn_documents)
    app.connect("autodoc-process-docstring", draw_the_tree_of_errors)


# Written before the pages are read, so that what the solvers can do is said once: in their registry.
solver_table.write(DOCS / "_generated" / "solvers.md")
