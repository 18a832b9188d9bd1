"""Pages from templates: one HTML file with styles and pictures inside."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

from nonneg._optional import import_optional


def drawing(svg: str) -> Any:
    """Mark a picture as HTML that is not to be escaped.

    Parameters
    ----------
    svg : str
        Made here, never by a user.

    Returns
    -------
    markupsafe.Markup
        The same text.
    """
    return _jinja2().utils.markupsafe.Markup(svg)


def render(template: str, context: Mapping[str, Any]) -> str:
    """Fill a template.

    Parameters
    ----------
    template : str
        Its name, in the folder of templates. It extends ``page.html``, which wants ``title``, ``answer``,
        ``outcome``, ``tiles``, ``facts`` and ``versions``.
    context : mapping
        Its values; all text is escaped but that of `drawing`.

    Returns
    -------
    str
        HTML that forbids itself scripts and anything from elsewhere.

    Raises
    ------
    MissingDependencyError
        If jinja2 is not installed.
    """
    jinja2 = _jinja2()
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return str(environment.get_template(template).render(context, style=drawing(_source("style.css"))))


def _jinja2() -> Any:
    return import_optional("jinja2", extra="report", purpose="The report")


def _source(name: str) -> str:
    return resources.files("nonneg.report").joinpath("templates", name).read_text(encoding="utf-8")
