"""How the site is built: ``make docs``."""

from __future__ import annotations

import builtins
import html
import os
import re
import sys
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))

import solver_table  # noqa: E402 -- it lies beside this file, which the line above makes importable

import nonneg  # noqa: E402 -- the same

# Pages and examples start clusters, whose workers report every step otherwise.
os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "error")

project = "nonneg"
author = "The nonneg developers"
copyright = "2026, the nonneg developers"  # noqa: A001 -- the name that Sphinx reads
version = release = nonneg.__version__

extensions = [
    "executed_code",  # beside this file
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
if os.environ.get("NONNEG_DOCS_ONLINE"):  # inventories of other sites are downloaded
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "anndata": ("https://anndata.readthedocs.io/en/stable", None),
    }
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_generated"]

autodoc_typehints = "none"  # the docstrings say it, with shapes
numpydoc_show_class_members = False  # methods come from autodoc, once

autosummary_generate = True
templates_path = ["_templates"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "doc_module": ("nonneg",),
    "backreferences_dir": "generated/backreferences",
    "within_subsection_order": "gallery_order.Order",
    "abort_on_example_error": True,
    "show_memory": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "capture_repr": ("_repr_html_",),  # not the names of axes and displays below a figure
    "write_computation_times": False,  # its page loads scripts from elsewhere
}

html_theme = "furo"
html_math_renderer = "mathml"  # drawn by the browser: no script, no network, works from disk
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"nonneg {release}"
# Furo's own, with the choice of a version below the name.
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "versions.html", "sidebar/search.html", "sidebar/scroll-start.html"),
        *("sidebar/navigation.html", "sidebar/scroll-end.html"),
    ]
}
# Pages of this repository exist once it is published, and some publishers turn programs away.
linkcheck_ignore = [r"https://(github\.com/nonneg|nonneg\.github\.io)/.*", r"https://doi\.org/.*"]
linkcheck_timeout = 20


# scikit-learn's own, the same for every estimator, with references into its pages.
INHERITED = re.compile(r"set_\w+_request|set_output|[gs]et_params|get_metadata_routing|get_feature_names_out")


def leave_out_what_scikit_learn_documents(app, what, name, obj, skip, options):
    """Leave out the methods that every estimator inherits."""
    return True if INHERITED.fullmatch(name) else None


NUMBER = re.compile(r"(?:[-+\d\s.,e±%<>=/()\[\]:;]|\b(?:to|of|s)\b)+")


def mark_cells(app, doctree):
    """Mark the cells of tables that consist of numbers, such as 0.5 ± 0.1, and those with sentences."""
    for cell in doctree.findall(nodes.entry):
        text = cell.astext()
        if len(text) <= 24 and NUMBER.fullmatch(text):
            cell["classes"].append("number")
        elif len(text) > 40:
            cell["classes"].append("sentence")


def show_formula(self, node):
    """Write an inline formula as MathML."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def show_display(self, node):
    """Write a displayed formula as MathML."""
    # Lines of an aligned formula need an environment of their own.
    text = node.astext()
    if "\\\\" in text and "\\begin" not in text:
        text = rf"\begin{{split}}{text}\end{{split}}"
    self.body.append(f'<div class="math">{convert(text, display="block")}</div>')
    raise nodes.SkipNode


def write_llms_txt(app, error):
    """List the pages for programs that read the documentation."""
    if error is not None or app.builder.name != "html":
        return
    titles = {page: title.astext() for page, title in app.env.titles.items()}
    made = ("generated/", "reproduced/", "gallery/")
    wanted = [page for page in sorted(titles) if not page.startswith(made)]
    lines = ["# nonneg", "", "> Nonnegative matrix factorization with a certificate on every fit.", ""]
    lines += [f"- [{html.unescape(titles[page])}]({page}.html)" for page in wanted]
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def leave_builtins_plain(app, env, node, contnode):
    """Show a base class of Python as code, not as a reference that leads nowhere."""
    return nodes.literal(text=contnode.astext()) if hasattr(builtins, node["reftarget"]) else None


def setup(app):
    """Register the above with Sphinx."""
    app.add_html_math_renderer("mathml", (show_formula, None), (show_display, None))
    app.connect("build-finished", write_llms_txt)
    app.connect("doctree-read", mark_cells)
    app.connect("missing-reference", leave_builtins_plain)
    app.connect("autodoc-skip-member", leave_out_what_scikit_learn_documents)


# Written before the pages are read, so that what the solvers can do is said once: in their registry.
solver_table.write(DOCS / "_generated" / "solvers.md")
