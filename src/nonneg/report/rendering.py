"""Pages from templates: one HTML file with styles and pictures inside."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from nonneg._optional import import_optional


def drawing(svg: str) -> Any:
    """Mark a picture as HTML that is not to be escaped."""
    return _jinja2().utils.markupsafe.Markup(svg)


def render(template: str, context: Mapping[str, Any]) -> str:
    """Fill a template."""
    # What should not be used as it is, is said first.
    problems = [entry for entry in context.get("certificate", ()) if entry["headline"]]
    style = drawing(_source("style.css"))
    return str(_environment().get_template(template).render(context, style=style, problems=problems))


@cache
def _environment() -> Any:
    """Return the environment, which compiles a template once."""
    jinja2 = _jinja2()
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _jinja2() -> Any:
    return import_optional("jinja2", extra="report", purpose="The report")


def _source(name: str) -> str:
    return resources.files("nonneg.report").joinpath("templates", name).read_text(encoding="utf-8")
