"""A figure of matplotlib as an SVG element that is the same in every run."""

from __future__ import annotations

import io
import re
import warnings
from html import escape
from typing import Any

from nonneg._optional import import_optional

_DECORATIVE_IDS = re.compile(r' id="(?:figure|patch|axes|text|line2d|matplotlib|xtick|ytick|LineColl)[^"]*"')


def svg_element(figure: Any, title: str) -> str:
    """Draw a figure."""
    matplotlib = import_optional("matplotlib", extra="report", purpose="The report")
    backend = import_optional("matplotlib.backends.backend_svg", extra="report", purpose="The report")
    stream = io.StringIO()
    # The salt makes the names of clip paths the same in every run, and different between figures.
    with warnings.catch_warnings(), matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        # Text stays text: a character that matplotlib's own font lacks is drawn by the browser.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        backend.FigureCanvasSVG(figure).print_svg(
            stream, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    text = stream.getvalue()
    text = _DECORATIVE_IDS.sub("", text[text.index("<svg") :])
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)
